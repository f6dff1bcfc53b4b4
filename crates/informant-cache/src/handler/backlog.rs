//! A handler's backlog: the events that wait for it, pure and bounded.
//!
//! Up to the bound every event is kept, in order. Past it an event is merged with the last one that waits for the same
//! object into the net change, in that one's place in line; the rest is appended. So the backlog never holds more than
//! the bound plus, for each object, a deletion and what came after it. Once half of the bound is free again, it keeps
//! every event as before.
//!
//! Merging never loses the last state of an object, an add or a delete that the handler must know of: an object that
//! came and went unseen is dropped as a whole, and a deletion followed by a new object stays two events.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

use crate::event::Event;
use crate::key::ObjectKey;
use crate::object::Cached;
use crate::store::FixedState;

pub(crate) struct Backlog<K> {
    /// The first whole state of a part of the informer, or the store's content when a late handler was added; handed out
    /// before the events, as initial adds. It isn't bound: it's never more than the store holds.
    replay: VecDeque<Cached<K>>,
    waiting: VecDeque<Waiting<K>>,
    /// The number of the first slot in `waiting`; slots are numbered as they come.
    first: u64,
    /// While merging: the number of the last slot that waits for a key.
    last_of: Option<HashMap<ObjectKey, u64, FixedState>>,
    bound: usize,
    overflow: Overflow,
    events: usize,
    merged: u64,
}

/// What happens to a handler whose backlog is at its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// Its events are merged, object by object, into the net change.
    #[default]
    Conflate,
    /// It ends: it gets no more events, and its status says why.
    End,
}

pub(crate) enum Slot<K> {
    Event(Event<K>),
    /// Everything that belongs to the initial state is before this.
    InitialStateEnd,
    /// Merged away.
    Void,
}

/// A slot, and when its event came from the server. If events were merged into it, it's the first one's time: that's
/// how long the handler has been behind.
type Waiting<K> = (Slot<K>, Option<Instant>);

/// The backlog is at its bound and may not merge.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

// === impl Backlog ===

impl<K> Backlog<K> {
    pub(crate) fn new(bound: usize, overflow: Overflow) -> Self {
        Self {
            replay: VecDeque::new(),
            waiting: VecDeque::new(),
            first: 0,
            last_of: None,
            bound: bound.max(1),
            overflow,
            events: 0,
            merged: 0,
        }
    }

    /// Events that wait, replay included.
    pub(crate) fn len(&self) -> usize {
        self.replay.len() + self.events
    }

    /// Events merged away so far.
    pub(crate) fn merged(&self) -> u64 {
        self.merged
    }

    /// Takes the present state of the store, which goes before every event.
    pub(crate) fn replay(&mut self, objects: Vec<Cached<K>>) {
        self.replay.extend(objects);
    }

    pub(crate) fn end_initial_state(&mut self) {
        self.waiting.push_back((Slot::InitialStateEnd, None));
    }

    /// Adds an event that came from the server at this time.
    pub(crate) fn add(&mut self, event: Event<K>, arrived: Instant) -> Result<(), Full> {
        if let Event::Added { object, initial: true } = event {
            // Before it nobody knew of the object, so there's no event of it that it could overtake.
            self.replay.push_back(object);
            return Ok(());
        }
        if self.events >= self.bound && self.last_of.is_none() {
            if self.overflow == Overflow::End {
                return Err(Full);
            }
            self.start_merging();
        }
        let Some(last_of) = &mut self.last_of else {
            self.append(event, arrived);
            return Ok(());
        };
        let number = last_of.get(event.key().as_str()).copied();
        let slot = number
            .and_then(|number| usize::try_from(number.checked_sub(self.first)?).ok())
            .and_then(|position| self.waiting.get_mut(position))
            .map(|(slot, _)| slot);
        let Some(slot) = slot else {
            self.append(event, arrived);
            return Ok(());
        };
        match slot.merge(event) {
            Merge::Merged => self.merged += 1,
            Merge::Cancelled { key } => {
                last_of.remove(&key);
                self.events -= 1;
                self.merged += 2;
            }
            Merge::Apart(event) => self.append(event, arrived),
        }
        Ok(())
    }

    /// The next thing to handle, and since when it waits if it's a change.
    pub(crate) fn take(&mut self) -> Option<Waiting<K>> {
        if let Some(object) = self.replay.pop_front() {
            return Some((Slot::Event(Event::Added { object, initial: true }), None));
        }
        loop {
            let (slot, arrived) = self.waiting.pop_front()?;
            let number = self.first;
            self.first += 1;
            match &slot {
                Slot::Void => continue,
                Slot::InitialStateEnd => {}
                Slot::Event(event) => {
                    self.events -= 1;
                    if let Some(last_of) = &mut self.last_of {
                        if last_of.get(event.key().as_str()) == Some(&number) {
                            last_of.remove(event.key().as_str());
                        }
                        if self.events <= self.bound / 2 {
                            self.last_of = None;
                        }
                    }
                }
            }
            return Some((slot, arrived));
        }
    }

    /// How many bytes it takes, with the states of objects that the store has no more.
    pub(crate) fn bytes(&self) -> u64 {
        let slots = self.replay.capacity() * size_of::<Cached<K>>() + self.waiting.capacity() * size_of::<Waiting<K>>();
        let merging =
            self.last_of.as_ref().map_or(0, |last_of| last_of.capacity() * (size_of::<(ObjectKey, u64)>() + 1));
        let past = self.waiting.iter().map(|(slot, _)| match slot {
            Slot::Event(Event::Updated { old: object, .. } | Event::Deleted { object, .. }) => object.bytes(),
            Slot::Event(Event::Added { .. }) | Slot::InitialStateEnd | Slot::Void => 0,
        });
        past.sum::<u64>() + (slots + merging) as u64
    }

    /// Forgets everything that waits.
    pub(crate) fn clear(&mut self) -> (VecDeque<Cached<K>>, VecDeque<Waiting<K>>) {
        self.events = 0;
        self.last_of = None;
        // Handed back so that the objects are dropped outside the caller's lock.
        (std::mem::take(&mut self.replay), std::mem::take(&mut self.waiting))
    }

    fn append(&mut self, event: Event<K>, arrived: Instant) {
        if let Some(last_of) = &mut self.last_of {
            last_of.insert(event.key().clone(), self.first + self.waiting.len() as u64);
        }
        self.waiting.push_back((Slot::Event(event), Some(arrived)));
        self.events += 1;
    }

    fn start_merging(&mut self) {
        let mut last_of = HashMap::default();
        for (number, (slot, _)) in (self.first..).zip(&self.waiting) {
            if let Slot::Event(event) = slot {
                last_of.insert(event.key().clone(), number);
            }
        }
        self.last_of = Some(last_of);
    }
}

// === impl Slot ===

enum Merge<K> {
    Merged,
    /// The object came and went; nobody needs to know.
    Cancelled {
        key: ObjectKey,
    },
    /// The two can't be merged.
    Apart(Event<K>),
}

impl<K> Slot<K> {
    /// Merges a later event of the same object into this slot.
    fn merge(&mut self, later: Event<K>) -> Merge<K> {
        let Self::Event(waiting) = self else { return Merge::Apart(later) };
        match (waiting, later) {
            (Event::Added { object, .. }, Event::Updated { new, .. }) => {
                *object = new;
                Merge::Merged
            }
            (Event::Updated { new: waiting, .. }, Event::Updated { new, .. }) => {
                *waiting = new;
                Merge::Merged
            }
            (Event::Added { .. }, Event::Deleted { object, .. }) => {
                *self = Self::Void;
                Merge::Cancelled { key: object.key().clone() }
            }
            (waiting @ Event::Updated { .. }, later @ Event::Deleted { .. }) => {
                *waiting = later;
                Merge::Merged
            }
            (Event::Deleted { .. } | Event::Added { .. } | Event::Updated { .. }, later) => Merge::Apart(later),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::event::FinalState;
    use crate::representation::Held;

    impl<K> Backlog<K> {
        fn push(&mut self, event: Event<K>) -> Result<(), Full> {
            self.add(event, Instant::now())
        }

        fn pop(&mut self) -> Option<Slot<K>> {
            self.take().map(|(slot, _)| slot)
        }
    }

    fn object(name: &str, version: u64) -> Cached<u64> {
        let held = Held::Full(Arc::new(version));
        Cached::new(ObjectKey::cluster(name), "uid", &version.to_string(), held, 0)
    }

    fn added(name: &str, version: u64) -> Event<u64> {
        Event::Added { object: object(name, version), initial: false }
    }

    fn updated(name: &str, old: u64, new: u64) -> Event<u64> {
        Event::Updated { old: object(name, old), new: object(name, new) }
    }

    fn deleted(name: &str, version: u64) -> Event<u64> {
        Event::Deleted { object: object(name, version), final_state: FinalState::Known }
    }

    fn show(slot: &Slot<u64>) -> String {
        match slot {
            Slot::Event(Event::Added { object, initial }) => format!("+{object:?}{}", if *initial { "!" } else { "" }),
            Slot::Event(Event::Updated { old, new }) => format!("{old:?}>{}", new.resource_version()),
            Slot::Event(Event::Deleted { object, .. }) => format!("-{object:?}"),
            Slot::InitialStateEnd => "end".to_owned(),
            Slot::Void => "void".to_owned(),
        }
    }

    fn drain(backlog: &mut Backlog<u64>) -> Vec<String> {
        std::iter::from_fn(|| backlog.pop()).map(|slot| show(&slot)).collect()
    }

    fn filled(bound: usize, events: Vec<Event<u64>>) -> Backlog<u64> {
        let mut backlog = Backlog::new(bound, Overflow::Conflate);
        for event in events {
            backlog.push(event).expect("a conflating backlog takes everything");
        }
        backlog
    }

    /// client-go fact 50.
    #[test]
    fn up_to_the_bound_every_event_is_kept_in_order() {
        let mut backlog = filled(4, vec![added("a", 1), updated("a", 1, 2), updated("a", 2, 3), deleted("a", 4)]);
        assert_eq!(drain(&mut backlog), ["+a@1", "a@1>2", "a@2>3", "-a@4"]);
        assert_eq!(backlog.merged(), 0);
    }

    #[test]
    fn past_the_bound_an_object_s_events_merge_into_the_net_change_in_their_place() {
        let mut backlog =
            filled(2, vec![updated("a", 1, 2), added("b", 3), updated("a", 2, 4), updated("b", 3, 5), deleted("a", 6)]);
        assert_eq!(drain(&mut backlog), ["-a@6", "+b@5"]);
        assert_eq!(backlog.merged(), 3);
    }

    #[test]
    fn an_object_that_came_and_went_unseen_is_dropped() {
        let mut backlog =
            filled(1, vec![added("x", 1), added("a", 2), updated("a", 2, 3), deleted("a", 4), added("b", 5)]);
        assert_eq!(backlog.len(), 2);
        assert_eq!(drain(&mut backlog), ["+x@1", "+b@5"]);
    }

    #[test]
    fn a_deletion_and_a_new_object_of_that_name_stay_two_events() {
        let mut backlog = filled(1, vec![updated("a", 1, 2), deleted("a", 3), added("a", 4), updated("a", 4, 5)]);
        assert_eq!(drain(&mut backlog), ["-a@3", "+a@5"]);
    }

    /// client-go fact 64: what was there and what came later keep apart.
    #[test]
    fn the_replay_comes_first_and_the_end_of_the_initial_state_keeps_its_place() {
        let mut backlog = Backlog::new(1, Overflow::Conflate);
        backlog.replay(vec![object("a", 1), object("b", 2)]);
        backlog.end_initial_state();
        backlog.push(updated("a", 1, 3)).expect("taken");
        backlog.push(updated("a", 3, 4)).expect("taken");
        assert_eq!(drain(&mut backlog), ["+a@1!", "+b@2!", "end", "a@1>4"]);
    }

    #[test]
    fn a_backlog_that_may_not_merge_is_full_at_its_bound() {
        let mut backlog = Backlog::new(1, Overflow::End);
        assert_eq!(backlog.push(added("a", 1)), Ok(()));
        assert_eq!(backlog.push(updated("a", 1, 2)), Err(Full));
    }

    #[test]
    fn merging_ends_when_half_of_the_bound_is_free() {
        let mut backlog = filled(2, vec![added("a", 1), added("b", 1), updated("a", 1, 2)]);
        assert_eq!(backlog.merged(), 1);
        assert_eq!(backlog.pop().as_ref().map(show).as_deref(), Some("+a@2"));
        backlog.push(updated("b", 1, 2)).expect("taken");
        assert_eq!(drain(&mut backlog), ["+b@1", "b@1>2"]);
    }

    proptest! {
        /// Whatever is pushed and popped in whatever order: what the handler pieces together is the true state in the
        /// end, each event fits what it saw before, and the backlog stays within its bound.
        #[test]
        fn a_handler_ends_with_the_true_state(
            bound in 1..6_usize,
            steps in prop::collection::vec((0..4_usize, 0..3_u8), 0..200),
        ) {
            let names = ["a", "b", "c", "d"];
            let mut backlog = Backlog::new(bound, Overflow::Conflate);
            let mut truth: BTreeMap<&str, u64> = BTreeMap::new();
            let mut seen: BTreeMap<String, u64> = BTreeMap::new();
            let mut version = 0;
            let handle = |slot: Slot<u64>, seen: &mut BTreeMap<String, u64>| {
                let Slot::Event(event) = slot else { return };
                let key = event.key().to_string();
                match event {
                    Event::Added { object, .. } => assert_eq!(seen.insert(key, *object.object()), None),
                    Event::Updated { old, new } => {
                        assert_eq!(seen.insert(key, *new.object()), Some(*old.object()));
                    }
                    Event::Deleted { .. } => assert!(seen.remove(&key).is_some()),
                }
            };
            for (which, what) in steps {
                let name = names[which];
                version += 1;
                match (what, truth.get(name).copied()) {
                    (0, _) => {
                        if let Some(slot) = backlog.pop() {
                            handle(slot, &mut seen);
                        }
                    }
                    (_, None) => {
                        truth.insert(name, version);
                        backlog.push(added(name, version)).expect("taken");
                    }
                    (1, Some(old)) => {
                        truth.insert(name, version);
                        backlog.push(updated(name, old, version)).expect("taken");
                    }
                    (_, Some(_)) => {
                        truth.remove(name);
                        backlog.push(deleted(name, version)).expect("taken");
                    }
                }
                assert!(backlog.len() <= bound + 2 * names.len());
            }
            while let Some(slot) = backlog.pop() {
                handle(slot, &mut seen);
            }
            let truth: BTreeMap<String, u64> = truth.into_iter().map(|(name, version)| (name.to_owned(), version)).collect();
            assert_eq!(seen, truth);
        }
    }
}
