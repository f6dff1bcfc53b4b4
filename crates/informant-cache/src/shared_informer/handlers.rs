//! The handlers of an informer, in the order that they were added.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::event::Event;
use crate::handler::Queue;
use crate::task_set::TaskSet;

pub(super) struct Handlers<K> {
    pub(super) queues: Vec<Arc<Queue<K>>>,
    /// Tasks of handlers that were added before the start.
    pub(super) waiting: Vec<HandlerTask>,
    /// Where to run handlers; set by the start.
    pub(super) running: Option<(TaskSet, CancellationToken)>,
    /// Whether the first whole state was published.
    pub(super) synced: bool,
    pub(super) stopped: bool,
    /// Events merged away by handlers that are gone.
    pub(super) conflated: u64,
}

pub(crate) type HandlerTask = Box<dyn FnOnce(&TaskSet, &CancellationToken) + Send>;

// === impl Handlers ===

impl<K> Handlers<K> {
    pub(super) fn new() -> Self {
        Self { queues: Vec::new(), waiting: Vec::new(), running: None, synced: false, stopped: false, conflated: 0 }
    }

    /// Puts events into every handler's backlog.
    /// `completes`: with these the initial state is complete.
    pub(super) fn tell(&mut self, events: &[Event<K>], completes: bool, arrived: Instant) {
        self.prune();
        for queue in &self.queues {
            queue.push(events, completes, arrived);
        }
    }

    /// Forgets handlers that ended.
    fn prune(&mut self) {
        let conflated = &mut self.conflated;
        self.queues.retain(|queue| {
            let ended = queue.is_closed();
            if ended {
                *conflated += queue.status().conflated;
            }
            !ended
        });
    }
}
