//! Lists and watches a resource and brings the store up to date.
//!
//! [`state`] decides, this obeys: it sends the requests, reads the answers as they come, decodes what the store doesn't
//! have yet, and publishes what the state machine says is to be published. The events that one chunk of a watch brings
//! are published as one batch.
//!
//! Cancelling drops the driver between two chunks; what was published stays, what was staged is forgotten.

mod ahead;
mod body;
mod decoder;
mod list;
mod shown;
mod state;
mod stream;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::ahead::Ahead;
pub(crate) use self::body::answer;
use self::decoder::Decoder;
use self::state::{Input, Next, Output, Phase, Policy, State, StoreAction};
use crate::availability::{Absence, Sight, Verdict};
use crate::delta::{Delta, Staging};
use crate::error::{RequestError, RequestErrorKind};
use crate::parts::{Extent, Part};
use crate::request::Request;
use crate::shared_informer::Shared;
use crate::status::{InformerState, RelistReason};
use crate::store::Progress;

/// After a bug of ours: how long to wait before the task starts over.
const RESTART_DELAY: Duration = Duration::from_secs(5);

/// Keeps an informer up to date until it's cancelled.
pub(crate) async fn run<K: Send + Sync + 'static>(informer: &Shared<K>, part: &Part<'_>, cancel: &CancellationToken) {
    loop {
        let work = AssertUnwindSafe(Reflector::new(informer, part).run()).catch_unwind();
        tokio::select! {
            // Being cancelled goes before any work.
            biased;
            () = cancel.cancelled() => return,
            ended = work => if ended.is_ok() { return },
        }
        // A bug of ours or of a representation. It must not silence the informer.
        tracing::error!(informer = %informer.name, "reflector panicked; it starts over with a list");
        informer.status.count(|counters| {
            counters.restarts += 1;
            *counters.relists.entry(RelistReason::Internal).or_default() += 1;
        });
        let reason = "the informer's task panicked; it starts over";
        informer.status.failed(&RequestError::new(RequestErrorKind::Malformed, reason));
        let (since, reason) = (informer.status.clock().now(), reason.to_owned());
        let state = InformerState::Retrying { since, kind: RequestErrorKind::Malformed, reason };
        part.set_state(&informer.status, state);
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(RESTART_DELAY) => {}
        }
    }
}

struct Reflector<'a, K> {
    informer: &'a Shared<K>,
    part: &'a Part<'a>,
    state: State,
    decoder: Decoder<'a, K>,
    staging: Staging<K>,
    /// The next page of the list at hand, which is asked for already.
    ahead: Option<Ahead<'a>>,
    /// Live changes of the chunk at hand.
    batch: Vec<Delta<K>>,
    /// When the last piece of an answer came.
    arrived: Instant,
    origin: Instant,
    /// The phase that the status shows.
    shown: Phase,
    /// The name of the state that the log told of last.
    told: Option<&'static str>,
    /// Whether the server has sent a bookmark on the watch at hand, so that others will follow.
    bookmarked: bool,
    /// The right to take in a first state.
    slot: Option<OwnedSemaphorePermit>,
    /// What the watch of CRDs knew of the kind when it was last looked at.
    sight: Option<Sight>,
}

impl<'a, K: Send + Sync + 'static> Reflector<'a, K> {
    fn new(informer: &'a Shared<K>, part: &'a Part<'a>) -> Self {
        let settings = &informer.settings;
        let policy = Policy {
            page_size: settings.page_size,
            read_from_cache: settings.read_from_cache,
            watch_list: settings.watch_list,
            watch_timeout_min: settings.watch_timeout_min,
        };
        Self {
            informer,
            part,
            state: State::new(
                policy,
                part.seed(settings, &informer.name),
                informer.store.resource_version_of(part.namespace()),
            ),
            decoder: Decoder::new(informer, part.namespace()),
            staging: Staging::default(),
            ahead: None,
            batch: Vec::new(),
            arrived: Instant::now(),
            origin: Instant::now(),
            shown: Phase::Starting,
            told: None,
            bookmarked: false,
            slot: None,
            sight: None,
        }
    }

    async fn run(mut self) {
        let mut output = self.step(Input::Start);
        loop {
            output = match output.next {
                Next::Send(request) => {
                    self.wait_for_slot(&request).await;
                    self.exchange(request).await
                }
                Next::Stop => return,
                Next::Wait(delay) => self.wait(delay).await,
                Next::Check { refused } => self.check(refused).await,
                // Reading on is done by `exchange`, which returns only when there's something else to do.
                Next::Read => self.step(Input::Start),
            };
        }
    }

    /// Waits until the informer may take in its first state.
    async fn wait_for_slot(&mut self, request: &Request) {
        let status = &self.informer.status;
        if self.slot.is_some() || status.synced() || matches!(request, Request::Watch { .. }) {
            return;
        }
        let slots = &self.informer.settings.list_slots;
        // They're never closed.
        self.slot = match Arc::clone(slots).try_acquire_owned() {
            Ok(slot) => Some(slot),
            Err(_) => {
                let waiting = InformerState::Waiting { for_: "other informers' first lists".to_owned() };
                self.part.set_state(status, waiting);
                let slot = Arc::clone(slots).acquire_owned().await.ok();
                self.show_phase();
                slot
            }
        };
    }

    /// Lets a delay pass; news of the kind that's waited for ends it.
    async fn wait(&mut self, delay: Duration) -> Output {
        // Others needn't wait for one that fails.
        self.slot = None;
        let delay = tokio::time::sleep(delay);
        match (&self.informer.settings.availability, &self.sight) {
            (Some(availability), Some(sight)) if self.state.awaits_kind() => {
                let wanted = self.informer.wanted(self.part.namespace());
                tokio::select! {
                    biased;
                    () = availability.changed(&wanted, sight) => {}
                    () = delay => {}
                }
            }
            _ => delay.await,
        }
        self.step(Input::WaitOver)
    }

    /// Finds out whether the server serves the kind.
    async fn check(&mut self, refused: bool) -> Output {
        let wanted = self.informer.wanted(self.part.namespace());
        let Some(availability) = &self.informer.settings.availability else {
            // Nobody looks: a 404 has to do, and the next request shows.
            let verdict = if refused { Verdict::Absent(Absence::unchecked()) } else { Verdict::Served };
            return self.step(Input::Checked(verdict));
        };
        let (verdict, sight) = availability.check(&wanted, refused).await;
        self.sight = Some(sight);
        if let Verdict::ServedAs(version) = &verdict {
            tracing::info!(informer = %self.informer.name, version, "kind is served in another version; following that");
            self.informer.follow_version(version);
        }
        self.step(Input::Checked(verdict))
    }

    /// Sends a request and reads the answer; returns what to do after that.
    async fn exchange(&mut self, request: Request) -> Output {
        if !matches!(request, Request::Watch { .. }) {
            self.informer.status.count(|counters| counters.lists += 1);
        }
        let answer = match self.ahead.take().filter(|ahead| ahead.is(&request)) {
            Some(ahead) => ahead.answer().await,
            None => body::send(self.informer, self.part.namespace(), &request).await,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.fail(error, Input::Failed),
        };
        match request {
            Request::List { .. } => self.read_page(answer).await,
            Request::WatchList { timeout, .. } | Request::Watch { timeout, .. } => {
                self.read_stream(answer, timeout).await
            }
        }
    }

    // --- obeying the state machine ---

    fn fail(&mut self, error: RequestError, input: impl FnOnce(RequestError) -> Input) -> Output {
        self.ahead = None;
        self.informer.status.failed(&error);
        tracing::debug!(informer = %self.informer.name, error = %error, error_kind = %error.kind, "request failed");
        self.step(input(error))
    }

    fn step(&mut self, input: Input) -> Output {
        let output = self.state.step(Instant::now().saturating_duration_since(self.origin), input);
        if output.relist.is_some() || output.rewatch.is_some() {
            self.informer.status.count(|counters| {
                if let Some(reason) = output.relist {
                    *counters.relists.entry(reason).or_default() += 1;
                }
                if let Some(reason) = output.rewatch {
                    *counters.watch_restarts.entry(reason).or_default() += 1;
                }
            });
        }
        match output.store {
            StoreAction::Nothing | StoreAction::Stage | StoreAction::Apply => {}
            StoreAction::Discard => self.decoder.put_aside(&mut self.staging),
            StoreAction::Commit => self.commit(),
            StoreAction::Clear => self.clear(),
        }
        if *self.state.phase() != self.shown {
            self.show_phase();
        }
        output
    }

    /// Waits for what the form of the objects wants done before more of them come.
    async fn settle(&mut self) {
        if let Some(settled) = self.informer.representation.settle() {
            settled.await;
            self.staging.improve(&*self.informer.representation);
        }
    }

    /// Publishes the live changes of a chunk.
    fn flush(&mut self) {
        let resource_version = self.state.resource_version();
        if self.batch.is_empty() && self.informer.store.resource_version_of(self.part.namespace()) == resource_version {
            return;
        }
        let progress = Progress { part: self.part.namespace(), resource_version };
        self.informer.publish(std::mem::take(&mut self.batch), Some(progress), Extent::Changes, self.arrived);
    }

    /// Publishes the state that was taken in, as its difference from the store.
    fn commit(&mut self) {
        let staging = std::mem::take(&mut self.staging);
        self.decoder.taken_in();
        self.slot = None;
        self.decoder.keep(|key| staging.holds(key));
        let deltas = staging.into_deltas(&self.informer.store, self.part.namespace());
        let progress = Progress { part: self.part.namespace(), resource_version: self.state.resource_version() };
        self.informer.publish(deltas, Some(progress), self.part.taken_in(), self.arrived);
    }

    fn clear(&mut self) {
        self.staging.clear();
        self.batch.clear();
        self.decoder.taken_in();
        self.decoder.keep(|_| false);
        let deltas = Staging::default().into_deltas(&self.informer.store, self.part.namespace());
        self.informer.publish(
            deltas,
            Some(Progress { part: self.part.namespace(), resource_version: "" }),
            Extent::Changes,
            Instant::now(),
        );
    }
}

fn malformed(error: impl std::fmt::Display) -> RequestError {
    RequestError::new(RequestErrorKind::Malformed, error.to_string())
}
