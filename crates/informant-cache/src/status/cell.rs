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
const UNDECODABLE_MAX: usize = 100;

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

    /// Names the objects of a namespace (`None`: of all) that can't be decoded now.
    pub(crate) fn set_undecodable(&self, part: Option<&str>, undecodable: BTreeMap<ObjectKey, String>) {
        let mut numbers = lock(&self.numbers);
        numbers.undecodable.retain(|key, _| part.is_some() && key.namespace() != part);
        numbers.undecodable.extend(undecodable);
        while numbers.undecodable.len() > UNDECODABLE_MAX {
            numbers.undecodable.pop_last();
        }
    }

    pub(crate) fn numbers(&self) -> Numbers {
        lock(&self.numbers).clone()
    }
}
