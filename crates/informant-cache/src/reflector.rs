//! Lists and watches a resource and brings the store up to date.
//!
//! [`state`] decides, this obeys: it sends the requests, reads the answers as they come, decodes what the store doesn't
//! have yet, and publishes what the state machine says is to be published. The events that one chunk of a watch brings
//! are published as one batch.
//!
//! Cancelling drops the driver between two chunks; what was published stays, what was staged is forgotten.

mod body;
mod decoder;
mod state;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::body::{Answer, answer};
use self::decoder::{Decoder, Found};
use self::state::{ChangeKind, Input, Next, Output, Phase, Policy, State, StoreAction};
use crate::availability::{Absence, Sight, Verdict};
use crate::delta::{Delta, Staging};
use crate::error::{RequestError, RequestErrorKind};
use crate::frame::{Frame, ListDecoder, WatchDecoder};
use crate::head::{Bookmark, ListForm, ListHead, WatchEvent};
use crate::parts::{Extent, Part};
use crate::request::Request;
use crate::shared_informer::Shared;
use crate::status::{InformerState, LastError, RelistReason};
use crate::store::Progress;

/// A watch whose end is this much overdue is taken for dead: the server was asked to end it.
const WATCH_MARGIN: Duration = Duration::from_secs(30);
/// Initial events that pause this long without their end are taken for a server that doesn't know of the end.
const INITIAL_EVENTS_PATIENCE: Duration = Duration::from_secs(15);
/// So are initial events that haven't ended after this long, though something always comes.
const INITIAL_EVENTS_MAX: Duration = Duration::from_secs(180);
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
        informer.status.failed(&RequestError::new(RequestErrorKind::Malformed, "the informer's task panicked"));
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
    /// Live changes of the chunk at hand.
    batch: Vec<Delta<K>>,
    origin: Instant,
    /// The phase that the status shows.
    shown: Phase,
    /// Whether the server has sent a bookmark on the watch at hand, so that others will follow.
    bookmarked: bool,
    /// The right to take in a first state.
    slot: Option<OwnedSemaphorePermit>,
    /// What the watch of CRDs knew of the kind when it was last looked at.
    sight: Option<Sight>,
}

/// What it means if nothing comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    /// The initial events have no end.
    InitialEvents,
    /// The connection is dead: not even bookmarks come.
    NoBookmarks,
    /// The connection is dead: not even the end comes that was asked for.
    NoEnd,
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
            batch: Vec::new(),
            origin: Instant::now(),
            shown: Phase::Starting,
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
        let answer = match body::send(self.informer, self.part.namespace(), &request).await {
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

    // --- lists ---

    async fn read_page(&mut self, mut answer: Answer) -> Output {
        let mut decoder = ListDecoder::new(self.informer.settings.document_bytes_max);
        loop {
            match answer.chunk().await {
                Err(error) => return self.fail(error, Input::Failed),
                Ok(None) => break,
                Ok(Some(chunk)) => decoder.push(chunk),
            }
            loop {
                match decoder.next() {
                    Ok(Some(item)) => {
                        self.stage_item(&item);
                        if let Some(error) = self.decoder.refused.take() {
                            return self.fail(error, Input::Refused);
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return self.fail(malformed(error), Input::Failed),
                }
            }
        }
        match decoder.finish().map_err(malformed).and_then(|envelope| self.list_head(&envelope)) {
            Err(error) => self.fail(error, Input::Failed),
            Ok(list) => {
                let metadata = list.metadata.unwrap_or_default();
                let resource_version = metadata.resource_version.unwrap_or_default();
                let continue_token = metadata.continue_token.filter(|token| !token.is_empty());
                self.step(Input::Page { resource_version, continue_token })
            }
        }
    }

    /// The list's own fields, if it's a list.
    fn list_head(&self, envelope: &[u8]) -> Result<ListHead, RequestError> {
        let list = ListHead::parse(envelope).map_err(malformed)?;
        let name = &self.informer.name;
        let complaint = match list.form() {
            ListForm::List => return Ok(list),
            ListForm::Status => return Err(RequestError::from_event(envelope)),
            ListForm::Table => "with a Table for people, not with objects",
            // An empty store must never come of an answer that's about something else.
            ListForm::Other => "with something that is no list",
        };
        let message = format!("the server answered the list of {name} {complaint}");
        Err(RequestError::new(RequestErrorKind::Malformed, message))
    }

    fn stage_item(&mut self, item: &Frame) {
        match self.decoder.item(item) {
            Found::Object(object) => self.staging.insert(object),
            Found::Undecodable(key) => self.staging.insert_undecodable(key),
            Found::Unwanted(key) => self.staging.leave(key),
            Found::Unreadable(_) | Found::OtherKind => {}
        }
    }

    // --- streams ---

    async fn read_stream(&mut self, mut answer: Answer, timeout: Duration) -> Output {
        let opened = self.step(Input::Opened);
        if opened.next != Next::Read {
            return opened;
        }
        let mut decoder = WatchDecoder::new(self.informer.settings.document_bytes_max);
        self.bookmarked = false;
        let opened = Instant::now();
        loop {
            let (until, silence) = self.patience(opened, timeout);
            if silence == Silence::InitialEvents && until <= Instant::now() {
                // They are never quiet, so the timeout below would never be over.
                return self.step(Input::InitialEventsOverdue);
            }
            match tokio::time::timeout_at(until, answer.stream_chunk()).await {
                Err(_) if silence == Silence::InitialEvents => return self.step(Input::InitialEventsOverdue),
                Err(_) => return self.fail(self.silent(silence, timeout), Input::Broken),
                Ok(Err(error)) => return self.fail(error, Input::Broken),
                Ok(Ok(None)) => return self.end_of_stream(&mut decoder),
                Ok(Ok(Some(chunk))) => decoder.push(chunk),
            }
            while let Some(frame) = decoder.next() {
                let output = self.event(&frame);
                if output.next != Next::Read {
                    self.flush();
                    return output;
                }
            }
            self.flush();
        }
    }

    /// Until when the next chunk must come, and what it means if it doesn't.
    fn patience(&self, opened: Instant, timeout: Duration) -> (Instant, Silence) {
        let now = Instant::now();
        let end = (opened + timeout + WATCH_MARGIN, Silence::NoEnd);
        let sooner = if self.state.awaits_initial_events_end() {
            let until = (now + INITIAL_EVENTS_PATIENCE).min(opened + INITIAL_EVENTS_MAX);
            Some((until, Silence::InitialEvents))
        } else if self.bookmarked {
            Some((now + self.informer.settings.idle_timeout, Silence::NoBookmarks))
        } else {
            None
        };
        sooner.filter(|(until, _)| *until < end.0).unwrap_or(end)
    }

    fn silent(&self, silence: Silence, timeout: Duration) -> RequestError {
        let message = if silence == Silence::NoBookmarks {
            let seconds = self.informer.settings.idle_timeout.as_secs();
            format!("the server had sent bookmarks, and then was silent for {seconds} s")
        } else {
            let (seconds, margin) = (timeout.as_secs(), WATCH_MARGIN.as_secs());
            format!("the server was asked to end the watch after {seconds} s and was silent for {margin} s more")
        };
        RequestError::new(RequestErrorKind::Connection, message)
    }

    fn end_of_stream(&mut self, decoder: &mut WatchDecoder) -> Output {
        match decoder.finish() {
            Err(error) => self.fail(malformed(error), Input::Broken),
            Ok(None) => self.step(Input::Ended),
            Ok(Some(frame)) => {
                let output = self.event(&frame);
                self.flush();
                if output.next == Next::Read { self.step(Input::Ended) } else { output }
            }
        }
    }

    /// Handles one event of a stream.
    fn event(&mut self, frame: &Frame) -> Output {
        let event = match frame {
            Frame::Document(line) => WatchEvent::parse(line).map_err(malformed),
            Frame::TooLarge(prefix) => return self.large_event(prefix),
        };
        let event = match (event, frame) {
            (Ok(event), _) => event,
            // Some write an error's status as it is, not as an event.
            (Err(_), Frame::Document(line)) if RequestError::is_status(line) => {
                return self.fail(RequestError::from_event(line), Input::ErrorEvent);
            }
            (Err(error), _) => return self.fail(error, Input::Unreadable),
        };
        let kind = match &*event.kind {
            "ADDED" => ChangeKind::Added,
            "MODIFIED" => ChangeKind::Modified,
            "DELETED" => ChangeKind::Deleted,
            "BOOKMARK" => return self.bookmark(&event.object),
            "ERROR" => return self.fail(RequestError::from_event(&event.object), Input::ErrorEvent),
            _ => {
                self.informer.status.count(|counters| counters.unexpected += 1);
                let resource_version = Bookmark::parse(&event.object).unwrap_or_default().resource_version;
                return self.step(Input::Unknown { resource_version });
            }
        };
        let (found, resource_version) = self.decoder.event(&event.object, kind == ChangeKind::Deleted);
        self.change(kind, found, resource_version)
    }

    /// Handles an event that's larger than the bound, of which only the beginning is there.
    fn large_event(&mut self, prefix: &[u8]) -> Output {
        let limit = self.informer.settings.document_bytes_max;
        let kind = WatchEvent::split_start(prefix).and_then(|(kind, object)| match kind {
            "ADDED" => Some((ChangeKind::Added, object)),
            "MODIFIED" => Some((ChangeKind::Modified, object)),
            "DELETED" => Some((ChangeKind::Deleted, object)),
            _ => None,
        });
        let Some((kind, object)) = kind else {
            let message = format!("a watch event is larger than {limit} bytes and names no object at its beginning");
            return self.fail(RequestError::new(RequestErrorKind::Malformed, message), Input::Unreadable);
        };
        let (found, resource_version) = self.decoder.large_event(object);
        self.change(kind, found, resource_version)
    }

    fn change(&mut self, kind: ChangeKind, found: Found<K>, resource_version: String) -> Output {
        if let Some(error) = self.decoder.refused.take() {
            return self.fail(error, Input::Refused);
        }
        let delta = match (kind, found) {
            (_, Found::Unreadable(error)) => return self.fail(malformed(error), Input::Unreadable),
            (_, Found::OtherKind) => {
                self.informer.status.count(|counters| counters.unexpected += 1);
                // Whatever it is, it isn't about our objects, so it doesn't say how far we are.
                return self.step(Input::Unknown { resource_version: String::new() });
            }
            (ChangeKind::Deleted, Found::Object(object)) => {
                Delta::Delete { key: object.key().clone(), last: Some(object) }
            }
            (ChangeKind::Deleted, Found::Undecodable(key)) => {
                self.decoder.forget(&key);
                Delta::Delete { key, last: None }
            }
            // To those who want other objects only, one that they no longer want is gone.
            (_, Found::Unwanted(key)) => Delta::Leave { key },
            (ChangeKind::Added | ChangeKind::Modified, Found::Object(object)) => Delta::Upsert(object),
            (ChangeKind::Added | ChangeKind::Modified, Found::Undecodable(key)) => {
                let output = self.step(Input::Changed { kind, resource_version });
                if output.store == StoreAction::Stage {
                    self.staging.insert_undecodable(key);
                }
                return output;
            }
        };
        let output = self.step(Input::Changed { kind, resource_version });
        match (output.store, delta) {
            (StoreAction::Stage, Delta::Upsert(object)) => self.staging.insert(object),
            (StoreAction::Stage, Delta::Delete { key, .. }) => self.staging.remove(key),
            (StoreAction::Stage, Delta::Leave { key }) => self.staging.leave(key),
            (_, delta) => self.batch.push(delta),
        }
        output
    }

    fn bookmark(&mut self, object: &[u8]) -> Output {
        match Bookmark::parse(object) {
            Ok(Bookmark { resource_version, initial_events_end }) => {
                self.bookmarked = true;
                self.step(Input::Bookmark { resource_version, initial_events_end })
            }
            // A bookmark is only an optimisation.
            Err(_) => {
                self.informer.status.count(|counters| counters.unexpected += 1);
                self.step(Input::Unknown { resource_version: String::new() })
            }
        }
    }

    // --- obeying the state machine ---

    fn fail(&mut self, error: RequestError, input: impl FnOnce(RequestError) -> Input) -> Output {
        self.informer.status.failed(&error);
        tracing::debug!(informer = %self.informer.name, error = %error, error_kind = %error.kind, "request failed");
        self.step(input(error))
    }

    fn step(&mut self, input: Input) -> Output {
        let output = self.state.step(Instant::now().saturating_duration_since(self.origin), input);
        if output.relist.is_some() || output.rewatch {
            self.informer.status.count(|counters| {
                if let Some(reason) = output.relist {
                    *counters.relists.entry(reason).or_default() += 1;
                }
                counters.watch_restarts += u64::from(output.rewatch);
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

    /// Publishes the live changes of a chunk.
    fn flush(&mut self) {
        let resource_version = self.state.resource_version();
        if self.batch.is_empty() && self.informer.store.resource_version_of(self.part.namespace()) == resource_version {
            return;
        }
        let progress = Progress { part: self.part.namespace(), resource_version };
        self.informer.publish(std::mem::take(&mut self.batch), Some(progress), Extent::Changes);
    }

    /// Publishes the state that was taken in, as its difference from the store.
    fn commit(&mut self) {
        let staging = std::mem::take(&mut self.staging);
        self.decoder.taken_in();
        self.slot = None;
        self.decoder.keep(|key| staging.holds(key));
        let deltas = staging.into_deltas(&self.informer.store, self.part.namespace());
        let progress = Progress { part: self.part.namespace(), resource_version: self.state.resource_version() };
        self.informer.publish(deltas, Some(progress), self.part.taken_in());
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
        );
    }

    fn show_phase(&mut self) {
        self.shown = self.state.phase().clone();
        let status = &self.informer.status;
        let now = || status.clock().now();
        let before = self.part.state(status);
        let since = |kept: Option<Timestamp>| kept.unwrap_or_else(now);
        let state = match self.state.phase() {
            Phase::Starting => InformerState::Starting,
            Phase::Listing => InformerState::Listing,
            Phase::Synced => InformerState::Synced,
            Phase::Missing(absence) => {
                let kept = if let InformerState::Missing { since, .. } = before { Some(since) } else { None };
                let Absence { cause, reason, checked_by, error } = absence.clone();
                let last_error = error.map(|error| LastError { at: now(), kind: error.kind, message: error.message });
                InformerState::Missing { since: since(kept), cause, reason, checked_by, last_error }
            }
            Phase::Forbidden(error) => {
                let kept = if let InformerState::Forbidden { since, .. } = before { Some(since) } else { None };
                InformerState::Forbidden { since: since(kept), reason: error.message.clone() }
            }
            Phase::Retrying(error) => {
                let kept = if let InformerState::Retrying { since, .. } = before { Some(since) } else { None };
                InformerState::Retrying { since: since(kept), kind: error.kind, reason: error.message.clone() }
            }
            Phase::Failed(error) => InformerState::Failed { since: now(), reason: error.message.clone() },
        };
        self.part.set_state(status, state);
    }
}

fn malformed(error: impl std::fmt::Display) -> RequestError {
    RequestError::new(RequestErrorKind::Malformed, error.to_string())
}
