//! Putting a controller together: its primary, what else concerns it, how it works.

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::FutureExt;
use informant_cache::{Event, Metadata, ObjectKey, Projection, SharedInformer};
use informant_queue::{Options, RateLimits, WorkQueue};
use serde::de::DeserializeOwned;

use super::{Controller, Shared};
use crate::{
    Action, Predicate, ReconcileError, Request,
    mapping::{OwnerKind, Owners, both_states, owner_keys},
    source::{self, FindInformer, Source},
};

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

// === impl ControllerBuilder ===

impl<K: Metadata + Send + Sync + 'static> ControllerBuilder<K> {
    pub(super) fn new(name: String, resource: String, owner: OwnerKind, find: FindInformer<K>) -> Self {
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
        self.owns_source(source::full_informer::<C>(), Vec::new(), Owners::Controller)
    }

    /// As [`owns`](Self::owns), for events that pass the predicate.
    pub fn owns_if<C>(self, predicate: Predicate<C>) -> Self
    where
        C: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.owns_source(source::full_informer::<C>(), vec![predicate], Owners::Controller)
    }

    /// As [`owns`](Self::owns), for every owner of the primary's kind, controller or not.
    pub fn owns_any<C>(self) -> Self
    where
        C: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.owns_source(source::full_informer::<C>(), Vec::new(), Owners::Every)
    }

    /// As [`owns`](Self::owns), for objects kept as a projection. It has to keep `metadata.ownerReferences`, as a
    /// `Vec<OwnerReference>`; without them an event concerns nobody.
    pub fn owns_projection<V: Projection>(self) -> Self {
        self.owns_source(source::projected_informer::<V>(), Vec::new(), Owners::Controller)
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
        self.watches_source(source::full_informer::<W>(), Vec::new(), map)
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
        self.watches_source(source::full_informer::<W>(), vec![predicate], map)
    }

    /// As [`watches`](Self::watches), for objects kept as a projection.
    pub fn watches_projection<V: Projection>(self, map: impl Fn(&V) -> Vec<ObjectKey> + Send + Sync + 'static) -> Self {
        self.watches_source(source::projected_informer::<V>(), Vec::new(), map)
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
