//! What the cache needs to know of an object ([`Metadata`]), and an object as the cache holds it ([`Cached`]).
//!
//! Invariant: a [`Cached`] never changes. Whoever holds one may keep it for as long as he likes; the store replaces it
//! by another and never edits it.

use std::fmt;
use std::sync::Arc;

use crate::key::ObjectKey;
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
    uid: Box<str>,
    resource_version: Box<str>,
    held: Held<K>,
    /// What `held` takes, about.
    held_bytes: u32,
}

// === impl Cached ===

impl<K> Cached<K> {
    pub(crate) fn new(key: ObjectKey, uid: &str, resource_version: &str, held: Held<K>, held_bytes: usize) -> Self {
        let held_bytes = u32::try_from(held_bytes).unwrap_or(u32::MAX);
        let entry = Entry { key, uid: uid.into(), resource_version: resource_version.into(), held, held_bytes };
        Self { entry: Arc::new(entry) }
    }

    /// The object's key.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.entry.key
    }

    /// The object's uid; empty if the server gave none.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.entry.uid
    }

    /// The object's resource version; empty if the server gave none.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        &self.entry.resource_version
    }

    /// The object. Costs a counter increment for full objects, and a decode for forms that are decoded when read.
    #[must_use]
    pub fn object(&self) -> Arc<K> {
        self.entry.held.read()
    }

    /// Whether both are the same state of the same object in the same place in memory.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entry, &other.entry)
    }

    /// Whether this is the state of the object that has this uid and resource version. Without both there's no telling.
    pub(crate) fn is_at(&self, uid: &str, resource_version: &str) -> bool {
        !resource_version.is_empty() && *self.entry.resource_version == *resource_version && *self.entry.uid == *uid
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let Entry { key, uid, resource_version, held_bytes, .. } = &*self.entry;
        u64::from(*held_bytes) + (key.as_str().len() + uid.len() + resource_version.len()) as u64
    }

    pub(crate) fn held(&self) -> &Held<K> {
        &self.entry.held
    }
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self { entry: Arc::clone(&self.entry) }
    }
}

impl<K> fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.entry.key, self.entry.resource_version)
    }
}
