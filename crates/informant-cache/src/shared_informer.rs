//! A shared informer: one list and watch of a resource, one cache, any number of readers and handlers.
//!
//! The order that everything relies on is made here, in [`Shared::publish`]: the store is changed first and the news
//! goes out second, both within one critical section of the handler list. A handler is added within the same section,
//! so it gets the store's content and then every later change: no gap, no duplicate.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};

use futures::FutureExt;
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::availability::Wanted;
use crate::cluster::Cluster;
use crate::delta::Delta;
use crate::error::NotSynced;
use crate::event::Event;
use crate::handler::{HandlerBuilder, HandlerHandle, HandlerOptions, Queue, Subscription};
use crate::indexer::{Index, IndexFailures, Prepared};
use crate::informer_factory::{Identity, Registry, Settings, settled};
use crate::intake::Intake;
use crate::key::ObjectKey;
use crate::lister::{Coverage, Lister};
use crate::lister_watcher::ListerWatcher;
use crate::lock::lock;
use crate::object::Cached;
use crate::parts::{self, Extent};
use crate::representation::Representation;
use crate::request::informer_name;
use crate::scope::Scope;
use crate::status::{InformerState, InformerStatus, StatusCell};
use crate::store::{Appearing, Applied, Progress, Store, Visible};
use crate::task_set::TaskSet;

/// A shared informer over the objects `K` of one resource and scope, made by an
/// [`InformerFactory`](crate::InformerFactory). A clone is the same informer.
///
/// # What it promises
/// - **Order.** For each object, the cache goes through its states in their true order, perhaps skipping some. Nothing
///   is promised across objects.
/// - **Store first.** A handler that reads the lister or an index sees the state of its event or a later one.
/// - **Late handlers** see the present (adds marked as initial), then the future: no gap, no duplicate.
/// - **Loss.** A handler gets every event up to the bound of its backlog; past it, the net change of each object. No
///   handler misses the last state of an object, or that it's gone.
/// - **Quiet.** An object whose uid and resource version haven't changed is never announced again, whatever happened to
///   the connection.
/// - **Staleness.** The cache runs behind the server by the way of a watch event. While the connection is lost it keeps
///   what it has, and [`status`](Self::status) says so. A new list never goes back behind what was seen.
/// - **One bad object** (it can't be decoded) is skipped, counted and named in the status. If the cache had a good
///   state of it, that stays until the object is good again or gone.
pub struct SharedInformer<K: 'static> {
    shared: Arc<Shared<K>>,
}

/// What an informer's handles and its task share.
pub(crate) struct Shared<K> {
    #[allow(dead_code, reason = "live reads and discovery build on it")]
    pub(crate) cluster: Cluster,
    /// Where its lists and watches go.
    pub(crate) source: Arc<dyn ListerWatcher>,
    /// What its scope selects among.
    pub(crate) namespaces: Option<SharedInformer<PartialObjectMeta<DynamicObject>>>,
    identity: Arc<Identity>,
    pub(crate) resource: ApiResource,
    pub(crate) scope: Scope,
    pub(crate) name: String,
    pub(crate) settings: Settings,
    pub(crate) representation: Box<dyn Representation<K>>,
    pub(crate) intake: Intake<K>,
    pub(crate) store: Arc<Store<K>>,
    pub(crate) status: StatusCell,
    /// Where it can be asked for; an informer that's stopped alone is taken out of there.
    registry: Weak<Registry>,
    /// The version that's followed in place of the resource's. Lock rank 5.
    version: Mutex<Option<String>>,
    /// Lock rank 2.
    handlers: Mutex<Handlers<K>>,
}

/// What an informer is made of, but for what depends on the type of its objects.
pub(crate) struct Parts {
    pub(crate) cluster: Cluster,
    pub(crate) source: Arc<dyn ListerWatcher>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) settings: Settings,
    pub(crate) namespaces: Option<SharedInformer<PartialObjectMeta<DynamicObject>>>,
    pub(crate) registry: Weak<Registry>,
}

struct Handlers<K> {
    queues: Vec<Arc<Queue<K>>>,
    /// Tasks of handlers that were added before the start.
    waiting: Vec<HandlerTask>,
    /// Where to run handlers; set by the start.
    running: Option<(TaskSet, CancellationToken)>,
    /// Whether the first whole state was published.
    synced: bool,
    stopped: bool,
    /// Events merged away by handlers that are gone.
    conflated: u64,
}

pub(crate) type HandlerTask = Box<dyn FnOnce(&TaskSet, &CancellationToken) + Send>;

/// An informer whose object type doesn't matter, for the factory.
pub(crate) trait AnyInformer: Send + Sync {
    fn name(&self) -> &str;
    fn identity(&self) -> Arc<Identity>;
    fn resource(&self) -> &ApiResource;
    /// Begins to run, once `awaits` are settled. Does nothing if it runs or has stopped.
    fn start(self: Arc<Self>, tasks: TaskSet, awaits: Vec<Arc<dyn AnyInformer>>);
    /// Begins to stop; at once if it never ran.
    fn cancel(&self);
    /// The tasks of an informer that was started.
    fn tasks(&self) -> Option<TaskSet>;
    fn status(&self) -> InformerStatus;
    fn cell(&self) -> &StatusCell;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

// === impl SharedInformer ===

impl<K: Send + Sync + 'static> SharedInformer<K> {
    pub(crate) fn new(shared: Arc<Shared<K>>) -> Self {
        Self { shared }
    }

    pub(crate) fn shared(&self) -> Arc<dyn AnyInformer> {
        Arc::clone(&self.shared) as Arc<dyn AnyInformer>
    }

    /// The informer's name in statuses, errors and logs, such as `deployments.apps/v1 in namespace "web"`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The resource that it follows.
    #[must_use]
    pub fn resource(&self) -> &ApiResource {
        &self.shared.resource
    }

    /// The part of the resource that it covers.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.shared.scope
    }

    /// Reads the cache.
    #[must_use]
    pub fn lister(&self) -> Lister<K> {
        let Shared { scope, intake, store, .. } = &*self.shared;
        let coverage = Coverage { scope: scope.clone(), filtered: intake.filter.is_some() };
        Lister::new(Arc::clone(store), Arc::new(coverage))
    }

    pub(crate) fn shared_parts(&self) -> &Shared<K> {
        &self.shared
    }

    pub(crate) fn store(&self) -> &Store<K> {
        &self.shared.store
    }

    pub(crate) fn watch_state(&self) -> watch::Receiver<InformerState> {
        self.shared.status.watch_state()
    }

    /// Adds an index: from the values that `function` computes of an object, to the objects.
    ///
    /// It may be added before, during or after the sync, and covers all objects from when this returns. The function is
    /// called once for each state of an object, outside any lock, by the informer's task (and by this call for what's
    /// there already); it should be quick, and depend on nothing but the object. If it panics, the object is missing in
    /// this index, counted and named in the status. The name is for people; two indexes may have the same.
    #[must_use = "dropping the index removes it"]
    pub fn index<V, I>(&self, name: &str, function: impl Fn(&K) -> I + Send + Sync + 'static) -> Index<K, V>
    where
        V: Eq + Hash + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        self.index_fallible(name, move |object| Ok::<_, Infallible>(function(object)))
    }

    /// As [`index`](Self::index), with a function that can fail. An object for which it fails is missing in this index
    /// and named by [`Index::unindexed`], until it changes.
    #[must_use = "dropping the index removes it"]
    pub fn index_fallible<V, I, E>(
        &self,
        name: &str,
        function: impl Fn(&K) -> Result<I, E> + Send + Sync + 'static,
    ) -> Index<K, V>
    where
        V: Eq + Hash + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
        E: fmt::Display,
    {
        let (index, failures) = Index::add(&self.shared.store, name, function);
        self.shared.count_failures(failures);
        index
    }

    /// Calls `handle` with every event, one after the other, in a task of its own.
    ///
    /// It may be added before, during or after the sync, or to an informer that has stopped (it's never called then).
    /// The handler ends when the handle is dropped or [removed](HandlerHandle::remove), or when the informer stops:
    /// then what still waits in its backlog is dropped. The call runs on the runtime's threads, so it mustn't block;
    /// hand keys to a queue, or use [`on_change_async`](Self::on_change_async). If it panics, it's counted, and the
    /// handler goes on with the next event.
    pub fn on_change(&self, handle: impl FnMut(Event<K>) + Send + 'static) -> HandlerHandle {
        self.on_change_with(HandlerOptions::default(), handle)
    }

    /// As [`on_change`](Self::on_change), with a name, a bound for the backlog and what happens there, a resync.
    pub fn on_change_with(
        &self,
        options: HandlerOptions,
        handle: impl FnMut(Event<K>) + Send + 'static,
    ) -> HandlerHandle {
        self.handler(options).on_change(handle)
    }

    /// As [`on_change`](Self::on_change), for those objects only that pass a filter: see [`HandlerBuilder::filter`].
    pub fn on_change_filtered(
        &self,
        pass: impl Fn(&K) -> bool + Send + Sync + 'static,
        handle: impl FnMut(Event<K>) + Send + 'static,
    ) -> HandlerHandle {
        self.handler(HandlerOptions::default()).filter(pass).on_change(handle)
    }

    /// As [`on_change`](Self::on_change), but awaits what `handle` returns before it's called with the next event. While
    /// it waits, its backlog fills, up to its bound. Removing the handler waits for a call that's under way; when the
    /// informer stops, the call is dropped where it waits.
    pub fn on_change_async<F>(&self, handle: impl FnMut(Event<K>) -> F + Send + 'static) -> HandlerHandle
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.handler(HandlerOptions::default()).on_change_async(handle)
    }

    /// Gives the events to whoever polls for them. When the informer stops, what waits can still be taken.
    pub fn subscribe(&self) -> Subscription<K> {
        self.subscribe_with(HandlerOptions::named("subscription"))
    }

    /// As [`subscribe`](Self::subscribe), with a name, a bound for the backlog and what happens there, a resync.
    pub fn subscribe_with(&self, options: HandlerOptions) -> Subscription<K> {
        self.handler(options).subscribe()
    }

    /// Sets up a handler in all its parts: options, filter, and last how it takes its events.
    pub fn handler(&self, options: HandlerOptions) -> HandlerBuilder<K> {
        HandlerBuilder::new(Arc::clone(&self.shared), options)
    }

    /// What the informer is doing and what it has done.
    #[must_use]
    pub fn status(&self) -> InformerStatus {
        self.shared.status()
    }

    /// What the informer is doing.
    #[must_use]
    pub fn state(&self) -> InformerState {
        self.shared.status.state()
    }

    /// Waits until the informer's state satisfies a condition and returns it. It isn't told of states that lasted less
    /// than its turn to look.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn wait_state(&self, condition: impl FnMut(&InformerState) -> bool) -> InformerState {
        let mut state = self.shared.status.watch_state();
        // The sender lives as long as the informer, so this can't fail; if it did, the last state is the answer.
        match state.wait_for(condition).await {
            Ok(state) => state.clone(),
            Err(_) => self.state(),
        }
    }

    /// Whether the cache was complete at least once. It says nothing of handlers: each has its own.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.shared.status.synced()
    }

    /// Waits until the cache is complete.
    ///
    /// # Errors
    /// At once when that can't happen without somebody's help: the informer isn't started, has stopped, or is
    /// forbidden. The informer goes on (it also tries again if forbidden), and this may be called again.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn wait_synced(&self) -> Result<(), NotSynced> {
        wait_synced(&self.shared.name, &self.shared.status).await
    }

    /// Waits until the cache is complete or the server is known not to serve the kind: then the empty cache is the whole
    /// truth. True if it's complete, false if the kind is absent; it then fills by itself when the kind appears.
    ///
    /// # Errors
    /// As [`wait_synced`](Self::wait_synced). A kind of which nothing is known, because discovery fails, is waited for.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn wait_synced_or_absent(&self) -> Result<bool, NotSynced> {
        wait_synced_or_absent(&self.shared.name, &self.shared.status).await
    }

    /// Stops this informer alone, for everybody who uses it, and waits until its tasks and those of its handlers have
    /// ended. What was in the cache stays readable through the handles that there are. The factory forgets it: whoever
    /// asks for the like gets a new one. Informers that depend on it go on; one that still waits for it begins.
    ///
    /// # Cancel safety
    /// The informer stops in any case; only the waiting is cut short. A handler that awaits this is cancelled by it.
    pub async fn stop(&self) {
        if let Some(registry) = self.shared.registry.upgrade() {
            registry.forget(&self.shared());
        }
        AnyInformer::cancel(&*self.shared);
        if let Some(tasks) = AnyInformer::tasks(&*self.shared) {
            tasks.join().await;
        }
    }
}

impl<K: 'static> Clone for SharedInformer<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: 'static> fmt::Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

pub(crate) async fn wait_synced(name: &str, status: &StatusCell) -> Result<(), NotSynced> {
    let mut synced = status.watch_synced();
    let mut state = status.watch_state();
    let hopeless = state.wait_for(is_hopeless);
    tokio::select! {
        // An informer that was synced is synced, whatever happened since.
        biased;
        _ = synced.wait_for(|synced| *synced) => Ok(()),
        _ = hopeless => Err(NotSynced { informer: name.to_owned(), state: status.state() }),
    }
}

/// As [`wait_synced`], and also over once the kind is known to be absent. True if it's synced.
pub(crate) async fn wait_synced_or_absent(name: &str, status: &StatusCell) -> Result<bool, NotSynced> {
    let mut state = status.watch_state();
    let absent = state.wait_for(InformerState::is_absent);
    tokio::select! {
        biased;
        synced = wait_synced(name, status) => synced.map(|()| true),
        _ = absent => Ok(false),
    }
}

/// Whether an informer that isn't synced won't be without somebody's help.
fn is_hopeless(state: &InformerState) -> bool {
    use InformerState as State;
    matches!(state, State::NotStarted | State::Forbidden { .. } | State::Failed { .. } | State::Stopped)
}

// === impl Shared ===

impl<K: Send + Sync + 'static> Shared<K> {
    pub(crate) fn new(parts: Parts, representation: Box<dyn Representation<K>>, intake: Intake<K>) -> Self {
        let Parts { cluster, source, identity, settings, namespaces, registry } = parts;
        let handlers = Handlers {
            queues: Vec::new(),
            waiting: Vec::new(),
            running: None,
            synced: false,
            stopped: false,
            conflated: 0,
        };
        Self {
            cluster,
            source,
            namespaces,
            name: informer_name(&identity.resource, &identity.scope, identity.name.as_deref()),
            status: StatusCell::new(settings.clock),
            resource: identity.resource.clone(),
            scope: identity.scope.clone(),
            identity,
            settings,
            representation,
            intake,
            store: Arc::new(Store::new()),
            registry,
            version: Mutex::default(),
            handlers: Mutex::new(handlers),
        }
    }

    /// From now on asks for this version.
    pub(crate) fn follow_version(&self, version: &str) {
        *lock(&self.version) = Some(version.to_owned());
    }

    /// The resource in the version that's followed.
    pub(crate) fn followed_resource(&self) -> ApiResource {
        let mut resource = self.resource.clone();
        if let Some(version) = &*lock(&self.version) {
            resource.version.clone_from(version);
            let ApiResource { group, .. } = &resource;
            resource.api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        }
        resource
    }

    /// Whether objects of this group and version are what's followed.
    pub(crate) fn is_api_version(&self, api_version: &str) -> bool {
        api_version == self.resource.api_version || {
            let followed = lock(&self.version);
            let (group, given) = api_version.rsplit_once('/').unwrap_or(("", api_version));
            followed.as_deref() == Some(given) && group == self.resource.group
        }
    }

    /// What's asked of the server, of one namespace of several perhaps.
    pub(crate) fn wanted(&self, namespace: Option<&str>) -> Wanted {
        let in_namespace = namespace.or(self.scope.namespace()).is_some();
        Wanted::new(&self.followed_resource(), in_namespace, self.identity.any_version)
    }

    /// Changes the store and then tells the handlers. `completes`: with these deltas the store holds a whole state.
    pub(crate) fn publish(&self, mut deltas: Vec<Delta<K>>, progress: Option<Progress<'_>>, extent: Extent) {
        let (mut prepared, mut failures) = (Prepared::default(), IndexFailures::default());
        let applied = loop {
            // Index functions are the user's, so they run before any lock is taken.
            failures += self.store.prepare(&deltas, &mut prepared);
            let mut handlers = lock(&self.handlers);
            let initial = extent != Extent::Changes && !handlers.synced;
            let completes = extent == Extent::Whole && !handlers.synced;
            if let Some(applied) = self.store.apply(&mut deltas, &mut prepared, initial, progress) {
                handlers.tell(&applied.events, completes);
                handlers.synced |= completes;
                break applied;
            }
        };
        self.count(&applied);
        self.count_failures(failures);
        if extent == Extent::Whole {
            self.status.set_synced();
        }
    }

    /// Shows the objects of these namespaces and no others (cluster-scoped ones always). The handlers are told of those
    /// that appear as added, and of those that don't show any more as deleted, out of scope.
    ///
    /// It takes effect as one step, in one order with everything that's published. Cost: by the number of namespaces and
    /// of the objects that move.
    pub(crate) fn set_visible(&self, visible: &Visible) {
        let (mut appearing, mut failures) = (Appearing::default(), IndexFailures::default());
        let applied = loop {
            // As above: user code runs before any lock is taken.
            failures += self.store.prepare_visible(visible, &mut appearing);
            let mut handlers = lock(&self.handlers);
            if let Some(applied) = self.store.set_visible(visible, &mut appearing) {
                handlers.tell(&applied.events, false);
                break applied;
            }
        };
        self.count(&applied);
        self.count_failures(failures);
    }

    /// Forgets a namespace's objects, shown or not; the handlers are told that they're out of scope.
    pub(crate) fn remove_namespace(&self, namespace: &str) {
        let mut handlers = lock(&self.handlers);
        let applied = self.store.remove_namespace(namespace);
        handlers.tell(&applied.events, false);
        drop(handlers);
        self.count(&applied);
    }

    fn count(&self, applied: &Applied<K>) {
        self.status.count(|counters| counters.events += applied.events.len() as u64);
    }

    fn count_failures(&self, IndexFailures { panics, errors }: IndexFailures) {
        if panics + errors > 0 {
            self.status.count(|counters| {
                counters.index_panics += panics;
                counters.index_errors += errors;
            });
        }
    }

    /// Adds a handler in one critical section with publishing: it gets the store's content, then every later change.
    pub(crate) fn add_handler(&self, queue: Arc<Queue<K>>, task: Option<HandlerTask>) {
        let mut handlers = lock(&self.handlers);
        queue.replay(self.store.list(), handlers.synced);
        if handlers.stopped {
            queue.finish();
        }
        handlers.queues.push(queue);
        match (task, &handlers.running) {
            (Some(task), Some((tasks, cancel))) if !handlers.stopped => task(tasks, cancel),
            (Some(task), None) if !handlers.stopped => handlers.waiting.push(task),
            _ => {}
        }
    }

    /// The objects with these keys in the state that a handler was told last; `None` if there's something that it wasn't
    /// told yet.
    pub(crate) fn told_objects<'a>(
        &self,
        queue: &Queue<K>,
        keys: impl Iterator<Item = &'a ObjectKey>,
    ) -> Option<Vec<Cached<K>>> {
        // Nothing is published meanwhile.
        let _handlers = lock(&self.handlers);
        queue.is_idle().then(|| self.store.get_many(keys).into_iter().flatten().collect())
    }

    /// Waits for the informers that go first, and says so.
    async fn wait_for_turn(&self, awaits: Vec<Arc<dyn AnyInformer>>) {
        for informer in awaits {
            let settled = settled(&*informer);
            tokio::pin!(settled);
            if (&mut settled).now_or_never().is_none() {
                self.status.set_state(InformerState::Waiting { for_: informer.name().to_owned() });
                settled.await;
            }
        }
        self.status.set_state(InformerState::Starting);
    }

    fn stop(&self) {
        let mut handlers = lock(&self.handlers);
        handlers.stopped = true;
        for queue in &handlers.queues {
            queue.finish();
        }
        let waiting = std::mem::take(&mut handlers.waiting);
        drop(handlers);
        drop(waiting);
        // An informer that failed has stopped too, and its failure says more.
        if !matches!(self.status.state(), InformerState::Failed { .. }) {
            self.status.set_state(InformerState::Stopped);
        }
    }

    fn status(&self) -> InformerStatus {
        let (handler_statuses, conflated) = {
            let handlers = lock(&self.handlers);
            let statuses: Vec<_> = handlers.queues.iter().map(|queue| queue.status()).collect();
            let conflated = handlers.conflated + statuses.iter().map(|status| status.conflated).sum::<u64>();
            (statuses, conflated)
        };
        let numbers = self.status.numbers();
        let mut counters = numbers.counters;
        counters.conflated = conflated;
        InformerStatus {
            informer: self.name.clone(),
            group: self.resource.group.clone(),
            version: self.resource.version.clone(),
            resource: self.resource.plural.clone(),
            kind: self.resource.kind.clone(),
            form: self.identity.form.to_owned(),
            scope: self.scope.to_string().trim_start().to_owned(),
            also_held_as: self.registry.upgrade().map(|all| all.also_held_as(&self.identity)).unwrap_or_default(),
            state: self.status.state(),
            synced: self.status.synced(),
            objects: self.store.len(),
            bytes: 0,
            resource_version: self.store.resource_version(),
            counters,
            last_error: numbers.last_error,
            undecodable: numbers.undecodable,
            unindexed: self.store.unindexed(),
            handlers: handler_statuses,
        }
    }
}

impl<K> Handlers<K> {
    /// Puts events into every handler's backlog.
    /// `completes`: with these the initial state is complete.
    fn tell(&mut self, events: &[Event<K>], completes: bool) {
        self.prune();
        for queue in &self.queues {
            queue.push(events, completes);
        }
    }

    /// Forgets handlers that ended.
    fn prune(&mut self) {
        let conflated = &mut self.conflated;
        self.queues.retain(|queue| {
            let ended = queue.is_closed();
            if ended {
                *conflated += queue.status().conflated;
            }
            !ended
        });
    }
}

impl<K: Send + Sync + 'static> AnyInformer for Shared<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> Arc<Identity> {
        Arc::clone(&self.identity)
    }

    fn resource(&self) -> &ApiResource {
        &self.resource
    }

    fn start(self: Arc<Self>, tasks: TaskSet, awaits: Vec<Arc<dyn AnyInformer>>) {
        let cancel = CancellationToken::new();
        {
            let mut handlers = lock(&self.handlers);
            if handlers.running.is_some() || handlers.stopped {
                return;
            }
            handlers.running = Some((tasks.clone(), cancel.clone()));
            for task in std::mem::take(&mut handlers.waiting) {
                task(&tasks, &cancel);
            }
        }
        self.status.set_state(InformerState::Starting);
        tasks.spawn(async move {
            let run = async {
                self.wait_for_turn(awaits).await;
                parts::run(&self, &cancel).await;
            };
            tokio::select! {
                // Being cancelled goes before any work.
                biased;
                () = cancel.cancelled() => {}
                () = run => {}
            }
            self.stop();
        });
    }

    fn cancel(&self) {
        let never_ran = {
            let handlers = lock(&self.handlers);
            if let Some((_, cancel)) = &handlers.running {
                cancel.cancel();
            }
            handlers.running.is_none()
        };
        if never_ran {
            self.stop();
        }
    }

    fn tasks(&self) -> Option<TaskSet> {
        lock(&self.handlers).running.as_ref().map(|(tasks, _)| tasks.clone())
    }

    fn status(&self) -> InformerStatus {
        Shared::status(self)
    }

    fn cell(&self) -> &StatusCell {
        &self.status
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
