//! The state against hand-written stories, and against a model so simple that it can be read at a glance.

use std::collections::HashMap as StdHashMap;

use proptest::prelude::*;

use super::*;
use crate::{Backoff, RateLimits};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn state() -> (State<&'static str>, Instant) {
    (State::new(Options::default()), Instant::now())
}

fn take(state: &mut State<&'static str>, now: Instant) -> Option<&'static str> {
    match state.take(now) {
        Next::Key(key) => Some(key),
        Next::Wait(_) | Next::Closed => None,
    }
}

/// client-go fact 122.
#[test]
fn a_key_added_while_with_a_worker_is_served_once_more_and_not_before_it_is_done() {
    let (mut state, now) = state();
    state.add("a", now);
    assert_eq!(take(&mut state, now), Some("a"));
    assert_eq!(state.add("a", now), Admission::Queued);
    assert_eq!(state.add("a", now), Admission::Merged);
    assert_eq!(take(&mut state, now), None);
    state.finish("a", Verdict::Done, now);
    assert_eq!(take(&mut state, now), Some("a"));
    state.finish("a", Verdict::Done, now);
    assert_eq!(take(&mut state, now), None);
}

/// client-go fact 123; there is no pluggable inner queue here, so there is nothing to touch.
#[test]
fn additions_before_the_first_take_collapse() {
    let (mut state, now) = state();
    assert_eq!(state.add("a", now), Admission::Queued);
    assert_eq!(state.add("a", now), Admission::Merged);
    assert_eq!(state.len(now), 1);
    assert_eq!(state.stats(now).adds, 1);
}

/// client-go fact 124.
#[test]
fn a_closed_queue_serves_what_is_ready_and_then_says_that_it_is_closed() {
    let (mut state, now) = state();
    state.add("a", now);
    state.add_after("later", ms(1), now);
    state.add_after("due", ms(1), now);
    let now = now + ms(1);
    assert_eq!(state.close(now), 0, "what is due at the close is ready");
    assert_eq!(state.add("b", now), Admission::ShutDown);
    assert_eq!(state.add_after("b", ms(1), now), Admission::ShutDown);
    assert_eq!(take(&mut state, now), Some("a"));
    assert_eq!(take(&mut state, now), Some("later"));
    assert_eq!(take(&mut state, now), Some("due"));
    assert_eq!(state.take(now), Next::Closed, "without anybody being done");
}

/// client-go fact 125.
#[test]
fn a_worker_of_a_closed_queue_waits_for_a_key_that_was_added_again_before_the_close() {
    let (mut state, now) = state();
    state.add("a", now);
    assert_eq!(take(&mut state, now), Some("a"));
    state.add("a", now);
    state.close(now);
    assert_eq!(state.take(now), Next::Wait(None));
    assert!(!state.is_idle());
    state.finish("a", Verdict::Forget, now);
    assert_eq!(take(&mut state, now), Some("a"));
    assert_eq!(state.finish("a", Verdict::Retry, now), None, "a retry would come after the end");
    assert!(state.is_idle());
    assert_eq!(state.take(now), Next::Closed);
}

#[test]
fn closing_gives_up_delayed_keys_and_counts_them() {
    let (mut state, now) = state();
    state.add_after("a", ms(1), now);
    state.add_after("b", ms(1), now);
    state.add("c", now);
    assert_eq!(take(&mut state, now), Some("c"));
    state.add_after("c", ms(1), now);
    assert_eq!(state.close(now), 3);
    assert_eq!(state.close(now), 0);
    state.finish("c", Verdict::Done, now);
    assert!(state.entries.is_empty());
}

/// client-go fact 126.
#[test]
fn a_key_that_is_done_is_held_nowhere() {
    let key = std::sync::Arc::new(());
    let mut state = State::new(Options::default());
    let now = Instant::now();
    state.add(std::sync::Arc::clone(&key), now);
    state.add_after(std::sync::Arc::clone(&key), ms(5), now);
    let Next::Key(taken) = state.take(now) else { panic!("a key is ready") };
    state.finish(taken, Verdict::Retry, now);
    let Next::Key(taken) = state.take(now + ms(5)) else { panic!("a retry is due") };
    state.finish(taken, Verdict::Forget, now + ms(5));
    assert_eq!(std::sync::Arc::strong_count(&key), 1);
}

/// client-go fact 127.
#[test]
fn of_two_delays_the_earlier_counts_whichever_came_first() {
    for delays in [[50, 70], [50, 30], [30, 30]] {
        let (mut state, now) = state();
        for delay in delays {
            state.add_after("a", ms(delay), now);
        }
        let earliest = delays[0].min(delays[1]);
        assert_eq!(state.take(now + ms(earliest - 1)), Next::Wait(Some(now + ms(earliest))));
        assert_eq!(take(&mut state, now + ms(earliest)), Some("a"));
        state.finish("a", Verdict::Done, now + ms(earliest));
        assert_eq!(state.take(now + ms(1000)), Next::Wait(None), "{delays:?} fired twice");
    }
}

/// client-go fact 128.
#[test]
fn a_later_time_does_not_hold_up_an_earlier_one() {
    let (mut state, now) = state();
    state.add_after("late", ms(1000), now);
    state.take_wake();
    state.add_after("early", ms(50), now);
    assert_eq!(state.take_wake(), Wake::All, "who sleeps until the later time has to be woken");
    assert_eq!(take(&mut state, now + ms(50)), Some("early"));
    assert_eq!(take(&mut state, now + ms(50)), None);
    assert_eq!(take(&mut state, now + ms(1000)), Some("late"));
}

/// client-go fact 129.
#[test]
fn no_delay_is_at_once() {
    let (mut state, now) = state();
    assert_eq!(state.add_after("a", Duration::ZERO, now), Admission::Queued);
    assert_eq!(take(&mut state, now), Some("a"));
    assert_eq!(state.stats(now).retries, 1);
}

/// controller-runtime facts 52 and 54; client-go would serve the key twice.
#[test]
fn adding_a_delayed_key_makes_it_ready_and_takes_its_time_away() {
    let (mut state, now) = state();
    state.add_after("a", ms(50), now);
    assert_eq!(state.add("a", now), Admission::Merged);
    assert_eq!(state.add_after("a", ms(10), now), Admission::Merged, "ready is earlier than any time");
    assert_eq!(take(&mut state, now), Some("a"));
    state.finish("a", Verdict::Done, now);
    assert_eq!(state.take(now + ms(100)), Next::Wait(None));
    assert_eq!(state.stats(now).adds, 1);
}

#[test]
fn a_delayed_key_comes_before_what_was_added_after_its_time() {
    let (mut state, now) = state();
    state.add_after("timed", ms(10), now);
    state.add("late", now + ms(11));
    assert_eq!(take(&mut state, now + ms(20)), Some("timed"));
    let waited = state.stats(now + ms(20)).queue_duration.sum();
    assert_eq!(waited, ms(10), "it was ready since its time, not since somebody looked");
}

#[test]
fn a_time_that_comes_while_the_key_is_with_a_worker_serves_it_again() {
    let (mut state, now) = state();
    state.add("a", now);
    assert_eq!(take(&mut state, now), Some("a"));
    state.add_after("a", ms(10), now);
    assert_eq!(take(&mut state, now + ms(20)), None);
    state.finish("a", Verdict::Done, now + ms(20));
    assert_eq!(take(&mut state, now + ms(20)), Some("a"));
}

#[test]
fn an_endless_delay_is_no_overflow() {
    let (mut state, now) = state();
    assert_eq!(state.add_after("a", Duration::MAX, now), Admission::Queued);
    assert!(matches!(state.take(now), Next::Wait(Some(_))));
}

#[test]
fn at_the_limit_new_keys_are_refused_and_known_ones_are_not() {
    let mut state = State::new(Options::default().limit(2));
    let now = Instant::now();
    state.add("a", now);
    state.add_after("b", ms(10), now);
    assert_eq!(state.add("c", now), Admission::Full);
    assert_eq!(state.add_after("c", ms(1), now), Admission::Full);
    assert_eq!(state.add_rate_limited("c", now).0, Admission::Full);
    assert_eq!(state.add("b", now), Admission::Merged);
    assert_eq!(take(&mut state, now), Some("a"));
    assert_eq!(state.add("c", now), Admission::Full, "a key with a worker keeps its place, so that its retry has one");
    assert_eq!(state.finish("a", Verdict::Retry, now), Some(ms(5)));
    assert_eq!(state.stats(now).refused, 4);
    assert_eq!(state.num_requeues(&"c"), 0, "what was refused did not fail");
}

#[test]
fn verdicts_count_failures_as_told() {
    let (mut state, start) = state();
    let mut now = start;
    state.add("a", now);
    for wait in [5, 10, 20] {
        assert_eq!(take(&mut state, now), Some("a"));
        assert_eq!(state.finish("a", Verdict::Retry, now), Some(ms(wait)));
        now += ms(wait);
    }
    assert_eq!(take(&mut state, now), Some("a"));
    state.finish("a", Verdict::Done, now);
    assert_eq!(state.num_requeues(&"a"), 3);
    state.add("a", now);
    assert_eq!(take(&mut state, now), Some("a"));
    assert_eq!(state.finish("a", Verdict::After(ms(7)), now), Some(ms(7)));
    assert_eq!(state.num_requeues(&"a"), 0);
    assert_eq!(take(&mut state, now + ms(7)), Some("a"));
    assert_eq!(state.finish("a", Verdict::Retry, now + ms(7)), Some(ms(5)));
}

/// client-go fact 132, the story of its scripted clock.
#[test]
fn the_numbers_follow_a_key_through_the_queue() {
    let (mut state, start) = state();
    let at = |micros| start + Duration::from_micros(micros);
    state.add("foo", at(0));
    let stats = state.stats(at(0));
    assert_eq!((stats.adds, stats.depth), (1, 1));
    assert_eq!(take(&mut state, at(50)), Some("foo"));
    let stats = state.stats(at(50));
    assert_eq!((stats.depth, stats.in_flight, stats.queue_duration.sum()), (0, 1, Duration::from_micros(50)));
    state.add("foo", at(75));
    state.add("foo", at(75));
    let stats = state.stats(at(75));
    assert_eq!((stats.adds, stats.depth), (2, 0), "a key with a worker adds no depth");
    assert_eq!(stats.unfinished, Duration::from_micros(25));
    state.finish("foo", Verdict::Done, at(75));
    let stats = state.stats(at(75));
    assert_eq!((stats.depth, stats.work_duration.sum()), (1, Duration::from_micros(25)));
    assert_eq!(take(&mut state, at(100)), Some("foo"));
    state.add("bar", at(100));
    assert_eq!(take(&mut state, at(150)), Some("bar"));
    let stats = state.stats(at(200));
    assert_eq!(stats.unfinished, Duration::from_micros(150));
    assert_eq!(stats.longest_running, Duration::from_micros(100));
    assert_eq!(stats.queue_duration.sum(), Duration::from_micros(50 + 25 + 50));
    state.close(at(200));
    state.add("foo", at(200));
    assert_eq!(state.stats(at(200)).adds, 3, "quiet after the close");
}

// === The model ===

const KEYS: u8 = 4;
const LIMIT: usize = 3;

#[derive(Clone, Debug)]
enum Operation {
    Add(u8),
    AddAfter(u8, u64),
    AddRateLimited(u8),
    Forget(u8),
    Take,
    /// Ends the n-th of the keys with workers.
    Finish(usize, Verdict),
    Advance(u64),
    Close,
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = || 0..KEYS;
    let verdict = prop_oneof![
        Just(Verdict::Done),
        Just(Verdict::Forget),
        Just(Verdict::Retry),
        (0_u64..20).prop_map(|delay| Verdict::After(ms(delay))),
    ];
    prop_oneof![
        6 => key().prop_map(Operation::Add),
        4 => (key(), 0_u64..20).prop_map(|(key, delay)| Operation::AddAfter(key, delay)),
        2 => key().prop_map(Operation::AddRateLimited),
        1 => key().prop_map(Operation::Forget),
        6 => Just(Operation::Take),
        6 => (0_usize..4, verdict).prop_map(|(nth, verdict)| Operation::Finish(nth, verdict)),
        4 => (0_u64..12).prop_map(Operation::Advance),
        1 => Just(Operation::Close),
    ]
}

/// One slot per key; everything is found by looking at all of them.
#[derive(Default)]
struct Model {
    slots: StdHashMap<u8, Slot>,
    failures: StdHashMap<u8, u32>,
    order: u64,
    now: u64,
    closed: bool,
}

#[derive(Clone, Default)]
struct Slot {
    /// Time at which the key is to be served, and the rank among those of one time.
    due: Option<(u64, u64)>,
    /// Place in the line, once served is what it should be.
    line: Option<u64>,
    dirty: bool,
    busy: bool,
}

impl Model {
    fn rank(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Lets the time of keys come one by one.
    fn settle(&mut self) {
        loop {
            let due = self.slots.iter().filter_map(|(key, slot)| slot.due.map(|due| (due, *key)));
            let Some((_, key)) = due.filter(|(due, _)| due.0 <= self.now).min() else { break };
            self.ready(key);
        }
    }

    fn ready(&mut self, key: u8) {
        let rank = self.rank();
        let slot = self.slots.entry(key).or_default();
        slot.due = None;
        if !slot.dirty {
            slot.dirty = true;
            if !slot.busy {
                slot.line = Some(rank);
            }
        }
    }

    fn accepts(&self, key: u8) -> bool {
        let known = |slot: &&Slot| slot.dirty || slot.busy || slot.due.is_some();
        let full = self.slots.values().filter(known).count() >= LIMIT;
        !self.closed && (!full || self.slots.get(&key).as_ref().is_some_and(known))
    }

    fn add(&mut self, key: u8, delay: u64) {
        if !self.accepts(key) {
            return;
        }
        if delay == 0 {
            return self.ready(key);
        }
        let due = (self.now + delay, self.rank());
        let slot = self.slots.entry(key).or_default();
        if !slot.dirty && slot.due.is_none_or(|earlier| due.0 < earlier.0) {
            slot.due = Some(due);
        }
    }

    fn fail(&mut self, key: u8) {
        if self.accepts(key) {
            let failures = self.failures.entry(key).or_default();
            let wait = (1 << *failures).min(8);
            *failures += 1;
            self.add(key, wait);
        }
    }

    fn take(&mut self) -> Option<u8> {
        let (_, key) = self.slots.iter().filter_map(|(key, slot)| Some((slot.line?, *key))).min()?;
        self.slots.insert(key, Slot { busy: true, ..Slot::default() });
        Some(key)
    }

    fn finish(&mut self, key: u8, verdict: Verdict) {
        match verdict {
            Verdict::Done => {}
            Verdict::Forget => drop(self.failures.remove(&key)),
            Verdict::Retry => self.fail(key),
            Verdict::After(delay) => {
                self.failures.remove(&key);
                self.add(key, u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
            }
        }
        let rank = self.rank();
        let slot = self.slots.entry(key).or_default();
        slot.busy = false;
        if slot.dirty {
            slot.line = Some(rank);
        }
    }

    fn close(&mut self) {
        self.closed = true;
        self.slots.values_mut().for_each(|slot| slot.due = None);
    }

    fn count(&self, which: impl Fn(&Slot) -> bool) -> usize {
        self.slots.values().filter(|slot| which(slot)).count()
    }
}

fn check_invariants(state: &State<u8>) {
    for (key, entry) in &state.entries {
        assert!(entry.dirty.is_some() || entry.in_flight.is_some() || entry.due.is_some(), "invariant 1: {key}");
        let ready = state.ready.iter().filter(|ready| *ready == key).count();
        assert_eq!(ready, usize::from(entry.dirty.is_some() && entry.in_flight.is_none()), "invariant 2: {key}");
        assert!(entry.dirty.is_none() || entry.due.is_none(), "invariant 4: {key}");
        if let Some(due) = entry.due {
            assert_eq!(state.delayed.get(&due), Some(key), "invariant 3: {key}");
        }
    }
    assert!(state.ready.iter().all(|key| state.entries.contains_key(key)));
    assert_eq!(state.delayed.len(), state.entries.values().filter(|entry| entry.due.is_some()).count());
    assert_eq!(state.dirty_count, state.entries.values().filter(|entry| entry.dirty.is_some()).count());
    assert_eq!(state.in_flight, state.entries.values().filter(|entry| entry.in_flight.is_some()).count());
    assert!(!state.closed || state.delayed.is_empty(), "invariant 6");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_run_of_operations_ends_as_in_the_model(operations in prop::collection::vec(operation(), 1..80)) {
        let backoff = Backoff::Exponential { base: ms(1), max: ms(8) };
        let mut state = State::new(Options::default().rate_limits(RateLimits::per_key(backoff)).limit(LIMIT));
        let start = Instant::now();
        let mut model = Model::default();
        let mut busy: Vec<u8> = Vec::new();
        for operation in operations {
            let now = start + ms(model.now);
            model.settle();
            match operation.clone() {
                Operation::Add(key) => {
                    prop_assert_eq!(state.add(key, now).is_accepted(), model.accepts(key));
                    model.add(key, 0);
                }
                Operation::AddAfter(key, delay) => {
                    prop_assert_eq!(state.add_after(key, ms(delay), now).is_accepted(), model.accepts(key));
                    model.add(key, delay);
                }
                Operation::AddRateLimited(key) => {
                    state.add_rate_limited(key, now);
                    model.fail(key);
                }
                Operation::Forget(key) => {
                    state.forget(&key);
                    model.failures.remove(&key);
                }
                Operation::Take => {
                    let taken = match state.take(now) {
                        Next::Key(key) => Some(key),
                        Next::Wait(due) => {
                            let first = model.slots.values().filter_map(|slot| slot.due).min();
                            prop_assert_eq!(due, first.map(|due| start + ms(due.0)));
                            None
                        }
                        Next::Closed => {
                            prop_assert!(model.closed && model.count(|slot| slot.dirty) == 0);
                            None
                        }
                    };
                    prop_assert_eq!(taken, model.take());
                    busy.extend(taken);
                }
                Operation::Finish(nth, verdict) => {
                    if nth < busy.len() {
                        let key = busy.remove(nth);
                        state.finish(key, verdict, now);
                        model.finish(key, verdict);
                    }
                }
                Operation::Advance(millis) => model.now += millis,
                Operation::Close => {
                    prop_assert_eq!(state.close(now), model.count(|slot| slot.due.is_some()));
                    model.close();
                }
            }
            model.settle();
            let stats = state.stats(start + ms(model.now));
            prop_assert_eq!(stats.depth, model.count(|slot| slot.line.is_some()));
            prop_assert_eq!(stats.delayed, model.count(|slot| slot.due.is_some()));
            prop_assert_eq!(stats.in_flight, busy.len());
            for key in 0..KEYS {
                prop_assert_eq!(state.num_requeues(&key), model.failures.get(&key).copied().unwrap_or(0));
            }
            check_invariants(&state);
        }
    }
}
