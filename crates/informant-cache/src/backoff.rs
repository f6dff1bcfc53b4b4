//! Delays between attempts: longer each time, jittered, back to the start after a quiet while. Pure: the time and the
//! randomness come from the caller.

use std::time::Duration;

/// How delays grow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Curve {
    pub(crate) initial: Duration,
    pub(crate) max: Duration,
    /// How many times as long the next is.
    pub(crate) factor: f64,
    /// The delay is drawn between itself and `1 + jitter` times itself.
    pub(crate) jitter: f64,
    /// Without a delay for this long, the next is the initial one again.
    pub(crate) reset_after: Duration,
}

/// After a failure: from 0.8 s up to 30 s, as in client-go's reflector, but growing by a quarter each time where that
/// doubles: so the wait that's left when the server is back is a fraction of the outage and not as long as all of it.
pub(crate) const FAILURE: Curve = Curve {
    initial: Duration::from_millis(800),
    max: Duration::from_secs(30),
    factor: 1.25,
    jitter: 0.25,
    reset_after: Duration::from_secs(120),
};

/// While a kind is missing: it may be there any moment, and asking for it is cheap; up to 30 s with the jitter.
pub(crate) const MISSING: Curve = Curve {
    initial: Duration::from_millis(500),
    max: Duration::from_secs(20),
    factor: 2.0,
    jitter: 0.5,
    reset_after: Duration::from_secs(120),
};

#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    curve: Curve,
    /// The next delay, before jitter.
    next: Duration,
    /// When a delay was last asked for.
    last: Option<Duration>,
}

impl Backoff {
    pub(crate) fn new(curve: Curve) -> Self {
        Self { curve, next: curve.initial, last: None }
    }

    pub(crate) fn delay(&mut self, now: Duration, rng: &mut fastrand::Rng) -> Duration {
        if self.last.is_some_and(|last| now.saturating_sub(last) > self.curve.reset_after) {
            self.next = self.curve.initial;
        }
        let delay = self.next.mul_f64(1.0 + self.curve.jitter * rng.f64());
        self.next = self.next.mul_f64(self.curve.factor).min(self.curve.max);
        // The quiet time counts from the end of the delay.
        self.last = Some(now.saturating_add(delay));
        delay
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.curve.initial;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(curve: Curve, attempts: u32) -> Duration {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut backoff = Backoff::new(curve);
        (0..attempts).fold(Duration::ZERO, |now, _| now + backoff.delay(now, &mut rng))
    }

    fn curve(initial: u64, max: u64, jitter: f64) -> Curve {
        let (initial, max) = (Duration::from_millis(initial), Duration::from_millis(max));
        Curve { initial, max, factor: 2.0, jitter, reset_after: Duration::from_secs(120) }
    }

    /// client-go fact 22.
    #[test]
    fn delays_double_and_flatten_at_the_maximum() {
        let five = total(curve(1, 50, 1.0), 5).as_millis();
        assert!((31..=64).contains(&five), "{five}");
        let forty = total(curve(1, 50, 0.0), 40).as_millis();
        assert_eq!(forty, 1 + 2 + 4 + 8 + 16 + 32 + 34 * 50);
    }

    /// client-go fact 23.
    #[test]
    fn a_curve_without_jitter_is_exact() {
        let total = total(curve(10, 100, 0.0), 5).as_millis();
        assert_eq!(total, 10 + 20 + 40 + 80 + 100);
    }

    #[test]
    fn the_failure_curve_starts_at_800_ms_and_stays_below_38_s() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(FAILURE);
        let first = backoff.delay(Duration::ZERO, &mut rng);
        assert!((800..1000).contains(&first.as_millis()), "{first:?}");
        let later: Vec<_> = (0..40).map(|_| backoff.delay(Duration::ZERO, &mut rng)).skip(17).collect();
        assert!(later.iter().all(|delay| (30.0..37.5).contains(&delay.as_secs_f64())), "{later:?}");
    }

    #[test]
    fn a_wait_after_failures_is_a_fraction_of_the_time_since_the_first() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(FAILURE);
        let mut now = Duration::ZERO;
        for _ in 0..30 {
            let delay = backoff.delay(now, &mut rng);
            assert!(delay <= now / 3 + Duration::from_millis(1000), "{delay:?} after {now:?}");
            now += delay;
        }
    }

    #[test]
    fn two_quiet_minutes_start_over() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(Curve { jitter: 0.0, factor: 2.0, ..FAILURE });
        let now = Duration::ZERO;
        for _ in 0..4 {
            backoff.delay(now, &mut rng);
        }
        let within = backoff.delay(Duration::from_secs(60), &mut rng);
        assert_eq!(within, Duration::from_millis(12_800));
        assert_eq!(backoff.delay(Duration::from_secs(60 + 13 + 121), &mut rng), FAILURE.initial);
    }
}
