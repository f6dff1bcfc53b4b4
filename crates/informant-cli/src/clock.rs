//! The wall clock, for stamps on what is printed; nothing is decided by it.

use jiff::fmt::temporal::DateTimePrinter;

/// Now, in UTC with milliseconds: `2026-11-30T12:00:00.000Z`.
pub fn now() -> String {
    #[allow(clippy::disallowed_methods, reason = "the one file that reads the wall clock")]
    let now = jiff::Timestamp::now();
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
    PRINTER.timestamp_to_string(&now)
}
