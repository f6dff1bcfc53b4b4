//! The factory: exactly one informer per object type, resource and scope, started and stopped together.
//!
//! Making a factory or an informer does no I/O and spawns nothing; [`InformerFactory::start`] does, and
//! [`InformerFactory::shutdown`] waits for all of it to end.

use std::any::TypeId;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::error::{NotSynced, StartError, SyncError};
use crate::informer_builder::{InformerBuilder, InformerOptions};
use crate::lock::lock;
use crate::object::Metadata;
use crate::representation::Representation;
use crate::request::Scope;
use crate::shared_informer::{AnyInformer, Shared, SharedInformer, wait_synced};
use crate::status::InformerStatus;
use crate::store::FixedState;
use crate::task_set::TaskSet;

/// How many informers take in their first state at the same time, unless set.
const FIRST_LISTS: usize = 8;

/// Makes shared informers, and starts and stops them. A clone is the same factory.
///
/// Whoever asks twice for the same object type, resource and scope gets the same informer: one watch and one cache,
/// shared. Different types of the same resource (typed and dynamic, say) are different informers with caches of their
/// own; [`statuses`](Self::statuses) lists what there is.
///
/// It's best made over a [`Cluster`]. A client's own retries, if it has any, come before the informers' and hide 429, 503
/// and 504 from them. A read timeout on the client ends idle watches early; informers find dead connections themselves.
#[derive(Clone)]
pub struct InformerFactory {
    inner: Arc<Inner>,
}

/// Sets up an [`InformerFactory`].
#[must_use = "a builder does nothing until it's built"]
pub struct InformerFactoryBuilder {
    cluster: Cluster,
    seed: Option<u64>,
    start_time: Option<Timestamp>,
    settings: Settings,
}

/// What a factory's informers have in common.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
    pub(crate) page_size: Option<u32>,
    pub(crate) watch_list: bool,
    pub(crate) document_bytes_max: usize,
    pub(crate) handler_bound: usize,
    pub(crate) watch_timeout_min: Duration,
    /// One for each informer that may take in its first state at the same time.
    pub(crate) list_slots: Arc<Semaphore>,
}

impl Settings {
    /// The seed of one informer: its own, whatever else a factory makes.
    pub(crate) fn seed_for(&self, informer: &str) -> u64 {
        self.seed ^ FixedState::default().hash_one(informer)
    }
}

struct Inner {
    cluster: Cluster,
    settings: Settings,
    /// Lock rank 1.
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    informers: Vec<(Identity, Arc<dyn AnyInformer>)>,
    tasks: Option<TaskSet>,
    /// One for each call of `start`, so that a shutdown reaches what was started with different tokens.
    started: Vec<CancellationToken>,
    shut_down: bool,
}

/// What makes two requests for an informer the same. The type covers the object's type and its representation.
#[derive(PartialEq, Eq)]
struct Identity {
    form: TypeId,
    resource: ApiResource,
    scope: Scope,
    /// As its users name it, `None` for the plain one.
    name: Option<String>,
}

// === impl InformerFactory ===

impl InformerFactory {
    /// A factory with the default settings, over a [`Cluster`] or a client.
    #[must_use]
    pub fn new(cluster: impl Into<Cluster>) -> Self {
        Self::builder(cluster).build()
    }

    /// Sets up a factory over a [`Cluster`] or a client.
    pub fn builder(cluster: impl Into<Cluster>) -> InformerFactoryBuilder {
        let settings = Settings {
            seed: 0,
            clock: Clock::system(),
            page_size: None,
            watch_list: true,
            document_bytes_max: 8 << 20,
            handler_bound: 1024,
            watch_timeout_min: Duration::from_secs(300),
            list_slots: Arc::new(Semaphore::new(FIRST_LISTS)),
        };
        InformerFactoryBuilder { cluster: cluster.into(), seed: None, start_time: None, settings }
    }

    /// Sets up the informer of a typed resource; unless told otherwise it covers all of it.
    ///
    /// ```no_run
    /// # use informant_cache::{InformerFactory, Scope};
    /// # fn make(factory: InformerFactory) {
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = factory.informer::<Pod>().scope(Scope::namespaced("web")).full();
    /// # }
    /// ```
    pub fn informer<K>(&self) -> InformerBuilder<K>
    where
        K: kube::Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        self.informer_for(ApiResource::erase::<K>(&()))
    }

    /// Sets up the informer of any resource, without a compile-time type.
    pub fn dynamic(&self, resource: ApiResource) -> InformerBuilder<DynamicObject> {
        self.informer_for(resource)
    }

    /// Sets up the informer of any resource whose objects are kept as `K`: a trimmed struct of your own, say.
    pub fn informer_for<K: Send + Sync + 'static>(&self, resource: ApiResource) -> InformerBuilder<K> {
        InformerBuilder::new(self.clone(), resource)
    }

    /// The informer that was set up, or the one that was made alike before.
    pub(crate) fn get_or_create<K, R>(&self, options: InformerOptions<K>, representation: R) -> SharedInformer<K>
    where
        K: Metadata + Send + Sync + 'static,
        R: Representation<K>,
    {
        let InformerOptions { resource, scope, name, intake } = options;
        let identity = Identity { form: TypeId::of::<(K, R)>(), resource, scope, name };
        let mut registry = lock(&self.inner.registry);
        let known = registry.informers.iter().find(|(known, _)| *known == identity).map(|(_, informer)| informer);
        let known = known.and_then(|known| Arc::clone(known).into_any().downcast::<Shared<K>>().ok());
        if let Some(shared) = known {
            return SharedInformer::new(shared);
        }
        let shared = Arc::new(Shared::new(
            self.inner.cluster.clone(),
            identity.resource.clone(),
            identity.scope.clone(),
            self.inner.settings.clone(),
            Box::new(representation),
            intake,
        ));
        registry.informers.push((identity, Arc::clone(&shared) as Arc<dyn AnyInformer>));
        SharedInformer::new(shared)
    }

    /// Starts every informer that isn't started yet; it returns at once. They run until the token is cancelled or the
    /// factory is [shut down](Self::shutdown). Each informer is started once, however often this is called; one that's
    /// made later needs another call.
    ///
    /// # Errors
    /// If the factory was shut down or the token is cancelled already, or outside a tokio runtime.
    pub fn start(&self, cancel: &CancellationToken) -> Result<(), StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let mut registry = lock(&self.inner.registry);
        if registry.shut_down || cancel.is_cancelled() {
            return Err(StartError::ShutDown);
        }
        let tasks = registry.tasks.get_or_insert_with(|| TaskSet::new(runtime)).clone();
        let cancel = cancel.child_token();
        let mut any = false;
        for (_, informer) in &registry.informers {
            any |= Arc::clone(informer).start(&tasks, &cancel);
        }
        if any {
            registry.started.push(cancel);
        }
        Ok(())
    }

    /// Waits until every informer made so far is synced.
    ///
    /// # Errors
    /// When the token is cancelled; and at once when an informer can't sync without somebody's help (it isn't started,
    /// has stopped, or is forbidden). The error names every informer that isn't synced, and why. The informers go on,
    /// and this may be called again. A kind that's missing is waited for.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn wait_for_cache_sync(&self, cancel: &CancellationToken) -> Result<(), SyncError> {
        let informers = self.informers();
        let waits = informers.iter().map(|informer| wait_synced(informer.name(), informer.cell()));
        let all = futures::future::try_join_all(waits);
        let all_synced = tokio::select! {
            // What's synced is synced, also if the token is cancelled.
            biased;
            outcome = all => outcome.is_ok(),
            () = cancel.cancelled() => false,
        };
        if all_synced { Ok(()) } else { Err(not_synced(&informers)) }
    }

    /// What every informer is doing, in the order they were made. As JSON it's the cache inventory of a process.
    #[must_use]
    pub fn statuses(&self) -> Vec<InformerStatus> {
        self.informers().iter().map(|informer| informer.status()).collect()
    }

    /// Stops every informer and waits until all their tasks, and those of their handlers, have ended. A handler's call
    /// that's running is waited for. Afterwards the caches can still be read; the factory can't be started again. Any
    /// number of callers may wait.
    ///
    /// # Cancel safety
    /// The informers stop in any case; only the waiting is cut short.
    pub async fn shutdown(&self) {
        let tasks = {
            let mut registry = lock(&self.inner.registry);
            registry.shut_down = true;
            for started in &registry.started {
                started.cancel();
            }
            registry.tasks.clone()
        };
        if let Some(tasks) = tasks {
            tasks.join().await;
        }
    }

    fn informers(&self) -> Vec<Arc<dyn AnyInformer>> {
        lock(&self.inner.registry).informers.iter().map(|(_, informer)| Arc::clone(informer)).collect()
    }
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers = self.informers();
        f.debug_list().entries(informers.iter().map(|informer| informer.name())).finish()
    }
}

fn not_synced(informers: &[Arc<dyn AnyInformer>]) -> SyncError {
    let mut not_synced: Vec<_> = informers
        .iter()
        .filter(|informer| !informer.cell().synced())
        .map(|informer| NotSynced { informer: informer.name().to_owned(), state: informer.cell().state() })
        .collect();
    not_synced.sort_by(|one, other| one.informer.cmp(&other.informer));
    SyncError { not_synced }
}

// === impl InformerFactoryBuilder ===

impl InformerFactoryBuilder {
    /// The seed of all randomness (jitter of delays and watch timeouts). Default: drawn once, different in each
    /// process, so that a fleet doesn't act in step.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// What the wall clock shows now, for the stamps in statuses; from here on it runs with tokio's clock. Default:
    /// the system's time.
    pub fn start_time(mut self, time: Timestamp) -> Self {
        self.start_time = Some(time);
        self
    }

    /// How many objects to ask for in one page of a list. Default, also for 0: 500, but no limit for a list that the
    /// server can answer from its cache, which a limit would prevent. Whatever the server sends, no page is ever held
    /// whole in memory.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.settings.page_size = Some(objects).filter(|objects| *objects > 0);
        self
    }

    /// Whether to take in the present state as a stream where the server can do that, instead of lists. Default: true.
    pub fn watch_list(mut self, on: bool) -> Self {
        self.settings.watch_list = on;
        self
    }

    /// The largest object that's taken in, in bytes of JSON; a larger one is skipped, counted and named. Default:
    /// 8 MiB, several times what an API server stores.
    pub fn document_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.document_bytes_max = bytes.max(1024);
        self
    }

    /// How many events may wait for a handler before they're merged, unless the handler says otherwise. Default: 1,024.
    pub fn handler_bound(mut self, events: usize) -> Self {
        self.settings.handler_bound = events.max(1);
        self
    }

    /// The shortest time after which the server is asked to end a watch; the longest is twice that. Smaller values than
    /// the default of 5 minutes are raised to it.
    pub fn watch_timeout_min(mut self, timeout: Duration) -> Self {
        self.settings.watch_timeout_min = timeout.max(Duration::from_secs(300));
        self
    }

    /// How many informers may take in their first state at the same time; the others wait, in the order of their start.
    /// It keeps a start from loading the server, and this process, with everything at once. Default: 8; 0 counts as 1.
    ///
    /// An informer whose first attempt fails makes room for another and tries again when there's room.
    pub fn first_lists(mut self, informers: usize) -> Self {
        self.settings.list_slots = Arc::new(Semaphore::new(informers.clamp(1, Semaphore::MAX_PERMITS)));
        self
    }

    /// The factory. It does no I/O and spawns nothing.
    #[must_use]
    pub fn build(self) -> InformerFactory {
        let mut settings = self.settings;
        settings.seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one("informant"));
        settings.clock = self.start_time.map_or_else(Clock::system, Clock::starting_at);
        let inner = Inner { cluster: self.cluster, settings, registry: Mutex::default() };
        InformerFactory { inner: Arc::new(inner) }
    }
}
