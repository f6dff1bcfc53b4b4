//! The end of a namespace: everything in it is deleted, of every namespaced kind; when nothing is left, its finalizer comes
//! off and it goes. What holds things up is told in the namespace's conditions.

mod conditions;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use self::conditions::{Remaining, merge};
use crate::controllers::work_set::WorkSet;
use crate::controllers::{MANAGER, ObjectId, Observed};
use crate::object;
use crate::registry::deletion::{DeleteOptions, Propagation};
use crate::registry::{Catalog, Registry, Target};
use crate::resource::StorageId;
use crate::status::{Reason, Status};
use crate::store::{Object, Scope};

/// How many objects one round deletes, so that changes and other tasks get their turn.
const ROUND: usize = 512;

/// The finalizer in `spec.finalizers` that this controller answers for.
const FINALIZER: &str = "kubernetes";

/// The namespace controller.
#[derive(Debug, Default)]
pub(crate) struct NamespaceController {
    /// The namespaces that are being deleted.
    terminating: BTreeSet<String>,
    work: WorkSet<String>,
}

/// How far a namespace has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// There's more to delete at once.
    Busy,
    /// What is left goes by itself or waits for others; its changes will be observed.
    Waiting,
    /// The namespace is gone, or not being deleted at all.
    Done,
}

// === impl NamespaceController ===

impl NamespaceController {
    /// Takes notice of a change.
    pub(crate) fn observe(&mut self, observed: Observed<'_>) {
        let Observed { id, old, new, now } = observed;
        if id.is_of("", "namespaces") {
            if new.is_some_and(object::is_terminating) {
                self.terminating.insert(id.name().to_owned());
                self.work.set(id.name().to_owned(), now);
            } else if self.terminating.remove(id.name()) {
                self.work.remove(&id.name().to_owned());
            }
            return;
        }
        let finalizers = |object: &Value| object::finalizers(object).map(str::to_owned).collect::<Vec<_>>();
        let matters = old.map(finalizers) != new.map(finalizers);
        if matters && self.terminating.contains(id.namespace()) {
            self.work.set(id.namespace().to_owned(), now);
        }
    }

    /// Works on the namespaces that are due.
    pub(crate) fn act(&mut self, registry: &Registry) {
        let now = Instant::now();
        let mut left = ROUND;
        while left > 0 {
            let Some(name) = self.work.take(now) else { return };
            match empty(registry, &name, &mut left) {
                Ok(Progress::Busy) => self.work.set(name, now),
                Ok(Progress::Waiting | Progress::Done) => self.work.done(&name),
                Err(status) if status.reason == Reason::NotFound => self.work.done(&name),
                Err(status) => {
                    tracing::debug!(namespace = name, %status, "a namespace can't be emptied yet");
                    self.work.failed(name, now);
                }
            }
        }
    }

    /// When there's next something to do.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.work.next_due()
    }
}

/// Deletes what is in a namespace, at most `left` objects, and finalizes it once it's empty.
fn empty(registry: &Registry, name: &str, left: &mut usize) -> Result<Progress, Status> {
    let catalog = registry.catalog();
    let storage = StorageId { group: "".into(), plural: "namespaces".into() };
    let id = ObjectId { storage, key: Arc::from(name) };
    let (Some(target), Some(namespace)) = (id.target(&catalog), id.get(registry)) else { return Ok(Progress::Done) };
    if !object::is_terminating(&namespace) {
        return Ok(Progress::Done);
    }
    // Once for a namespace that has nothing to delete, so that the loop in `act` ends.
    *left -= 1;
    // One object that can't be deleted doesn't keep the others.
    let mut outcome = Ok(());
    for (id, object) in content(registry, &catalog, name) {
        if object::is_terminating(&object) {
            continue;
        }
        if *left == 0 {
            return Ok(Progress::Busy);
        }
        *left -= 1;
        outcome = outcome.and(delete(registry, &catalog, &id, &object));
    }
    let remaining = Remaining::count(content(registry, &catalog, name));
    report(registry, &target, &namespace, &remaining)?;
    outcome?;
    if !remaining.is_empty() {
        return Ok(Progress::Waiting);
    }
    let finalize = Target { subresource: "finalize".to_owned(), ..target };
    write(registry, &finalize, &namespace, drop_finalizer)?;
    Ok(Progress::Done)
}

/// Everything that is in a namespace.
fn content(registry: &Registry, catalog: &Catalog, name: &str) -> Vec<(ObjectId, Object)> {
    let scope = Scope::namespace(name);
    let mut content = Vec::new();
    for served in catalog.storages().filter(|served| served.resource.namespaced) {
        let storage = &served.resource.storage;
        let objects = registry.store().present(storage, &scope).objects;
        content.extend(
            objects.into_iter().map(|object| (ObjectId { storage: storage.clone(), key: object.key() }, object)),
        );
    }
    content
}

fn delete(registry: &Registry, catalog: &Catalog, id: &ObjectId, object: &Object) -> Result<(), Status> {
    let Some(target) = id.target(catalog) else { return Ok(()) };
    let options = DeleteOptions {
        uid: Some(object::uid(object).to_owned()),
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    match registry.delete(&target, &options) {
        Err(status) if status.reason != Reason::NotFound => Err(status),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Writes the conditions into the namespace's status.
fn report(registry: &Registry, target: &Target, namespace: &Object, remaining: &Remaining) -> Result<(), Status> {
    let status = Target { subresource: "status".to_owned(), ..target.clone() };
    let now = registry.clock().now_seconds();
    write(registry, &status, namespace, |namespace| {
        let known = object::at_path(namespace, "status.conditions").and_then(Value::as_array).cloned();
        let conditions = merge(known.unwrap_or_default(), remaining.conditions(), &now);
        if let Some(root) = namespace.as_object_mut() {
            let status = root.entry("status").or_insert_with(|| json!({}));
            if let Some(status) = status.as_object_mut() {
                status.insert("conditions".to_owned(), Value::Array(conditions));
            }
        }
    })
}

/// Changes the namespace, unless another of its name has taken its place.
fn write(registry: &Registry, target: &Target, namespace: &Object, change: impl Fn(&mut Value)) -> Result<(), Status> {
    let uid = object::uid(namespace);
    registry.write_own(target, MANAGER, |namespace| {
        if object::uid(namespace) == uid {
            change(namespace);
        }
    })?;
    Ok(())
}

fn drop_finalizer(namespace: &mut Value) {
    let finalizers = namespace.get_mut("spec").and_then(|spec| spec.get_mut("finalizers"));
    if let Some(finalizers) = finalizers.and_then(Value::as_array_mut) {
        finalizers.retain(|finalizer| finalizer.as_str() != Some(FINALIZER));
    }
}
