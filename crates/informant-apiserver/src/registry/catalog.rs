//! Which resources are served right now: the built-in table and the established CRDs, as one immutable value.
//!
//! A change of a CRD makes a new catalog; requests under way keep the one they began with.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use crate::crd_controller::is_established;
use crate::object::{self, at_path};
use crate::registry::convert;
use crate::resource::{Resource, ResourceSchema, StorageId};
use crate::schema;
use crate::status::Status;
use crate::store::Object;
use crate::{builtin, crd};

/// A resource with what serving it needs.
#[derive(Debug)]
pub(crate) struct Served {
    /// The resource in one version.
    pub(crate) resource: Arc<Resource>,
    /// The `apiVersion` under which its objects are stored.
    storage_version: String,
    /// Whether objects may have been stored under another schema, so that reads have to fit them to this one.
    refit: bool,
    /// The schema of the stored version, for a custom kind in another version than that: what is stored fits it.
    pub(crate) storage_schema: Option<ResourceSchema>,
    /// Whether the CRD behind it is being deleted: nothing may be created then.
    pub(crate) terminating: bool,
}

/// All resources that are served.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    by_path: HashMap<String, Arc<Served>>,
    by_storage: BTreeMap<StorageId, Arc<Served>>,
    resources: Vec<Arc<Resource>>,
    custom: BTreeMap<String, Custom>,
    /// OpenAPI documents as they were last written, by group version. One for each at most.
    documents: Mutex<BTreeMap<String, Bytes>>,
}

/// The resources of one CRD.
#[derive(Debug, Clone)]
struct Custom {
    uid: String,
    spec: Value,
    terminating: bool,
    served: Vec<Arc<Served>>,
}

// === impl Served ===

impl Served {
    fn builtin(resource: Arc<Resource>) -> Self {
        let storage_version = convert::storage_api_version(&resource);
        Self { resource, storage_version, refit: false, storage_schema: None, terminating: false }
    }

    /// A stored object as this resource shows it. Costs nothing when it is stored that way.
    pub(crate) fn view<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        let stored_as = object.get("apiVersion").and_then(Value::as_str).unwrap_or("");
        let same = !self.refit && is_version(stored_as, &self.resource);
        if same {
            return Cow::Borrowed(object);
        }
        let mut shown = convert::from_storage(object, &self.resource);
        if self.resource.custom {
            schema::prune::prune(&mut shown, self.resource.schema.view());
            schema::default::apply(&mut shown, self.resource.schema.view());
        }
        Cow::Owned(shown)
    }

    /// Whether [`view`](Self::view) may change an object.
    pub(crate) fn converts(&self) -> bool {
        self.refit || self.storage_version != self.resource.api_version()
    }

    /// An object of this resource's version as it's stored.
    pub(crate) fn to_storage(&self, object: Value, stored: Option<&Value>) -> Value {
        let mut written = convert::to_storage(object, &self.resource, &self.storage_version, stored);
        if let Some(schema) = &self.storage_schema {
            schema::prune::prune(&mut written, schema.view());
            schema::default::apply(&mut written, schema.view());
        }
        written
    }
}

/// Whether `api_version` is that of the resource, without building a string.
fn is_version(api_version: &str, resource: &Resource) -> bool {
    match api_version.split_once('/') {
        Some((group, version)) => group == resource.group && version == resource.version,
        None => resource.group.is_empty() && api_version == resource.version,
    }
}

// === impl Catalog ===

impl Catalog {
    /// The built-in kinds alone.
    pub(crate) fn builtin() -> Self {
        let mut catalog = Self::default();
        for resource in builtin::resources() {
            catalog.insert(Arc::new(Served::builtin(resource)));
        }
        catalog
    }

    /// The catalog after a change of the CRDs, and the kinds whose open watches end with it: those that were served and
    /// now look different or are gone.
    ///
    /// # Errors
    /// When an established CRD can't be read: a defect of its validation.
    pub(crate) fn with_crds(&self, crds: &[Object]) -> Result<(Self, Vec<StorageId>), Status> {
        let mut next = Self::default();
        for resource in self.resources.iter().filter(|resource| !resource.custom) {
            if let Some(served) = self.find(&resource.group, &resource.version, &resource.plural) {
                next.insert(Arc::clone(served));
            }
        }
        let mut ended = Vec::new();
        for crd in crds.iter().filter(|crd| is_established(crd)) {
            let before = self.custom.get(object::name(crd)).filter(|custom| custom.uid == object::uid(crd));
            let custom = Custom::of(crd, before)?;
            if let Some(before) = before.filter(|before| before.spec != custom.spec) {
                ended.extend(before.storage());
            }
            for served in &custom.served {
                next.insert(Arc::clone(served));
            }
            next.custom.insert(object::name(crd).to_owned(), custom);
        }
        for (name, before) in &self.custom {
            if next.custom.get(name).is_none_or(|custom| custom.uid != before.uid) {
                ended.extend(before.storage());
            }
        }
        Ok((next, ended))
    }

    /// The resource at a path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Served>> {
        self.by_path.get(&path(group, version, plural))
    }

    /// A served resource whose objects are stored at `storage`, in whatever version.
    pub(crate) fn find_storage(&self, storage: &StorageId) -> Option<&Arc<Served>> {
        self.by_storage.get(storage)
    }

    /// Every resource in every version, core first, then the built-in groups, then those of CRDs.
    pub(crate) fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// A document about this catalog: made when it's first asked for, `None` when `make` knows none.
    pub(crate) fn document(&self, name: &str, make: impl FnOnce() -> Option<Bytes>) -> Option<Bytes> {
        let known = self.documents.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if known.is_some() {
            return known;
        }
        let made = make()?;
        self.documents.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), made.clone());
        Some(made)
    }

    /// Every served resource, once for each place where objects are stored, in order of that place.
    pub(crate) fn storages(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.by_storage.values()
    }

    fn insert(&mut self, served: Arc<Served>) {
        let resource = &served.resource;
        self.resources.push(Arc::clone(resource));
        if !resource.rules.virtual_only {
            self.by_storage.entry(resource.storage.clone()).or_insert_with(|| Arc::clone(&served));
        }
        self.by_path.insert(path(&resource.group, &resource.version, &resource.plural), served);
    }
}

// === impl Custom ===

impl Custom {
    fn of(crd: &Object, before: Option<&Self>) -> Result<Self, Status> {
        let spec = crd.get("spec").cloned().unwrap_or(Value::Null);
        let terminating = object::is_terminating(crd);
        if let Some(before) = before.filter(|before| before.spec == spec && before.terminating == terminating) {
            return Ok(before.clone());
        }
        let storage_version = storage_version(crd);
        let storage_schema = crd::storage_schema(crd)?;
        let served = crd::resources(crd)?.into_iter().map(|resource| {
            Arc::new(Served {
                storage_version: storage_version.clone(),
                storage_schema: (resource.api_version() != storage_version).then(|| storage_schema.clone()),
                // Once the spec has changed, or in another version than the stored one, nothing is sure to fit.
                refit: before.is_some_and(|before| before.spec != spec || before.refits()),
                terminating,
                resource: Arc::new(resource),
            })
        });
        Ok(Self { uid: object::uid(crd).to_owned(), served: served.collect(), spec, terminating })
    }

    fn refits(&self) -> bool {
        self.served.iter().any(|served| served.refit)
    }

    fn storage(&self) -> Option<StorageId> {
        self.served.first().map(|served| served.resource.storage.clone())
    }
}

fn path(group: &str, version: &str, plural: &str) -> String {
    format!("{group}/{version}/{plural}")
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    at_path(crd, "spec.versions").and_then(Value::as_array).into_iter().flatten()
}

fn storage_version(crd: &Value) -> String {
    let group = at_path(crd, "spec.group").and_then(Value::as_str).unwrap_or("");
    let stored = versions(crd).find(|version| version.get("storage").and_then(Value::as_bool) == Some(true));
    let name = stored.and_then(|version| version.get("name")).and_then(Value::as_str).unwrap_or("");
    format!("{group}/{name}")
}
