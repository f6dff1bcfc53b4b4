//! What goes by itself when its time is up: terminating Pods after their grace period, since there's no kubelet to stop them,
//! and Events some time after they were last written. All by the server's clock, so by tokio's time.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use crate::controllers::work_set::WorkSet;
use crate::controllers::{ObjectId, Observed};
use crate::object;
use crate::registry::Registry;
use crate::registry::deletion::{DeleteOptions, grace_ends};
use crate::status::{Reason, Status};

/// How many objects one round looks at, so that changes and other tasks get their turn.
const ROUND: usize = 256;

/// The clockwork.
#[derive(Debug)]
pub(crate) struct Expiry {
    work: WorkSet<ObjectId>,
    pod_finisher: bool,
    event_ttl: Option<Duration>,
}

// === impl Expiry ===

impl Expiry {
    /// `pod_finisher` says whether it ends Pods; `event_ttl` is how long Events stay, `None` for ever.
    pub(crate) fn new(pod_finisher: bool, event_ttl: Option<Duration>) -> Self {
        Self { work: WorkSet::default(), pod_finisher, event_ttl }
    }

    /// Takes notice of a change; `time_of_day` is what the server's clock shows at `observed.now`.
    pub(crate) fn observe(&mut self, observed: Observed<'_>, time_of_day: Timestamp) {
        let Observed { id, new, now, .. } = observed;
        if id.is_of("", "pods") && self.pod_finisher {
            match new.and_then(|pod| grace_left(pod, time_of_day)) {
                Some(left) => self.work.set(id.clone(), now + left),
                None => self.work.remove(id),
            }
        } else if is_event(id)
            && let Some(ttl) = self.event_ttl
        {
            match new {
                Some(_) => self.work.set(id.clone(), now + ttl),
                None => self.work.remove(id),
            }
        }
    }

    /// Deletes some of what is due.
    pub(crate) fn act(&mut self, registry: &Registry) {
        let now = Instant::now();
        for _ in 0..ROUND {
            let Some(id) = self.work.take(now) else { return };
            match finish(registry, &id) {
                Ok(()) => self.work.done(&id),
                Err(status) if status.reason == Reason::NotFound => self.work.done(&id),
                Err(status) => {
                    tracing::debug!(resource = %id.storage.plural, key = &*id.key, %status, "an object can't be removed yet");
                    self.work.failed(id, now);
                }
            }
        }
    }

    /// When something is next due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.work.next_due()
    }
}

/// Deletes the object if it's the one that was due: an Event that hasn't been written since, a Pod whose grace is over.
fn finish(registry: &Registry, id: &ObjectId) -> Result<(), Status> {
    let (Some(target), Some(object)) = (id.target(&registry.catalog()), id.get(registry)) else { return Ok(()) };
    let over = is_event(id) || grace_left(&object, registry.clock().now()).is_some_and(|left| left.is_zero());
    if !over {
        // It has changed under way, so it'll be observed again.
        return Ok(());
    }
    let options = DeleteOptions {
        grace_period_seconds: Some(0),
        uid: Some(object::uid(&object).to_owned()),
        resource_version: Some(object::resource_version(&object).to_owned()),
        ..DeleteOptions::default()
    };
    registry.delete(&target, &options).map(|_| ())
}

/// How long a Pod that is being deleted has left; `None` for one that isn't, or that has no grace and waits for finalizers.
fn grace_left(pod: &Value, time_of_day: Timestamp) -> Option<Duration> {
    let grace = object::at_path(pod, "metadata.deletionGracePeriodSeconds").and_then(Value::as_i64)?;
    let ends = grace_ends(pod).filter(|_| grace > 0)?;
    Some(Duration::try_from(ends.duration_since(time_of_day)).unwrap_or(Duration::ZERO))
}

fn is_event(id: &ObjectId) -> bool {
    id.is_of("", "events") || id.is_of("events.k8s.io", "events")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_pod_with_grace_has_time_left() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let pod = |grace: i64| json!({"metadata": {"deletionTimestamp": "2026-01-02T03:04:35Z", "deletionGracePeriodSeconds": grace}});
        assert_eq!(grace_left(&pod(30), now), Some(Duration::from_secs(30)));
        assert_eq!(grace_left(&pod(30), now + Duration::from_secs(60)), Some(Duration::ZERO));
        assert_eq!(grace_left(&pod(0), now), None);
        assert_eq!(grace_left(&json!({"metadata": {}}), now), None);
    }
}
