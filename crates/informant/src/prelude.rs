//! What most programs need, to be imported as a whole: `use informant::prelude::*;`.

pub use informant_cache::{Cluster, ClusterError, Event, InformerFactory, Lister, ObjectKey, Scope, SharedInformer};
pub use informant_controller::{Action, Controller, Manager};
pub use informant_queue::WorkQueue;
pub use tokio_util::sync::CancellationToken;
