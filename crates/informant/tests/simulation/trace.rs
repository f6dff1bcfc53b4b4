//! What happened, line by line, with the simulated time.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;

/// Where the lines go. Clones share them.
#[derive(Clone)]
pub(crate) struct Trace {
    to: To,
    origin: Arc<Mutex<Option<Instant>>>,
}

#[derive(Clone)]
enum To {
    Nowhere,
    Stdout,
    Lines(Arc<Mutex<Vec<String>>>),
}

impl Trace {
    pub(crate) fn off() -> Self {
        Self::new(To::Nowhere)
    }

    /// Prints each line as it comes, so that a history that never ends is seen too.
    pub(crate) fn printing() -> Self {
        Self::new(To::Stdout)
    }

    pub(crate) fn keeping() -> Self {
        Self::new(To::Lines(Arc::default()))
    }

    fn new(to: To) -> Self {
        Self { to, origin: Arc::default() }
    }

    /// Notes what happens, if anybody wants to know.
    pub(crate) fn say(&self, who: &str, what: impl FnOnce() -> String) {
        if let To::Nowhere = self.to {
            return;
        }
        let now = Instant::now();
        let origin = *self.origin.lock().unwrap().get_or_insert(now);
        let line = format!("{:>10.3}  {who:<10} {}", now.duration_since(origin).as_secs_f64(), what());
        match &self.to {
            To::Nowhere => {}
            To::Stdout => println!("{line}"),
            To::Lines(lines) => lines.lock().unwrap().push(line),
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        match &self.to {
            To::Lines(lines) => lines.lock().unwrap().clone(),
            To::Nowhere | To::Stdout => Vec::new(),
        }
    }
}
