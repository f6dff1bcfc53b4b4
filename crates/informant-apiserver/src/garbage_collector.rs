//! Garbage collection: an object goes when all its owners are gone, and a deleted owner waits for its dependents or lets
//! them go, as the delete's propagation policy says.
//!
//! [`graph`] knows from the changes who depends on whom and what is worth a look; [`verdict`] decides from the states of an
//! object's owners; this file looks them up and carries the verdict out. Owners are known by uid: another object of the
//! same name is another owner. A name means an object in the dependent's own namespace or in none, so an owner in another
//! namespace counts as absent.

mod graph;
mod verdict;

use serde_json::{Value, json};
use tokio::time::Instant;

use self::graph::Graph;
use self::verdict::{OwnerState, Verdict, verdict};
use crate::controllers::work_set::WorkSet;
use crate::controllers::{MANAGER, ObjectId, Observed};
use crate::object::{self, meta_mut};
use crate::registry::deletion::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
use crate::registry::{Catalog, Registry, Target};
use crate::status::{Reason, Status};
use crate::store::Object;

/// How many objects one round looks at, so that changes and other tasks get their turn.
const ROUND: usize = 256;

/// The garbage collector.
#[derive(Debug, Default)]
pub(crate) struct GarbageCollector {
    graph: Graph,
    work: WorkSet<ObjectId>,
}

/// One entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnerReference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    /// Whether the owner, when it's deleted in the foreground, waits for this object.
    blocks: bool,
}

// === impl GarbageCollector ===

impl GarbageCollector {
    /// Takes notice of a change.
    pub(crate) fn observe(&mut self, observed: Observed<'_>) {
        for id in self.graph.observe(observed) {
            self.work.set(id, observed.now);
        }
    }

    /// Looks at some of the objects that are due.
    pub(crate) fn act(&mut self, registry: &Registry) {
        let now = Instant::now();
        for _ in 0..ROUND {
            let Some(id) = self.work.take(now) else { return };
            match self.collect(registry, &id, now) {
                Ok(()) => self.work.done(&id),
                Err(status) if status.reason == Reason::NotFound => self.work.done(&id),
                Err(status) => {
                    tracing::debug!(resource = %id.storage.plural, key = &*id.key, %status, "an object can't be collected yet");
                    self.work.failed(id, now);
                }
            }
        }
    }

    /// When there's next something to look at.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.work.next_due()
    }

    fn collect(&mut self, registry: &Registry, id: &ObjectId, now: Instant) -> Result<(), Status> {
        let catalog = registry.catalog();
        let (Some(target), Some(object)) = (id.target(&catalog), id.get(registry)) else { return Ok(()) };
        if object::is_terminating(&object) {
            if has_finalizer(&object, ORPHAN) {
                return self.release_dependents(registry, &catalog, &target, &object);
            }
            if has_finalizer(&object, FOREGROUND) {
                return self.await_dependents(registry, &target, &object, now);
            }
            return Ok(());
        }
        let owners = owner_references(&object);
        let states: Vec<(&OwnerReference, OwnerState)> =
            owners.iter().map(|owner| (owner, self.state_of(registry, &catalog, id, owner))).collect();
        match verdict(&states, self.graph.has_dependents(object::uid(&object))) {
            Verdict::Keep => Ok(()),
            Verdict::DropOwners(uids) => edit(registry, &target, &object, |object| drop_owners(object, &uids)),
            Verdict::Delete => delete(registry, &target, &object, policy(&object)),
            Verdict::DeleteInForeground => {
                if self.waits_for_a_waiting_one(registry, &object) {
                    // Each would wait for the other for ever.
                    edit(registry, &target, &object, unblock_owners)?;
                }
                delete_latest(registry, &target, &object, Propagation::Foreground)
            }
        }
    }

    /// What has become of an owner of the object at `id`.
    fn state_of(&self, registry: &Registry, catalog: &Catalog, id: &ObjectId, owner: &OwnerReference) -> OwnerState {
        let Some(resource) = catalog
            .resources()
            .iter()
            .find(|resource| resource.kind == owner.kind && resource.api_version() == owner.api_version)
        else {
            // Its kind isn't served. Nobody knows then, unless it was seen to go.
            return if self.graph.is_gone(&owner.uid) { OwnerState::Absent } else { OwnerState::Unknown };
        };
        let namespace = if resource.namespaced { id.namespace() } else { "" };
        if resource.namespaced && namespace.is_empty() {
            // No namespace can be meant, so nobody can tell which object is.
            return OwnerState::Unknown;
        }
        match registry.store().get(&resource.storage, namespace, &owner.name) {
            Some(found) if object::uid(&found) != owner.uid => OwnerState::Absent,
            Some(found) if object::is_terminating(&found) && has_finalizer(&found, FOREGROUND) => OwnerState::Waiting,
            Some(_) => OwnerState::Present,
            None => OwnerState::Absent,
        }
    }

    /// `Orphan`: the dependents lose their reference to the object, which may then go.
    fn release_dependents(
        &self,
        registry: &Registry,
        catalog: &Catalog,
        target: &Target,
        object: &Object,
    ) -> Result<(), Status> {
        let uids = [object::uid(object).to_owned()];
        for dependent in self.graph.dependents(object::uid(object)) {
            if let (Some(target), Some(found)) = (dependent.target(catalog), dependent.get(registry)) {
                edit(registry, &target, &found, |found| drop_owners(found, &uids))?;
            }
        }
        edit(registry, target, object, |object| drop_finalizer(object, ORPHAN))
    }

    /// `Foreground`: the object may go once no dependent blocks it; until then its dependents are due.
    fn await_dependents(
        &mut self,
        registry: &Registry,
        target: &Target,
        object: &Object,
        now: Instant,
    ) -> Result<(), Status> {
        let uid = object::uid(object);
        let dependents: Vec<ObjectId> = self.graph.dependents(uid).cloned().collect();
        // An object that owns itself would wait for itself.
        let blocks = |id: &ObjectId| {
            id.get(registry)
                .filter(|found| object::uid(found) != uid)
                .is_some_and(|found| owner_references(&found).iter().any(|owner| owner.uid == uid && owner.blocks))
        };
        if !dependents.iter().any(blocks) {
            return edit(registry, target, object, |object| drop_finalizer(object, FOREGROUND));
        }
        for id in dependents {
            // One that waits itself is woken by the changes of its own dependents; two that wait for each other rest.
            if !id.get(registry).is_some_and(|found| is_waiting(&found)) {
                self.work.set(id, now);
            }
        }
        Ok(())
    }

    fn waits_for_a_waiting_one(&self, registry: &Registry, object: &Object) -> bool {
        self.graph.dependents(object::uid(object)).any(|id| id.get(registry).is_some_and(|found| is_waiting(&found)))
    }
}

/// Whether an object waits for its dependents to go before it.
fn is_waiting(object: &Value) -> bool {
    object::is_terminating(object) && has_finalizer(object, FOREGROUND)
}

/// Changes an object, unless another of its name has taken its place.
fn edit(registry: &Registry, target: &Target, object: &Object, change: impl Fn(&mut Value)) -> Result<(), Status> {
    let uid = object::uid(object);
    registry.write_own(target, MANAGER, |object| {
        if object::uid(object) == uid {
            change(object);
        }
    })?;
    Ok(())
}

/// Deletes the object if it's still as the verdict saw it.
fn delete(registry: &Registry, target: &Target, object: &Object, propagation: Propagation) -> Result<(), Status> {
    let options = DeleteOptions {
        resource_version: Some(object::resource_version(object).to_owned()),
        ..delete_options(object, propagation)
    };
    registry.delete(target, &options).map(|_| ())
}

/// Deletes the object also if it has changed meanwhile.
fn delete_latest(
    registry: &Registry,
    target: &Target,
    object: &Object,
    propagation: Propagation,
) -> Result<(), Status> {
    registry.delete(target, &delete_options(object, propagation)).map(|_| ())
}

fn delete_options(object: &Object, propagation: Propagation) -> DeleteOptions {
    DeleteOptions {
        uid: Some(object::uid(object).to_owned()),
        propagation: Some(propagation),
        ..DeleteOptions::default()
    }
}

/// An object that carries a propagation finalizer already is deleted that way.
fn policy(object: &Value) -> Propagation {
    match () {
        () if has_finalizer(object, ORPHAN) => Propagation::Orphan,
        () if has_finalizer(object, FOREGROUND) => Propagation::Foreground,
        () => Propagation::Background,
    }
}

fn has_finalizer(object: &Value, name: &str) -> bool {
    object::finalizers(object).any(|finalizer| finalizer == name)
}

fn drop_finalizer(object: &mut Value, name: &str) {
    let kept: Vec<String> =
        object::finalizers(object).filter(|finalizer| *finalizer != name).map(str::to_owned).collect();
    if let Some(meta) = meta_mut(object) {
        match kept.is_empty() {
            true => meta.remove("finalizers"),
            false => meta.insert("finalizers".to_owned(), json!(kept)),
        };
    }
}

fn drop_owners(object: &mut Value, uids: &[String]) {
    let Some(meta) = meta_mut(object) else { return };
    if let Some(owners) = meta.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        owners.retain(|owner| !uids.iter().any(|uid| owner.get("uid").and_then(Value::as_str) == Some(uid)));
        if owners.is_empty() {
            meta.remove("ownerReferences");
        }
    }
}

fn unblock_owners(object: &mut Value) {
    let owners = meta_mut(object).and_then(|meta| meta.get_mut("ownerReferences")).and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        if let Some(owner) = owner.as_object_mut() {
            owner.insert("blockOwnerDeletion".to_owned(), json!(false));
        }
    }
}

fn owner_references(object: &Value) -> Vec<OwnerReference> {
    let owners = object::at_path(object, "metadata.ownerReferences").and_then(Value::as_array);
    let text = |owner: &Value, field: &str| owner.get(field).and_then(Value::as_str).unwrap_or("").to_owned();
    let read = |owner: &Value| OwnerReference {
        api_version: text(owner, "apiVersion"),
        kind: text(owner, "kind"),
        name: text(owner, "name"),
        uid: text(owner, "uid"),
        blocks: owner.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or(false),
    };
    owners.into_iter().flatten().map(read).collect()
}
