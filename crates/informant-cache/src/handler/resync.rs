//! Telling one handler of everything again, from time to time.
//!
//! A round takes the objects from the store, never from the server, in batches. A batch is taken when nothing waits in
//! the handler's backlog, within the critical section that events are published in: then what the store holds is what
//! the handler was told last, so an object told again can't get out of order with its changes. A handler that's behind
//! catches up first.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::Queue;
use crate::key::ObjectKey;
use crate::object::Cached;
use crate::shared_informer::Shared;

/// The shortest period.
const PERIOD_MIN: Duration = Duration::from_secs(1);
/// How many objects are taken at once.
const BATCH: usize = 256;

pub(super) struct Resync<K> {
    informer: Weak<Shared<K>>,
    period: Duration,
    /// Runs from the handler's sync on.
    timer: Option<Pin<Box<Sleep>>>,
    /// What's left of the round, the next one last.
    left: Vec<ObjectKey>,
    batch: VecDeque<Cached<K>>,
}

impl<K: Send + Sync + 'static> Resync<K> {
    pub(super) fn new(informer: Weak<Shared<K>>, period: Duration) -> Self {
        let period = period.max(PERIOD_MIN);
        Self { informer, period, timer: None, left: Vec::new(), batch: VecDeque::new() }
    }

    /// The next object of the batch at hand.
    pub(super) fn next(&mut self) -> Option<Cached<K>> {
        self.batch.pop_front()
    }

    /// Ready when there's something to look at again: a batch, or events that came in between.
    pub(super) fn poll(&mut self, queue: &Queue<K>, context: &mut Context<'_>) -> Poll<()> {
        // Without its informer, nothing will ever be due.
        let Some(informer) = self.informer.upgrade() else { return Poll::Pending };
        loop {
            if self.left.is_empty() {
                let period = self.period;
                let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(period)));
                if timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                timer.as_mut().reset(Instant::now() + period);
                self.left = informer.store.keys();
                self.left.sort_unstable_by(|one, other| other.cmp(one));
            } else {
                let keys = self.left.split_off(self.left.len().saturating_sub(BATCH));
                let Some(batch) = informer.told_objects(queue, keys.iter().rev()) else {
                    self.left.extend(keys);
                    return Poll::Ready(());
                };
                self.batch.extend(batch);
                if !self.batch.is_empty() {
                    return Poll::Ready(());
                }
            }
        }
    }
}
