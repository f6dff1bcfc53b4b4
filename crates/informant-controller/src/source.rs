//! What feeds a controller: an informer, the predicates that its events have to pass, and the mapping to keys.

use std::sync::Arc;

use informant_cache::{
    Event, HandlerHandle, HandlerOptions, InformerFactory, ObjectKey, Projection, SharedInformer, StartError,
};
use informant_queue::WorkQueue;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::Predicate;

/// Finds or makes the informer when the controller is put together with its factory.
pub(crate) type FindInformer<W> = Box<dyn FnOnce(&InformerFactory) -> SharedInformer<W> + Send>;

/// Finds or makes the informer of a whole typed resource, its objects kept as they are.
pub(crate) fn full_informer<W>() -> FindInformer<W>
where
    W: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    Box::new(|factory| factory.informer::<W>().full())
}

/// Finds or makes the informer of a projection.
pub(crate) fn projected_informer<V: Projection>() -> FindInformer<V> {
    Box::new(|factory| factory.projection::<V>().projected())
}

/// Starts a factory, if nobody has; else what was added to it has begun by itself.
pub(crate) fn ensure_started(factory: &InformerFactory, cancel: &CancellationToken) -> Result<(), StartError> {
    match factory.start(cancel) {
        Err(StartError::AlreadyStarted) => Ok(()),
        started => started,
    }
}

/// Names the keys that an event concerns.
pub(crate) type Mapping<W> = Arc<dyn Fn(&Event<W>) -> Vec<ObjectKey> + Send + Sync>;

/// A source whose object type doesn't matter.
pub(crate) struct Source {
    attach: Attach,
}

/// Adds the handler, given the factory, the controller's name and its queue.
type Attach = Box<dyn FnOnce(&InformerFactory, &str, &WorkQueue<ObjectKey>) -> Attached + Send>;

/// A source that feeds the queue until it's dropped.
pub(crate) struct Attached {
    /// Name of the informer.
    pub(crate) informer: String,
    pub(crate) handler: HandlerHandle,
}

impl Source {
    pub(crate) fn new<W: Send + Sync + 'static>(
        find: FindInformer<W>,
        predicates: Vec<Predicate<W>>,
        mapping: Mapping<W>,
    ) -> Self {
        let attach = move |factory: &InformerFactory, controller: &str, queue: &WorkQueue<ObjectKey>| {
            let informer = find(factory);
            let queue = queue.clone();
            let options = HandlerOptions::named(format!("controller {controller}"));
            let handler = informer.on_change_with(options, move |event| {
                if predicates.iter().all(|predicate| predicate.passes(&event)) {
                    for key in mapping(&event) {
                        queue.add(key);
                    }
                }
            });
            Attached { informer: informer.name().to_owned(), handler }
        };
        Self { attach: Box::new(attach) }
    }

    pub(crate) fn attach(self, factory: &InformerFactory, controller: &str, queue: &WorkQueue<ObjectKey>) -> Attached {
        (self.attach)(factory, controller, queue)
    }
}
