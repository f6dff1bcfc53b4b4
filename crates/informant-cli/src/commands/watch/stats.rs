//! What `informant watch --stats` says: how long the sync took, what it cost, and what's held.

use std::fs;

use informant::cache::InformerStatus;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Counts while the command runs. Times are of the monotonic clock.
pub struct Stats {
    started: Instant,
    synced: Option<Instant>,
    events: u64,
    /// When the first and the last event came that weren't of the initial state.
    first_and_last: Option<(Instant, Instant)>,
}

impl Stats {
    /// The informer is started now.
    pub fn start() -> Self {
        Self { started: Instant::now(), synced: None, events: 0, first_and_last: None }
    }

    /// The cache is complete for the first time.
    pub fn synced(&mut self) {
        self.synced = Some(Instant::now());
    }

    /// An event came that isn't of the initial state.
    pub fn event(&mut self) {
        let now = Instant::now();
        self.events += 1;
        self.first_and_last = Some((self.first_and_last.map_or(now, |(first, _)| first), now));
    }

    /// One line of JSON. Times are in seconds; what this system doesn't tell is null.
    pub fn line(&self, status: &InformerStatus) -> Value {
        let rate = self.first_and_last.and_then(|(first, last)| {
            let seconds = last.duration_since(first).as_secs_f64();
            // The first one begins the time, so it doesn't count.
            #[allow(clippy::cast_precision_loss, reason = "there are fewer events than 2^52")]
            (seconds > 0.0).then(|| (self.events - 1) as f64 / seconds)
        });
        json!({
            "objects": status.objects,
            "sync_seconds": self.synced.map(|synced| synced.duration_since(self.started).as_secs_f64()),
            "user_cpu_seconds": user_seconds(),
            "held_bytes": status.memory.total(),
            "resident_bytes": memory("VmRSS:"),
            "peak_bytes": memory("VmHWM:"),
            "events": self.events,
            "events_per_second": rate,
        })
    }
}

/// The time of the processor that this process has used for itself, to a hundredth of a second.
fn user_seconds() -> Option<f64> {
    #[cfg(target_os = "linux")]
    {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program stands in parentheses and may hold anything.
        let ticks: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(11)?.parse().ok()?;
        #[allow(clippy::cast_precision_loss, reason = "it's a hundred")]
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        Some(ticks / ticks_per_second)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// A line of the kernel's account of this process, in bytes.
fn memory(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
