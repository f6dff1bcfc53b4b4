//! The wall clock: stamps on what is printed, and what tells one server of ours from the next.

use jiff::fmt::temporal::DateTimePrinter;

/// Now, in UTC with milliseconds: `2026-11-30T12:00:00.000Z`.
pub fn now() -> String {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
    PRINTER.timestamp_to_string(&timestamp())
}

/// Now, as whole seconds and as nanoseconds since 1970; 0 before that.
pub fn since_epoch() -> (u64, u64) {
    let now = timestamp();
    let nanoseconds = u64::try_from(now.as_nanosecond()).unwrap_or(0);
    (u64::try_from(now.as_second()).unwrap_or(0), nanoseconds)
}

#[allow(clippy::disallowed_methods, reason = "the one file that reads the wall clock")]
fn timestamp() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
