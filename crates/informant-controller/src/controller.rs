//! A controller: which objects it's about, what else concerns them, and the function that reconciles one of them.
//!
//! Building one does no I/O and spawns nothing. A [`Manager`](crate::Manager) runs it, or [`Controller::run`] does.
//!
//! Invariants:
//! 1. no reconcile starts before every source has handed over its whole initial state;
//! 2. one key is never reconciled twice at the same time;
//! 3. after a key was added, it's reconciled once more, from start to end, unless the controller stops.

mod builder;
mod numbers;
mod status;
mod worker;

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::BoxFuture;
use informant_cache::{InformerFactory, Metadata, ObjectKey, Projection, SharedInformer};
use informant_queue::{Admission, WorkQueue};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

pub use self::builder::ControllerBuilder;
pub(crate) use self::numbers::Numbers;
use self::numbers::Outcome;
pub use self::status::{ControllerPhase, ControllerStatus, LastError, QueueStatus, ReconcileCounts};
use crate::{
    Action, ControllerError, ReconcileError, Request,
    lock::lock,
    mapping::OwnerKind,
    source::{self, Attached, Source},
};

/// The function that reconciles, with its context inside.
pub(crate) type Reconcile = Arc<dyn Fn(Request) -> BoxFuture<'static, Result<Action, ReconcileError>> + Send + Sync>;

/// A controller that is ready to run. [`Controller::of`] begins one.
#[must_use = "a controller does nothing until a manager runs it"]
pub struct Controller {
    sources: Vec<Source>,
    reconcile: Reconcile,
    shared: Arc<Shared>,
    sync_timeout: Option<Duration>,
    reconcile_timeout: Option<Duration>,
}

/// What the running controller and those who look at it share.
pub(crate) struct Shared {
    pub(crate) name: String,
    /// Kind and group of the primary, such as `deployments.apps`.
    pub(crate) resource: String,
    pub(crate) workers: usize,
    pub(crate) queue: WorkQueue<ObjectKey>,
    /// Lock rank 6, after the queue's.
    pub(crate) numbers: Mutex<Numbers>,
}

/// Adds keys to a controller's queue from anywhere: a webhook, a timer, another system. A clone is the same trigger.
#[derive(Clone, Debug)]
pub struct Trigger {
    queue: WorkQueue<ObjectKey>,
}

// === impl Controller ===

impl Controller {
    /// Begins a controller of all objects of type `K` in all namespaces, with this name for metrics and logs. Names are unique
    /// within a manager.
    pub fn of<K>(name: impl Into<String>) -> ControllerBuilder<K>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: 'static,
    {
        let resource = qualified(&K::plural(&()), &K::group(&()));
        ControllerBuilder::new(name.into(), resource, OwnerKind::of::<K>(), source::full_informer::<K>())
    }

    /// As [`of`](Self::of), but that the objects are kept as a projection: the controller's cache holds what the struct asks
    /// for. Others who want the same projection share it.
    pub fn of_projection<V: Projection>(name: impl Into<String>) -> ControllerBuilder<V> {
        let resource = V::resource();
        let name_of_resource = qualified(&resource.plural, &resource.group);
        let cluster_scoped = V::KIND.cluster_scoped;
        let owner = OwnerKind { group: resource.group, kind: resource.kind, cluster_scoped };
        ControllerBuilder::new(name.into(), name_of_resource, owner, source::projected_informer::<V>())
    }

    /// Begins a controller of the objects of an informer: of a namespace, selected by labels, or without a compile-time type. With
    /// an informer of another factory, start and stop that one yourself.
    pub fn of_informer<K: Metadata + Send + Sync + 'static>(
        name: impl Into<String>,
        informer: &SharedInformer<K>,
    ) -> ControllerBuilder<K> {
        let resource = informer.resource();
        let owner = OwnerKind { group: resource.group.clone(), kind: resource.kind.clone(), cluster_scoped: false };
        let informer = informer.clone();
        let name_of_resource = qualified(&resource.plural, &resource.group);
        ControllerBuilder::new(name.into(), name_of_resource, owner, Box::new(move |_| informer))
    }

    /// The controller's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// A handle that adds keys from elsewhere, before and while the controller runs.
    #[must_use]
    pub fn trigger(&self) -> Trigger {
        Trigger { queue: self.shared.queue.clone() }
    }

    /// Registers the controller's informers and handlers with a factory. They're started with the factory.
    pub(crate) fn attach(self, factory: &InformerFactory) -> AttachedController {
        let attach = |source: Source| source.attach(factory, &self.shared.name, &self.shared.queue);
        AttachedController {
            sources: self.sources.into_iter().map(attach).collect(),
            reconcile: self.reconcile,
            shared: self.shared,
            sync_timeout: self.sync_timeout,
            reconcile_timeout: self.reconcile_timeout,
        }
    }

    /// Runs the controller without a manager, until `cancel` is cancelled and running reconciles have ended. It adds its informers
    /// to the factory, and starts the factory with this token if nobody has started it yet.
    ///
    /// # Errors
    /// As for a [`Manager`](crate::Manager): an informer that stopped, or a sync that took longer than allowed.
    ///
    /// # Cancel safety
    /// Dropping the future aborts the workers, and the reconciles with them, at their next await.
    pub async fn run(self, factory: &InformerFactory, cancel: CancellationToken) -> Result<(), ControllerError> {
        let controller = self.attach(factory);
        if cancel.is_cancelled() {
            return Ok(());
        }
        source::ensure_started(factory, &cancel).map_err(ControllerError::Start)?;
        controller.run(cancel).await
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// A controller whose handlers are in place.
pub(crate) struct AttachedController {
    sources: Vec<Attached>,
    reconcile: Reconcile,
    pub(crate) shared: Arc<Shared>,
    sync_timeout: Option<Duration>,
    reconcile_timeout: Option<Duration>,
}

impl AttachedController {
    /// Waits for the sources, runs the workers until `stop`, waits for what they are at, and takes the handlers away.
    ///
    /// What is queued when it stops is given up: the next start lists everything anew.
    pub(crate) async fn run(self, stop: CancellationToken) -> Result<(), ControllerError> {
        let closing = QueueCloser(&self.shared);
        let synced = tokio::select! {
            // A stop while waiting is a stop and no failure to sync.
            biased;
            () = stop.cancelled() => return Ok(()),
            synced = self.wait_synced() => synced,
        };
        synced?;
        self.shared.numbers_mut(|numbers| numbers.phase = ControllerPhase::Running);
        tracing::info!(controller = %self.shared.name, workers = self.shared.workers, "controller started");
        let result = self.work(&stop).await;
        drop(closing);
        for source in self.sources {
            source.handler.remove().await;
        }
        tracing::info!(controller = %self.shared.name, "controller stopped");
        result
    }

    /// Runs the workers until `stop`, or until a source runs dry: a controller that hears of some changes only is worse than none.
    async fn work(&self, stop: &CancellationToken) -> Result<(), ControllerError> {
        let workers_stop = stop.child_token();
        let workers = worker::run(&self.shared, &self.reconcile, self.reconcile_timeout, &workers_stop);
        tokio::pin!(workers);
        let informer = tokio::select! {
            // A stop may end informers and workers in any order, and is no failure.
            biased;
            result = &mut workers => return result,
            informer = self.source_ended() => informer,
        };
        workers_stop.cancel();
        workers.await?;
        if stop.is_cancelled() { Ok(()) } else { Err(ControllerError::InformerEnded { informer }) }
    }

    async fn source_ended(&self) -> String {
        let ends = self.sources.iter().map(|source| Box::pin(source.handler.wait_ended()));
        let ((), position, _) = futures::future::select_all(ends).await;
        self.sources.get(position).map(|source| source.informer.clone()).unwrap_or_default()
    }

    async fn wait_synced(&self) -> Result<(), ControllerError> {
        let all = async {
            for source in &self.sources {
                if !source.handler.wait_synced().await {
                    return Err(ControllerError::InformerEnded { informer: source.informer.clone() });
                }
            }
            Ok(())
        };
        let Some(limit) = self.sync_timeout else { return all.await };
        tokio::time::timeout(limit, all).await.unwrap_or_else(|_| {
            let waiting = self.sources.iter().filter(|source| !source.handler.has_synced());
            Err(ControllerError::SyncTimeout {
                limit,
                informers: waiting.map(|source| source.informer.clone()).collect(),
            })
        })
    }
}

/// Closes the queue however the controller ends, so that a late trigger or handler fills nothing that nobody empties.
struct QueueCloser<'a>(&'a Shared);

impl Drop for QueueCloser<'_> {
    fn drop(&mut self) {
        self.0.queue.shut_down();
        self.0.numbers_mut(|numbers| numbers.phase = ControllerPhase::Stopped);
    }
}

// === impl Trigger ===

impl Trigger {
    /// Has the key reconciled soon. Refused once the controller has stopped.
    pub fn reconcile(&self, key: ObjectKey) -> Admission {
        self.queue.add(key)
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn numbers_mut<R>(&self, change: impl FnOnce(&mut Numbers) -> R) -> R {
        change(&mut lock(&self.numbers))
    }

    /// What it's reconciling now, for messages: `controller "apps" (at default/web)`.
    pub(crate) fn describe(&self) -> String {
        let running = self.numbers_mut(|numbers| numbers.running());
        match running.split_first() {
            None => format!("controller {:?}", self.name),
            Some((key, [])) => format!("controller {:?} (at {key})", self.name),
            Some((key, others)) => format!("controller {:?} (at {key} and {} more)", self.name, others.len()),
        }
    }
}

/// A resource as people write it: `deployments.apps`, and `pods` for the core group.
fn qualified(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}
