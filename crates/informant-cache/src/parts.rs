//! Follows an informer's scope: as a whole, or in parts that come and go.
//!
//! Usually one reflector does it. A scope that's a set of namespaces has one for each of them, on one store: they share
//! the informer's task, so there's still one writer, and each concerns itself with its own namespace only. A scope that
//! selects namespaces has one reflector for all of them; what the store shows follows the namespaces' labels.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::future::{AbortHandle, abortable};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use kube::api::{DynamicObject, PartialObjectMeta};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::handler::HandlerOptions;
use crate::informer_factory::Settings;
use crate::lock::lock;
use crate::reflector;
use crate::scope::{NamespaceSelector, NamespaceSet};
use crate::selector::Selector;
use crate::shared_informer::{Shared, SharedInformer};
use crate::status::{InformerState, StatusCell};
use crate::store::Visible;

type Namespaces = SharedInformer<PartialObjectMeta<DynamicObject>>;

/// What one reflector follows: all of an informer, or one namespace of a set.
pub(crate) struct Part<'a> {
    namespace: Option<Arc<str>>,
    all: Option<&'a Parts>,
}

/// How far a batch brings the informer's first state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Changes only.
    Changes,
    /// A part is there for the first time, and others are still missing.
    Part,
    /// With it everything is there.
    Whole,
}

/// The parts of an informer that follows a set of namespaces.
#[derive(Default)]
struct Parts {
    /// Lock rank 5, before the status's.
    inner: Mutex<BTreeMap<Arc<str>, PartState>>,
}

struct PartState {
    state: InformerState,
    synced: bool,
}

/// Keeps an informer up to date until it's cancelled or has failed for good.
pub(crate) async fn run<K: Send + Sync + 'static>(informer: &Shared<K>, cancel: &CancellationToken) {
    let whole = Part { namespace: None, all: None };
    if let Some(set) = informer.scope.set() {
        follow_set(informer, set, cancel).await;
    } else if let (Some(selector), Some(namespaces)) = (informer.scope.selector(), &informer.namespaces) {
        tokio::select! {
            // What's shown is settled before the reflector brings anything.
            biased;
            () = show_selected(informer, selector, namespaces) => {}
            () = reflector::run(informer, &whole, cancel) => {}
        }
    } else {
        reflector::run(informer, &whole, cancel).await;
    }
}

// === sets ===

async fn follow_set<K: Send + Sync + 'static>(informer: &Shared<K>, set: &NamespaceSet, cancel: &CancellationToken) {
    let parts = Parts::default();
    let follow = |namespace: Arc<str>| {
        let part = Part { namespace: Some(namespace), all: Some(&parts) };
        async move { reflector::run(informer, &part, cancel).await }
    };
    let mut wanted = set.watch();
    let mut followed: BTreeMap<Arc<str>, AbortHandle> = BTreeMap::new();
    let mut running = FuturesUnordered::new();
    loop {
        let names: BTreeSet<Arc<str>> = wanted.borrow_and_update().iter().map(|name| Arc::from(&**name)).collect();
        let gone: Vec<_> = followed.keys().filter(|name| !names.contains(*name)).cloned().collect();
        for namespace in gone {
            // From here on it's not polled, so nothing of it comes after what's forgotten now.
            if let Some(handle) = followed.remove(&namespace) {
                handle.abort();
            }
            parts.remove(&namespace);
            informer.remove_namespace(&namespace);
            informer.status.set_undecodable(Some(&namespace), BTreeMap::new());
        }
        for namespace in names {
            let Entry::Vacant(entry) = followed.entry(namespace) else { continue };
            informer.store.add_part(entry.key());
            parts.insert(entry.key());
            let (future, handle) = abortable(follow(Arc::clone(entry.key())));
            entry.insert(handle);
            running.push(future);
        }
        // With nothing to wait for, or no longer, everything is there.
        if parts.all_synced() && !informer.status.synced() {
            informer.publish(Vec::new(), None, Extent::Whole, Instant::now());
        }
        parts.show(&informer.status);
        tokio::select! {
            biased;
            // The informer holds the set, so it can't be gone.
            _ = wanted.changed() => {}
            ended = next_end(&mut running) => {
                // It was cancelled, or it failed for good, and the informer with it. Else a namespace was removed.
                if ended.is_ok() {
                    return;
                }
            }
        }
    }
}

async fn next_end<F: Future>(running: &mut FuturesUnordered<F>) -> F::Output {
    match running.next().await {
        Some(ended) => ended,
        None => std::future::pending().await,
    }
}

// === selectors ===

async fn show_selected<K: Send + Sync + 'static>(
    informer: &Shared<K>,
    selector: &NamespaceSelector,
    namespaces: &Namespaces,
) {
    let mut selector = selector.watch();
    let options = HandlerOptions::named(format!("the scope of {}", informer.name));
    let mut changes = namespaces.subscribe_with(options);
    let mut shown = selected(namespaces, &selector.borrow_and_update());
    informer.set_visible(&shown);
    loop {
        tokio::select! {
            biased;
            // The informer holds the selector, so it can't be gone.
            _ = selector.changed() => {}
            change = changes.next() => if change.is_none() {
                // Somebody stopped the informer of namespaces: what it knew last stays.
                std::future::pending::<()>().await;
            },
        }
        // Many changes at once are one.
        while let Some(Some(_)) = changes.next().now_or_never() {}
        let now = selected(namespaces, &selector.borrow_and_update());
        if now != shown {
            informer.set_visible(&now);
            shown = now;
        }
    }
}

fn selected(namespaces: &Namespaces, selector: &Selector) -> Visible {
    if selector.is_everything() {
        return Visible::All;
    }
    let selected = namespaces.lister().select(selector);
    Visible::only(selected.iter().filter_map(|namespace| namespace.metadata.name.as_deref()))
}

// === impl Part ===

impl Part<'_> {
    /// The namespace, if it's one of several.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The seed of this part's randomness: its own, so that parts don't act in step.
    pub(crate) fn seed(&self, settings: &Settings, informer: &str) -> u64 {
        match &self.namespace {
            None => settings.seed_for(informer),
            Some(namespace) => settings.seed_for(&format!("{informer} {namespace}")),
        }
    }

    /// The state of this part alone.
    pub(crate) fn state(&self, status: &StatusCell) -> InformerState {
        let own = self.with(|parts, namespace| lock(&parts.inner).get(namespace).map(|part| part.state.clone()));
        own.flatten().unwrap_or_else(|| status.state())
    }

    /// Shows the state of this part: as the informer's, or as far as no other part is worse off.
    pub(crate) fn set_state(&self, status: &StatusCell, state: InformerState) {
        let Some(all) = self.all else { return status.set_state(state) };
        self.with(|parts, namespace| {
            if let Some(part) = lock(&parts.inner).get_mut(namespace) {
                part.state = state;
            }
        });
        all.show(status);
    }

    /// Notes that a whole state of this part is there, and says what that means for the informer.
    pub(crate) fn taken_in(&self) -> Extent {
        let extent = self.with(|parts, namespace| {
            let mut inner = lock(&parts.inner);
            let before = inner.get_mut(namespace).is_some_and(|part| std::mem::replace(&mut part.synced, true));
            match inner.values().all(|part| part.synced) {
                true => Extent::Whole,
                false if before => Extent::Changes,
                false => Extent::Part,
            }
        });
        extent.unwrap_or(Extent::Whole)
    }

    fn with<T>(&self, use_it: impl FnOnce(&Parts, &str) -> T) -> Option<T> {
        self.all.zip(self.namespace.as_deref()).map(|(all, namespace)| use_it(all, namespace))
    }
}

// === impl Parts ===

impl Parts {
    fn insert(&self, namespace: &Arc<str>) {
        let part = PartState { state: InformerState::Starting, synced: false };
        lock(&self.inner).insert(Arc::clone(namespace), part);
    }

    fn remove(&self, namespace: &str) {
        lock(&self.inner).remove(namespace);
    }

    fn all_synced(&self) -> bool {
        lock(&self.inner).values().all(|part| part.synced)
    }

    /// The informer is where the part is that's worst off.
    fn show(&self, status: &StatusCell) {
        let inner = lock(&self.inner);
        let worst = inner.iter().max_by_key(|(_, part)| severity(&part.state));
        status.set_state(match worst {
            None => InformerState::Synced,
            Some((namespace, part)) => of_namespace(namespace, part.state.clone()),
        });
    }
}

fn severity(state: &InformerState) -> u8 {
    match state {
        InformerState::Synced => 0,
        InformerState::Listing => 1,
        InformerState::Starting | InformerState::NotStarted => 2,
        InformerState::Waiting { .. } => 3,
        InformerState::Retrying { .. } => 4,
        InformerState::Missing { .. } => 5,
        InformerState::Forbidden { .. } => 6,
        InformerState::Failed { .. } | InformerState::Stopped => 7,
    }
}

/// The same, but that it says of which namespace it's so.
fn of_namespace(namespace: &str, mut state: InformerState) -> InformerState {
    if let InformerState::Missing { reason, .. }
    | InformerState::Forbidden { reason, .. }
    | InformerState::Retrying { reason, .. }
    | InformerState::Failed { reason, .. } = &mut state
    {
        *reason = format!("namespace {namespace:?}: {reason}");
    }
    state
}
