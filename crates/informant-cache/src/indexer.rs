//! Own indexes over the store: from any value computed of an object to the objects that have it.
//!
//! An index lives in the store and changes with it under the same lock, so a reader never finds an object by a value
//! that it no longer has. The values are computed once per object state, before the lock, by the user's function; the
//! index remembers them, so a removal needs neither the function nor the object. If the function fails or panics, the
//! object is missing in that index, and named there with the reason.

mod bucket;
mod value_sets;

use std::any::Any;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use hashbrown::HashTable;

use self::bucket::Bucket;
use self::value_sets::{SetId, ValueSets};
use crate::key::ObjectKey;
use crate::object::Cached;
use crate::store::{FixedState, Store, hash};

/// An index over an informer's objects, made by [`SharedInformer::index`](crate::SharedInformer::index).
///
/// A look-up costs a hash of the value and a pointer per object found, whatever the size of the store. A clone is the
/// same index; when the last one is dropped, the index is removed.
pub struct Index<K: 'static, V: 'static> {
    registration: Arc<Registration<K>>,
    value: std::marker::PhantomData<fn() -> V>,
}

struct Registration<K: 'static> {
    name: String,
    id: u64,
    store: Weak<Store<K>>,
}

/// Computes an object's index values, boxed because the store doesn't know their type.
pub(crate) type IndexFunction<K> = Arc<dyn Fn(&Cached<K>) -> Computed + Send + Sync>;

/// What an index function brought, or why it brought nothing.
pub(crate) type Computed = Result<Values, String>;

/// An object's index values: a `Vec` of the index's value type.
pub(crate) type Values = Box<dyn Any + Send>;

/// An index whose value type the store doesn't know.
pub(crate) trait AnyIndex<K>: Send + Sync {
    fn name(&self) -> &str;
    fn function(&self) -> IndexFunction<K>;
    /// Replaces an object's values.
    fn replace(&mut self, object: &Cached<K>, computed: Option<Computed>);
    fn remove(&mut self, key: &ObjectKey);
    fn holds(&self, key: &ObjectKey) -> bool;
    /// The objects whose values couldn't be computed, with the reason: the first so many of them by key.
    fn unindexed(&self) -> Vec<(ObjectKey, String)>;
    fn as_any(&self) -> &dyn Any;
    fn clone_box(&self) -> Box<dyn AnyIndex<K>>;
    /// What it takes, without the objects.
    fn bytes(&self) -> usize;
}

struct ValueIndex<K, V> {
    name: Arc<str>,
    function: IndexFunction<K>,
    objects: HashMap<V, Bucket<K>, FixedState>,
    /// By key, what each object's values are.
    members: HashTable<Member<K>>,
    sets: ValueSets<V>,
    /// The objects whose values couldn't be computed, and why.
    unindexed: HashMap<ObjectKey, String, FixedState>,
}

struct Member<K> {
    object: Cached<K>,
    values: SetId,
}

/// How many objects are named that couldn't be indexed.
const NAMED_MAX: usize = 100;
/// How much is kept of a reason, in characters.
const REASON_MAX: usize = 256;

/// How many calls of index functions brought nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexFailures {
    pub(crate) panics: u64,
    pub(crate) errors: u64,
}

/// The indexes of a store.
pub(crate) struct Indexer<K> {
    indexes: Vec<(u64, Box<dyn AnyIndex<K>>)>,
    next_id: u64,
}

/// Index values computed for a batch, by position in the batch and index.
#[derive(Default)]
pub(crate) struct Prepared {
    covered: Vec<u64>,
    /// How often the store had changed what it shows.
    visible_changes: u64,
    values: Vec<Vec<(u64, Option<Computed>)>>,
}

// === impl Index ===

impl<K: Send + Sync + 'static, V: Eq + Hash + Clone + Send + Sync + 'static> Index<K, V> {
    pub(crate) fn add<I, E>(
        store: &Arc<Store<K>>,
        name: &str,
        function: impl Fn(&Cached<K>) -> Result<I, E> + Send + Sync + 'static,
    ) -> (Self, IndexFailures)
    where
        I: IntoIterator<Item = V>,
        E: std::fmt::Display,
    {
        let function: IndexFunction<K> = Arc::new(move |object: &Cached<K>| {
            let mut values: Vec<V> = Vec::new();
            for value in
                function(object).map_err(|error| error.to_string().chars().take(REASON_MAX).collect::<String>())?
            {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            Ok(Box::new(values) as Values)
        });
        let index: ValueIndex<K, V> = ValueIndex {
            name: name.into(),
            function,
            objects: HashMap::default(),
            members: HashTable::new(),
            sets: ValueSets::default(),
            unindexed: HashMap::default(),
        };
        let (id, failures) = store.add_index(Box::new(index));
        let registration = Registration { name: name.to_owned(), id, store: Arc::downgrade(store) };
        (Self { registration: Arc::new(registration), value: std::marker::PhantomData }, failures)
    }

    /// The name that the index was made with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.registration.name
    }

    /// The objects that have this value, in no particular order. An index of `String`s is asked with a `&str`.
    #[must_use]
    pub fn get<Q>(&self, value: &Q) -> Vec<Arc<K>>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.cached(value).iter().map(Cached::object).collect()
    }

    /// As [`get`](Self::get), without decoding the objects.
    #[must_use]
    pub fn cached<Q>(&self, value: &Q) -> Vec<Cached<K>>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.ask(|index| index.objects.get(value).map(|found| found.iter().cloned().collect()))
    }

    /// The keys of the objects that have this value, sorted.
    #[must_use]
    pub fn keys<Q>(&self, value: &Q) -> Vec<ObjectKey>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut keys: Vec<ObjectKey> =
            self.ask(|index| index.objects.get(value).map(|found| found.iter().map(|one| one.key().clone()).collect()));
        keys.sort_unstable();
        keys
    }

    /// All values that some object has, in no particular order.
    #[must_use]
    pub fn values(&self) -> Vec<V> {
        self.ask(|index| Some(index.objects.keys().cloned().collect()))
    }

    /// The objects that are missing because the index function failed or panicked for their present state, with the
    /// reason; sorted, the first 100. [`unindexed_len`](Self::unindexed_len) counts them all.
    #[must_use]
    pub fn unindexed(&self) -> Vec<(ObjectKey, String)> {
        self.ask(|index| Some(AnyIndex::unindexed(index)))
    }

    /// How many objects are missing because the index function failed or panicked.
    #[must_use]
    pub fn unindexed_len(&self) -> usize {
        self.ask(|index| Some(index.unindexed.len()))
    }

    fn ask<T: Default>(&self, ask: impl FnOnce(&ValueIndex<K, V>) -> Option<T>) -> T {
        let Some(store) = self.registration.store.upgrade() else { return T::default() };
        let found = store
            .with_index(self.registration.id, |index| index.as_any().downcast_ref::<ValueIndex<K, V>>().and_then(ask));
        found.unwrap_or_default()
    }
}

impl<K: 'static, V: 'static> Clone for Index<K, V> {
    fn clone(&self) -> Self {
        Self { registration: Arc::clone(&self.registration), value: std::marker::PhantomData }
    }
}

impl<K: 'static> Drop for Registration<K> {
    fn drop(&mut self) {
        if let Some(store) = self.store.upgrade() {
            store.remove_index(self.id);
        }
    }
}

// === impl ValueIndex ===

impl<K: Send + Sync + 'static, V: Eq + Hash + Clone + Send + Sync + 'static> AnyIndex<K> for ValueIndex<K, V> {
    fn name(&self) -> &str {
        &self.name
    }

    fn function(&self) -> IndexFunction<K> {
        Arc::clone(&self.function)
    }

    fn replace(&mut self, object: &Cached<K>, computed: Option<Computed>) {
        self.remove(object.key());
        let values = match computed {
            Some(Ok(values)) => values,
            Some(Err(reason)) => {
                self.unindexed.insert(object.key().clone(), reason);
                return;
            }
            None => return,
        };
        // The function above made the box, so it holds these values.
        let Ok(values) = values.downcast::<Vec<V>>() else { return };
        for value in values.iter() {
            match self.objects.get_mut(value) {
                Some(bucket) => bucket.insert(object.clone()),
                None => drop(self.objects.insert(value.clone(), Bucket::One(object.clone()))),
            }
        }
        let member = Member { object: object.clone(), values: self.sets.acquire(*values) };
        self.members.insert_unique(hash(object.key().as_str()), member, |member| hash(member.object.key().as_str()));
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.unindexed.remove(key);
        let found = self.members.find_entry(hash(key.as_str()), |member| member.object.key() == key);
        let Ok(member) = found.map(|found| found.remove().0) else { return };
        for value in self.sets.release(member.values).iter() {
            if self.objects.get_mut(value).is_some_and(|bucket| bucket.remove(key.as_str())) {
                self.objects.remove(value);
            }
        }
    }

    fn holds(&self, key: &ObjectKey) -> bool {
        self.members.find(hash(key.as_str()), |member| member.object.key() == key).is_some()
            || self.unindexed.contains_key(key)
    }

    fn unindexed(&self) -> Vec<(ObjectKey, String)> {
        let mut keys: Vec<_> = self.unindexed.iter().collect();
        keys.sort_unstable();
        keys.into_iter().take(NAMED_MAX).map(|(key, reason)| (key.clone(), reason.clone())).collect()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn clone_box(&self) -> Box<dyn AnyIndex<K>> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        let buckets: usize = self.objects.values().map(Bucket::table_bytes).sum();
        let values = self.objects.capacity() * (size_of::<(V, Bucket<K>)>() + 1);
        let unindexed = self.unindexed.capacity() * (size_of::<(ObjectKey, String)>() + 1)
            + self.unindexed.values().map(String::capacity).sum::<usize>();
        buckets + values + unindexed + self.members.allocation_size() + self.sets.bytes()
    }
}

impl<K, V: Clone> Clone for ValueIndex<K, V> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            function: Arc::clone(&self.function),
            objects: self.objects.clone(),
            members: self.members.clone(),
            sets: self.sets.clone(),
            unindexed: self.unindexed.clone(),
        }
    }
}

impl<K> Clone for Member<K> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), values: self.values }
    }
}

// === impl Indexer ===

impl<K> Default for Indexer<K> {
    fn default() -> Self {
        Self { indexes: Vec::new(), next_id: 0 }
    }
}

impl<K> Clone for Indexer<K> {
    fn clone(&self) -> Self {
        let indexes = self.indexes.iter().map(|(id, index)| (*id, index.clone_box())).collect();
        Self { indexes, next_id: self.next_id }
    }
}

impl<K> Indexer<K> {
    pub(crate) fn add(&mut self, index: Box<dyn AnyIndex<K>>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.indexes.push((id, index));
        id
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<Box<dyn AnyIndex<K>>> {
        let position = self.indexes.iter().position(|(one, _)| *one == id)?;
        Some(self.indexes.swap_remove(position).1)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.indexes.iter().map(|(_, index)| index.bytes()).sum()
    }

    pub(crate) fn get(&self, id: u64) -> Option<&dyn AnyIndex<K>> {
        self.indexes.iter().find(|(one, _)| *one == id).map(|(_, index)| &**index)
    }

    /// By the name of each index that misses objects: these, and why.
    pub(crate) fn unindexed(&self) -> BTreeMap<String, BTreeMap<ObjectKey, String>> {
        let mut all = BTreeMap::<String, BTreeMap<_, _>>::new();
        for (_, index) in &self.indexes {
            let unindexed = index.unindexed();
            if !unindexed.is_empty() {
                all.entry(index.name().to_owned()).or_default().extend(unindexed);
            }
        }
        all
    }

    pub(crate) fn functions(&self) -> Vec<(u64, IndexFunction<K>)> {
        self.indexes.iter().map(|(id, index)| (*id, index.function())).collect()
    }

    /// Indexes an object's new state by the values prepared for it.
    pub(crate) fn replace(&mut self, object: &Cached<K>, position: usize, prepared: &mut Prepared) {
        for (id, index) in &mut self.indexes {
            index.replace(object, prepared.take(position, *id));
        }
    }

    /// Indexes an object that was there before the index, unless that's done.
    pub(crate) fn fill(&mut self, id: u64, object: &Cached<K>, values: Option<Computed>) {
        for (one, index) in &mut self.indexes {
            if *one == id && !index.holds(object.key()) {
                index.replace(object, values);
                return;
            }
        }
    }

    pub(crate) fn remove_object(&mut self, key: &ObjectKey) {
        for (_, index) in &mut self.indexes {
            index.remove(key);
        }
    }
}

// === impl IndexFailures ===

impl std::ops::AddAssign for IndexFailures {
    fn add_assign(&mut self, more: Self) {
        self.panics += more.panics;
        self.errors += more.errors;
    }
}

// === impl Prepared ===

impl Prepared {
    /// Begins anew if the store shows other objects by now.
    pub(crate) fn start(&mut self, visible_changes: u64) {
        if self.visible_changes != visible_changes {
            *self = Self { visible_changes, ..Self::default() };
        }
    }

    pub(crate) fn is_for(&self, visible_changes: u64) -> bool {
        self.visible_changes == visible_changes
    }

    /// Computes what's missing for these indexes; returns how many calls brought nothing.
    pub(crate) fn complete<'a, K: 'static>(
        &mut self,
        functions: &[(u64, IndexFunction<K>)],
        objects: impl Iterator<Item = Option<&'a Cached<K>>>,
    ) -> IndexFailures {
        let mut failures = IndexFailures::default();
        if functions.is_empty() {
            return failures;
        }
        for (position, object) in objects.enumerate() {
            if self.values.len() <= position {
                self.values.push(Vec::new());
            }
            let (Some(object), Some(values)) = (object, self.values.get_mut(position)) else { continue };
            let missing = functions.iter().filter(|(id, _)| values.iter().all(|(known, _)| known != id));
            let missing: Vec<_> = missing.collect();
            if missing.is_empty() {
                continue;
            }
            for (id, function) in missing {
                let computed = catch_unwind(AssertUnwindSafe(|| function(object)));
                failures.panics += u64::from(computed.is_err());
                failures.errors += u64::from(matches!(&computed, Ok(Err(_))));
                let computed = computed.unwrap_or_else(|_| Err("the index function panicked".to_owned()));
                values.push((*id, Some(computed)));
            }
        }
        self.covered = functions.iter().map(|(id, _)| *id).collect();
        failures
    }

    pub(crate) fn covers<K>(&self, indexer: &Indexer<K>) -> bool {
        indexer.indexes.iter().all(|(id, _)| self.covered.contains(id))
    }

    pub(crate) fn take(&mut self, position: usize, id: u64) -> Option<Computed> {
        let values = self.values.get_mut(position)?;
        values.iter_mut().find(|(one, _)| *one == id).and_then(|(_, values)| values.take())
    }
}
