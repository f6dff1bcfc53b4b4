//! Delete: what [`deletion::decide`](super::deletion::decide) says, committed.

use serde_json::{Value, json};

use crate::object;
use crate::registry::deletion::{self, DeleteOptions, Outcome};
use crate::registry::{ATTEMPTS, Registry, Target, stale, write_error};
use crate::status::Status;
use crate::store::WriteError;

/// The outcome of a delete; the object is as the deleted resource shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Value),
    /// Something holds the object: it's marked and stays for now.
    Marked(Value),
}

impl Registry {
    /// Deletes the object at `target`, or marks it when finalizers or its grace period hold it.
    ///
    /// # Errors
    /// 403 for a namespace that can't be deleted, 404, 409 when a precondition fails.
    pub(crate) fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Deleted, Status> {
        let deleted = self.delete_once(target, options)?;
        if !options.dry_run {
            self.after_write(target, matches!(deleted, Deleted::Gone(_)));
        }
        Ok(deleted)
    }

    /// The delete alone, without what follows from it.
    pub(super) fn delete_once(&self, target: &Target, options: &DeleteOptions) -> Result<Deleted, Status> {
        let resource = target.resource();
        deletion::check_allowed(resource, &target.name)?;
        for _ in 0..ATTEMPTS {
            let current = self.get(target)?;
            options.check(resource, &current)?;
            let outcome = deletion::decide(resource, &current, options, self.clock.now());
            let expected = current.resource_version();
            let show = |object: &Value| target.served.view(object).into_owned();
            if options.dry_run {
                return Ok(match outcome {
                    Outcome::Remove(last) => Deleted::Gone(show(&last)),
                    Outcome::Mark(marked) => Deleted::Marked(show(&marked)),
                    Outcome::Unchanged => Deleted::Marked(show(&current)),
                });
            }
            let done = match outcome {
                Outcome::Remove(mut last) => self
                    .store
                    .delete(target.storage(), &target.namespace, &target.name, Some(expected))
                    .map(|deleted| {
                        object::set_meta(&mut last, "resourceVersion", json!(object::resource_version(&deleted)));
                        Deleted::Gone(show(&last))
                    }),
                Outcome::Mark(marked) => {
                    self.store.update(target.storage(), marked, expected).map(|stored| Deleted::Marked(show(&stored)))
                }
                Outcome::Unchanged => Ok(Deleted::Marked(show(&current))),
            };
            match done {
                Ok(deleted) => return Ok(deleted),
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(write_error(resource, &target.name, error)),
            }
        }
        Err(stale(resource, &target.name))
    }
}
