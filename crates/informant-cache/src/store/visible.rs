//! Which namespaces' objects a store shows.
//!
//! An informer whose scope is a changing choice of namespaces follows all of them, and keeps what isn't chosen apart:
//! not listed, not indexed, not told of. So a namespace that's chosen is there at once, without a request.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{Applied, Inner, Store};
use crate::event::{Event, FinalState};
use crate::indexer::{IndexFailures, Prepared};
use crate::key::ObjectKey;
use crate::lock::{read, write};
use crate::object::Cached;
use crate::store::FixedState;

/// The namespaces whose objects are shown. Cluster-scoped objects always are. A clone costs a counter increment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Visible {
    #[default]
    All,
    Only(Arc<BTreeSet<Arc<str>>>),
}

/// Hidden objects that are about to be shown, with what the indexes need of them.
///
/// It may be completed again and again: what was computed once stays.
pub(crate) struct Appearing<K> {
    objects: Vec<Cached<K>>,
    positions: HashMap<ObjectKey, usize, FixedState>,
    prepared: Prepared,
}

// === impl Visible ===

impl Visible {
    /// Only these namespaces.
    pub(crate) fn only<N: Into<Arc<str>>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        Self::Only(Arc::new(namespaces.into_iter().map(Into::into).collect()))
    }

    pub(crate) fn shows(&self, key: &ObjectKey) -> bool {
        key.namespace().is_none_or(|namespace| self.shows_namespace(namespace))
    }

    pub(crate) fn shows_namespace(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(namespaces) => namespaces.contains(namespace),
        }
    }
}

// === impl Appearing ===

impl<K> Default for Appearing<K> {
    fn default() -> Self {
        Self { objects: Vec::new(), positions: HashMap::default(), prepared: Prepared::default() }
    }
}

impl<K> Appearing<K> {
    /// The position of this very state of the object.
    fn position(&self, object: &Cached<K>) -> Option<usize> {
        let position = *self.positions.get(object.key())?;
        self.objects.get(position).is_some_and(|known| known.is_same(object)).then_some(position)
    }
}

// === impl Store ===

impl<K: 'static> Store<K> {
    /// How many objects are kept and not shown.
    #[cfg(test)]
    fn hidden_len(&self) -> usize {
        read(&self.inner).hidden.values().map(super::Table::len).sum()
    }

    /// Computes what the indexes need of the objects that would appear. It calls the user's functions, so no lock may be
    /// held; returns how many of the calls panicked.
    pub(crate) fn prepare_visible(&self, visible: &Visible, appearing: &mut Appearing<K>) -> IndexFailures {
        let functions = {
            let inner = read(&self.inner);
            for object in inner.hidden_but_in(visible) {
                if appearing.position(object).is_none() {
                    appearing.positions.insert(object.key().clone(), appearing.objects.len());
                    appearing.objects.push(object.clone());
                }
            }
            inner.indexer.functions()
        };
        appearing.prepared.complete(&functions, appearing.objects.iter().map(Some))
    }

    /// Changes which namespaces are shown: what's no longer shown is told of as deleted, what appears as added. `None`,
    /// with nothing done, if an object or an index came up since it was prepared.
    pub(crate) fn set_visible(&self, visible: &Visible, appearing: &mut Appearing<K>) -> Option<Applied<K>> {
        let mut inner = write(&self.inner);
        let ready = appearing.prepared.covers(&inner.indexer)
            && inner.hidden_but_in(visible).all(|object| appearing.position(object).is_some());
        if !ready {
            return None;
        }
        if inner.visible != *visible {
            inner.visible = visible.clone();
            inner.visible_changes += 1;
        }
        inner.changes += 1;
        let mut events = Vec::new();
        inner.hide_rest(&mut events);
        inner.show_chosen(appearing, &mut events);
        Some(Applied { events, replaced: Vec::new() })
    }

    /// Forgets a whole namespace, which has left the informer's scope.
    pub(crate) fn remove_namespace(&self, namespace: &str) -> Applied<K> {
        let mut inner = write(&self.inner);
        inner.changes += 1;
        let mut events = Vec::new();
        inner.take_namespace(namespace, &mut events);
        let hidden = inner.hidden.remove(namespace).map(|table| table.iter().cloned().collect());
        inner.versions.remove(namespace);
        Applied { events, replaced: hidden.unwrap_or_default() }
    }
}

// === impl Inner ===

impl<K> Inner<K> {
    fn hidden_but_in<'a>(&'a self, visible: &'a Visible) -> impl Iterator<Item = &'a Cached<K>> {
        self.hidden
            .iter()
            .filter(|(namespace, _)| visible.shows_namespace(namespace))
            .flat_map(|(_, table)| table.iter())
    }

    fn hide_rest(&mut self, events: &mut Vec<Event<K>>) {
        let mut leaving: Vec<_> =
            self.namespaces.keys().filter(|namespace| !self.visible.shows_namespace(namespace)).cloned().collect();
        leaving.sort_unstable();
        for namespace in leaving {
            let first = events.len();
            self.take_namespace(&namespace, events);
            let hidden = self.hidden.entry(namespace).or_default();
            for event in events.iter().skip(first) {
                hidden.insert(event.cached().clone());
            }
        }
    }

    /// Takes a namespace's objects out of what's shown.
    fn take_namespace(&mut self, namespace: &str, events: &mut Vec<Event<K>>) {
        let Some(bucket) = self.namespaces.remove(namespace) else { return };
        let mut objects: Vec<_> = bucket.iter().cloned().collect();
        // The table has no order of its own.
        objects.sort_unstable_by(|one, other| one.key().cmp(other.key()));
        for object in objects {
            self.objects.remove(object.key().as_str());
            self.indexer.remove_object(object.key());
            events.push(Event::Deleted { object, final_state: FinalState::OutOfScope });
        }
    }

    fn show_chosen(&mut self, appearing: &mut Appearing<K>, events: &mut Vec<Event<K>>) {
        let mut objects: Vec<_> = self.hidden_but_in(&self.visible).cloned().collect();
        objects.sort_unstable_by(|one, other| one.key().cmp(other.key()));
        let Self { hidden, visible, .. } = self;
        hidden.retain(|namespace, _| !visible.shows_namespace(namespace));
        for object in objects {
            if let Some(position) = appearing.position(&object) {
                self.indexer.replace(&object, position, &mut appearing.prepared);
            }
            self.bucket(&object, |bucket, object| drop(bucket.insert(object)));
            self.objects.insert(object.clone());
            events.push(Event::Added { object, initial: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::tests::{apply, object};
    use super::*;
    use crate::delta::{Delta, Staging};
    use crate::indexer::Index;

    fn show(event: &Event<u64>) -> String {
        match event {
            Event::Added { object, .. } => format!("+{object:?}"),
            Event::Updated { old, new } => format!("{old:?}>{}", new.resource_version()),
            Event::Deleted { object, final_state } => format!("-{object:?} {final_state:?}"),
        }
    }

    fn set_visible(store: &Store<u64>, visible: &Visible) -> Vec<Event<u64>> {
        let mut appearing = Appearing::default();
        loop {
            store.prepare_visible(visible, &mut appearing);
            if let Some(applied) = store.set_visible(visible, &mut appearing) {
                return applied.events;
            }
        }
    }

    fn shown(events: &[Event<u64>]) -> Vec<String> {
        events.iter().map(show).collect()
    }

    #[test]
    fn a_hidden_namespace_is_kept_but_neither_listed_nor_indexed_nor_told_of() {
        let store = Arc::new(Store::new());
        let (index, _) = Index::add(&store, "version", |version: &Cached<u64>| Ok::<_, String>([*version.object()]));
        assert!(set_visible(&store, &Visible::only(["ns0"])).is_empty());
        let cluster =
            Cached::new(ObjectKey::cluster("c"), "uid", "9", crate::representation::Held::Full(Arc::new(9)), 0);
        let batch = vec![Delta::Upsert(object(0, 1)), Delta::Upsert(object(1, 2)), Delta::Upsert(cluster)];
        assert_eq!(shown(&apply(&store, batch)), ["+ns0/o0@1", "+c@9"]);
        assert!(apply(&store, vec![Delta::Upsert(object(1, 3))]).is_empty());
        assert_eq!((store.len(), store.hidden_len(), store.namespaces().len()), (2, 1, 1));
        assert!(store.get("ns1/o1").is_none() && store.held(object(1, 0).key()).is_some());
        assert!(index.keys(&3).is_empty());

        assert_eq!(shown(&set_visible(&store, &Visible::only(["ns1"]))), ["-ns0/o0@1 OutOfScope", "+ns1/o1@3"]);
        assert_eq!((index.keys(&1).len(), index.keys(&3).len()), (0, 1));
        assert!(apply(&store, vec![Delta::Delete { key: object(0, 0).key().clone(), last: None }]).is_empty());
        assert_eq!((store.len(), store.hidden_len()), (2, 0));
        assert!(set_visible(&store, &Visible::All).is_empty());
    }

    #[test]
    fn a_removed_namespace_is_out_of_scope_and_takes_its_version_with_it() {
        let store = Store::new();
        for (part, version) in [("ns0", "9"), ("ns1", "10")] {
            store.add_part(part);
            let mut inner = write(&store.inner);
            inner.progress(super::super::Progress { part: Some(part), resource_version: version });
        }
        assert_eq!(store.resource_version(), "9", "as numbers, not as text");
        store.add_part("ns2");
        assert_eq!(
            (store.resource_version(), store.resource_version_of(Some("ns1"))),
            (String::new(), "10".to_owned())
        );
        set_visible(&store, &Visible::only(["ns0"]));
        let batch = vec![Delta::Upsert(object(0, 1)), Delta::Upsert(object(1, 2))];
        let mut prepared = Prepared::default();
        store.prepare(&batch, &mut prepared);
        store.apply(&mut { batch }, &mut prepared, false, None).unwrap();
        assert_eq!(shown(&store.remove_namespace("ns0").events), ["-ns0/o0@1 OutOfScope"]);
        assert!(store.remove_namespace("ns1").events.is_empty());
        store.remove_namespace("ns2");
        assert_eq!((store.len(), store.hidden_len(), store.resource_version()), (0, 0, String::new()));
    }

    /// A list of one namespace says nothing of the others.
    #[test]
    fn a_new_state_of_one_part_concerns_that_part_only() {
        let store = Store::new();
        apply(&store, (0..6).map(|number| Delta::Upsert(object(number, 1))).collect());
        let mut staging = Staging::default();
        staging.insert(object(1, 2));
        let events = apply(&store, staging.into_deltas(&store, Some("ns1")));
        assert_eq!(shown(&events), ["-ns1/o4@1 Unknown", "ns1/o1@1>2"]);
        // Nothing differs for what's held already, hidden or not.
        set_visible(&store, &Visible::only::<&str>([]));
        let mut staging = Staging::default();
        staging.insert(store.held(object(1, 0).key()).unwrap());
        assert!(staging.into_deltas(&store, Some("ns1")).is_empty());
        // What left the scope isn't taken for deleted.
        set_visible(&store, &Visible::All);
        let mut staging = Staging::default();
        staging.leave(object(1, 0).key().clone());
        let events = apply(&store, staging.into_deltas(&store, Some("ns1")));
        assert_eq!(shown(&events), ["-ns1/o1@2 OutOfScope"]);
    }

    proptest! {
        /// Whatever is changed and chosen, the events lead from what was shown to what is shown, and the index agrees.
        #[test]
        fn events_lead_from_what_was_shown_to_what_is_shown(
            steps in prop::collection::vec((0..4_u8, 0..9_u64, 0..8_u8), 1..60),
        ) {
            let store = Arc::new(Store::new());
            let (index, _) = Index::add(&store, "all", |_: &Cached<u64>| Ok::<_, String>([0]));
            let mut held = BTreeMap::new();
            let mut told = BTreeMap::new();
            let mut chosen = vec!["ns0", "ns1", "ns2"];
            for (version, (what, number, choice)) in (1_u64..).zip(steps) {
                let key = object(number, 0).key().clone();
                let events = match what {
                    0 | 1 => {
                        held.insert(key, version);
                        apply(&store, vec![Delta::Upsert(object(number, version))])
                    }
                    2 => {
                        held.remove(&key);
                        apply(&store, vec![Delta::Delete { key, last: None }])
                    }
                    _ => {
                        chosen = ["ns0", "ns1", "ns2"].into_iter().enumerate()
                            .filter(|(bit, _)| choice >> bit & 1 == 1).map(|(_, name)| name).collect();
                        set_visible(&store, &Visible::only(chosen.clone()))
                    }
                };
                for event in events {
                    let key = event.key().clone();
                    match event {
                        Event::Added { object, .. } => prop_assert!(told.insert(key, *object.object()).is_none()),
                        Event::Updated { old, new } => {
                            prop_assert_eq!(told.insert(key, *new.object()), Some(*old.object()));
                        }
                        Event::Deleted { .. } => prop_assert!(told.remove(&key).is_some()),
                    }
                }
                let mut expected = held.clone();
                expected.retain(|key, _| key.namespace().is_some_and(|namespace| chosen.contains(&namespace)));
                prop_assert_eq!(&told, &expected);
                prop_assert_eq!(store.len(), expected.len());
                prop_assert_eq!(index.keys(&0), expected.keys().cloned().collect::<Vec<_>>());
                prop_assert_eq!(store.len() + store.hidden_len(), held.len());
            }
        }
    }
}
