//! From CRDs to served resources: conditions, the catalog, the end of watches, and the cleanup of a deleted CRD's objects.
//!
//! It runs within the write that causes it, so a CRD is served when its create is answered.

use std::sync::PoisonError;

use serde_json::Value;

use crate::crd::CLEANUP_FINALIZER;
use crate::crd_controller;
use crate::object;
use crate::registry::deletion::DeleteOptions;
use crate::registry::{Deleted, Registry, Target};
use crate::resource::StorageId;
use crate::status::Status;
use crate::store::{Object, Scope};

/// Each round may cause the next (an accepted name makes another's clash vanish); more than this is a defect.
const MAX_ROUNDS: usize = 64;

impl Registry {
    /// Brings conditions, catalog and cleanup in line with the CRDs.
    pub(super) fn sync_crds(&self) {
        let _turn = self.crd_turn.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..MAX_ROUNDS {
            let crds = self.all(&crd_storage());
            let mut changed = false;
            for crd in &crds {
                changed |= self.reconcile_crd(crd, &crds);
            }
            self.serve(&self.all(&crd_storage()));
            for crd in crds.iter().filter(|crd| crd_controller::awaits_cleanup(crd)) {
                changed |= self.clean_up_crd(crd);
            }
            if !changed {
                return;
            }
        }
        tracing::error!("the CRDs didn't come to rest after {MAX_ROUNDS} rounds");
    }

    fn reconcile_crd(&self, crd: &Object, crds: &[Object]) -> bool {
        let others: Vec<&Value> =
            crds.iter().filter(|other| object::name(other) != object::name(crd)).map(Object::value).collect();
        match crd_controller::reconcile(crd, &others, &self.clock.now_seconds()) {
            Some(status) => {
                let mut next = crd.value().clone();
                if let Some(root) = next.as_object_mut() {
                    root.insert("status".into(), status);
                }
                self.store.update(&crd_storage(), next, crd.resource_version()).is_ok()
            }
            None => false,
        }
    }

    /// Makes the catalog that goes with the CRDs, and ends the watches of what looks different now.
    fn serve(&self, crds: &[Object]) {
        match self.catalog().with_crds(crds) {
            Ok((catalog, ended)) => {
                self.replace_catalog(catalog);
                for storage in ended {
                    self.store.end_watches(&storage);
                }
            }
            Err(status) => tracing::error!(%status, "an established CRD can't be served"),
        }
    }

    /// Deletes the objects of a CRD that is being deleted, then lets go of the CRD. Says whether the CRD is gone.
    fn clean_up_crd(&self, crd: &Object) -> bool {
        let group = object::at_path(crd, "spec.group").and_then(Value::as_str).unwrap_or("");
        let plural = object::at_path(crd, "spec.names.plural").and_then(Value::as_str).unwrap_or("");
        let catalog = self.catalog();
        let served = catalog.storages().find(|served| {
            served.resource.custom && served.resource.group == group && served.resource.plural == plural
        });
        if let Some(served) = served {
            for instance in self.all(&served.resource.storage) {
                let target = Target {
                    served: served.clone(),
                    namespace: object::namespace(&instance).to_owned(),
                    name: object::name(&instance).to_owned(),
                    subresource: String::new(),
                };
                if !object::is_terminating(&instance) {
                    // A race with another delete is as good.
                    let _: Result<Deleted, Status> = self.delete_once(&target, &DeleteOptions::default());
                }
            }
            if self.store.object_count(&served.resource.storage) > 0 {
                return false;
            }
        }
        self.release_crd(crd)
    }

    /// Takes the cleanup finalizer off; with the last one the CRD goes.
    fn release_crd(&self, crd: &Object) -> bool {
        let Some(current) = self.store.get(&crd_storage(), "", object::name(crd)) else { return false };
        let kept: Vec<&str> =
            object::finalizers(&current).filter(|finalizer| *finalizer != CLEANUP_FINALIZER).collect();
        let version = current.resource_version();
        if kept.is_empty() {
            return self.store.delete(&crd_storage(), "", object::name(crd), Some(version)).is_ok();
        }
        let mut next = current.value().clone();
        object::set_meta(&mut next, "finalizers", serde_json::json!(kept));
        self.store.update(&crd_storage(), next, version).is_ok()
    }

    /// Every object of a kind, in order of key.
    pub(super) fn all(&self, storage: &StorageId) -> Vec<Object> {
        self.store.present(storage, &Scope::default()).objects
    }
}

fn crd_storage() -> StorageId {
    StorageId { group: "apiextensions.k8s.io".into(), plural: "customresourcedefinitions".into() }
}
