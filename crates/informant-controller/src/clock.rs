//! The wall clock, for the times that people read. Nothing is decided by it; that's what `tokio::time::Instant` is for.

use jiff::{SignedDuration, Timestamp};

/// The present, to the second and in UTC.
#[must_use]
#[allow(clippy::disallowed_methods, reason = "this is the one place of the crate that reads the wall clock")]
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).min(Timestamp::MAX - SignedDuration::from_secs(1))
}
