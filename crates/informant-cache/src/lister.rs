//! Reading the cache: by key, by namespace, by label selector. No request goes to the server.

use std::fmt;
use std::sync::Arc;

use crate::key::ObjectKey;
use crate::object::{Cached, Metadata};
use crate::scope::Scope;
use crate::selector::Selector;
use crate::store::Store;

/// Reads an informer's cache.
///
/// Each call answers from one moment, and later calls never from an earlier one. The cache runs behind the server by
/// the way of a watch event, and by more while the informer reconnects: its
/// [status](crate::SharedInformer::status) tells. Objects are shared and never change: clone one to edit it.
///
/// A lister may be cloned, kept and used from anywhere, also before the informer is synced (it's empty then) and after
/// it has stopped.
///
/// What it gives can't be changed, so nobody can spoil it for others:
///
/// ```compile_fail,E0594
/// # use informant_cache::{Lister, ObjectKey};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # fn edit(lister: Lister<ConfigMap>, key: ObjectKey) {
/// if let Some(object) = lister.get(&key) {
///     // Public report C-046 (tilt-dev/tilt#3868).
///     object.immutable = Some(true); // an `Arc` gives no access for writing
/// }
/// # }
/// ```
///
/// An edited copy is the caller's own:
///
/// ```
/// # use informant_cache::{Lister, ObjectKey};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # fn edit(lister: Lister<ConfigMap>, key: ObjectKey) {
/// if let Some(object) = lister.get(&key) {
///     let mut own = ConfigMap::clone(&object);
///     own.immutable = Some(true);
/// }
/// # }
/// ```
pub struct Lister<K: 'static> {
    store: Arc<Store<K>>,
    coverage: Arc<Coverage>,
}

/// Which objects a cache can hold at all.
pub(crate) struct Coverage {
    pub(crate) scope: Scope,
    /// Whether a filter keeps objects out.
    pub(crate) filtered: bool,
}

/// What a cache knows of a key, by [`Lister::lookup`].
#[derive(Debug)]
pub enum Lookup<K> {
    /// The object.
    Found(Arc<K>),
    /// There's no such object.
    Absent,
    /// The cache doesn't hold it, and it may well exist: it's in a namespace that the cache doesn't cover, or the cache
    /// holds only objects that a selector or filter lets pass.
    OutOfScope,
    /// The cache isn't complete yet, or its kind is missing; there's no telling.
    NotSynced,
}

/// All objects of a cache at one moment.
#[derive(Debug)]
#[non_exhaustive]
pub struct Snapshot<K> {
    /// The objects, in no particular order.
    pub objects: Vec<Cached<K>>,
    /// The resource version that they belong to: every change up to it is in, and none after it. Empty before the cache
    /// is complete.
    pub resource_version: String,
}

/// A [`Lister`] that sees one namespace only.
pub struct NamespaceLister<K: 'static> {
    store: Arc<Store<K>>,
    namespace: String,
}

// === impl Lister ===

impl<K: 'static> Lister<K> {
    pub(crate) fn new(store: Arc<Store<K>>, coverage: Arc<Coverage>) -> Self {
        Self { store, coverage }
    }

    /// The object with this key. Cost: one hash look-up.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.cached(key).map(|found| found.object())
    }

    /// As [`get`](Self::get), without decoding the object.
    #[must_use]
    pub fn cached(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.store.get(key.as_str())
    }

    /// The objects with these keys, in the order of the keys, all from one moment.
    #[must_use]
    pub fn get_many(&self, keys: &[ObjectKey]) -> Vec<Option<Arc<K>>> {
        let found = self.store.get_many(keys.iter());
        found.into_iter().map(|found| found.map(|found| found.object())).collect()
    }

    /// As [`get`](Self::get), but tells an object that isn't there from one that the cache wouldn't know of.
    #[must_use]
    pub fn lookup(&self, key: &ObjectKey) -> Lookup<K> {
        let Coverage { scope, filtered } = &*self.coverage;
        let (found, shown, synced) = self.store.lookup(key);
        match found {
            Some(found) => Lookup::Found(found.object()),
            None if !shown || !scope.may_hold(key) => Lookup::OutOfScope,
            None if !synced => Lookup::NotSynced,
            None if *filtered || scope.is_selective() => Lookup::OutOfScope,
            None => Lookup::Absent,
        }
    }

    /// All objects and their resource version, from one moment. Cost: a pointer per object.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K> {
        let (objects, resource_version) = self.store.snapshot();
        Snapshot { objects, resource_version }
    }

    pub(crate) fn resource_version(&self) -> String {
        self.store.resource_version()
    }

    /// Whether there's an object with this key.
    #[must_use]
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.cached(key).is_some()
    }

    /// All objects, in no particular order. Cost: a pointer per object.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<K>> {
        self.store.list().iter().map(Cached::object).collect()
    }

    /// As [`list`](Self::list), without decoding the objects.
    #[must_use]
    pub fn list_cached(&self) -> Vec<Cached<K>> {
        self.store.list()
    }

    /// The keys of all objects, sorted.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        let mut keys: Vec<_> = self.store.list().iter().map(|object| object.key().clone()).collect();
        keys.sort_unstable();
        keys
    }

    /// The namespaces that hold an object, sorted.
    #[must_use]
    pub fn namespaces(&self) -> Vec<Arc<str>> {
        self.store.namespaces()
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there's no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.store.len() == 0
    }

    /// The part in one namespace. Its calls cost by the number of objects there, whatever the size of the store.
    #[must_use]
    pub fn namespace(&self, namespace: impl Into<String>) -> NamespaceLister<K> {
        NamespaceLister { store: Arc::clone(&self.store), namespace: namespace.into() }
    }
}

impl<K: Metadata + 'static> Lister<K> {
    /// The objects whose labels a selector selects, in no particular order. Cost: a test of every object; where that's
    /// too much, [index](crate::SharedInformer::index) the label.
    #[must_use]
    pub fn select(&self, selector: &Selector) -> Vec<Arc<K>> {
        select(self.store.list(), selector)
    }
}

impl<K: 'static> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), coverage: Arc::clone(&self.coverage) }
    }
}

impl<K: 'static> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("objects", &self.len()).finish()
    }
}

// === impl NamespaceLister ===

impl<K: 'static> NamespaceLister<K> {
    /// The object with this name in the namespace.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<K>> {
        let key = ObjectKey::namespaced(&self.namespace, name);
        self.store.get(key.as_str()).map(|found| found.object())
    }

    /// The namespace's objects, in no particular order.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<K>> {
        self.store.namespace(&self.namespace).iter().map(Cached::object).collect()
    }

    /// The keys of the namespace's objects, sorted.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        let found = self.store.namespace(&self.namespace);
        let mut keys: Vec<_> = found.iter().map(|object| object.key().clone()).collect();
        keys.sort_unstable();
        keys
    }
}

impl<K: Metadata + 'static> NamespaceLister<K> {
    /// The namespace's objects whose labels a selector selects, in no particular order.
    #[must_use]
    pub fn select(&self, selector: &Selector) -> Vec<Arc<K>> {
        select(self.store.namespace(&self.namespace), selector)
    }
}

impl<K: 'static> Clone for NamespaceLister<K> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), namespace: self.namespace.clone() }
    }
}

fn select<K: Metadata>(mut objects: Vec<Cached<K>>, selector: &Selector) -> Vec<Arc<K>> {
    if !selector.is_everything() {
        objects.retain(|object| object.held().matches(selector));
    }
    objects.iter().map(Cached::object).collect()
}
