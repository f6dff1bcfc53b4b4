//! The factory: exactly one informer per object type, resource and scope, started and stopped together.
//!
//! Making a factory or an informer does no I/O and spawns nothing; [`InformerFactory::start`] does, and
//! [`InformerFactory::shutdown`] waits for all of it to end.

mod order;
mod registry;

use std::any::TypeId;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use kube::core::ClusterResourceScope;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::registry::Entry;
pub(crate) use self::registry::{Identity, Registry, settled};
use crate::availability::Availability;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::error::{StartError, SyncError};
use crate::informer_builder::{InformerBuilder, InformerOptions};
use crate::object::Metadata;
use crate::projection::Projection;
use crate::representation::Representation;
use crate::scope::Scope;
use crate::shared_informer::{Parts, Shared, SharedInformer};
use crate::status::InformerStatus;
use crate::store::FixedState;

/// How many informers take in their first state at the same time, unless set.
const FIRST_LISTS: usize = 8;

/// Makes shared informers, and starts and stops them. A clone is the same factory.
///
/// Whoever asks twice for the same object type, resource and scope gets the same informer: one watch and one cache,
/// shared. Different types of the same resource (typed and dynamic, say) are different informers with caches of their
/// own; [`statuses`](Self::statuses) lists what there is.
///
/// It's started exactly once; an informer that's made later begins at once. The informers end when the token of the
/// start is cancelled, when the factory is [shut down](Self::shutdown), or when its last clone is dropped; in each case
/// those that depend on others end before them. A stopped factory can't be started again.
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
    pub(crate) read_from_cache: bool,
    pub(crate) watch_list: bool,
    pub(crate) document_bytes_max: usize,
    pub(crate) handler_bound: usize,
    pub(crate) watch_timeout_min: Duration,
    pub(crate) idle_timeout: Duration,
    /// One for each informer that may take in its first state at the same time.
    pub(crate) list_slots: Arc<Semaphore>,
    pub(crate) default_scope: Scope,
    /// Knows which kinds the server serves; `None` for the informer on which that rests.
    pub(crate) availability: Option<Arc<Availability>>,
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
    registry: Arc<Registry>,
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
            read_from_cache: false,
            watch_list: true,
            document_bytes_max: 8 << 20,
            handler_bound: 1024,
            watch_timeout_min: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(150),
            list_slots: Arc::new(Semaphore::new(FIRST_LISTS)),
            default_scope: Scope::all(),
            availability: None,
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
        self.informer_kept_as::<K, _>()
    }

    /// Sets up the informer of a typed resource's metadata: the server sends nothing else, and the cache holds nothing
    /// else. Finish it with [`full`](InformerBuilder::full).
    pub fn metadata<K>(&self) -> InformerBuilder<PartialObjectMeta<K>>
    where
        K: kube::Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        self.informer_kept_as::<K, _>()
    }

    /// As [`metadata`](Self::metadata), of any resource.
    pub fn metadata_for(&self, resource: ApiResource) -> InformerBuilder<PartialObjectMeta<DynamicObject>> {
        self.informer_for(resource)
    }

    /// Sets up the informer of any resource, without a compile-time type.
    pub fn dynamic(&self, resource: ApiResource) -> InformerBuilder<DynamicObject> {
        self.informer_for(resource)
    }

    /// Sets up the informer of a [`Projection`](trait@Projection): of each object it keeps what the struct asks for, and
    /// decodes nothing else. Finish it with [`projected`](InformerBuilder::projected).
    ///
    /// Filters, transforms, handlers, listers and indexes work on the struct as on whole objects.
    /// [`Lister::select`](crate::Lister::select) needs `metadata.labels` among its fields.
    pub fn projection<V: Projection>(&self) -> InformerBuilder<V> {
        let builder = self.informer_for(V::resource());
        if V::KIND.cluster_scoped { builder.cluster_scoped() } else { builder }
    }

    /// Sets up the informer of any resource whose objects are kept as `K`: a trimmed struct of your own, say.
    pub fn informer_for<K: Send + Sync + 'static>(&self, resource: ApiResource) -> InformerBuilder<K> {
        InformerBuilder::new(self.clone(), resource)
    }

    /// The informer of a typed resource `K` whose objects are kept as `J`.
    fn informer_kept_as<K, J>(&self) -> InformerBuilder<J>
    where
        K: kube::Resource<DynamicType = ()> + 'static,
        J: Send + Sync + 'static,
    {
        let builder = self.informer_for(ApiResource::erase::<K>(&()));
        // The type says of itself whether it has namespaces.
        let cluster_scoped = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        if cluster_scoped { builder.cluster_scoped() } else { builder }
    }

    /// The namespaces, for scopes that select among them.
    fn namespaces(&self) -> SharedInformer<PartialObjectMeta<DynamicObject>> {
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Namespace"), "namespaces");
        self.metadata_for(resource).cluster_scoped().scope(Scope::all()).full()
    }

    /// The informer that was set up, or the one that was made alike before.
    pub(crate) fn get_or_create<K, R>(&self, options: InformerOptions<K>, representation: R) -> SharedInformer<K>
    where
        K: Metadata + Send + Sync + 'static,
        R: Representation<K>,
    {
        let Inner { cluster, settings, registry } = &*self.inner;
        let InformerOptions {
            resource,
            cluster_scoped,
            name,
            intake,
            managed_fields,
            source,
            form,
            optional,
            any_version,
            json,
            ..
        } = options;
        let mut scope = options.scope.unwrap_or_else(|| settings.default_scope.clone());
        if cluster_scoped {
            scope = scope.without_namespaces();
        }
        let mut depends_on = options.depends_on;
        let namespaces = scope.selector().map(|_| self.namespaces());
        depends_on.extend(namespaces.iter().map(SharedInformer::shared));
        let own = intake.filter.is_some() || intake.transform.is_some() || source.is_some();
        let identity = Identity {
            object: TypeId::of::<(K, R)>(),
            form,
            private: own && name.is_none(),
            managed_fields,
            strict: intake.strict,
            resource,
            scope,
            name,
            any_version,
            json,
        };
        let has_source = source.is_some();
        let source = source.unwrap_or_else(|| Arc::new(cluster.clone()));
        let make = |identity: &Arc<Identity>| {
            let (identity, registry) = (Arc::clone(identity), Arc::downgrade(registry));
            let mut settings = settings.clone();
            if has_source {
                // What the cluster serves says nothing of the source.
                settings.availability = None;
            }
            let parts = Parts { source, identity, settings, namespaces, registry };
            Arc::new(Shared::new(parts, Box::new(representation), intake))
        };
        SharedInformer::new(registry.get_or_create(identity, depends_on, optional, make))
    }

    /// Takes in an informer of another factory: it's among [`statuses`](Self::statuses), is waited for with the others,
    /// and is what this factory hands out when it's asked for the like. Whoever made it starts and stops it. If there's
    /// one alike already, that one stays and this does nothing; the answer says whether it was taken in.
    pub fn register<K: Send + Sync + 'static>(&self, informer: &SharedInformer<K>) -> bool {
        self.inner.registry.register(informer.shared())
    }

    /// Starts every informer; it returns at once. They run until the token is cancelled or the factory is
    /// [shut down](Self::shutdown). What's made later begins at once, without another call.
    ///
    /// An informer that [depends](InformerBuilder::depends_on) on others sends its first request when those are synced
    /// or known to be absent.
    ///
    /// # Errors
    /// If it was started before; if it was shut down or the token is cancelled already; if informers depend on each other
    /// in a circle, which the error names; outside a tokio runtime. Nothing is started then, and but for the first two it
    /// may be tried again.
    pub fn start(&self, cancel: &CancellationToken) -> Result<(), StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        Registry::start(&self.inner.registry, runtime, cancel)
    }

    /// Whether it was started. Stays true after a shutdown.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.inner.registry.is_started()
    }

    /// Whether it runs and every informer is synced, or its kind is known to be absent.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let registry = &self.inner.registry;
        registry.is_running() && registry.entries().iter().all(|entry| entry.is_synced_or_absent())
    }

    /// Waits until every informer made so far is synced. One of a kind that's missing is waited for, unless all who asked
    /// for it called it [optional](InformerBuilder::optional), or the kind was
    /// [excluded](Self::set_missing_on_startup).
    ///
    /// # Errors
    /// When the token is cancelled; and at once when an informer can't sync without somebody's help (it isn't started,
    /// has stopped, or is forbidden). The error names every informer that isn't synced, and why. The informers go on,
    /// and this may be called again.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn wait_for_cache_sync(&self, cancel: &CancellationToken) -> Result<(), SyncError> {
        registry::wait_synced(&self.inner.registry.entries(), false, cancel).await
    }

    /// As [`wait_for_cache_sync`](Self::wait_for_cache_sync), but no informer is waited for whose kind is known to be
    /// absent, optional or not.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn wait_for_cache_sync_or_absent(&self, cancel: &CancellationToken) -> Result<(), SyncError> {
        registry::wait_synced(&self.inner.registry.entries(), true, cancel).await
    }

    /// What every informer is doing, in the order they were made. As JSON it's the cache inventory of a process.
    #[must_use]
    pub fn statuses(&self) -> Vec<InformerStatus> {
        self.inner.registry.statuses()
    }

    /// The state of the factory's own watch of CRDs, by which informers of missing kinds learn that they've come; `None`
    /// as long as no kind was missing. Where it's forbidden, kinds are looked for in discovery.
    #[must_use]
    pub fn crd_watch_status(&self) -> Option<InformerStatus> {
        self.inner.registry.crd_watch_status()
    }

    /// All informers in one line, for logs: `deployments.apps/v1 (synced), secrets/v1 (not started)`.
    #[must_use]
    pub fn status_line(&self) -> String {
        let entries = self.inner.registry.entries();
        let each: Vec<_> = entries
            .iter()
            .map(|Entry { informer, .. }| format!("{} ({})", informer.name(), informer.cell().state()))
            .collect();
        each.join(", ")
    }

    /// The names of all informers, in the order they were made.
    #[must_use]
    pub fn registered(&self) -> Vec<String> {
        self.inner.registry.entries().iter().map(|entry| entry.informer.name().to_owned()).collect()
    }

    /// The resources that are missing: excluded by [`set_missing_on_startup`](Self::set_missing_on_startup), or found to
    /// be absent by an informer. Each once, sorted by group, plural and version.
    #[must_use]
    pub fn missing(&self) -> Vec<ApiResource> {
        self.inner.registry.missing()
    }

    /// Whether a resource is among the [missing](Self::missing). Group, version and plural name count.
    #[must_use]
    pub fn is_missing(&self, resource: &ApiResource) -> bool {
        self.inner.registry.missing().iter().any(|missing| registry::is_same_resource(missing, resource))
    }

    /// Says that these resources aren't there: their informers aren't started and nobody waits for them until
    /// [`remove_missing`](Self::remove_missing) is called. It adds to what was said before. An informer that runs already
    /// isn't touched: it finds out by itself.
    ///
    /// There's no need to call this for a CRD that may come later: an informer of a missing kind waits for it. It's for
    /// kinds whose informers shall send nothing.
    pub fn set_missing_on_startup(&self, resources: impl IntoIterator<Item = ApiResource>) {
        self.inner.registry.exclude(resources);
    }

    /// Takes back what [`set_missing_on_startup`](Self::set_missing_on_startup) said of a resource; its informers begin at
    /// once if the factory was started. False if nothing had been said of it.
    pub fn remove_missing(&self, resource: &ApiResource) -> bool {
        self.inner.registry.include(resource)
    }

    /// Stops one informer that nobody needs any more: see [`SharedInformer::stop`].
    ///
    /// # Cancel safety
    /// The informer stops in any case; only the waiting is cut short.
    pub async fn stop_informer<K: Send + Sync + 'static>(&self, informer: &SharedInformer<K>) {
        informer.stop().await;
    }

    /// Stops every informer and waits until all their tasks, and those of their handlers, have ended: first those that
    /// depend on others, then those others. A handler's call that's running is waited for. Afterwards the caches can still
    /// be read; the factory can't be started again. Any number of callers may wait, and again later.
    ///
    /// # Cancel safety
    /// The informers stop in any case; only the waiting is cut short.
    pub async fn shutdown(&self) {
        if let Some(tasks) = self.inner.registry.shut_down() {
            tasks.join().await;
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The last handle: nobody can start or stop the informers any more.
        drop(self.registry.shut_down());
    }
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.registered()).finish()
    }
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

    /// How many objects to ask for in one page of a list. Default, also for 0: 500. Whatever the server sends, no page is
    /// ever held whole in memory.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.settings.page_size = Some(objects).filter(|objects| *objects > 0);
        self
    }

    /// What an informer covers that isn't given a scope of its own. Default: everything. One place thus decides for all
    /// kinds; those without namespaces only take the selectors from it. Informers that this crate makes for itself
    /// (of namespaces, for a scope that selects among them) aren't bound by it.
    pub fn default_scope(mut self, scope: Scope) -> Self {
        self.settings.default_scope = scope;
        self
    }

    /// Whether the server may answer lists from its cache. Default: no.
    ///
    /// By default a list asks for the newest state, in pages, which costs the server reads of its storage: the cache is
    /// then never behind what anybody saw before, and no answer holds more than a page. If this is on, lists are as
    /// client-go's: the first one is as old as the server's cache happens to be (seconds, or minutes on a server that
    /// lags behind; a process that starts again may then see an older state than before), later ones are at least as new
    /// as what this informer saw. The server ignores the limit for the first and isn't given one for the others, unless
    /// [`page_size`](Self::page_size) is set, so one answer holds everything. Streams of the present state aren't
    /// affected: they're at least as new as the moment they're asked for, and come from the cache without its cost.
    pub fn read_from_cache(mut self, on: bool) -> Self {
        self.settings.read_from_cache = on;
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

    /// After how long a silence a watch is taken for dead and opened again where it was. Default: 150 s, two and a half
    /// times what API servers leave between two bookmarks; less than a second counts as a second.
    ///
    /// That's how long a cache can be stale without its informer knowing. It holds from a watch's first bookmark on: of a
    /// server (or a proxy) that sends none, silence says nothing, and a dead watch is found half a minute after the end
    /// that the server was asked for (5 to 10 minutes unless set), or sooner by TCP's keep-alive. Keep it above the
    /// server's interval, else quiet watches are opened again and again.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.settings.idle_timeout = timeout.max(Duration::from_secs(1));
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
        let availability = Arc::new(Availability::new(self.cluster.clone(), &settings));
        settings.availability = Some(Arc::clone(&availability));
        let inner = Inner { cluster: self.cluster, settings, registry: Arc::default() };
        inner.registry.set_availability(availability);
        InformerFactory { inner: Arc::new(inner) }
    }
}
