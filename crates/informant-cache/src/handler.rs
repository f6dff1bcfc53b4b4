//! A handler: its own backlog, its own task, its own idea of being synced.
//!
//! No handler can hold up the store or another handler: an event is put into each handler's bounded backlog and that's
//! all the informer does for it. A panic in a handler is caught and counted, and the handler goes on with the next
//! event.
//!
//! Where the backlog is used without a task, it's a [`Subscription`]: the events are taken by whoever polls it.

mod backlog;
mod builder;
mod feed;
mod filter;
mod handle;
mod queue;
mod resync;
mod subscription;
mod task;

use std::time::Duration;

pub use self::backlog::Overflow;
pub use self::builder::HandlerBuilder;
pub(crate) use self::feed::Feed;
pub use self::handle::{HandlerHandle, Remover};
pub(crate) use self::queue::Queue;
pub use self::subscription::Subscription;

/// How a handler is kept.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HandlerOptions {
    /// Its name in statuses and logs. Default: `handler`.
    pub name: String,
    /// How many events may wait before [`overflow`](Self::overflow) sets in. Default: the factory's, 1,024.
    pub bound: Option<usize>,
    /// What happens at the bound. Default: events are merged, object by object.
    pub overflow: Overflow,
    /// How often it's told of every object again, as an update whose [`is_resync`](crate::Event::is_resync) is true.
    /// Default: never. Less than a second is raised to a second; zero is never.
    ///
    /// The first time is one period after the handler is synced, the next at least one period after the last began. The
    /// objects come from the cache, also while the connection is lost: a resync repairs what a handler forgot, not what
    /// the informer missed. A handler that's behind gets its events first. No other handler sees any of it.
    pub resync: Option<Duration>,
    /// What happens after a panic in it. Default: it goes on with the next event.
    pub on_panic: OnPanic,
}

/// What happens to a handler whose call, or whose filter, panicked. The informer and other handlers never notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnPanic {
    /// It's counted, and the handler goes on with the next event.
    #[default]
    Continue,
    /// It's counted, and the handler ends: it gets no more events, and its status says why.
    End,
}

// === impl HandlerOptions ===

impl Default for HandlerOptions {
    fn default() -> Self {
        Self {
            name: "handler".to_owned(),
            bound: None,
            overflow: Overflow::Conflate,
            resync: None,
            on_panic: OnPanic::Continue,
        }
    }
}

impl HandlerOptions {
    /// The default options under a name.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the bound of the backlog; at least 1.
    #[must_use]
    pub fn with_bound(mut self, bound: usize) -> Self {
        self.bound = Some(bound);
        self
    }

    /// Sets what happens at the bound.
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Sets how often the handler is told of every object again.
    #[must_use]
    pub fn with_resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Sets what happens after a panic.
    #[must_use]
    pub fn with_on_panic(mut self, on_panic: OnPanic) -> Self {
        self.on_panic = on_panic;
        self
    }
}
