//! A shared informer: one list and watch of a resource, one cache, any number of readers and handlers.
//!
//! Its promises are written here; what keeps them is in `shared`.

mod any;
mod handlers;
mod shared;
mod waiting;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;

use kube::api::ApiResource;
use serde::Serialize;
use tokio::sync::watch;

pub(crate) use self::any::AnyInformer;
pub(crate) use self::shared::{Parts, Shared};
pub(crate) use self::waiting::{wait_synced, wait_synced_or_absent};
use crate::error::NotSynced;
use crate::event::Event;
use crate::handler::{HandlerBuilder, HandlerHandle, HandlerOptions, Subscription};
use crate::indexer::Index;
use crate::lister::{Coverage, Lister};
use crate::memory::Memory;
use crate::object::Cached;
use crate::projection::Projection;
use crate::scope::Scope;
use crate::status::{InformerState, InformerStatus};
use crate::store::Store;

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
        let (index, failures) =
            Index::add(&self.shared.store, name, move |object: &Cached<K>| function(&object.object()));
        self.shared.count_failures(failures);
        index
    }

    /// As [`index`](Self::index), of a few fields of the object: the [`Projection`] says which. So an informer that keeps its
    /// objects packed needn't decode them for the index. An object whose fields can't be read is missing in the index and
    /// named by [`Index::unindexed`].
    #[must_use = "dropping the index removes it"]
    pub fn index_on<P, V, I>(&self, name: &str, function: impl Fn(&P) -> I + Send + Sync + 'static) -> Index<K, V>
    where
        K: Serialize,
        P: Projection,
        V: Eq + Hash + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        let function = move |object: &Cached<K>| object.project::<P>().map(|part| function(&part));
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

    /// What it holds in memory. Cost: by the number of namespaces, index values and waiting events, not of objects.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.shared.memory()
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
    /// forbidden. The informer goes on (it also tries again if forbidden), and this may be called again. A cache that was
    /// complete once is no error, also after the informer has stopped.
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
