//! What most programs need, to be imported as a whole: `use informant::prelude::*;`.

pub use crate::Projection;
pub use informant_cache::{
    Cluster, ClusterError, Event, HandlerOptions, InformerFactory, InformerState, Lister, NamespaceSelector,
    NamespaceSet, ObjectKey, Scope, SharedInformer,
};
pub use informant_controller::{Action, Controller, Manager};
pub use informant_queue::WorkQueue;
pub use tokio_util::sync::CancellationToken;
