//! An embedded Kubernetes API server for tests and development.
//!
//! It's a [`tower`] service first and a listener second: in process it runs under paused time from one seed, on a socket
//! kubectl and any other client use it. It keeps everything in memory, lets everybody do everything, and listens on
//! loopback: **don't run it in production**.
//!
//! It depends on no client and no cache crate, so it can't share their bugs.

mod signal;
pub mod status;

pub mod resource;
pub mod schema;
pub mod scripted;

mod apply;
mod builtin;
mod clock;
mod controllers;
mod crd;
mod crd_controller;
mod discovery;
mod expiry;
mod field_set;
mod garbage_collector;
mod list;
mod listen;
mod managed_fields;
mod name_rules;
mod namespace_controller;
mod object;
mod openapi;
mod patch;
mod protobuf;
mod registry;
mod review;
mod selector;
mod server;
mod service;
mod store;
mod table;
mod task_set;
mod watch;

pub use crate::controllers::ControllerOptions;
pub use crate::list::WatchListSupport;
pub use crate::listen::{ListenError, ListenOptions, Listening};
pub use crate::openapi::{Description, Descriptions};
pub use crate::server::{ApiServer, ApiServerBuilder};
pub use crate::service::ApiService;
pub use crate::service::answer::ResponseBody;
pub use crate::service::user::User;

/// An object of a built-in kind, with its `apiVersion` and `kind`, in protobuf as the server sends it: in its envelope.
/// `None` if the kind isn't known in this form. For programs that play a server, such as the benchmarks'.
#[must_use]
pub fn to_protobuf(object: &serde_json::Value) -> Option<Vec<u8>> {
    protobuf::encode::object(object)
}
