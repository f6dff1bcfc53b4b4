//! A large batch, applied to a copy of the store that takes its place when it's complete.
//!
//! Under a write lock a batch of a hundred thousand changes would keep readers waiting for as long as it takes. So it's
//! applied, with its index functions, to a copy (a pointer per object) that nobody sees, and only the exchange of the two
//! is done under the lock. If somebody else changed the store meanwhile, it's all done again.

use super::{Applied, Inner, Progress, Store};
use crate::delta::Delta;
use crate::event::Event;
use crate::indexer::{IndexFailures, Prepared};
use crate::lock::{read, write};

/// A batch of this size or more is applied to a copy.
pub(crate) const LARGE: usize = 2048;
/// For how many objects index values are computed before they're put into the indexes.
const CHUNK: usize = 256;

/// A store that's complete but for being the store.
pub(crate) struct Generation<K> {
    inner: Inner<K>,
    /// What the store's count of changes was.
    changes: u64,
    applied: Applied<K>,
}

impl<K: 'static> Store<K> {
    /// A copy of the store with a batch applied. It calls the user's index functions, so no lock may be held.
    pub(crate) fn next_generation(
        &self,
        deltas: &[Delta<K>],
        initial: bool,
        progress: Option<Progress<'_>>,
    ) -> (Generation<K>, IndexFailures) {
        let mut inner = read(&self.inner).clone();
        let changes = inner.changes;
        let functions = inner.indexer.functions();
        let mut failures = IndexFailures::default();
        let mut applied = Applied { events: Vec::with_capacity(deltas.len()), replaced: Vec::new() };
        if inner.objects.is_empty() {
            inner.objects.reserve(deltas.len());
        }
        for chunk in deltas.chunks(CHUNK) {
            let mut prepared = Prepared::default();
            let shown = chunk.iter().map(|delta| delta.new_object().filter(|object| inner.visible.shows(object.key())));
            failures += prepared.complete(&functions, shown);
            for (position, delta) in chunk.iter().enumerate() {
                inner.apply(delta.clone(), position, &mut prepared, initial, &mut applied);
            }
        }
        if let Some(progress) = progress {
            inner.progress(progress);
        }
        (Generation { inner, changes, applied }, failures)
    }

    /// Makes a generation the store; `None`, with nothing done, if the store has changed since it was copied.
    pub(crate) fn advance(&self, generation: Generation<K>, progressed: bool) -> Option<(Vec<Event<K>>, Old<K>)> {
        let Generation { inner: mut next, changes, applied } = generation;
        let mut inner = write(&self.inner);
        if inner.changes != changes {
            drop(inner);
            return None;
        }
        next.changes = changes + 1;
        let old = std::mem::replace(&mut *inner, next);
        drop(inner);
        if progressed {
            self.progressed.send_replace(());
        }
        Some((applied.events, Old { _inner: old, _replaced: applied.replaced }))
    }
}

/// What was the store, to be dropped outside any lock.
pub(crate) struct Old<K> {
    _inner: Inner<K>,
    _replaced: Vec<crate::object::Cached<K>>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::{apply, object};
    use super::*;
    use crate::indexer::Index;
    use crate::object::Cached;

    fn advance(store: &Store<u64>, deltas: &[Delta<u64>]) -> Option<usize> {
        let (generation, failures) = store.next_generation(deltas, false, None);
        assert_eq!(failures, IndexFailures::default());
        store.advance(generation, true).map(|(events, _)| events.len())
    }

    #[test]
    fn a_large_batch_leads_to_the_same_store_indexes_and_events_as_a_small_one() {
        let (small, large) = (Arc::new(Store::new()), Arc::new(Store::new()));
        let parity = |version: &Cached<u64>| Ok::<_, String>([*version.object() % 2]);
        let indexes = [&small, &large].map(|store| Index::add(store, "parity", parity).0);
        for round in 0..3 {
            let deltas = || -> Vec<Delta<u64>> {
                let upserts =
                    (round * 500..3000 + round * 500).map(|number| Delta::Upsert(object(number, number + round)));
                let gone =
                    (0..round * 400).map(|number| Delta::Delete { key: object(number, 0).key().clone(), last: None });
                upserts.chain(gone).collect()
            };
            let told = apply(&small, deltas()).len();
            assert_eq!(advance(&large, &deltas()), Some(told));
            let sorted = |store: &Store<u64>| {
                let mut all: Vec<String> = store.list().iter().map(|object| format!("{object:?}")).collect();
                all.sort_unstable();
                all
            };
            assert_eq!(sorted(&small), sorted(&large));
            assert_eq!(small.namespace("ns1").len(), large.namespace("ns1").len());
            assert_eq!(indexes[0].keys(&1), indexes[1].keys(&1));
        }
    }

    #[test]
    fn a_copy_of_what_is_no_longer_the_store_does_not_become_the_store() {
        let store = Arc::new(Store::new());
        let (generation, _) = store.next_generation(&[Delta::Upsert(object(1, 1))], true, None);
        apply(&store, vec![Delta::Upsert(object(2, 2))]);
        assert!(store.advance(generation, true).is_none());
        assert_eq!(store.len(), 1);
        let (generation, _) = store.next_generation(&[Delta::Upsert(object(1, 1))], true, None);
        let index = Index::add(&store, "all", |_: &Cached<u64>| Ok::<_, String>([0]));
        assert!(store.advance(generation, true).is_none(), "it lacks the index");
        assert_eq!(advance(&store, &[Delta::Upsert(object(1, 1))]), Some(1));
        assert_eq!(index.0.keys(&0).len(), 2);
    }
}
