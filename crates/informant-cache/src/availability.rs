//! Whether the server serves a kind, asked when it refused one: a state to be in, not an error to repeat.
//!
//! A 404 may mean many things: no such kind, not yet, in another version, in another scope, or a proxy that knows nothing.
//! [`Availability::check`] tells them apart, [`Availability::changed`] wakes who waits. Both rest on one watch of CRDs
//! for the whole factory, started when it's first needed; where that's not to be had (it's forbidden, or the kind has no
//! CRD), on the server's discovery documents, which have to be asked again and again.
//!
//! What is decided is pure, in [`verdict`]; the waiting and the pace are the reflector's.

mod crd;
mod discovery;
mod verdict;

use std::any::TypeId;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use kube::api::{ApiResource, GroupVersionKind};
use tokio::sync::{Semaphore, watch};

use self::crd::{CrdFacts, CrdForm};
pub(crate) use self::verdict::{Absence, Sight, Verdict, Wanted};
use crate::cluster::Cluster;
use crate::handler::HandlerHandle;
use crate::informer_factory::{Identity, Settings};
use crate::intake::Intake;
use crate::key::ObjectKey;
use crate::scope::Scope;
use crate::shared_informer::{AnyInformer, Parts, Shared, SharedInformer};
use crate::status::{AvailabilityCheck, InformerState, InformerStatus, MissingCause};
use crate::task_set::TaskSet;

/// How long the first answer to the watch of CRDs is waited for; then discovery has to do.
const CRDS_PATIENCE: Duration = Duration::from_secs(20);
/// Discovery requests at a time.
const DISCOVERIES_MAX: usize = 4;

/// Knows, for all informers of a factory, which kinds the server serves.
pub(crate) struct Availability {
    cluster: Cluster,
    /// Of the watch of CRDs.
    settings: Settings,
    /// Where to run the watch of CRDs; set by the start of the factory.
    tasks: OnceLock<TaskSet>,
    crds: OnceLock<CrdWatch>,
    discoveries: Semaphore,
}

/// The watch of CRDs: an informer as any other.
struct CrdWatch {
    informer: Arc<Shared<CrdFacts>>,
    /// Told of each change, after the store shows it.
    changed: watch::Sender<()>,
    _handler: HandlerHandle,
}

// === impl Availability ===

impl Availability {
    /// It does nothing until it's asked.
    pub(crate) fn new(cluster: Cluster, settings: &Settings) -> Self {
        // It mustn't wait for the turn of those that wait for it.
        let list_slots = Arc::new(Semaphore::new(1));
        let settings = Settings { availability: None, list_slots, ..settings.clone() };
        let discoveries = Semaphore::new(DISCOVERIES_MAX);
        Self { cluster, settings, tasks: OnceLock::new(), crds: OnceLock::new(), discoveries }
    }

    /// From now on the watch of CRDs may be started.
    pub(crate) fn start(&self, tasks: TaskSet) {
        // Where it runs is decided once.
        let _ = self.tasks.set(tasks);
    }

    /// Begins to stop. Nobody may be asking any more.
    pub(crate) fn stop(&self) {
        if let Some(crds) = self.crds.get() {
            AnyInformer::cancel(&*crds.informer);
        }
    }

    /// The state of the watch of CRDs; `None` as long as nobody needed it.
    pub(crate) fn crd_watch_status(&self) -> Option<InformerStatus> {
        self.crds.get().map(|crds| AnyInformer::status(&*crds.informer))
    }

    /// Whether the server serves what's wanted, and what the watch of CRDs knew of it. `refused`: a request for it was
    /// just answered with a 404, so a CRD that looks well isn't proof enough.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn check(&self, wanted: &Wanted, refused: bool) -> (Verdict, Sight) {
        if wanted.may_be_custom() {
            self.watch_crds().await;
        }
        let sight = self.sight(wanted);
        let verdict = match &sight {
            Sight::Crd(Verdict::Served) if !refused => Verdict::Served,
            Sight::Crd(Verdict::Served) => match self.discover(wanted).await {
                Verdict::Absent(absence) => Verdict::Absent(Absence {
                    cause: MissingCause::NotEstablished,
                    reason: format!(
                        "the CRD {} is established, but the server doesn't serve it yet: {}",
                        wanted.crd_name(),
                        absence.reason
                    ),
                    ..absence
                }),
                other => other,
            },
            Sight::Crd(verdict) => verdict.clone(),
            Sight::NoCrd => match self.discover(wanted).await {
                Verdict::Absent(absence) if absence.cause == MissingCause::NoSuchKind => Verdict::Absent(Absence {
                    reason: format!("there's no CRD {}, and {}", wanted.crd_name(), absence.reason),
                    checked_by: AvailabilityCheck::CrdWatch,
                    ..absence
                }),
                other => other,
            },
            Sight::Unwatched => match (self.discover(wanted).await, self.crds.get()) {
                (Verdict::Absent(mut absence), Some(crds)) => {
                    absence.reason.push_str(&format!("; CRDs can't be watched: {}", crds.informer.status.state()));
                    Verdict::Absent(absence)
                }
                (verdict, _) => verdict,
            },
        };
        (verdict, sight)
    }

    /// Waits until the watch of CRDs knows something else of what's wanted than it did. A change of a CRD that doesn't
    /// concern this wakes nobody, and nothing is asked of the server.
    ///
    /// # Cancel safety
    /// Nothing is lost: the next call compares again.
    pub(crate) async fn changed(&self, wanted: &Wanted, before: &Sight) {
        let Some(crds) = self.crds.get() else { return std::future::pending().await };
        let mut changed = crds.changed.subscribe();
        while self.sight(wanted) == *before {
            if changed.changed().await.is_err() {
                // The sender lives as long as this does.
                return std::future::pending().await;
            }
        }
    }

    fn sight(&self, wanted: &Wanted) -> Sight {
        let crds = self.crds.get().filter(|crds| wanted.may_be_custom() && crds.is_current());
        let Some(crds) = crds else { return Sight::Unwatched };
        let key = ObjectKey::cluster(&wanted.crd_name());
        match crds.informer.store.get(key.as_str()) {
            Some(crd) => Sight::Crd(verdict::by_crd(wanted, &crd.object())),
            None => Sight::NoCrd,
        }
    }

    async fn discover(&self, wanted: &Wanted) -> Verdict {
        // The semaphore is never closed, and an error would only mean one request more at a time.
        let _permit = self.discoveries.acquire().await.ok();
        match discovery::offers(&self.cluster, wanted).await {
            Ok(offers) => verdict::by_discovery(wanted, &offers),
            Err(error) => Verdict::Unknown(error),
        }
    }

    /// Starts the watch of CRDs if that's not done, and waits until it's known whether it works.
    async fn watch_crds(&self) {
        let Some(tasks) = self.tasks.get() else { return };
        let crds = self.crds.get_or_init(|| CrdWatch::start(&self.cluster, &self.settings, tasks.clone()));
        let mut state = crds.informer.status.watch_state();
        let answered = state.wait_for(|state| {
            !matches!(
                state,
                InformerState::NotStarted
                    | InformerState::Waiting { .. }
                    | InformerState::Starting
                    | InformerState::Listing
            )
        });
        if !crds.informer.status.synced() {
            // Without an answer there's discovery.
            let _ = tokio::time::timeout(CRDS_PATIENCE, answered).await;
        }
    }
}

impl fmt::Debug for Availability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Availability").field("watches_crds", &self.crds.get().is_some()).finish_non_exhaustive()
    }
}

// === impl CrdWatch ===

impl CrdWatch {
    fn start(cluster: &Cluster, settings: &Settings, tasks: TaskSet) -> Self {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let identity = Identity {
            object: TypeId::of::<CrdFacts>(),
            form: "the facts of CRDs",
            private: true,
            managed_fields: false,
            strict: false,
            resource: ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions"),
            scope: Scope::all(),
            name: None,
            any_version: false,
            json: false,
        };
        let parts = Parts {
            source: Arc::new(cluster.clone()),
            identity: Arc::new(identity),
            settings: settings.clone(),
            namespaces: None,
            // Nobody can ask for it.
            registry: Weak::new(),
        };
        let informer = Arc::new(Shared::new(parts, Box::new(CrdForm), Intake::default()));
        let changed = watch::Sender::new(());
        let tell = changed.clone();
        let handler = SharedInformer::new(Arc::clone(&informer)).on_change(move |_| tell.send_modify(|()| {}));
        Arc::clone(&informer).start(tasks, Vec::new());
        Self { informer, changed, _handler: handler }
    }

    /// Whether what it knows is the present: not if it lost the server, or is forbidden.
    fn is_current(&self) -> bool {
        let status = &self.informer.status;
        status.synced() && matches!(status.state(), InformerState::Synced | InformerState::Listing)
    }
}
