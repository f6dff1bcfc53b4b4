//! Who depends on whom, learnt from the changes, and what each change makes worth a look. It holds no objects; decisions are
//! made from the store.

use std::collections::{BTreeSet, HashMap};

use super::{OwnerReference, has_finalizer, owner_references};
use crate::controllers::{ObjectId, Observed};
use crate::object;
use crate::registry::deletion::{FOREGROUND, ORPHAN};

/// Dependents by the uid of their owner.
#[derive(Debug, Default)]
pub(super) struct Graph {
    owners: HashMap<String, Owned>,
}

/// What is known around one owner. Kept while there's something to know.
#[derive(Debug, Default)]
struct Owned {
    dependents: BTreeSet<ObjectId>,
    /// Where the owner is, while it's being deleted and its dependents have a say in it.
    held: Option<ObjectId>,
    /// Whether the owner was seen to go.
    gone: bool,
}

// === impl Graph ===

impl Graph {
    /// Takes notice of a change and says what is worth a look because of it.
    pub(super) fn observe(&mut self, observed: Observed<'_>) -> Vec<ObjectId> {
        let before = observed.old.map(owner_references).unwrap_or_default();
        let after = observed.new.map(owner_references).unwrap_or_default();
        let mut worth = Vec::new();
        if before != after {
            self.relate(observed.id, &before, &after, &mut worth);
            if !after.is_empty() {
                worth.push(observed.id.clone());
            }
        }
        match (observed.old, observed.new) {
            (_, Some(new)) => {
                let held =
                    object::is_terminating(new) && (has_finalizer(new, FOREGROUND) || has_finalizer(new, ORPHAN));
                self.hold(object::uid(new), held.then(|| observed.id.clone()), &mut worth);
            }
            (Some(old), None) => self.forget(object::uid(old), &mut worth),
            (None, None) => {}
        }
        worth
    }

    /// The dependents of an owner, in order.
    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = &ObjectId> {
        self.owners.get(uid).into_iter().flat_map(|owned| &owned.dependents)
    }

    /// Whether an owner has dependents.
    pub(super) fn has_dependents(&self, uid: &str) -> bool {
        self.dependents(uid).next().is_some()
    }

    /// Whether an owner was seen to go while it had dependents.
    pub(super) fn is_gone(&self, uid: &str) -> bool {
        self.owners.get(uid).is_some_and(|owned| owned.gone)
    }

    fn relate(
        &mut self,
        id: &ObjectId,
        before: &[OwnerReference],
        after: &[OwnerReference],
        worth: &mut Vec<ObjectId>,
    ) {
        for owner in after {
            let owned = self.owners.entry(owner.uid.clone()).or_default();
            owned.dependents.insert(id.clone());
            worth.extend(owned.held.clone());
        }
        for owner in before.iter().filter(|owner| after.iter().all(|other| other.uid != owner.uid)) {
            if let Some(owned) = self.owners.get_mut(&owner.uid) {
                owned.dependents.remove(id);
                worth.extend(owned.held.clone());
                self.tidy(&owner.uid);
            }
        }
    }

    fn hold(&mut self, uid: &str, held: Option<ObjectId>, worth: &mut Vec<ObjectId>) {
        match held {
            Some(id) => {
                worth.push(id.clone());
                self.owners.entry(uid.to_owned()).or_default().held = Some(id);
            }
            None => {
                if let Some(owned) = self.owners.get_mut(uid) {
                    owned.held = None;
                    self.tidy(uid);
                }
            }
        }
    }

    fn forget(&mut self, uid: &str, worth: &mut Vec<ObjectId>) {
        if let Some(owned) = self.owners.get_mut(uid) {
            owned.held = None;
            owned.gone = true;
            worth.extend(owned.dependents.iter().cloned());
            self.tidy(uid);
        }
    }

    fn tidy(&mut self, uid: &str) {
        if self.owners.get(uid).is_some_and(|owned| owned.dependents.is_empty() && owned.held.is_none()) {
            self.owners.remove(uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::*;
    use crate::resource::StorageId;

    fn id(name: &str) -> ObjectId {
        let storage = StorageId { group: "".into(), plural: "configmaps".into() };
        ObjectId { storage, key: format!("default/{name}").into() }
    }

    fn object(name: &str, owner: Option<&str>) -> Value {
        let owners: Vec<Value> = owner.iter().map(|uid| json!({"uid": uid, "name": uid})).collect();
        json!({"metadata": {"name": name, "uid": name, "ownerReferences": owners}})
    }

    fn observe(graph: &mut Graph, name: &str, old: Option<&Value>, new: Option<&Value>) -> Vec<ObjectId> {
        graph.observe(Observed { id: &id(name), old, new, now: Instant::now() })
    }

    #[test]
    fn an_object_with_owners_and_the_dependents_of_a_deleted_one_are_worth_a_look() {
        let mut graph = Graph::default();
        let (owner, child) = (object("owner", None), object("child", Some("owner")));
        assert_eq!(observe(&mut graph, "owner", None, Some(&owner)), []);
        assert_eq!(observe(&mut graph, "child", None, Some(&child)), [id("child")]);
        assert_eq!(observe(&mut graph, "child", Some(&child), Some(&child)), []);
        assert_eq!(observe(&mut graph, "owner", Some(&owner), None), [id("child")]);
        assert!(graph.is_gone("owner"));
        assert_eq!(observe(&mut graph, "child", Some(&child), None), []);
        assert!(graph.owners.is_empty());
    }

    #[test]
    fn an_owner_that_waits_is_worth_a_look_whenever_a_dependent_goes() {
        let mut graph = Graph::default();
        let child = object("child", Some("owner"));
        observe(&mut graph, "child", None, Some(&child));
        let owner = json!({"metadata": {"uid": "owner", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["foregroundDeletion"]}});
        assert_eq!(observe(&mut graph, "owner", None, Some(&owner)), [id("owner")]);
        let free = object("child", None);
        assert_eq!(observe(&mut graph, "child", Some(&child), Some(&free)), [id("owner")]);
        assert_eq!(observe(&mut graph, "owner", Some(&owner), None), []);
        assert!(graph.owners.is_empty());
    }
}
