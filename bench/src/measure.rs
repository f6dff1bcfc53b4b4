//! What a process has used: time of the processor, memory; and the monotonic clock, which all processes share.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Nanoseconds of the monotonic clock.
#[must_use]
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Seconds since a moment of [`now`].
#[must_use]
pub fn since(moment: u64) -> f64 {
    now().saturating_sub(moment) as f64 / 1e9
}

/// A stretch of work that's measured.
pub struct Span {
    began: u64,
    user: f64,
    system: f64,
}

impl Span {
    /// Begins one: the peak of memory is forgotten too, where the kernel lets it be.
    #[must_use]
    pub fn begin() -> Self {
        drop(std::fs::write("/proc/self/clear_refs", "5"));
        let (user, system) = processor();
        Self { began: now(), user, system }
    }

    /// Seconds of the wall clock, of the processor for the program and in the kernel, and the peak of memory.
    #[must_use]
    pub fn end(&self) -> Value {
        self.end_after(since(self.began))
    }

    /// The same when the time is known better.
    #[must_use]
    pub fn end_after(&self, seconds: f64) -> Value {
        let (user, system) = processor();
        json!({
            "seconds": seconds,
            "user_cpu_seconds": user - self.user,
            "system_cpu_seconds": system - self.system,
            "peak_bytes": memory("VmHWM:"),
        })
    }
}

/// The time of the processor that this process has used, in seconds: for itself, and in the kernel.
#[must_use]
pub fn processor() -> (f64, f64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return (0.0, 0.0) };
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    (seconds(usage.user_time()), seconds(usage.system_time()))
}

/// Resident memory, in bytes.
#[must_use]
pub fn resident() -> u64 {
    memory("VmRSS:")
}

/// The most that was resident, in bytes.
#[must_use]
pub fn peak() -> u64 {
    memory("VmHWM:")
}

fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Waits a moment for memory that's being given back.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}

/// The value below which a part of the sorted values lies.
#[must_use]
pub fn percentile(sorted: &[u64], part: f64) -> u64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(((last as f64) * part).round() as usize).copied().unwrap_or(0)
}
