//! The inventory of a running manager: its informers, its controllers, and whether all is well. One place that all pages read from.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use informant_cache::{InformerFactory, InformerStatus, NotSynced, SyncError};
use jiff::Timestamp;
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    ControllerStatus, clock,
    controller::Shared,
    health::Results,
    metrics::{self, ControllerSample},
};

/// A check of a health endpoint: `Err` says why it fails.
pub(crate) type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What a manager shows of itself.
pub(crate) struct Katalog {
    pub(crate) application: String,
    pub(crate) version: String,
    pub(crate) factory: InformerFactory,
    pub(crate) controllers: Vec<Arc<Shared>>,
    pub(crate) health_checks: BTreeMap<String, Check>,
    pub(crate) ready_checks: BTreeMap<String, Check>,
    pub(crate) started: Instant,
    pub(crate) started_at: Timestamp,
    stopping: AtomicBool,
}

/// A manager's state at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ManagerStatus {
    /// Name of the program.
    pub application: String,
    /// Version of the program.
    pub version: String,
    /// Version of this library.
    pub informant: &'static str,
    /// When the manager started to run.
    pub started_at: Timestamp,
    /// For how long it runs.
    pub uptime_seconds: u64,
    /// What `/healthz` says.
    pub healthy: bool,
    /// What `/readyz` says.
    pub ready: bool,
    /// Why it isn't healthy or ready, by check.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failing_checks: BTreeMap<String, String>,
    /// The informers, in the order they were made.
    pub informers: Vec<InformerStatus>,
    /// The watch of CRDs by which informers of missing kinds learn that they've come, if one was needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crd_watch: Option<InformerStatus>,
    /// The controllers, in the order they were given.
    pub controllers: Vec<ControllerStatus>,
}

impl Katalog {
    pub(crate) fn new(
        (application, version): (String, String),
        factory: InformerFactory,
        controllers: Vec<Arc<Shared>>,
        health_checks: BTreeMap<String, Check>,
        ready_checks: BTreeMap<String, Check>,
    ) -> Self {
        Self {
            application,
            version,
            factory,
            controllers,
            health_checks,
            ready_checks,
            started: Instant::now(),
            started_at: clock::now(),
            stopping: AtomicBool::new(false),
        }
    }

    /// From now on it isn't ready, so that no new traffic is sent here.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn health(&self) -> Results {
        let mut results = run(&self.health_checks);
        results.insert("ping".to_owned(), Ok(()));
        results
    }

    pub(crate) fn readiness(&self) -> Results {
        let mut results = run(&self.ready_checks);
        results.insert("ping".to_owned(), Ok(()));
        results.insert("informer-sync".to_owned(), self.informer_sync());
        let stopping = self.stopping.load(Ordering::Relaxed);
        results
            .insert("shutdown".to_owned(), if stopping { Err("the manager is stopping".to_owned()) } else { Ok(()) });
        results
    }

    /// A cache that was complete once stays usable while its informer reconnects, so that's no reason to be taken out of service.
    fn informer_sync(&self) -> Result<(), String> {
        let not_synced: Vec<NotSynced> = (self.factory.statuses().into_iter())
            .filter(|informer| !informer.synced)
            .map(|informer| NotSynced { informer: informer.informer, state: informer.state })
            .collect();
        if not_synced.is_empty() { Ok(()) } else { Err(SyncError { not_synced }.to_string()) }
    }

    /// What each informer is doing, since when, why, and its last error; one line each, and one for the watch of CRDs.
    pub(crate) fn informer_lines(&self) -> String {
        let informers = self.factory.statuses().into_iter().chain(self.factory.crd_watch_status());
        let line = |informer: InformerStatus| {
            let error =
                informer.last_error.map(|error| format!("; last failed request at {}: {}", error.at, error.message));
            format!("    {}: {}{}\n", informer.informer, informer.state, error.unwrap_or_default())
        };
        informers.map(line).collect()
    }

    pub(crate) fn status(&self) -> ManagerStatus {
        let (health, readiness) = (self.health(), self.readiness());
        let all_well = |results: &Results| results.values().all(Result::is_ok);
        let (healthy, ready) = (all_well(&health), all_well(&readiness));
        let failing = health.into_iter().chain(readiness);
        ManagerStatus {
            application: self.application.clone(),
            version: self.version.clone(),
            informant: env!("CARGO_PKG_VERSION"),
            started_at: self.started_at,
            uptime_seconds: Instant::now().saturating_duration_since(self.started).as_secs(),
            healthy,
            ready,
            failing_checks: failing.filter_map(|(name, result)| Some((name, result.err()?))).collect(),
            informers: self.factory.statuses(),
            crd_watch: self.factory.crd_watch_status(),
            controllers: self.controllers.iter().map(|controller| controller.status()).collect(),
        }
    }
}

impl Collector for Katalog {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let sample = |controller: &Arc<Shared>| ControllerSample {
            name: controller.name.clone(),
            workers: controller.workers,
            numbers: controller.numbers_mut(|numbers| numbers.clone()),
            queue: controller.queue.stats(),
        };
        let controllers: Vec<_> = self.controllers.iter().map(sample).collect();
        metrics::encode(encoder, &controllers, self.factory.statuses())
    }
}

impl fmt::Debug for Katalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Katalog").field("application", &self.application).finish_non_exhaustive()
    }
}

/// A check is the user's: if it panics, it has failed, and the page is served.
fn run(checks: &BTreeMap<String, Check>) -> Results {
    let call = |check: &Check| {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check()));
        result.unwrap_or_else(|_| Err("the check panicked".to_owned()))
    };
    checks.iter().map(|(name, check)| (name.clone(), call(check))).collect()
}
