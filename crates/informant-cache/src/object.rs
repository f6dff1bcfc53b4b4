//! What the cache needs to know of an object ([`Metadata`]), and an object as the cache holds it ([`Cached`]).
//!
//! Invariant: a [`Cached`] never changes. Whoever holds one may keep it for as long as he likes; the store replaces it
//! by another and never edits it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::document::Document;
use crate::error::DecodeError;
use crate::heap_size::ARC_COUNTERS;
use crate::key::ObjectKey;
use crate::projection::Projection;
use crate::representation::Held;

/// The metadata of an object, whatever its form in memory.
///
/// Every [`kube::Resource`] has it already (typed, dynamic and metadata-only objects alike). A trimmed struct of your
/// own implements it with the fields that it keeps; what it doesn't keep it answers with `None` or nothing.
pub trait Metadata {
    /// `metadata.name`; empty if the object has none.
    fn name(&self) -> &str;
    /// `metadata.namespace`; `None` for cluster-scoped objects.
    fn namespace(&self) -> Option<&str>;
    /// `metadata.uid`.
    fn uid(&self) -> Option<&str>;
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> Option<&str>;
    /// `metadata.generation`.
    fn generation(&self) -> Option<i64> {
        None
    }
    /// Whether `metadata.deletionTimestamp` is set: the object waits for its finalizers.
    fn is_deleting(&self) -> bool {
        false
    }
    /// The value of a label.
    fn label(&self, _key: &str) -> Option<&str> {
        None
    }
    /// The value of an annotation.
    fn annotation(&self, _key: &str) -> Option<&str> {
        None
    }
    /// `metadata.ownerReferences`, in their order.
    fn owners(&self) -> Vec<Owner<'_>> {
        Vec::new()
    }
}

/// One entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Group and version of the owner, as in `apps/v1`.
    pub api_version: &'a str,
    /// Kind of the owner.
    pub kind: &'a str,
    /// Name of the owner, which is cluster-scoped or in the same namespace.
    pub name: &'a str,
    /// Uid of the owner.
    pub uid: &'a str,
    /// Whether the owner is the managing controller. At most one of an object's owners is.
    pub controller: bool,
}

impl<K: kube::Resource> Metadata for K {
    fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or("")
    }

    fn namespace(&self) -> Option<&str> {
        self.meta().namespace.as_deref()
    }

    fn uid(&self) -> Option<&str> {
        self.meta().uid.as_deref()
    }

    fn resource_version(&self) -> Option<&str> {
        self.meta().resource_version.as_deref()
    }

    fn generation(&self) -> Option<i64> {
        self.meta().generation
    }

    fn is_deleting(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.meta().labels.as_ref()?.get(key).map(String::as_str)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(key).map(String::as_str)
    }

    fn owners(&self) -> Vec<Owner<'_>> {
        let owners = self.meta().owner_references.iter().flatten();
        owners
            .map(|owner| Owner {
                api_version: &owner.api_version,
                kind: &owner.kind,
                name: &owner.name,
                uid: &owner.uid,
                controller: owner.controller.unwrap_or(false),
            })
            .collect()
    }
}

/// An object as the cache holds it: its key, uid and resource version at hand, the object itself on request.
///
/// A clone is cheap and shares the object. How the object is kept (as a typed struct, or in a form that is decoded
/// when read) shows only in what [`object`](Cached::object) costs.
pub struct Cached<K> {
    entry: Arc<Entry<K>>,
}

struct Entry<K> {
    key: ObjectKey,
    /// The uid, and after it the resource version: one allocation for both.
    identity: Box<str>,
    uid_len: u32,
    /// What `held` takes, about.
    held_bytes: u32,
    held: Held<K>,
}

// === impl Cached ===

impl<K> Cached<K> {
    pub(crate) fn new(key: ObjectKey, uid: &str, resource_version: &str, held: Held<K>, held_bytes: usize) -> Self {
        let mut identity = String::with_capacity(uid.len() + resource_version.len());
        identity.push_str(uid);
        identity.push_str(resource_version);
        // Both are far smaller than four gigabytes; were they not, the text would be the resource version.
        let uid_len = u32::try_from(uid.len()).unwrap_or(0);
        let held_bytes = u32::try_from(held_bytes).unwrap_or(u32::MAX);
        Self { entry: Arc::new(Entry { key, identity: identity.into(), uid_len, held_bytes, held }) }
    }

    /// The same state in another form.
    pub(crate) fn with_held(&self, held: Held<K>, held_bytes: usize) -> Self {
        Self::new(self.key().clone(), self.uid(), self.resource_version(), held, held_bytes)
    }

    /// The object's key.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.entry.key
    }

    /// The object's uid; empty if the server gave none.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.entry.identity.get(..self.entry.uid_len as usize).unwrap_or("")
    }

    /// The object's resource version; empty if the server gave none.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.entry.identity.get(self.entry.uid_len as usize..).unwrap_or("")
    }

    /// The object. Costs a counter increment for full objects, and a decode for forms that are decoded when read.
    #[must_use]
    pub fn object(&self) -> Arc<K> {
        self.entry.held.read()
    }

    /// Looks at the object's document without decoding it; `None` if it's kept as a struct.
    pub(crate) fn with_document<T>(&self, look: impl FnOnce(&Document<'_>) -> T) -> Option<T> {
        match &self.entry.held {
            Held::Full(_) => None,
            Held::Packed(object) => Some(object.with_document(look)),
        }
    }

    /// Whether both are the same state of the same object in the same place in memory.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entry, &other.entry)
    }

    /// Whether this is the state of the object that has this uid and resource version. Without both there's no telling.
    pub(crate) fn is_at(&self, uid: &str, resource_version: &str) -> bool {
        !resource_version.is_empty() && self.resource_version() == resource_version && self.uid() == uid
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let Entry { key, identity, held_bytes, .. } = &*self.entry;
        // The entry and the key's text are each shared.
        let own = 2 * ARC_COUNTERS + size_of::<Entry<K>>() + key.as_str().len() + identity.len();
        u64::from(*held_bytes) + own as u64
    }

    pub(crate) fn held(&self) -> &Held<K> {
        &self.entry.held
    }
}

impl<K: Serialize> Cached<K> {
    /// A few fields of the object. Of packed objects they're read straight from the bytes: a few microseconds, where the
    /// whole object takes tens. Objects kept as structs are serialised for it, which costs more than reading the struct.
    ///
    /// # Errors
    /// If a value isn't of its field's type, or isn't there and the field can't do without. The error names the path.
    pub fn project<V: Projection>(&self) -> Result<V, DecodeError> {
        match self.with_document(|document| document.project()) {
            Some(part) => part,
            None => Document::json(&self.to_json()?).project(),
        }
    }

    /// The object as JSON text: of packed objects as the server sent it, without `managedFields` unless they're kept (and
    /// often without `apiVersion` and `kind`, which items of a list don't have); of others as they're serialised.
    ///
    /// # Errors
    /// If the object can't be serialised, which only a type with its own `Serialize` may bring about.
    pub fn to_json(&self) -> Result<Vec<u8>, DecodeError> {
        match self.with_document(|document| document.to_json().map(Cow::into_owned)) {
            Some(text) => text,
            None => serde_json::to_vec(&*self.object()).map_err(DecodeError::from_json),
        }
    }
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self { entry: Arc::clone(&self.entry) }
    }
}

impl<K> fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.entry.key, self.resource_version())
    }
}
