//! Shared informers for Kubernetes: LIST and WATCH into an indexed cache, and on to any number of handlers.
//!
//! An [`InformerFactory`] makes one [`SharedInformer`] per object type, resource and scope. An informer takes in the
//! present state of its resource, follows every change, and holds it in memory: [`Lister`] and [`Index`] read it without
//! a request to the server, handlers are told of each change after the cache shows it.
//!
//! ```no_run
//! use informant_cache::{InformerFactory, ObjectKey};
//! use k8s_openapi::api::core::v1::Pod;
//! use tokio_util::sync::CancellationToken;
//!
//! # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let cancel = CancellationToken::new();
//! let factory = InformerFactory::new(client);
//! let pods = factory.informer::<Pod>().full();
//! let by_node = pods.index("node", |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()));
//! let _handler = pods.on_change(|event| println!("{} {}", event.kind(), event.key()));
//!
//! factory.start(&cancel)?;
//! factory.wait_for_cache_sync(&cancel).await?;
//! let pod = pods.lister().get(&ObjectKey::namespaced("web", "frontend-0"));
//! let on_node = by_node.get(&"node-1".to_owned());
//! # let _ = (pod, on_node);
//!
//! factory.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! What an informer promises (order, loss, staleness, late handlers) is written at [`SharedInformer`]; what it does when
//! the server misbehaves shows in its [`InformerStatus`].
//!
//! The files, in the order an event travels: `request`, `frame` (`json` and `protobuf` read what it cuts), `reflector` (and its state machine), `representation`,
//! `intake`, `delta`, `store` and `indexer`, `event`, `handler`; `lister` and `selector` read (`live_read` asks the server), `shared_informer`,
//! `informer_builder` and `informer_factory` hold it together, `status` tells, `availability` knows which kinds there are.

// So that the derive's code finds this crate in its own tests.
#[cfg(test)]
extern crate self as informant_cache;

mod availability;
mod backoff;
mod clock;
mod cluster;
mod delta;
mod document;
mod durations;
mod error;
mod event;
mod frame;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod handler;
mod head;
mod heap_size;
mod indexer;
mod informer_builder;
mod informer_factory;
mod intake;
mod json;
mod key;
mod lister;
mod lister_watcher;
mod live_read;
mod lock;
mod memory;
mod object;
mod packed;
mod parts;
pub mod projection;
mod protobuf;
mod reflector;
mod representation;
mod request;
mod scope;
mod selector;
mod shared_informer;
mod status;
mod store;
mod task_set;
mod wait_until;

pub use crate::cluster::{Cluster, ClusterError};
pub use crate::document::Document;
pub use crate::durations::Durations;
pub use crate::error::{DecodeError, NotSynced, RequestError, RequestErrorKind, StartError, SyncError};
pub use crate::event::{Event, EventKind, FinalState};
pub use crate::handler::{HandlerBuilder, HandlerHandle, HandlerOptions, OnPanic, Overflow, Remover, Subscription};
pub use crate::indexer::Index;
pub use crate::informer_builder::InformerBuilder;
pub use crate::informer_factory::{InformerFactory, InformerFactoryBuilder};
pub use crate::key::{ObjectKey, ParseKeyError};
pub use crate::lister::{Lister, Lookup, NamespaceLister, Snapshot};
pub use crate::lister_watcher::ListerWatcher;
pub use crate::live_read::LiveReadError;
pub use crate::memory::Memory;
pub use crate::object::{Cached, Metadata, Owner};
pub use crate::packed::PackedObject;
pub use crate::projection::{Projected, Projection, Strings};
pub use crate::representation::{Full, Held, Representation};
pub use crate::scope::{NamespaceSelector, NamespaceSet, Scope};
pub use crate::selector::{ParseSelectorError, Selector};
pub use crate::shared_informer::SharedInformer;
pub use crate::status::{
    AvailabilityCheck, Counters, HandlerStatus, InformerState, InformerStatus, LastError, MissingCause, RelistReason,
    WatchRestartReason,
};
pub use crate::wait_until::WaitUntilError;
/// Makes a struct a [`Projection`](trait@Projection).
pub use informant_derive::Projection;
