//! Sets up a handler: its options, its filter, and last how it takes its events.

use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::filter::HandlerFilter;
use super::resync::Resync;
use super::{Feed, HandlerHandle, HandlerOptions, Queue, Subscription};
use crate::event::Event;
use crate::shared_informer::Shared;
use crate::task_set::TaskSet;

/// Sets up a handler, made by [`SharedInformer::handler`](crate::SharedInformer::handler). The last call adds it.
#[must_use = "nothing is added until it's said how the events are taken, with `on_change` for example"]
pub struct HandlerBuilder<K: 'static> {
    informer: Arc<Shared<K>>,
    options: HandlerOptions,
    filter: Option<HandlerFilter<K>>,
}

impl<K: Send + Sync + 'static> HandlerBuilder<K> {
    pub(crate) fn new(informer: Arc<Shared<K>>, options: HandlerOptions) -> Self {
        Self { informer, options, filter: None }
    }

    /// Lets the handler know only of objects that pass.
    ///
    /// It's told that an object was added when a state of it passes for the first time, that it was updated while its
    /// states pass, and that it was deleted when it's gone or a state doesn't pass any more; the deletion then carries
    /// the last state that passed. Of an object that it doesn't know it isn't told at all.
    ///
    /// The filter is called with each new state, in the handler's task, so it holds up nobody else; it must not block. If
    /// it panics, that counts as a panic of the handler, and the state isn't told. Cost: a pointer for each object that
    /// the handler knows.
    pub fn filter(mut self, pass: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(HandlerFilter::new(Box::new(pass)));
        self
    }

    /// Calls `handle` with every event: see [`SharedInformer::on_change`](crate::SharedInformer::on_change).
    pub fn on_change(self, mut handle: impl FnMut(Event<K>) + Send + 'static) -> HandlerHandle {
        self.run(move |event| {
            handle(event);
            ready(())
        })
    }

    /// Calls `handle` with every event and awaits what it returns, before it's called with the next one: see
    /// [`SharedInformer::on_change_async`](crate::SharedInformer::on_change_async).
    pub fn on_change_async<F>(self, handle: impl FnMut(Event<K>) -> F + Send + 'static) -> HandlerHandle
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.run(handle)
    }

    /// Gives the events to whoever polls for them: see [`SharedInformer::subscribe`](crate::SharedInformer::subscribe).
    pub fn subscribe(self) -> Subscription<K> {
        let (informer, feed) = self.feed();
        informer.add_handler(Arc::clone(&feed.queue), None);
        Subscription::new(feed)
    }

    fn run<F>(self, handle: impl FnMut(Event<K>) -> F + Send + 'static) -> HandlerHandle
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (informer, feed) = self.feed();
        let queue = Arc::clone(&feed.queue);
        let task = Box::new(move |tasks: &TaskSet, cancel: &CancellationToken| {
            tasks.spawn(feed.run(handle, cancel.clone()));
        });
        informer.add_handler(Arc::clone(&queue), Some(task));
        HandlerHandle::new(queue)
    }

    fn feed(self) -> (Arc<Shared<K>>, Feed<K>) {
        let Self { informer, options, filter } = self;
        let resync = options.resync.filter(|period| !period.is_zero());
        let resync = resync.map(|period| Resync::new(Arc::downgrade(&informer), period));
        let queue = Arc::new(Queue::new(options, informer.settings.handler_bound));
        (informer, Feed { queue, filter, resync })
    }
}

impl<K: 'static> fmt::Debug for HandlerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerBuilder")
            .field("options", &self.options)
            .field("filter", &self.filter.is_some())
            .finish_non_exhaustive()
    }
}
