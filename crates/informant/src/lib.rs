//! Informers, work queues and controllers for Kubernetes, and an embedded API server to run them on.
//!
//! This crate is the facade: it re-exports the parts and adds nothing but the way to start them together.
//!
//! | part | crate | what for |
//! |---|---|---|
//! | [`cache`] | `informant-cache` | LIST and WATCH into an indexed store, and on to any number of handlers |
//! | [`queue`] | `informant-queue` | keys to work on: deduplicated, delayed, backed off, drained |
//! | [`controller`] | `informant-controller` | reconcile loops under a manager: start, stop, health, metrics |
//! | [`apiserver`] | `informant-apiserver` | an API server in the process, for tests and demos (feature `server`) |
//!
//! # Features
//!
//! All are off by default.
//!
//! - `server`: the embedded API server and [`embedded()`].
//!
#![cfg_attr(feature = "server", doc = include_str!("embedded_example.md"))]

/// The README's code, so that it compiles and runs.
#[cfg(all(doctest, feature = "server"))]
#[doc = include_str!("../../../README.md")]
mod readme {}

/// The guide's code, likewise.
#[cfg(all(doctest, feature = "server"))]
#[doc = include_str!("../../../docs/guide/informers.md")]
mod guide {}

#[cfg(all(doctest, feature = "server"))]
#[doc = include_str!("../../../docs/guide/projections.md")]
mod guide_to_projections {}

#[cfg(all(doctest, feature = "server"))]
#[doc = include_str!("../../../docs/guide/memory.md")]
mod guide_to_memory {}

#[cfg(feature = "server")]
mod embedded;
pub mod prelude;

#[cfg(feature = "server")]
pub use embedded::{Embedded, embedded};
#[cfg(feature = "server")]
pub use informant_apiserver as apiserver;
pub use informant_cache as cache;
pub use informant_cache::projection::Projection;
pub use informant_controller as controller;
/// Makes a struct a [`Projection`](trait@Projection): the part of a kind's objects that an informer keeps.
pub use informant_derive::FacadeProjection as Projection;
pub use informant_queue as queue;
pub use kube;
