//! Controllers and the manager that runs them: what controller-runtime is for Go.
//!
//! A [`Controller`] reconciles one kind of object: whatever happens to such an object, or to one that concerns it, leads to a call of
//! its function with the object's key. A [`Manager`] owns the informers and the controllers of a program, starts them in order, stops
//! them in reverse, and shows at `/healthz`, `/readyz`, `/metrics` and `/katalog` how they are.
//!
//! In the order in which an event travels: [`Predicate`], mapping to keys (`owns`, `watches`), the queue
//! ([`informant_queue`]), a worker, the reconcile function with its [`Request`] and [`Action`].
//!
//! # What it promises
//!
//! - **Level-triggered.** After any event that passes its predicates a key is reconciled once more, from start to end, with listers that
//!   show the state of that event or a later one. States in between may be skipped; the last one never is.
//! - **One at a time.** A key is never reconciled twice at the same time, however many workers there are.
//! - **Nothing too early.** The first reconcile starts when every source of its controller has handed over its whole initial state.
//! - **Failures stay with their key.** An error, a panic or a timeout is counted, shown and retried with the key's own backoff (5 ms doubled
//!   up to 1000 s; ten retries a second for all keys of the controller, a hundred at once); the other keys go on. A terminal error waits for
//!   the next event.
//! - **Failures of one controller stay with it**, as long as it can go on: a missing kind is waited for. Where it can't, the manager stops with
//!   an error that names it, rather than running on with a part.
//! - **Bounded.** The queue holds a key once; there are as many reconciles as workers; a stop takes no longer than its grace period.
//! - **Lost at a stop:** what is queued and not begun. The next start lists everything anew.
//!
//! Beside that, small functions for what reconciles write: owner references ([`set_controller_reference`]), finalizers
//! ([`add_finalizer`]) and conditions ([`set_condition`]).

mod action;
mod admin;
mod clock;
mod condition;
mod controller;
mod controller_error;
mod finalizer;
mod health;
mod katalog;
mod lock;
mod manager;
mod mapping;
mod metrics;
mod owner;
mod predicate;
mod reconcile_error;
mod signals;
mod source;
mod task_set;

pub use action::{Action, Request};
pub use clock::now;
pub use condition::{condition, find_condition, is_condition_true, set_condition};
pub use controller::{
    Controller, ControllerBuilder, ControllerPhase, ControllerStatus, LastError, QueueStatus, ReconcileCounts, Trigger,
};
pub use controller_error::ControllerError;
pub use finalizer::{add_finalizer, finalizer_patch, has_finalizer, remove_finalizer};
pub use informant_queue::{Admission, Backoff, Bucket, RateLimits};
pub use katalog::ManagerStatus;
pub use manager::{Manager, ManagerError, ManagerHandle};
pub use owner::{OwnerError, controller_reference, owner_reference, set_controller_reference, set_owner_reference};
pub use predicate::Predicate;
pub use reconcile_error::ReconcileError;
