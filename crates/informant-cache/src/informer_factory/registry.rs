//! What a factory has made, and how far its life has come.
//!
//! Informers begin when what they depend on is settled, and end in the reverse order. The end comes from outside (the
//! token of the start), from a shutdown or from the last handle's drop; one task waits for any of them and stops level by
//! level, so that the order is the same whatever the cause.

use std::any::TypeId;
use std::sync::{Arc, Mutex, OnceLock};

use kube::api::ApiResource;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::order::levels;
use crate::availability::Availability;
use crate::error::{NotSynced, StartError, SyncError};
use crate::lock::lock;
use crate::scope::Scope;
use crate::shared_informer::{self, AnyInformer, Shared};
use crate::status::{AvailabilityCheck, InformerState, InformerStatus, MissingCause};
use crate::task_set::TaskSet;

#[derive(Default)]
pub(crate) struct Registry {
    /// Lock rank 1.
    inner: Mutex<Inner>,
    /// Cancelled by a shutdown.
    end: CancellationToken,
    /// Starts after the factory and ends after its informers; set when the factory is made.
    availability: OnceLock<Arc<Availability>>,
}

#[derive(Default)]
struct Inner {
    entries: Vec<Entry>,
    life: Life,
    /// Resources that somebody said to be missing.
    excluded: Vec<ApiResource>,
    /// Resources of which it was said that they're held more than once.
    warned: Vec<ApiResource>,
}

#[derive(Default)]
enum Life {
    #[default]
    Made,
    Running {
        tasks: TaskSet,
        /// The token of the start.
        cancel: CancellationToken,
    },
    /// With the tasks, if there ever were any.
    ShutDown(Option<TaskSet>),
}

/// One informer.
#[derive(Clone)]
pub(super) struct Entry {
    identity: Arc<Identity>,
    pub(super) informer: Arc<dyn AnyInformer>,
    depends_on: Vec<Arc<dyn AnyInformer>>,
    /// Somebody needs it: a wait doesn't pass because its kind is missing.
    required: bool,
    /// Somebody said that its kind is missing.
    excluded: bool,
    /// Another factory starts and stops it.
    foreign: bool,
}

/// What makes two requests for an informer the same. The type covers the object's type and its representation.
#[derive(PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) object: TypeId,
    /// The same in words.
    pub(crate) form: &'static str,
    /// Has functions that can't be compared and no name: it's nobody else's.
    pub(crate) private: bool,
    pub(crate) managed_fields: bool,
    pub(crate) strict: bool,
    pub(crate) resource: ApiResource,
    pub(crate) scope: Scope,
    /// As its users name it, `None` for the plain one.
    pub(crate) name: Option<String>,
    /// Whether it follows another version if the resource's isn't served.
    pub(crate) any_version: bool,
    /// Whether protobuf isn't asked for.
    pub(crate) json: bool,
}

impl Registry {
    /// Before anything else is done with it.
    pub(super) fn set_availability(&self, availability: Arc<Availability>) {
        // It's set once.
        let _ = self.availability.set(availability);
    }

    pub(super) fn crd_watch_status(&self) -> Option<InformerStatus> {
        self.availability.get()?.crd_watch_status()
    }

    pub(super) fn get_or_create<K: Send + Sync + 'static>(
        &self,
        identity: Identity,
        depends_on: Vec<Arc<dyn AnyInformer>>,
        optional: bool,
        make: impl FnOnce(&Arc<Identity>) -> Arc<Shared<K>>,
    ) -> Arc<Shared<K>> {
        let identity = Arc::new(identity);
        let mut inner = lock(&self.inner);
        if let Some(position) = inner.entries.iter().position(|entry| entry.identity.is_same(&identity))
            && let Some(entry) = inner.entries.get(position)
            && let Ok(known) = Arc::clone(&entry.informer).into_any().downcast::<Shared<K>>()
        {
            inner.extend(position, depends_on, optional);
            return known;
        }
        let shared = make(&identity);
        let entry = Entry {
            excluded: inner.is_excluded(&identity.resource),
            identity,
            informer: Arc::clone(&shared) as Arc<dyn AnyInformer>,
            depends_on,
            required: !optional,
            foreign: false,
        };
        inner.warn_of_overlap(&entry);
        inner.begin(&entry);
        inner.entries.push(entry);
        shared
    }

    pub(super) fn register(&self, informer: Arc<dyn AnyInformer>) -> bool {
        let identity = informer.identity();
        let mut inner = lock(&self.inner);
        if inner
            .entries
            .iter()
            .any(|entry| Arc::ptr_eq(&entry.identity, &identity) || entry.identity.is_same(&identity))
        {
            return false;
        }
        let entry =
            Entry { identity, informer, depends_on: Vec::new(), required: true, excluded: false, foreign: true };
        inner.entries.push(entry);
        true
    }

    pub(super) fn start(this: &Arc<Self>, runtime: Handle, cancel: &CancellationToken) -> Result<(), StartError> {
        let mut inner = lock(&this.inner);
        match &inner.life {
            _ if this.end.is_cancelled() || cancel.is_cancelled() => return Err(StartError::ShutDown),
            Life::ShutDown(_) => return Err(StartError::ShutDown),
            Life::Running { cancel, .. } if cancel.is_cancelled() => return Err(StartError::ShutDown),
            Life::Running { .. } => return Err(StartError::AlreadyStarted),
            Life::Made => {}
        }
        inner.levels().map_err(|circle| StartError::Cycle { informers: inner.names(&circle) })?;
        let tasks = TaskSet::new(runtime);
        inner.life = Life::Running { tasks: tasks.clone(), cancel: cancel.clone() };
        if let Some(availability) = this.availability.get() {
            availability.start(tasks.part());
        }
        for entry in &inner.entries {
            inner.begin(entry);
        }
        drop(inner);
        let (registry, cancel) = (Arc::clone(this), cancel.clone());
        tasks.spawn(async move {
            tokio::select! {
                // Without meaning: both ask for the same.
                biased;
                () = registry.end.cancelled() => {}
                () = cancel.cancelled() => {}
            }
            registry.stop_all().await;
        });
        Ok(())
    }

    /// Stops what depends on others first. From its first step on nothing new begins.
    async fn stop_all(&self) {
        for level in self.end_life() {
            for informer in &level {
                informer.cancel();
            }
            for tasks in level.iter().filter_map(|informer| informer.tasks()) {
                tasks.join().await;
            }
        }
        if let Some(availability) = self.availability.get() {
            availability.stop();
        }
    }

    /// Lets nothing begin any more, and gives the informers in the order in which they're to stop.
    fn end_life(&self) -> Vec<Vec<Arc<dyn AnyInformer>>> {
        let mut inner = lock(&self.inner);
        inner.life = Life::ShutDown(inner.tasks());
        // What closes a circle after the start isn't taken in, and with one nothing starts.
        let everything = || vec![(0..inner.entries.len()).collect()];
        let levels = inner.levels().unwrap_or_else(|_| everything());
        let own = |position: &usize| {
            inner.entries.get(*position).filter(|entry| !entry.foreign).map(|entry| Arc::clone(&entry.informer))
        };
        levels.iter().rev().map(|level| level.iter().filter_map(own).collect()).collect()
    }

    /// Begins to stop everything, and gives the tasks to wait for.
    pub(super) fn shut_down(&self) -> Option<TaskSet> {
        self.end.cancel();
        let tasks = lock(&self.inner).tasks();
        if tasks.is_none() {
            for informer in self.end_life().into_iter().flatten() {
                informer.cancel();
            }
        }
        tasks
    }

    /// Takes one out, so that a request for the like makes a new one.
    pub(crate) fn forget(&self, informer: &Arc<dyn AnyInformer>) {
        let mut inner = lock(&self.inner);
        let gone = inner.position(informer).map(|position| inner.entries.remove(position));
        drop(inner);
        drop(gone);
    }

    pub(super) fn exclude(&self, resources: impl IntoIterator<Item = ApiResource>) {
        let resources: Vec<_> = resources.into_iter().collect();
        let mut inner = lock(&self.inner);
        for resource in resources {
            if !inner.is_excluded(&resource) {
                inner.excluded.push(resource);
            }
        }
        let Inner { entries, excluded, .. } = &mut *inner;
        for entry in entries {
            let named = excluded.iter().any(|excluded| is_same_resource(excluded, entry.informer.resource()));
            entry.excluded |= named && !entry.foreign && entry.informer.tasks().is_none();
        }
    }

    pub(super) fn include(&self, resource: &ApiResource) -> bool {
        let mut inner = lock(&self.inner);
        let before = inner.excluded.len();
        inner.excluded.retain(|excluded| !is_same_resource(excluded, resource));
        let said = inner.excluded.len() < before;
        for entry in &mut inner.entries {
            if is_same_resource(entry.informer.resource(), resource) {
                entry.excluded = false;
            }
        }
        for entry in inner.entries.iter().filter(|entry| is_same_resource(entry.informer.resource(), resource)) {
            inner.begin(entry);
        }
        said
    }

    pub(super) fn missing(&self) -> Vec<ApiResource> {
        let inner = lock(&self.inner);
        let absent = inner.entries.iter().filter(|entry| entry.informer.cell().state().is_absent());
        let absent = absent.map(|entry| entry.informer.resource());
        let mut missing: Vec<_> = inner.excluded.iter().chain(absent).cloned().collect();
        drop(inner);
        missing.sort_by(|one, other| names(one).cmp(&names(other)));
        missing.dedup_by(|one, other| is_same_resource(one, other));
        missing
    }

    pub(super) fn is_started(&self) -> bool {
        lock(&self.inner).tasks().is_some()
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(&lock(&self.inner).life, Life::Running { cancel, .. } if !cancel.is_cancelled())
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        lock(&self.inner).entries.clone()
    }

    /// The other informers that hold objects of this one, as in `metadata of secrets/v1`.
    pub(crate) fn also_held_as(&self, identity: &Arc<Identity>) -> Vec<String> {
        let inner = lock(&self.inner);
        let others = inner.entries.iter().filter(|entry| !Arc::ptr_eq(&entry.identity, identity));
        let others = others.filter(|entry| entry.identity.overlaps(identity));
        others.map(|entry| entry.identity.describe(entry.informer.name())).collect()
    }

    pub(super) fn statuses(&self) -> Vec<InformerStatus> {
        self.entries().iter().map(|entry| entry.informer.status()).collect()
    }
}

impl Identity {
    fn is_same(&self, other: &Self) -> bool {
        !self.private && self == other
    }

    /// Whether objects of one are also objects of the other, as far as that can be told.
    fn overlaps(&self, other: &Self) -> bool {
        let names = |identity: &Self| (identity.resource.group.clone(), identity.resource.plural.clone());
        names(self) == names(other) && self.scope.overlaps(&other.scope)
    }

    /// As in `metadata of secrets/v1 in namespace "web"`.
    fn describe(&self, name: &str) -> String {
        format!("{} of {name}", self.form)
    }
}

impl Inner {
    /// Says once for each resource that it's held more than once.
    fn warn_of_overlap(&mut self, entry: &Entry) {
        let resource = entry.informer.resource();
        if self.warned.iter().any(|warned| is_same_resource(warned, resource)) {
            return;
        }
        let Some(other) = self.entries.iter().find(|other| other.identity.overlaps(&entry.identity)) else { return };
        tracing::warn!(
            one = %other.identity.describe(other.informer.name()),
            other = %entry.identity.describe(entry.informer.name()),
            "objects are held in memory more than once: two informers cover them"
        );
        self.warned.push(resource.clone());
    }

    /// Starts an informer, if it's time for that and nobody holds it back.
    fn begin(&self, entry: &Entry) {
        if entry.foreign {
            return;
        }
        match &self.life {
            Life::Made => {}
            Life::ShutDown(_) => entry.informer.cancel(),
            Life::Running { .. } if entry.excluded => {
                let since = entry.informer.cell().clock().now();
                entry.informer.cell().set_state(InformerState::Missing {
                    since,
                    cause: MissingCause::Excluded,
                    reason: "its informer isn't started until that's taken back".to_owned(),
                    checked_by: AvailabilityCheck::Program,
                    last_error: None,
                });
            }
            Life::Running { tasks, .. } => Arc::clone(&entry.informer).start(tasks.part(), entry.depends_on.clone()),
        }
    }

    /// Adds what another request for an informer asks of it.
    fn extend(&mut self, position: usize, depends_on: Vec<Arc<dyn AnyInformer>>, optional: bool) {
        let Some(entry) = self.entries.get_mut(position) else { return };
        entry.required |= !optional;
        let before = entry.depends_on.clone();
        for other in depends_on {
            if !entry.depends_on.iter().any(|known| Arc::ptr_eq(known, &other)) {
                entry.depends_on.push(other);
            }
        }
        if !matches!(self.life, Life::Made)
            && let Err(circle) = self.levels()
        {
            tracing::warn!(informers = %self.names(&circle).join(" -> "), "a dependency that would close a circle is ignored");
            if let Some(entry) = self.entries.get_mut(position) {
                entry.depends_on = before;
            }
        }
    }

    fn levels(&self) -> Result<Vec<Vec<usize>>, Vec<usize>> {
        let positions = |entry: &Entry| entry.depends_on.iter().filter_map(|other| self.position(other)).collect();
        levels(&self.entries.iter().map(positions).collect::<Vec<_>>())
    }

    fn position(&self, informer: &Arc<dyn AnyInformer>) -> Option<usize> {
        self.entries.iter().position(|entry| Arc::ptr_eq(&entry.informer, informer))
    }

    fn names(&self, positions: &[usize]) -> Vec<String> {
        let entries = positions.iter().filter_map(|position| self.entries.get(*position));
        entries.map(|entry| entry.informer.name().to_owned()).collect()
    }

    fn is_excluded(&self, resource: &ApiResource) -> bool {
        self.excluded.iter().any(|excluded| is_same_resource(excluded, resource))
    }

    fn tasks(&self) -> Option<TaskSet> {
        match &self.life {
            Life::Made => None,
            Life::Running { tasks, .. } => Some(tasks.clone()),
            Life::ShutDown(tasks) => tasks.clone(),
        }
    }
}

impl Entry {
    pub(super) fn is_synced_or_absent(&self) -> bool {
        self.excluded || self.informer.cell().synced() || self.informer.cell().state().is_absent()
    }

    fn may_be_absent(&self, any: bool) -> bool {
        any || !self.required
    }

    /// Whether a wait passes it by.
    fn passes(&self, absent_passes: bool) -> bool {
        self.excluded
            || self.informer.cell().synced()
            || self.may_be_absent(absent_passes) && self.informer.cell().state().is_absent()
    }

    async fn wait(&self, absent_passes: bool) -> Result<(), NotSynced> {
        if self.excluded {
            return Ok(());
        }
        let (name, cell) = (self.informer.name(), self.informer.cell());
        if self.may_be_absent(absent_passes) {
            shared_informer::wait_synced_or_absent(name, cell).await.map(drop)
        } else {
            shared_informer::wait_synced(name, cell).await
        }
    }
}

/// Waits for all. What's synced is synced, also if the token is cancelled.
pub(super) async fn wait_synced(
    entries: &[Entry],
    absent_passes: bool,
    cancel: &CancellationToken,
) -> Result<(), SyncError> {
    let all = futures::future::try_join_all(entries.iter().map(|entry| entry.wait(absent_passes)));
    let all_synced = tokio::select! {
        biased;
        outcome = all => outcome.is_ok(),
        () = cancel.cancelled() => false,
    };
    if all_synced {
        return Ok(());
    }
    let mut not_synced: Vec<_> = entries
        .iter()
        .filter(|entry| !entry.passes(absent_passes))
        .map(|Entry { informer, .. }| NotSynced {
            informer: informer.name().to_owned(),
            state: informer.cell().state(),
        })
        .collect();
    not_synced.sort_by(|one, other| one.informer.cmp(&other.informer));
    Err(SyncError { not_synced })
}

/// Waits until there's nothing to wait for: it's synced, or its kind is known to be absent, or it has ended.
pub(crate) async fn settled(informer: &dyn AnyInformer) {
    let (mut synced, mut state) = (informer.cell().watch_synced(), informer.cell().watch_state());
    let ended = |state: &InformerState| matches!(state, InformerState::Failed { .. } | InformerState::Stopped);
    tokio::select! {
        biased;
        // An error can't be: the informer is held.
        _ = synced.wait_for(|synced| *synced) => {}
        _ = state.wait_for(|state| state.is_absent() || ended(state)) => {}
    }
}

/// Whether two resources are one for a server.
pub(super) fn is_same_resource(one: &ApiResource, other: &ApiResource) -> bool {
    names(one) == names(other)
}

fn names(resource: &ApiResource) -> (&str, &str, &str) {
    (&resource.group, &resource.plural, &resource.version)
}
