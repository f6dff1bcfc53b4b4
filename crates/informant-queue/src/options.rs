//! What can be set on a queue before it exists.

use crate::RateLimits;

/// Settings of a [`WorkQueue`](crate::WorkQueue). The default has client-go's rate limits and no limit on keys.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// How long a failed key waits.
    pub rate_limits: RateLimits,
    /// The most distinct keys that the queue knows at one time: ready, delayed and with workers. At the limit a new key is
    /// refused with [`Admission::Full`](crate::Admission::Full) and counted; a key that is already known is always accepted, so
    /// a retry can't be refused.
    pub limit: Option<usize>,
}

impl Options {
    /// Sets [`Options::rate_limits`].
    #[must_use]
    pub fn rate_limits(mut self, rate_limits: RateLimits) -> Self {
        self.rate_limits = rate_limits;
        self
    }

    /// Sets [`Options::limit`].
    #[must_use]
    pub fn limit(mut self, keys: usize) -> Self {
        self.limit = Some(keys);
        self
    }
}
