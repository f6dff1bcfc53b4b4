//! The server's own controllers: the part of a cluster's controller manager that no test wants to be without. Garbage
//! collection, the end of namespaces, and what goes by itself when its time is up.
//!
//! One task drives them all from one feed of changes. A controller remembers what to look at, and
//! decides from the objects as they are when it looks; so a change that it hears of late or twice does no harm. What fails
//! is tried again with backoff.

pub(crate) mod work_set;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::expiry::Expiry;
use crate::garbage_collector::GarbageCollector;
use crate::namespace_controller::NamespaceController;
use crate::registry::{Catalog, Registry, Target};
use crate::resource::StorageId;
use crate::service::Shared;
use crate::store::{Change, Object, Scope};
use crate::task_set::TaskSet;

/// Under which name the controllers write.
pub(crate) const MANAGER: &str = "kube-controller-manager";

/// Which of the server's own controllers run. The default is all of them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ControllerOptions {
    /// Deletes objects whose owners are all gone, and carries out the propagation policies `Foreground` and `Orphan`.
    pub garbage_collector: bool,
    /// Empties and removes namespaces that are being deleted.
    pub namespaces: bool,
    /// Removes terminating Pods when their grace period is over, as a kubelet would.
    pub pod_finisher: bool,
    /// How long after its last write an Event is removed; `None` keeps Events. Default one hour.
    pub event_ttl: Option<Duration>,
}

/// An object's place in the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectId {
    /// The kind's place.
    pub(crate) storage: StorageId,
    /// `namespace/name`, or `name` for cluster-scoped kinds.
    pub(crate) key: Arc<str>,
}

/// A change as controllers see it; the first look at what is there already is a change from nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observed<'a> {
    /// The object's place.
    pub(crate) id: &'a ObjectId,
    /// What was there before.
    pub(crate) old: Option<&'a Value>,
    /// What is there now.
    pub(crate) new: Option<&'a Value>,
    /// When it's looked at.
    pub(crate) now: Instant,
}

/// All controllers that run.
struct Controllers {
    garbage_collector: Option<GarbageCollector>,
    namespaces: Option<NamespaceController>,
    expiry: Expiry,
}

/// The controllers' task as the handles of a server hold it: it starts with the first request and ends with the last handle.
#[derive(Debug)]
pub(crate) struct ControllerTask {
    options: ControllerOptions,
    tasks: TaskSet,
    running: Arc<AtomicBool>,
}

/// Takes notice when the task is dropped, be it with the runtime that it ran on: the next request starts it anew.
struct Stopped(Arc<AtomicBool>);

/// Runs the controllers. It never returns; dropping it stops them between two writes.
pub(crate) async fn run(registry: &Registry, options: &ControllerOptions) {
    let store = registry.store();
    let mut feed = store.feed(store.current_rv());
    let mut controllers = Controllers::start(registry, options);
    loop {
        // Work that makes more work must still let others run.
        tokio::task::consume_budget().await;
        controllers.act(registry);
        let next_due = controllers.next_due();
        tokio::select! {
            // Changes first: what they say may make the due work needless.
            biased;
            changes = feed.next() => match changes {
                Ok(changes) => changes.iter().for_each(|(storage, change)| controllers.observe(storage, change, registry)),
                // Changes are lost, so begin as at the start.
                Err(_) => controllers = Controllers::start(registry, options),
            },
            () = sleep_until_some(next_due) => {}
        }
    }
}

/// Sleeps for ever when there is nothing to sleep for, so that paused time has nothing to jump to.
async fn sleep_until_some(wake_at: Option<Instant>) {
    match wake_at {
        Some(wake_at) => sleep_until(wake_at).await,
        None => std::future::pending().await,
    }
}

// === impl ControllerOptions ===

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            garbage_collector: true,
            namespaces: true,
            pod_finisher: true,
            event_ttl: Some(Duration::from_secs(3600)),
        }
    }
}

impl ControllerOptions {
    /// No controller at all: what is deleted leaves its dependents, and namespaces stay in `Terminating`, as on a bare
    /// kube-apiserver.
    pub fn none() -> Self {
        Self { garbage_collector: false, namespaces: false, pod_finisher: false, event_ttl: None }
    }
}

// === impl ControllerTask ===

impl ControllerTask {
    pub(crate) fn new(options: ControllerOptions) -> Self {
        Self { options, tasks: TaskSet::default(), running: Arc::default() }
    }

    /// Starts the controllers unless they run. To be called within a runtime; it lives as long as that.
    pub(crate) fn start(&self, shared: &Arc<Shared>) {
        if self.running.swap(true, Ordering::AcqRel) {
            return;
        }
        let stopped = Stopped(Arc::clone(&self.running));
        // The task holds no handle of the server, or the last one would never go.
        let (shared, options) = (Arc::clone(shared), self.options.clone());
        self.tasks.spawn(async move {
            let _stopped = stopped;
            run(&shared.registry, &options).await;
        });
    }
}

impl Drop for ControllerTask {
    fn drop(&mut self) {
        self.tasks.abandon();
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

// === impl ObjectId ===

impl ObjectId {
    /// The namespace; empty for cluster-scoped kinds.
    pub(crate) fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }

    /// Whether it's of this built-in kind.
    pub(crate) fn is_of(&self, group: &str, plural: &str) -> bool {
        &*self.storage.group == group && &*self.storage.plural == plural
    }

    /// The object as a write names it; `None` when its kind isn't served any more.
    pub(crate) fn target(&self, catalog: &Catalog) -> Option<Target> {
        let served = Arc::clone(catalog.find_storage(&self.storage)?);
        Some(Target {
            served,
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
            subresource: String::new(),
        })
    }

    /// The object as it is now.
    pub(crate) fn get(&self, registry: &Registry) -> Option<Object> {
        registry.store().get(&self.storage, self.namespace(), self.name())
    }
}

// === impl Controllers ===

impl Controllers {
    /// Controllers that have seen everything that is there.
    fn start(registry: &Registry, options: &ControllerOptions) -> Self {
        let mut controllers = Self {
            garbage_collector: options.garbage_collector.then(GarbageCollector::default),
            namespaces: options.namespaces.then(NamespaceController::default),
            expiry: Expiry::new(options.pod_finisher, options.event_ttl),
        };
        let store = registry.store();
        for storage in store.storages() {
            for object in store.present(&storage, &Scope::default()).objects {
                let id = ObjectId { storage: storage.clone(), key: object.key() };
                controllers.tell(Observed { id: &id, old: None, new: Some(&object), now: Instant::now() }, registry);
            }
        }
        controllers
    }

    fn observe(&mut self, storage: &StorageId, change: &Change, registry: &Registry) {
        let id = ObjectId { storage: storage.clone(), key: change.shared_key() };
        let (old, new) = (change.old().map(Object::value), change.new_object().map(Object::value));
        self.tell(Observed { id: &id, old, new, now: Instant::now() }, registry);
    }

    fn tell(&mut self, observed: Observed<'_>, registry: &Registry) {
        if let Some(garbage_collector) = &mut self.garbage_collector {
            garbage_collector.observe(observed);
        }
        if let Some(namespaces) = &mut self.namespaces {
            namespaces.observe(observed);
        }
        self.expiry.observe(observed, registry.clock().now());
    }

    /// Does some of the work that is due.
    fn act(&mut self, registry: &Registry) {
        if let Some(garbage_collector) = &mut self.garbage_collector {
            garbage_collector.act(registry);
        }
        if let Some(namespaces) = &mut self.namespaces {
            namespaces.act(registry);
        }
        self.expiry.act(registry);
    }

    fn next_due(&self) -> Option<Instant> {
        let garbage = self.garbage_collector.as_ref().and_then(GarbageCollector::next_due);
        let namespaces = self.namespaces.as_ref().and_then(NamespaceController::next_due);
        [garbage, namespaces, self.expiry.next_due()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
