//! Start in order, run, stop in reverse.
//!
//! 1. the pages, so that somebody can look at a start that hangs;
//! 2. the informers;
//! 3. controllers and runnables, each waiting for what it needs.
//!
//! The first failure, the token or a signal begins the stop, which takes the stages from the last to the first and is bounded as a whole.
//! If the future is dropped at any point, everything is aborted with it: each stage is owned by [`Stages`].

use std::{collections::HashSet, sync::Arc, time::Duration};

use informant_cache::InformerFactory;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Manager, ManagerError, Runnable};
use crate::{
    Controller,
    admin::Admin,
    controller::Shared,
    katalog::Katalog,
    signals::Signals,
    source,
    task_set::{BoxError, Ended, TaskError, TaskSet},
};

/// How long answers that are under way at the end may take. A client that reads slowly is no reason for a slow stop.
const ADMIN_DRAIN: Duration = Duration::from_secs(1);

/// How often a runnable looks again at informers that can't sync without help, such as those that are forbidden.
const SYNC_RETRY: Duration = Duration::from_secs(1);

/// What runs, by the order of its start.
struct Stages {
    admin: TaskSet,
    admin_stop: CancellationToken,
    factory: InformerFactory,
    caches_stop: CancellationToken,
    work: TaskSet,
    work_stop: CancellationToken,
    controllers: Vec<Arc<Shared>>,
    /// What a stop waits for after the work has ended.
    waiting_for: &'static str,
    /// Informers and token holders end with this value, too.
    _guards: [DropGuard; 3],
}

/// Who can ask for a stop.
struct Interrupts {
    cancel: CancellationToken,
    signals: Option<Signals>,
}

impl Manager {
    /// Runs everything until `cancel` is cancelled, a signal comes (if asked for by [`stop_on_signals`](Manager::stop_on_signals)) or
    /// something fails; then stops everything and waits for it.
    ///
    /// A token that is cancelled already starts nothing.
    ///
    /// # Errors
    /// What kept it from starting, the first failure of a controller or runnable, or a stop that took too long: see [`ManagerError`].
    /// A stop that was asked for and done in time is no error.
    ///
    /// # Cancel safety
    /// Dropping the future aborts all tasks at their next await, without an orderly stop.
    pub async fn run(self, cancel: CancellationToken) -> Result<(), ManagerError> {
        check_names(&self.controllers)?;
        if cancel.is_cancelled() {
            return Ok(());
        }
        let signals =
            if self.signals { Some(Signals::listen().map_err(|error| ManagerError::Signals { error })?) } else { None };
        let mut interrupts = Interrupts { cancel, signals };
        let admin = match &self.address {
            None => None,
            Some(address) => {
                let bound = Admin::bind(address).await;
                Some(bound.map_err(|error| ManagerError::Listen { address: address.clone(), error })?)
            }
        };
        let attached: Vec<_> =
            self.controllers.into_iter().map(|controller| controller.attach(&self.factory)).collect();
        let controllers: Vec<_> = attached.iter().map(|controller| Arc::clone(&controller.shared)).collect();
        let katalog = Arc::new(Katalog::new(
            self.application,
            self.factory.clone(),
            controllers.clone(),
            self.health_checks,
            self.ready_checks,
        ));
        self.handle.katalog.send_replace(Some(Arc::clone(&katalog)));

        let mut stages = Stages::new(self.factory, controllers);
        if let Some(admin) = admin {
            self.handle.address.send_replace(Some(admin.address));
            tracing::info!(address = %admin.address, "serving /healthz, /readyz, /metrics and /katalog");
            stages.serve(admin, Arc::clone(&katalog));
        }
        // If somebody started it before, the stop is ours all the same.
        let started = source::ensure_started(&stages.factory, &stages.caches_stop);
        started.map_err(|error| ManagerError::Start { error })?;
        for controller in attached {
            let (name, stop) = (task_name(&controller.shared), stages.work_stop.clone());
            stages.work.spawn(name, async move { controller.run(stop).await.map_err(BoxError::from) });
        }
        for runnable in self.runnables {
            stages.run_when_synced(runnable);
        }

        let ended = stages.run(&mut interrupts).await;
        katalog.stop();
        let stopped = stages.stop_within(self.grace, &mut interrupts).await;
        ManagerError::join(ended, stopped)
    }
}

// === impl Stages ===

impl Stages {
    fn new(factory: InformerFactory, controllers: Vec<Arc<Shared>>) -> Self {
        let [admin_stop, caches_stop, work_stop] = std::array::from_fn(|_| CancellationToken::new());
        let guards = [&admin_stop, &caches_stop, &work_stop].map(|token| token.clone().drop_guard());
        Self {
            admin: TaskSet::default(),
            admin_stop,
            factory,
            caches_stop,
            work: TaskSet::default(),
            work_stop,
            controllers,
            waiting_for: "",
            _guards: guards,
        }
    }

    fn serve(&mut self, admin: Admin, katalog: Arc<Katalog>) {
        let stop = self.admin_stop.clone();
        self.admin.spawn("the server of the pages", async move {
            admin.serve(katalog, stop).await;
            Ok(())
        });
    }

    fn run_when_synced(&mut self, runnable: Runnable) {
        let (factory, stop) = (self.factory.clone(), self.work_stop.clone());
        self.work.spawn(format!("runnable {:?}", runnable.name), async move {
            while factory.wait_for_cache_sync(&stop).await.is_err() {
                if stop.is_cancelled() {
                    return Ok(());
                }
                // It returns at once while an informer is forbidden, say; that may change.
                sleep(SYNC_RETRY).await;
            }
            (runnable.start)(stop).await
        });
    }

    /// Returns when a stop is asked for, or with the first failure.
    async fn run(&mut self, interrupts: &mut Interrupts) -> Result<(), ManagerError> {
        loop {
            let ended = tokio::select! {
                // A stop that is asked for comes before what may fail because of it.
                biased;
                reason = interrupts.first() => {
                    tracing::info!(reason, "stopping");
                    return Ok(());
                }
                ended = self.admin.next_or_pending() => ended,
                ended = self.work.next_or_pending() => ended,
            };
            if let Some(error) = failure(ended) {
                tracing::error!(%error, "stopping");
                return Err(error);
            }
        }
    }

    async fn stop_within(&mut self, grace: Option<Duration>, interrupts: &mut Interrupts) -> Result<(), ManagerError> {
        if grace == Some(Duration::ZERO) {
            return Ok(());
        }
        let end = async {
            match grace {
                Some(grace) => timeout(grace, self.stop()).await.map_err(|_| grace),
                None => {
                    self.stop().await;
                    Ok(())
                }
            }
        };
        let stopped = tokio::select! {
            // What has ended has ended, also if a signal comes at that moment.
            biased;
            stopped = end => stopped.map_err(Some),
            () = interrupts.signal() => Err(None),
        };
        let Err(late) = stopped else { return Ok(()) };
        let running = self.running();
        self.work.abort();
        self.admin.abort();
        Err(match late {
            Some(grace) => ManagerError::StopTimeout { grace, running },
            None => ManagerError::StopForced { running },
        })
    }

    async fn stop(&mut self) {
        self.work_stop.cancel();
        while let Some(ended) = self.work.next().await {
            if let Some(error) = failure(ended) {
                tracing::warn!(%error, "failed while the manager was stopping");
            }
        }
        self.waiting_for = "the informers";
        self.caches_stop.cancel();
        self.factory.shutdown().await;
        self.waiting_for = "the server of the pages";
        self.admin_stop.cancel();
        let drained = timeout(ADMIN_DRAIN, async { while self.admin.next().await.is_some() {} }).await;
        if drained.is_err() {
            self.admin.abort();
            while self.admin.next().await.is_some() {}
        }
    }

    /// What a stop still waits for, in words.
    fn running(&self) -> Vec<String> {
        let running = self.work.running();
        if running.is_empty() {
            return vec![self.waiting_for.to_owned()];
        }
        let describe = |name: String| {
            let controller = self.controllers.iter().find(|controller| task_name(controller) == name);
            controller.map_or(name, |controller| controller.describe())
        };
        running.into_iter().map(describe).collect()
    }
}

// === impl Interrupts ===

impl Interrupts {
    /// Waits until a stop is asked for and says by whom.
    async fn first(&mut self) -> &'static str {
        let Self { cancel, signals } = self;
        tokio::select! {
            // Without meaning: both ask for the same.
            biased;
            () = cancel.cancelled() => "cancelled",
            signal = next_signal(signals) => signal,
        }
    }

    async fn signal(&mut self) {
        next_signal(&mut self.signals).await;
    }
}

async fn next_signal(signals: &mut Option<Signals>) -> &'static str {
    match signals {
        Some(signals) => signals.next().await,
        None => std::future::pending().await,
    }
}

// === helpers ===

fn check_names(controllers: &[Controller]) -> Result<(), ManagerError> {
    let mut names = HashSet::new();
    match controllers.iter().find(|controller| !names.insert(controller.name())) {
        Some(twice) => Err(ManagerError::DuplicateController { name: twice.name().to_owned() }),
        None => Ok(()),
    }
}

fn task_name(controller: &Shared) -> String {
    format!("controller {:?}", controller.name)
}

/// The error that a task ended with. One that was aborted was aborted by us.
fn failure(Ended { name, result }: Ended) -> Option<ManagerError> {
    match result {
        Ok(()) | Err(TaskError::Aborted) => None,
        Err(TaskError::Failed(error)) => Some(ManagerError::Failed { name, error }),
        Err(TaskError::Panicked(message)) => Some(ManagerError::Panicked { name, message }),
    }
}
