//! What an informer's handles and its tasks share.
//!
//! The order that everything relies on is made here, in [`Shared::publish`]: the store is changed first and the news
//! goes out second, both within one critical section of the handler list. A handler is added within the same section,
//! so it gets the store's content and then every later change: no gap, no duplicate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use futures::FutureExt;
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};

use tokio::time::Instant;

use super::SharedInformer;
use super::any::AnyInformer;
use super::handlers::{HandlerTask, Handlers};
use crate::availability::Wanted;
use crate::delta::Delta;
use crate::durations::DurationCounter;
use crate::handler::Queue;
use crate::indexer::{IndexFailures, Prepared};
use crate::informer_factory::{Identity, Registry, Settings, settled};
use crate::intake::Intake;
use crate::key::ObjectKey;
use crate::lister_watcher::ListerWatcher;
use crate::lock::lock;
use crate::memory::Memory;
use crate::object::Cached;
use crate::parts::Extent;
use crate::protobuf::{self, Message};
use crate::representation::Representation;
use crate::request::informer_name;
use crate::scope::Scope;
use crate::status::{InformerState, InformerStatus, StatusCell};
use crate::store::{Appearing, Applied, LARGE, Progress, Store, StoreMemory, Visible};

/// How often a large batch is tried on a copy of the store, when others change the store meanwhile.
const LARGE_TRIES: usize = 3;

/// What an informer's handles and its task share.
pub(crate) struct Shared<K> {
    /// Where its lists, watches and live reads go.
    pub(crate) source: Arc<dyn ListerWatcher>,
    /// What its scope selects among.
    pub(crate) namespaces: Option<SharedInformer<PartialObjectMeta<DynamicObject>>>,
    pub(super) identity: Arc<Identity>,
    pub(crate) resource: ApiResource,
    pub(crate) scope: Scope,
    pub(crate) name: String,
    pub(crate) settings: Settings,
    pub(crate) representation: Box<dyn Representation<K>>,
    pub(crate) intake: Intake<K>,
    pub(crate) store: Arc<Store<K>>,
    pub(crate) status: StatusCell,
    /// How long it takes to apply a batch and to put it into the backlogs.
    processing: DurationCounter,
    /// Where it can be asked for; an informer that's stopped alone is taken out of there.
    pub(super) registry: Weak<Registry>,
    /// The version that's followed in place of the resource's. Lock rank 5.
    version: Mutex<Option<String>>,
    /// The server refused to be asked for protobuf.
    json_only: AtomicBool,
    /// Lock rank 2.
    pub(super) handlers: Mutex<Handlers<K>>,
}

/// What an informer is made of, but for what depends on the type of its objects.
pub(crate) struct Parts {
    pub(crate) source: Arc<dyn ListerWatcher>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) settings: Settings,
    pub(crate) namespaces: Option<SharedInformer<PartialObjectMeta<DynamicObject>>>,
    pub(crate) registry: Weak<Registry>,
}

// === impl Shared ===

impl<K: Send + Sync + 'static> Shared<K> {
    pub(crate) fn new(parts: Parts, representation: Box<dyn Representation<K>>, intake: Intake<K>) -> Self {
        let Parts { source, identity, settings, namespaces, registry } = parts;
        Self {
            source,
            namespaces,
            name: informer_name(&identity.resource, &identity.scope, identity.name.as_deref()),
            status: StatusCell::new(settings.clock),
            processing: DurationCounter::default(),
            resource: identity.resource.clone(),
            scope: identity.scope.clone(),
            identity,
            settings,
            representation,
            intake,
            store: Arc::new(Store::new()),
            registry,
            version: Mutex::default(),
            json_only: AtomicBool::new(false),
            handlers: Mutex::new(Handlers::new()),
        }
    }

    /// The form of its objects in protobuf, if that's to be asked for.
    pub(crate) fn protobuf(&self) -> Option<&'static Message> {
        if self.identity.json || !self.representation.takes_protobuf() || self.json_only.load(Ordering::Relaxed) {
            return None;
        }
        let resource = self.followed_resource();
        protobuf::table().kind(&resource.api_version, &resource.kind)
    }

    /// The server refused to be asked for protobuf: from now on asks for JSON.
    pub(crate) fn settle_for_json(&self) {
        if !self.json_only.swap(true, Ordering::Relaxed) {
            tracing::warn!(informer = %self.name, "server refuses to be asked for protobuf; asking for JSON from now on");
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
    /// `arrived`: when the last of what it's made of came.
    pub(crate) fn publish(
        &self,
        mut deltas: Vec<Delta<K>>,
        progress: Option<Progress<'_>>,
        extent: Extent,
        arrived: Instant,
    ) {
        let begun = (!deltas.is_empty()).then(Instant::now);
        let (mut prepared, mut failures) = (Prepared::default(), IndexFailures::default());
        if deltas.len() >= LARGE && self.publish_large(&deltas, progress, extent, arrived) {
            deltas.clear();
        }
        let applied = loop {
            // Index functions are the user's, so they run before any lock is taken.
            failures += self.store.prepare(&deltas, &mut prepared);
            let mut handlers = lock(&self.handlers);
            let initial = extent != Extent::Changes && !handlers.synced;
            let completes = extent == Extent::Whole && !handlers.synced;
            if let Some(applied) = self.store.apply(&mut deltas, &mut prepared, initial, progress) {
                handlers.tell(&applied.events, completes, arrived);
                handlers.synced |= completes;
                break applied;
            }
        };
        if let Some(begun) = begun {
            self.processing.observe(begun.elapsed());
        }
        self.count(&applied);
        self.count_failures(failures);
        if extent == Extent::Whole {
            self.status.set_synced();
        }
    }

    /// The same, by way of a copy of the store, so that no reader waits. False, with nothing done, if others changed the
    /// store all the time.
    fn publish_large(
        &self,
        deltas: &[Delta<K>],
        progress: Option<Progress<'_>>,
        extent: Extent,
        arrived: Instant,
    ) -> bool {
        for _ in 0..LARGE_TRIES {
            let initial = extent != Extent::Changes && !lock(&self.handlers).synced;
            let (generation, failures) = self.store.next_generation(deltas, initial, progress);
            let mut handlers = lock(&self.handlers);
            let Some((events, old)) = self.store.advance(generation, progress.is_some()) else { continue };
            handlers.tell(&events, false, arrived);
            drop(handlers);
            self.status.count(|counters| counters.events += events.len() as u64);
            self.count_failures(failures);
            drop(old);
            return true;
        }
        false
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
                handlers.tell(&applied.events, false, Instant::now());
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
        handlers.tell(&applied.events, false, Instant::now());
        drop(handlers);
        self.count(&applied);
    }

    fn count(&self, applied: &Applied<K>) {
        self.status.count(|counters| counters.events += applied.events.len() as u64);
    }

    pub(super) fn count_failures(&self, IndexFailures { panics, errors }: IndexFailures) {
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
    pub(super) async fn wait_for_turn(&self, awaits: Vec<Arc<dyn AnyInformer>>) {
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

    pub(super) fn stop(&self) {
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

    pub(super) fn memory(&self) -> Memory {
        let StoreMemory { objects, tables, indexes } = self.store.memory();
        let backlogs = lock(&self.handlers).queues.iter().map(|queue| queue.bytes()).sum();
        Memory { objects, tables, indexes, shared: self.representation.shared_bytes() as u64, backlogs }
    }

    pub(super) fn status(&self) -> InformerStatus {
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
            memory: self.memory(),
            processing: self.processing.durations(),
            resource_version: self.store.resource_version(),
            counters,
            last_error: numbers.last_error,
            undecodable: numbers.undecodable,
            unindexed: self.store.unindexed(),
            handlers: handler_statuses,
        }
    }
}
