//! Controllers and the manager that runs them: what controller-runtime is for Go.
//!
//! A [`Controller`] reconciles one kind of object: whatever happens to such an object, or to one that concerns it, leads to a call of
//! its function with the object's key. A [`Manager`] owns the informers and the controllers of a program, starts them in order, stops
//! them in reverse, and shows at `/healthz`, `/readyz`, `/metrics` and `/katalog` how they are.
//!
//! In the order in which an event travels: [`Predicate`], mapping to keys (`owns`, `watches`), the queue
//! ([`informant_queue`]), a worker, the reconcile function with its [`Request`] and [`Action`].
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
