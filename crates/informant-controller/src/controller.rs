//! A controller: which objects it's about, what else concerns them, and the function that reconciles one of them.
//!
//! Building one does no I/O and spawns nothing. A [`Manager`](crate::Manager) runs it, or [`Controller::run`] does.
//!
//! Invariants:
//! 1. no reconcile starts before every source has handed over its whole initial state;
//! 2. one key is never reconciled twice at the same time;
//! 3. after a key was added, it's reconciled once more, from start to end, unless the controller stops.

mod numbers;
mod status;
mod worker;

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use informant_cache::{Event, InformerFactory, Metadata, ObjectKey, SharedInformer};
use informant_queue::{Admission, Options, RateLimits, WorkQueue};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

pub(crate) use self::numbers::Numbers;
use self::numbers::Outcome;
pub use self::status::{ControllerPhase, ControllerStatus, LastError, QueueStatus, ReconcileCounts};
use crate::{
    Action, ControllerError, Predicate, ReconcileError, Request,
    lock::lock,
    mapping::{OwnerKind, Owners, both_states, owner_keys},
    source::{Attached, FindInformer, Source},
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

/// A controller that is being put together. `K` is its primary object.
#[must_use = "a builder does nothing; finish it with `reconcile`"]
pub struct ControllerBuilder<K: 'static> {
    name: String,
    resource: String,
    owner: OwnerKind,
    find: FindInformer<K>,
    predicates: Vec<Predicate<K>>,
    sources: Vec<MakeSource>,
    workers: usize,
    queue: Options,
    sync_timeout: Option<Duration>,
    reconcile_timeout: Option<Duration>,
}

/// Makes a source once it's settled what the primary is.
type MakeSource = Box<dyn FnOnce(&OwnerKind) -> Source + Send>;

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
        ControllerBuilder::new(name.into(), resource, OwnerKind::of::<K>(), Box::new(InformerFactory::informer::<K>))
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
    /// to the factory and starts what isn't started there.
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
        factory.start(&cancel).map_err(ControllerError::Start)?;
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

// === impl ControllerBuilder ===

impl<K: Metadata + Send + Sync + 'static> ControllerBuilder<K> {
    fn new(name: String, resource: String, owner: OwnerKind, find: FindInformer<K>) -> Self {
        Self {
            name,
            resource,
            owner,
            find,
            predicates: Vec::new(),
            sources: Vec::new(),
            workers: 1,
            queue: Options::default(),
            sync_timeout: None,
            reconcile_timeout: None,
        }
    }

    /// Only events of primary objects that pass lead to a reconcile. Of several predicates each has to pass.
    pub fn with_predicate(mut self, predicate: Predicate<K>) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// Says that the primary objects are cluster-scoped, which [`Controller::of_informer`] can't know: an owner reference to one
    /// then leads to a key without a namespace.
    pub fn cluster_scoped(mut self) -> Self {
        self.owner.cluster_scoped = true;
        self
    }

    /// An event of a `C` reconciles the primary object that is its controller, by its owner reference: group and kind have to match,
    /// the version needn't. An update concerns the controller before it and the one after it.
    pub fn owns<C>(self) -> Self
    where
        C: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.owns_source(Box::new(InformerFactory::informer::<C>), Vec::new(), Owners::Controller)
    }

    /// As [`owns`](Self::owns), for events that pass the predicate.
    pub fn owns_if<C>(self, predicate: Predicate<C>) -> Self
    where
        C: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.owns_source(Box::new(InformerFactory::informer::<C>), vec![predicate], Owners::Controller)
    }

    /// As [`owns`](Self::owns), for every owner of the primary's kind, controller or not.
    pub fn owns_any<C>(self) -> Self
    where
        C: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.owns_source(Box::new(InformerFactory::informer::<C>), Vec::new(), Owners::Every)
    }

    /// As [`owns`](Self::owns), for the objects of an informer.
    pub fn owns_informer<C: Metadata + Send + Sync + 'static>(self, informer: &SharedInformer<C>) -> Self {
        let informer = informer.clone();
        self.owns_source(Box::new(move |_| informer), Vec::new(), Owners::Controller)
    }

    /// An event of a `W` reconciles the primary objects whose keys `map` names. For an update it's asked for the old and for the new
    /// state, and no key is reconciled twice for it.
    ///
    /// It runs in the handler's task: it may read listers, and mustn't block. A panic in it is caught and counted with the informer's
    /// handlers, and that event is lost to the controller.
    pub fn watches<W>(self, map: impl Fn(&W) -> Vec<ObjectKey> + Send + Sync + 'static) -> Self
    where
        W: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.watches_source(Box::new(InformerFactory::informer::<W>), Vec::new(), map)
    }

    /// As [`watches`](Self::watches), for events that pass the predicate.
    pub fn watches_if<W>(
        self,
        predicate: Predicate<W>,
        map: impl Fn(&W) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self
    where
        W: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.watches_source(Box::new(InformerFactory::informer::<W>), vec![predicate], map)
    }

    /// As [`watches`](Self::watches), for the objects of an informer.
    pub fn watches_informer<W: Send + Sync + 'static>(
        self,
        informer: &SharedInformer<W>,
        map: impl Fn(&W) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let informer = informer.clone();
        self.watches_source(Box::new(move |_| informer), Vec::new(), map)
    }

    /// How many keys are reconciled at the same time; at least, and by default, 1.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How long failed keys wait. Default: client-go's numbers.
    pub fn rate_limits(mut self, limits: RateLimits) -> Self {
        self.queue = self.queue.rate_limits(limits);
        self
    }

    /// Ends the controller, and with it the manager, with an error if its sources aren't synced after this time. Default: it waits, for
    /// instance for a CRD that isn't there yet, which holds up no other controller and shows at `/readyz`.
    pub fn sync_timeout(mut self, limit: Duration) -> Self {
        self.sync_timeout = Some(limit);
        self
    }

    /// A reconcile that takes longer is dropped at its await and counts as failed. Default: none.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.reconcile_timeout = Some(limit);
        self
    }

    /// Finishes the controller with its function. `context` is cloned for each call: put what's large into an `Arc`.
    ///
    /// The function is called for each key after something changed, also when the object is gone; it should bring the world to what
    /// the object's spec asks, whatever happened before. What it returns decides what's next: see [`Action`] and [`ReconcileError`].
    /// If it panics, that is caught and counted, and the key is retried as after an error.
    pub fn reconcile<C, F, Fut, E>(self, context: C, function: F) -> Controller
    where
        C: Clone + Send + Sync + 'static,
        F: Fn(C, Request) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<ReconcileError> + 'static,
    {
        let primary = Source::new(self.find, self.predicates, Arc::new(|event: &Event<K>| vec![event.key().clone()]));
        let others = self.sources.into_iter().map(|make| make(&self.owner));
        let sources = std::iter::once(primary).chain(others).collect();
        let queue = WorkQueue::with_options(&self.name, self.queue);
        Controller {
            sources,
            reconcile: Arc::new(move |request| {
                let answer = function(context.clone(), request);
                async move { answer.await.map_err(Into::into) }.boxed()
            }),
            shared: Arc::new(Shared {
                name: self.name,
                resource: self.resource,
                workers: self.workers,
                queue,
                numbers: Mutex::default(),
            }),
            sync_timeout: self.sync_timeout,
            reconcile_timeout: self.reconcile_timeout,
        }
    }

    fn owns_source<C: Metadata + Send + Sync + 'static>(
        mut self,
        find: FindInformer<C>,
        predicates: Vec<Predicate<C>>,
        which: Owners,
    ) -> Self {
        self.sources.push(Box::new(move |owner| {
            let owner = owner.clone();
            let mapping = Arc::new(move |event: &Event<C>| owner_keys(event, &owner, which));
            Source::new(find, predicates, mapping)
        }));
        self
    }

    fn watches_source<W: Send + Sync + 'static>(
        mut self,
        find: FindInformer<W>,
        predicates: Vec<Predicate<W>>,
        map: impl Fn(&W) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let mapping = Arc::new(move |event: &Event<W>| both_states(event, &map));
        self.sources.push(Box::new(move |_| Source::new(find, predicates, mapping)));
        self
    }
}

impl<K> fmt::Debug for ControllerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A resource as people write it: `deployments.apps`, and `pods` for the core group.
fn qualified(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}
