//! When a watch sends a bookmark, and when it ends: plain arithmetic over given instants.

use std::time::Duration;

use tokio::time::Instant;

/// How long before the end the last bookmark comes: time for the client to resume from it.
const BEFORE_END: Duration = Duration::from_secs(2);
/// How long a watch lives that asks for no time: half an hour, and up to as much again so that not all end at once.
const DEFAULT_LIFE: Duration = Duration::from_secs(1800);

/// The due times of one watch.
#[derive(Debug)]
pub(super) struct Schedule {
    end: Instant,
    /// How far bookmarks are apart; `None` when none are wanted.
    interval: Option<Duration>,
    /// The next bookmark; `None` after the last.
    bookmark: Option<Instant>,
    rng: fastrand::Rng,
}

// === impl Schedule ===

impl Schedule {
    /// A schedule that begins `now` and lasts for `life`; zero means a random half hour to an hour.
    pub(super) fn new(now: Instant, interval: Option<Duration>, life: Duration, mut rng: fastrand::Rng) -> Self {
        let life = if life.is_zero() { DEFAULT_LIFE.mul_f64(1.0 + rng.f64()) } else { life };
        // A life past what an instant can hold is as good as a year.
        let end = now.checked_add(life).unwrap_or(now + Duration::from_secs(365 * 86_400));
        let mut schedule = Self { end, interval, bookmark: None, rng };
        schedule.plan_bookmark(now);
        schedule
    }

    /// Whether the watch is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.end
    }

    /// Whether a bookmark is due; if so, the next one is planned.
    pub(super) fn bookmark_is_due(&mut self, now: Instant) -> bool {
        let due = self.bookmark.is_some_and(|at| at <= now);
        if due {
            self.plan_bookmark(now);
        }
        due
    }

    /// When there is next something to do though nothing happened.
    pub(super) fn wake_at(&self) -> Instant {
        self.bookmark.map_or(self.end, |bookmark| bookmark.min(self.end))
    }

    fn plan_bookmark(&mut self, now: Instant) {
        self.bookmark = self.interval.and_then(|interval| {
            let regular = now + interval.mul_f64(0.75 + self.rng.f64() / 2.0);
            let last = self.end.checked_sub(BEFORE_END).filter(|last| *last > now);
            match last {
                Some(last) => Some(regular.min(last)),
                None => Some(regular).filter(|regular| *regular < self.end),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn bookmarks(life: u64) -> Vec<u64> {
        let start = Instant::now();
        let life = Duration::from_secs(life);
        let mut schedule = Schedule::new(start, Some(MINUTE), life, fastrand::Rng::with_seed(1));
        let mut times = Vec::new();
        while !schedule.is_over(schedule.wake_at()) {
            let now = schedule.wake_at();
            assert!(schedule.bookmark_is_due(now));
            times.push((now - start).as_secs());
        }
        times
    }

    #[test]
    fn bookmarks_come_about_every_minute_and_two_seconds_before_the_end() {
        let times = bookmarks(300);
        assert_eq!(times.last(), Some(&298));
        let regular = times.split_last().map_or(&[][..], |(_, regular)| regular);
        let gaps: Vec<u64> = regular.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (44..=76).contains(gap)), "{times:?}");
    }

    #[test]
    fn a_watch_shorter_than_the_interval_has_only_the_last_bookmark() {
        assert_eq!(bookmarks(10), [8]);
        assert_eq!(bookmarks(1), [0; 0]);
    }

    #[test]
    fn without_a_timeout_a_watch_lasts_half_an_hour_to_an_hour() {
        let now = Instant::now();
        for seed in 0..100 {
            let schedule = Schedule::new(now, None, Duration::ZERO, fastrand::Rng::with_seed(seed));
            let life = schedule.wake_at() - now;
            assert!((1800..=3600).contains(&life.as_secs()), "{life:?}");
        }
    }
}
