//! The last line of `demo --once`.

use std::time::Duration;

use informant::controller::ManagerStatus;
use serde::Serialize;

/// What the demo did, in numbers.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Objects in the caches at the end.
    objects: usize,
    /// Events that the demo told of.
    events: u64,
    /// Reconciles, all controllers together.
    reconciles: u64,
    /// Seconds from the start of the operator to the last MyApp's becoming Ready.
    seconds: f64,
}

impl Summary {
    /// Sums up a manager's last status.
    pub fn new(status: Option<&ManagerStatus>, events: u64, took: Duration) -> Self {
        let informers = status.iter().flat_map(|status| &status.informers);
        let controllers = status.iter().flat_map(|status| &status.controllers);
        Self {
            objects: informers.map(|informer| informer.objects).sum(),
            events,
            reconciles: controllers.map(|controller| controller.reconciles.total()).sum(),
            seconds: (took.as_secs_f64() * 1000.0).round() / 1000.0,
        }
    }
}
