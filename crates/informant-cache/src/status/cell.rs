//! Where an informer's task writes its state and anyone reads it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tokio::sync::watch;

use super::{Counters, InformerState, LastError};
use crate::clock::Clock;
use crate::error::RequestError;
use crate::key::ObjectKey;
use crate::lock::lock;

/// How many undecodable objects are named.
const NAMED_MAX: usize = 100;

pub(crate) struct StatusCell {
    clock: Clock,
    state: watch::Sender<InformerState>,
    synced: watch::Sender<bool>,
    /// Lock rank 5.
    numbers: Mutex<Numbers>,
}

#[derive(Default, Clone)]
pub(crate) struct Numbers {
    pub(crate) counters: Counters,
    pub(crate) last_error: Option<LastError>,
    pub(crate) undecodable: BTreeMap<ObjectKey, String>,
}

impl StatusCell {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            state: watch::Sender::new(InformerState::NotStarted),
            synced: watch::Sender::new(false),
            numbers: Mutex::default(),
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) fn state(&self) -> InformerState {
        self.state.borrow().clone()
    }

    pub(crate) fn watch_state(&self) -> watch::Receiver<InformerState> {
        self.state.subscribe()
    }

    pub(crate) fn set_state(&self, state: InformerState) {
        self.state.send_if_modified(|now| {
            let differs = *now != state;
            *now = state;
            differs
        });
    }

    pub(crate) fn synced(&self) -> bool {
        *self.synced.borrow()
    }

    pub(crate) fn watch_synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    pub(crate) fn set_synced(&self) {
        self.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut lock(&self.numbers).counters);
    }

    pub(crate) fn failed(&self, error: &RequestError) {
        let last = LastError { at: self.clock.now(), kind: error.kind, message: error.message.clone() };
        let mut numbers = lock(&self.numbers);
        numbers.counters.failures += 1;
        numbers.last_error = Some(last);
    }

    /// Notes that an object can't be decoded. Returns whether that's new to know of it.
    pub(crate) fn undecodable(&self, key: &ObjectKey, reason: &str) -> bool {
        let mut numbers = lock(&self.numbers);
        numbers.counters.undecodable += 1;
        let known = numbers.undecodable.get(key).is_some_and(|known| known == reason);
        if numbers.undecodable.len() < NAMED_MAX || numbers.undecodable.contains_key(key) {
            numbers.undecodable.insert(key.clone(), reason.to_owned());
        }
        !known
    }

    /// Notes that an object can be decoded now, or is gone.
    pub(crate) fn decodable(&self, key: &ObjectKey) {
        let mut numbers = lock(&self.numbers);
        if !numbers.undecodable.is_empty() {
            numbers.undecodable.remove(key);
        }
    }

    /// Keeps only the named objects that a new list still has.
    pub(crate) fn retain_undecodable(&self, keep: impl Fn(&ObjectKey) -> bool) {
        lock(&self.numbers).undecodable.retain(|key, _| keep(key));
    }

    pub(crate) fn numbers(&self) -> Numbers {
        lock(&self.numbers).clone()
    }
}
