//! Wakes whoever waits for news, in the order in which they began to wait.
//!
//! It's there instead of tokio's `watch`, which wakes in an order that it draws at random: a run in one thread from one
//! seed is to be the same each time.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Something to be told of, without saying what. A clone is the same signal.
#[derive(Clone, Default)]
pub(crate) struct Signal {
    inner: Arc<Inner>,
}

/// One who listens for a signal.
pub(crate) struct Listener {
    inner: Arc<Inner>,
    /// How often it had been given when this one last looked.
    heard: u64,
}

#[derive(Default)]
struct Inner {
    given: AtomicU64,
    waiting: Notify,
    listeners: AtomicUsize,
}

impl Signal {
    /// Wakes every listener, also those that don't wait yet.
    pub(crate) fn give(&self) {
        self.inner.given.fetch_add(1, Ordering::Release);
        self.inner.waiting.notify_waiters();
    }

    /// A listener to what's given from now on.
    pub(crate) fn listen(&self) -> Listener {
        self.inner.listeners.fetch_add(1, Ordering::Relaxed);
        Listener { inner: Arc::clone(&self.inner), heard: self.inner.given.load(Ordering::Acquire) }
    }

    /// How many listeners there are.
    pub(crate) fn listeners(&self) -> usize {
        self.inner.listeners.load(Ordering::Relaxed)
    }
}

impl Listener {
    /// Takes what was given so far as heard.
    pub(crate) fn mark_heard(&mut self) {
        self.heard = self.inner.given.load(Ordering::Acquire);
    }

    /// Waits until the signal was given since it was last heard, and takes it as heard.
    ///
    /// # Cancel safety
    /// Nothing is lost when it's dropped.
    pub(crate) async fn heard(&mut self) {
        loop {
            let mut given = pin!(self.inner.waiting.notified());
            // From here on no signal is missed, so what was given before shows in the count.
            given.as_mut().enable();
            let now = self.inner.given.load(Ordering::Acquire);
            if now != self.heard {
                self.heard = now;
                return;
            }
            given.await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.inner.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("listeners", &self.listeners()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("heard", &self.heard).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_listener_hears_what_was_given_before_it_waited_and_hears_it_once() {
        let signal = Signal::default();
        signal.give();
        let mut listener = signal.listen();
        assert!(listener.heard().now_or_never().is_none(), "that was before it listened");
        signal.give();
        signal.give();
        assert!(listener.heard().now_or_never().is_some());
        assert!(listener.heard().now_or_never().is_none());
        signal.give();
        listener.mark_heard();
        assert!(listener.heard().now_or_never().is_none());
        assert_eq!(signal.listeners(), 1);
        drop(listener);
        assert_eq!(signal.listeners(), 0);
    }

    #[tokio::test]
    async fn listeners_are_woken_in_the_order_in_which_they_began_to_wait() {
        for _ in 0..20 {
            let signal = Signal::default();
            let woken = std::sync::Mutex::new(Vec::new());
            let mut listeners: Vec<Listener> = (0..9).map(|_| signal.listen()).collect();
            let woken_by = &woken;
            let waits = listeners.iter_mut().enumerate().map(|(number, listener)| async move {
                listener.heard().await;
                woken_by.lock().unwrap().push(number);
            });
            let all: futures::stream::FuturesUnordered<_> = waits.collect();
            let mut all = std::pin::pin!(futures::StreamExt::collect::<Vec<()>>(all));
            assert!(all.as_mut().now_or_never().is_none());
            signal.give();
            all.await;
            let order = woken.lock().unwrap();
            assert!(order.is_sorted() && order.len() == 9, "{order:?}");
        }
    }
}
