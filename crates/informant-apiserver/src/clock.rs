//! The server's clock: every timestamp and every deadline comes from here.
//!
//! Time passes as tokio's does, so it stands still and jumps with it in tests; only the start is taken from the wall, or
//! given, so that a run replays.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the time of day: a start plus the tokio time that has passed since. Copy; copies agree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Timestamp,
    started: Instant,
}

// === impl Clock ===

impl Clock {
    /// A clock that starts at the wall clock's time.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    pub(crate) fn system() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// A clock that shows `start` now. Under tokio's paused time everything it shows follows from `start` alone.
    pub(crate) fn starting_at(start: Timestamp) -> Self {
        Self { start, started: Instant::now() }
    }

    /// The time of day. Past the year 9999 it stands still.
    pub(crate) fn now(&self) -> Timestamp {
        self.start.saturating_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// The time that has passed since the clock was made.
    pub(crate) fn elapsed(&self) -> Duration {
        Instant::now().saturating_duration_since(self.started)
    }

    /// The time of day as RFC 3339 in whole seconds: `2026-01-02T03:04:05Z`, as `creationTimestamp` has it.
    pub(crate) fn now_seconds(&self) -> String {
        format_seconds(self.now())
    }
}

/// RFC 3339 in whole seconds, cut and not rounded.
pub(crate) fn format_seconds(timestamp: Timestamp) -> String {
    Timestamp::from_second(timestamp.as_second()).unwrap_or(timestamp).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_follows_tokio_time_from_its_start() {
        let clock = Clock::starting_at("2026-01-02T03:04:05.9Z".parse().unwrap());
        assert_eq!(clock.now_seconds(), "2026-01-02T03:04:05Z");
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now_seconds(), "2026-01-02T04:04:05Z");
    }
}
