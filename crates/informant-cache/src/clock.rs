//! The wall clock, for stamping states only: no decision depends on it.
//!
//! It's read once; from then on time runs with tokio's clock. So under paused time the stamps stand still too, and a
//! run that is given its start replays with the same stamps.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Timestamp,
    origin: Option<Instant>,
}

impl Clock {
    /// Starts with the system's time.
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock, and it only stamps")]
    pub(crate) fn system() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// Starts with a time of the caller's choice.
    pub(crate) fn starting_at(started: Timestamp) -> Self {
        // Outside a runtime tokio's clock is the system's, so this works anywhere.
        Self { started, origin: Some(Instant::now()) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let since = self.origin.map(|origin| Instant::now().saturating_duration_since(origin)).unwrap_or_default();
        let since = SignedDuration::try_from(since).unwrap_or_default();
        let now = self.started.checked_add(since).unwrap_or(self.started);
        // Whole milliseconds: stamps are for people.
        now.round(jiff::Unit::Millisecond).unwrap_or(now)
    }
}
