//! The registry: what each verb does to the store.
//!
//! Everything here is synchronous and in memory: a verb reads, decides by the pure functions of its file, and commits
//! against the version that it has read; a lost race is tried again. Waiting (for a resource version, for events) is the
//! business of lists and watches.
//!
//! Invariant: an object in the store has passed pruning, defaulting and validation in the version it was written in.

pub(crate) mod catalog;
pub(crate) mod deletion;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod scale;

mod admit;
mod allocate;
mod bootstrap;
mod convert;
mod crds;
mod create;
mod decode;
mod delete;
mod patch;
mod subresource;
#[cfg(test)]
pub(crate) mod testing;
mod unowned;
mod update;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde_json::Value;

pub(crate) use self::catalog::{Catalog, Served};
pub(crate) use self::delete::Deleted;
pub(crate) use self::patch::PatchKind;
pub(crate) use self::write::{Write, read_body};
use crate::clock::Clock;
use crate::resource::{Resource, StorageId};
use crate::status::Status;
use crate::store::{Object, Store, WriteError};

/// How often a write is tried when others write the same object meanwhile. Each lost try means that somebody else's write
/// was done, so this is fairness and no loop.
const ATTEMPTS: usize = 100;

/// All verbs on all resources.
#[derive(Debug)]
pub(crate) struct Registry {
    store: Store,
    clock: Clock,
    rng: Mutex<fastrand::Rng>,
    catalog: RwLock<Arc<Catalog>>,
    /// Held while the CRDs are brought in line with the catalog, so that two changes don't overtake each other.
    crd_turn: Mutex<()>,
    max_object_bytes: usize,
}

/// What a request is about.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The resource.
    pub(crate) served: Arc<Served>,
    /// The namespace; empty for cluster scope and for all namespaces.
    pub(crate) namespace: String,
    /// The object's name; empty for a collection.
    pub(crate) name: String,
    /// The subresource; empty for none.
    pub(crate) subresource: String,
}

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Written {
    /// The object as the written resource shows it.
    pub(crate) object: Value,
    /// Whether the write created it.
    pub(crate) created: bool,
}

// === impl Target ===

impl Target {
    /// The resource behind it.
    pub(crate) fn resource(&self) -> &Resource {
        &self.served.resource
    }

    fn storage(&self) -> &StorageId {
        &self.served.resource.storage
    }

    /// The 404 of this object.
    pub(crate) fn not_found(&self) -> Status {
        not_found(self.resource(), &self.name)
    }
}

// === impl Registry ===

impl Registry {
    /// A registry over `store` with the objects that every cluster has.
    pub(crate) fn new(store: Store, clock: Clock, seed: u64, max_object_bytes: usize) -> Self {
        let registry = Self {
            store,
            clock,
            rng: Mutex::new(fastrand::Rng::with_seed(seed)),
            catalog: RwLock::new(Arc::new(Catalog::builtin())),
            crd_turn: Mutex::new(()),
            max_object_bytes,
        };
        registry.bootstrap();
        registry
    }

    /// The store behind it.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The clock that timestamps come from.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// The resources served at this moment.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// One object as it is now.
    ///
    /// # Errors
    /// 404 when there is none of that name.
    pub(crate) fn get(&self, target: &Target) -> Result<Object, Status> {
        self.store.get(target.storage(), &target.namespace, &target.name).ok_or_else(|| target.not_found())
    }

    /// The `Scale` of an object.
    ///
    /// # Errors
    /// 404 when there is no such object, or no scale of it.
    pub(crate) fn get_scale(&self, target: &Target) -> Result<Value, Status> {
        let paths = scale_paths(target)?;
        let object = self.get(target)?;
        Ok(scale::read(&target.served.view(&object), paths))
    }

    fn rng(&self) -> MutexGuard<'_, fastrand::Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace_catalog(&self, catalog: Catalog) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
    }

    /// Looks after what follows from a committed write: a CRD's endpoint, or the end of a CRD whose last object is gone.
    fn after_write(&self, target: &Target, gone: bool) {
        let crd_changed = is_crd(target.resource());
        if crd_changed || (gone && target.served.terminating) {
            self.sync_crds();
        }
    }
}

fn scale_paths(target: &Target) -> Result<&crate::resource::ScalePaths, Status> {
    let subresource = target.served.resource.subresource("scale");
    subresource.and_then(|subresource| subresource.scale.as_ref()).ok_or_else(Status::no_such_path)
}

fn is_crd(resource: &Resource) -> bool {
    resource.group == "apiextensions.k8s.io" && resource.plural == "customresourcedefinitions"
}

fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "namespaces"
}

fn not_found(resource: &Resource, name: &str) -> Status {
    Status::not_found(&resource.group, &resource.plural, name)
}

/// 409 for a write that is based on an older version of the object.
fn stale(resource: &Resource, name: &str) -> Status {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    Status::conflict(&resource.group, &resource.plural, name, why)
}

/// What a client is told about a commit that failed for good.
fn write_error(resource: &Resource, name: &str, error: WriteError) -> Status {
    match error {
        WriteError::AlreadyExists => Status::already_exists(&resource.group, &resource.plural, name),
        WriteError::NotFound => not_found(resource, name),
        WriteError::Conflict { .. } => stale(resource, name),
        WriteError::Unnamed => Status::internal(format!("{resource}: {error}")),
    }
}
