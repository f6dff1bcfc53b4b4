//! Waiting for something that another process does. The one file of xtask that sleeps: it has no runtime to do it in.

use std::time::Duration;

const STEP: Duration = Duration::from_millis(100);

/// Asks `done` every 100 ms until it answers true, for about `limit`. Returns whether it did.
pub(crate) fn until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let steps = limit.as_millis() / STEP.as_millis();
    for _ in 0..steps {
        if done() {
            return true;
        }
        #[allow(clippy::disallowed_methods, reason = "xtask has no runtime to sleep in, and nothing else runs in it")]
        std::thread::sleep(STEP);
    }
    done()
}
