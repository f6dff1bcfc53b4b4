//! Handlers and subscriptions that write down what they're told, and what the lister shows at that moment.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use informant_cache::{Cached, Event, FinalState, HandlerHandle, HandlerOptions, Lister, SharedInformer};
use kube::api::DynamicObject;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::trace::Trace;
use crate::truth::{State, Told, What};

/// One that's told of an informer's events.
pub(crate) struct Observer {
    pub(crate) name: String,
    told: Arc<Mutex<Vec<Told>>>,
    handle: Option<HandlerHandle>,
    /// How much it had been told when it was removed.
    removed_at: Option<usize>,
}

// === impl Observer ===

impl Observer {
    /// A handler that's called.
    pub(crate) fn called(informer: &SharedInformer<DynamicObject>, name: String, bound: usize, trace: &Trace) -> Self {
        let told = Arc::new(Mutex::new(Vec::new()));
        let (to, lister, trace, who) = (Arc::clone(&told), informer.lister(), trace.clone(), name.clone());
        let options = HandlerOptions::named(&name).with_bound(bound);
        let handle = informer.on_change_with(options, move |event| write_down(&event, &lister, &to, &trace, &who));
        Self { name, told, handle: Some(handle), removed_at: None }
    }

    /// A subscription that's polled by somebody who takes this time for each event.
    pub(crate) fn polling(
        informer: &SharedInformer<DynamicObject>,
        name: String,
        bound: usize,
        pace: Duration,
        tasks: &mut JoinSet<()>,
        trace: &Trace,
    ) -> Self {
        let told = Arc::new(Mutex::new(Vec::new()));
        let (to, lister, trace, who) = (Arc::clone(&told), informer.lister(), trace.clone(), name.clone());
        let mut events = informer.subscribe_with(HandlerOptions::named(&name).with_bound(bound));
        tasks.spawn(async move {
            while let Some(event) = events.next().await {
                write_down(&event, &lister, &to, &trace, &who);
                tokio::time::sleep(pace).await;
            }
        });
        Self { name, told, handle: None, removed_at: None }
    }

    /// Removes a handler; afterwards it's told nothing.
    pub(crate) async fn remove(&mut self) -> bool {
        let Some(handle) = self.handle.take() else { return false };
        handle.remove().await;
        self.removed_at = Some(self.told.lock().unwrap().len());
        true
    }

    /// How much it had been told when it was removed.
    pub(crate) fn removed_at(&self) -> Option<usize> {
        self.removed_at
    }

    pub(crate) fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    pub(crate) fn panics(&self) -> u64 {
        self.handle.as_ref().and_then(HandlerHandle::status).map_or(0, |status| status.panics)
    }
}

fn write_down(
    event: &Event<DynamicObject>,
    lister: &Lister<DynamicObject>,
    told: &Mutex<Vec<Told>>,
    trace: &Trace,
    who: &str,
) {
    if !is_ours(event.cached()) {
        return;
    }
    let listed = lister.cached(event.key()).map(|object| identity(&object));
    let what = match event {
        Event::Added { .. } => What::Added,
        Event::Updated { old, .. } => What::Updated { old: identity(old) },
        Event::Deleted { final_state: FinalState::Known, .. } => What::Deleted,
        Event::Deleted { final_state: FinalState::OutOfScope, .. } => What::LeftScope,
        Event::Deleted { .. } => What::Vanished,
    };
    trace.say(who, || {
        let lister = listed.as_ref().map_or_else(|| "nothing".to_owned(), |(_, version)| version.to_string());
        format!("is told {what:?} {:?}; the lister has {lister}", event.cached())
    });
    let state = State::of(&value(event.cached()));
    told.lock().unwrap().push(Told { key: event.key().to_string(), what, state, listed });
}

/// Whether it's an object of the history; the server makes some by itself.
pub(crate) fn is_ours(object: &Cached<DynamicObject>) -> bool {
    object.object().metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key("value"))
}

/// Uid and version.
pub(crate) fn identity(object: &Cached<DynamicObject>) -> (String, u64) {
    (object.uid().to_owned(), object.resource_version().parse().expect("a version is a number"))
}

/// The whole object as JSON.
pub(crate) fn value(object: &Cached<DynamicObject>) -> Value {
    serde_json::to_value(&*object.object()).expect("an object is JSON")
}
