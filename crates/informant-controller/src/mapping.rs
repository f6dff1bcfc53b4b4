//! From an event to the keys of the primary objects that it concerns.
//!
//! Pure. An update concerns what the old state pointed to as well as what the new one points to: an object that changes hands
//! concerns both its owners. No key is named twice for one event.

use informant_cache::{Event, Metadata, ObjectKey, Owner};

/// The identity of an owner's kind. Its version is left out: an owner reference keeps the version it was written with, while the
/// controller may read another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerKind {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) cluster_scoped: bool,
}

impl OwnerKind {
    pub(crate) fn of<K>() -> Self
    where
        K: kube::Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        let cluster_scoped =
            std::any::TypeId::of::<K::Scope>() == std::any::TypeId::of::<kube::core::ClusterResourceScope>();
        Self { group: K::group(&()).into_owned(), kind: K::kind(&()).into_owned(), cluster_scoped }
    }

    fn matches(&self, owner: &Owner<'_>) -> bool {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        self.kind == owner.kind && self.group == group
    }

    /// The key of this owner of an object in `namespace`.
    fn key(&self, owner: &Owner<'_>, namespace: Option<&str>) -> ObjectKey {
        if self.cluster_scoped { ObjectKey::cluster(owner.name) } else { ObjectKey::new(namespace, owner.name) }
    }
}

/// Which of an object's owners are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owners {
    /// The one that is its controller.
    Controller,
    /// All of the kind.
    Every,
}

/// The keys of the owners of an object, before and after.
pub(crate) fn owner_keys<C: Metadata>(event: &Event<C>, kind: &OwnerKind, which: Owners) -> Vec<ObjectKey> {
    // Of the key and not of the object, which may be a projection that leaves its namespace out.
    let namespace = event.key().namespace();
    both_states(event, |object: &C| {
        let owners = object.owners().into_iter();
        let told = owners.filter(|owner| (owner.controller || which == Owners::Every) && kind.matches(owner));
        told.map(|owner| kind.key(&owner, namespace)).collect()
    })
}

/// The keys that a mapping names for an object, before and after.
pub(crate) fn both_states<W>(event: &Event<W>, map: impl Fn(&W) -> Vec<ObjectKey>) -> Vec<ObjectKey> {
    let mut keys: Vec<ObjectKey> = event.old().map(|old| map(&old)).unwrap_or_default();
    keys.extend(map(&event.object()));
    // Few keys, and their order is that of the mapping.
    let mut unique: Vec<ObjectKey> = Vec::with_capacity(keys.len());
    for key in keys {
        if !unique.contains(&key) {
            unique.push(key);
        }
    }
    unique
}
