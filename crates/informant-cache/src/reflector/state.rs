//! What a reflector does next: a state machine without await, clock, lock or log.
//!
//! [`State::step`] takes what happened and when, and says what to do with the objects at hand, what to do next, and
//! what to count. The driver beside it obeys. The cycle: take in the present state (as a stream of initial events where
//! the server can do that, else as a list in pages), then watch from there, as long as the server has what came since;
//! else take in the present state again.
//!
//! It follows client-go's reflector, and does better where that's known to hurt. The differences, each shown by a test:
//! - a watch that can't be opened or breaks is opened again where it ended, after a delay; a list is needed only if the
//!   server says that the changes since are gone, or keeps failing;
//! - after a 410 the new list follows at once if the last isn't recent; else after a delay;
//! - a watch that ends within a second is opened again only when a second has passed, and no error ends the watch phase;
//! - a delay follows a failure, never a success, and is at least as long as the server asks; delays start over after a
//!   watch that lasted, not only after two quiet minutes;
//! - a stream of initial events that goes quiet without its end, or ends early three times, gives way to lists;
//! - a list asks for the newest state and comes in pages, unless the server's cache is to be read;
//! - a list whose continue token expires starts over in pages, three times, then after a delay;
//! - a missing kind is a state of its own, which is told from other 404s and empties the store.

mod ends;
mod missing;

use std::time::Duration;

use crate::availability::{Absence, Verdict};
use crate::backoff::{Backoff, FAILURE, MISSING};
use crate::error::{RequestError, RequestErrorKind as Kind};
use crate::request::Request;
use crate::status::{RelistReason, WatchRestartReason};

/// A watch that's shorter is opened again only when this has passed since it was opened. One that lived longer shows a
/// server that's well: the delay after its end is the first one again.
const WATCH_FLOOR: Duration = Duration::from_secs(1);
/// Empty watches below the floor in a row, or failed openings in a row, after which a new list is tried.
const FAILED_WATCHES_MAX: u32 = 5;
/// Streams of initial events that ended early, in a row, after which a list is tried.
const UNFINISHED_STREAMS_MAX: u32 = 3;
/// A 410 this soon after the present state was complete says that watching doesn't work: the next list waits. Else it
/// follows at once.
const RECENT_LIST: Duration = Duration::from_secs(5);
/// How often a list whose continue token expired starts over at once.
const LIST_RESTARTS_MAX: u32 = 3;
/// How soon a 404 on a kind that was there is looked into again.
const MISSING_RECHECK: Duration = Duration::from_secs(1);
/// The server's wish to wait is granted up to this.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);
/// Page size unless set.
const PAGE_SIZE: u32 = 500;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// `None`: 500; but no limit where that would keep the server from answering from its cache.
    pub(crate) page_size: Option<u32>,
    /// Whether lists may be answered from the server's cache, as client-go's are: the first one as old as that is, later
    /// ones at least as new as what was seen. Else they ask for the newest state.
    pub(crate) read_from_cache: bool,
    pub(crate) watch_list: bool,
    pub(crate) watch_timeout_min: Duration,
}

#[derive(Debug, Clone)]
pub(crate) struct State {
    policy: Policy,
    rng: fastrand::Rng,
    backoff: Backoff,
    missing_backoff: Backoff,
    phase: Phase,
    step: Step,
    /// Up to where the server's state is known; empty for not at all.
    resource_version: String,
    /// The server couldn't use `resource_version` for a list: ask for the newest state instead.
    resource_version_unavailable: bool,
    /// A list at "0" came in pages, so the server has no cache that ignores limits.
    paginated: bool,
    /// The server doesn't do streams of initial events.
    watch_list_refused: bool,
    /// Streams of initial events that ended early, in a row.
    unfinished_streams: u32,
    /// Watches that couldn't be opened or ended at once without an event, in a row.
    failed_watches: u32,
    /// Looks in a row that found that the kind is missing.
    missing_answers: u32,
    /// The 404 that is being looked into.
    refusal: Option<RequestError>,
    /// The last error about a missing kind.
    refused_with: Option<RequestError>,
    /// Whether the store may hold objects.
    filled: bool,
    /// The kind went missing and the store was emptied.
    emptied: bool,
    /// When the present state was last complete.
    last_complete: Option<Duration>,
    /// How the last watch ended.
    watch_end: Option<WatchRestartReason>,
}

/// What the informer is doing, as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Listing,
    Synced,
    Missing(Absence),
    Forbidden(RequestError),
    Retrying(RequestError),
    Failed(RequestError),
}

#[derive(Debug, Clone)]
enum Step {
    /// A delay runs; then this.
    Waiting(Plan),
    Listing(Listing),
    /// A stream of initial events, not yet complete.
    Streaming {
        opened: Duration,
        resource_version: String,
    },
    Watching {
        opened: Duration,
        had_event: bool,
        resumable: bool,
    },
}

#[derive(Debug, Clone, Copy)]
enum Plan {
    /// Take in the present state.
    Cycle,
    /// Go on watching.
    Watch,
    /// Look whether the kind is served.
    Check,
}

#[derive(Debug, Clone)]
struct Listing {
    /// As in the first page's request.
    resource_version: String,
    limit: u32,
    page: u32,
    /// How many lists before this one lost their continue token, in a row.
    restarts: u32,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Start,
    /// The delay is over.
    WaitOver,
    /// The server answered a watch with success; its events follow.
    Opened,
    /// A page of a list is complete.
    Page {
        resource_version: String,
        continue_token: Option<String>,
    },
    /// A watch event with an object; the resource version is the object's.
    Changed {
        kind: ChangeKind,
        resource_version: String,
    },
    Bookmark {
        resource_version: String,
        initial_events_end: bool,
    },
    /// An event of an unknown type.
    Unknown {
        resource_version: String,
    },
    /// Something in the stream can't be attributed to an object.
    Unreadable(RequestError),
    /// The request, or the answer to it, failed; a list may have failed halfway.
    Failed(RequestError),
    /// The stream held an ERROR event.
    ErrorEvent(RequestError),
    /// The stream ended as it should.
    Ended,
    /// The stream broke off.
    Broken(RequestError),
    /// The stream was silent for too long.
    Idle(RequestError),
    /// The initial events went quiet, or went on for too long, without their end.
    InitialEventsOverdue,
    /// There's an object that can't be decoded, and the informer is to end at that.
    Refused(RequestError),
    /// Whether the server serves the kind.
    Checked(Verdict),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) store: StoreAction,
    pub(crate) next: Next,
    /// The present state is taken in again, for this reason.
    pub(crate) relist: Option<RelistReason>,
    /// A watch is opened again where the last ended, for this reason.
    pub(crate) rewatch: Option<WatchRestartReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreAction {
    Nothing,
    /// The change belongs to the state being taken in.
    Stage,
    /// The change goes into the store.
    Apply,
    /// What was staged is complete and becomes the store's state.
    Commit,
    /// What was staged is no state, and is put aside: its objects needn't be decoded again.
    Discard,
    /// The kind is gone: empty the store.
    Clear,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Read on.
    Read,
    Send(Request),
    Wait(Duration),
    /// It's over for good.
    Stop,
    /// Find out whether the server serves the kind; `refused`: a request was just answered with a 404.
    Check {
        refused: bool,
    },
}

// === impl State ===

impl State {
    /// A machine at its start; `known` is up to where the store follows the server already, empty for not at all.
    pub(crate) fn new(policy: Policy, seed: u64, known: String) -> Self {
        Self {
            policy,
            rng: fastrand::Rng::with_seed(seed),
            backoff: Backoff::new(FAILURE),
            missing_backoff: Backoff::new(MISSING),
            phase: Phase::Starting,
            step: Step::Waiting(Plan::Cycle),
            filled: !known.is_empty(),
            resource_version: known,
            resource_version_unavailable: false,
            paginated: false,
            watch_list_refused: false,
            unfinished_streams: 0,
            failed_watches: 0,
            missing_answers: 0,
            refusal: None,
            refused_with: None,
            emptied: false,
            last_complete: None,
            watch_end: None,
        }
    }

    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Up to where the server's state is known.
    pub(crate) fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// Whether the end of initial events is being waited for.
    pub(crate) fn awaits_initial_events_end(&self) -> bool {
        matches!(self.step, Step::Streaming { .. })
    }

    /// What will be asked for once a page with this continue token is complete. It may be asked for before.
    pub(crate) fn page_after(&self, continue_token: &str) -> Option<Request> {
        match &self.step {
            Step::Listing(listing) => Some(listing.page_after(continue_token.to_owned())),
            Step::Waiting(_) | Step::Streaming { .. } | Step::Watching { .. } => None,
        }
    }

    /// Takes what happened, `now` being the time since the start, and says what to do.
    pub(crate) fn step(&mut self, now: Duration, input: Input) -> Output {
        self.note_watch_end(now, &input);
        match input {
            Input::Start => self.cycle(now),
            Input::WaitOver => match self.step {
                Step::Waiting(Plan::Watch) => self.watch(now),
                Step::Waiting(Plan::Check) => self.check(),
                Step::Waiting(Plan::Cycle) | Step::Listing(_) | Step::Streaming { .. } | Step::Watching { .. } => {
                    self.cycle(now)
                }
            },
            Input::Opened => self.opened(now),
            Input::Page { resource_version, continue_token } => self.page(now, resource_version, continue_token),
            Input::Changed { kind, resource_version } => self.changed(kind, resource_version),
            Input::Bookmark { resource_version, initial_events_end } => {
                self.bookmark(now, resource_version, initial_events_end)
            }
            Input::Unknown { resource_version } => {
                self.note_event(resource_version);
                Output::read(StoreAction::Nothing)
            }
            Input::Unreadable(error) => {
                self.phase = Phase::Retrying(error.clone());
                self.relist_later(now, RelistReason::Unreadable, &error)
            }
            Input::Failed(error) => self.failed(now, error),
            Input::ErrorEvent(error) => self.error_event(now, error),
            Input::Ended => self.ended(now, None),
            Input::Broken(error) | Input::Idle(error) => self.ended(now, Some(error)),
            Input::Checked(verdict) => self.checked(now, verdict),
            Input::InitialEventsOverdue => {
                self.watch_list_refused = true;
                self.list(StoreAction::Discard)
            }
            Input::Refused(error) => {
                self.phase = Phase::Failed(error);
                Output { store: StoreAction::Discard, next: Next::Stop, relist: None, rewatch: None }
            }
        }
    }

    // --- taking in the present state ---

    fn cycle(&mut self, now: Duration) -> Output {
        self.failed_watches = 0;
        if matches!(self.phase, Phase::Synced) {
            self.phase = Phase::Listing;
        }
        if self.policy.watch_list && !self.watch_list_refused {
            self.stream(now, StoreAction::Discard)
        } else {
            self.list(StoreAction::Discard)
        }
    }

    fn stream(&mut self, now: Duration, store: StoreAction) -> Output {
        let known = if self.resource_version_unavailable { "" } else { self.resource_version.as_str() };
        let resource_version = known.to_owned();
        self.step = Step::Streaming { opened: now, resource_version: resource_version.clone() };
        let timeout = self.watch_timeout();
        Output::send(store, Request::WatchList { resource_version, timeout })
    }

    fn list(&mut self, store: StoreAction) -> Output {
        if !self.policy.read_from_cache {
            // The newest state is never behind what was seen.
            return self.list_with(String::new(), self.policy.page_size.unwrap_or(PAGE_SIZE), store, 0);
        }
        let resource_version = match self.resource_version.as_str() {
            _ if self.resource_version_unavailable => "",
            // The first list may come from the server's cache; it's never gone back behind after that.
            "" => "0",
            known => known,
        };
        let from_cache = !matches!(resource_version, "" | "0");
        let limit = match self.policy.page_size {
            Some(limit) => limit,
            // A limit would keep the server from answering from its cache.
            None if from_cache && !self.paginated => 0,
            None => PAGE_SIZE,
        };
        self.list_with(resource_version.to_owned(), limit, store, 0)
    }

    fn list_with(&mut self, resource_version: String, limit: u32, store: StoreAction, restarts: u32) -> Output {
        let request = Request::List { resource_version: resource_version.clone(), limit, continue_token: None };
        self.step = Step::Listing(Listing { resource_version, limit, page: 1, restarts });
        Output::send(store, request)
    }

    fn page(&mut self, now: Duration, resource_version: String, continue_token: Option<String>) -> Output {
        self.answered();
        let Step::Listing(listing) = &mut self.step else { return Output::read(StoreAction::Nothing) };
        if let Some(token) = continue_token {
            listing.page += 1;
            self.paginated |= listing.resource_version == "0";
            let request = listing.page_after(token);
            return Output::send(StoreAction::Nothing, request);
        }
        let relist = self.complete(now, resource_version);
        let watch = self.watch(now);
        Output { store: StoreAction::Commit, relist, rewatch: None, ..watch }
    }

    /// The present state is complete. Returns whether it's that of a kind that was gone.
    fn complete(&mut self, now: Duration, resource_version: String) -> Option<RelistReason> {
        self.last_complete = Some(now);
        self.resource_version = resource_version;
        self.resource_version_unavailable = false;
        self.unfinished_streams = 0;
        self.filled = true;
        self.phase = Phase::Synced;
        std::mem::take(&mut self.emptied).then_some(RelistReason::Returned)
    }

    // --- watching ---

    fn watch(&mut self, now: Duration) -> Output {
        let resumable = !matches!(self.resource_version.as_str(), "" | "0");
        self.step = Step::Watching { opened: now, had_event: false, resumable };
        let request = Request::Watch { resource_version: self.resource_version.clone(), timeout: self.watch_timeout() };
        let rewatch = Some(self.watch_end.take().unwrap_or(WatchRestartReason::Ended));
        Output { rewatch, ..Output::send(StoreAction::Nothing, request) }
    }

    fn opened(&mut self, now: Duration) -> Output {
        self.answered();
        match &mut self.step {
            Step::Watching { opened, .. } => {
                *opened = now;
                self.phase = Phase::Synced;
            }
            Step::Streaming { opened, .. } => *opened = now,
            Step::Waiting(_) | Step::Listing(_) => {}
        }
        Output::read(StoreAction::Nothing)
    }

    fn changed(&mut self, kind: ChangeKind, resource_version: String) -> Output {
        if self.awaits_initial_events_end() {
            // Initial events come in no order, so their resource versions say nothing; the bookmark's does.
            return Output::read(StoreAction::Stage);
        }
        let synthetic = matches!(self.step, Step::Watching { resumable: false, .. }) && kind == ChangeKind::Added;
        if synthetic {
            self.failed_watches = 0;
        } else {
            self.note_event(resource_version);
        }
        Output::read(StoreAction::Apply)
    }

    fn bookmark(&mut self, now: Duration, resource_version: String, initial_events_end: bool) -> Output {
        if !self.awaits_initial_events_end() {
            self.note_event(resource_version);
            return Output::read(StoreAction::Nothing);
        }
        if !initial_events_end {
            return Output::read(StoreAction::Nothing);
        }
        let opened = match self.step {
            Step::Streaming { opened, .. } => opened,
            Step::Waiting(_) | Step::Listing(_) | Step::Watching { .. } => Duration::ZERO,
        };
        let resumable = !resource_version.is_empty();
        let relist = self.complete(now, resource_version);
        self.step = Step::Watching { opened, had_event: true, resumable };
        Output { relist, ..Output::read(StoreAction::Commit) }
    }

    /// An event of the watch phase moves the point from which to resume; one without a resource version doesn't.
    fn note_event(&mut self, resource_version: String) {
        if let Step::Watching { had_event, resumable, .. } = &mut self.step {
            *had_event = true;
            self.failed_watches = 0;
            if !resource_version.is_empty() {
                *resumable = true;
                self.resource_version = resource_version;
            }
        }
    }

    // --- pieces ---

    fn answered(&mut self) {
        self.missing_answers = 0;
        self.refused_with = None;
        self.missing_backoff.reset();
        if matches!(self.phase, Phase::Starting | Phase::Missing(_) | Phase::Forbidden(_) | Phase::Retrying(_)) {
            self.phase = Phase::Listing;
        }
    }

    fn set_failure(&mut self, error: &RequestError) {
        let forbidden = error.kind == Kind::Forbidden;
        self.phase = if forbidden { Phase::Forbidden(error.clone()) } else { Phase::Retrying(error.clone()) };
    }

    fn relist_later(&mut self, now: Duration, reason: RelistReason, error: &RequestError) -> Output {
        Output { relist: Some(reason), ..self.wait(now, Plan::Cycle, StoreAction::Discard, error) }
    }

    fn wait(&mut self, now: Duration, plan: Plan, store: StoreAction, error: &RequestError) -> Output {
        self.step = Step::Waiting(plan);
        let delay = self.backoff.delay(now, &mut self.rng);
        let wished = error.retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
        Output::wait(store, delay.max(wished))
    }

    /// Drawn anew for each watch, so that a fleet's watches don't end in step.
    fn watch_timeout(&mut self) -> Duration {
        let min = self.policy.watch_timeout_min;
        min.mul_f64(1.0 + self.rng.f64())
    }
}

// === impl Listing ===

impl Listing {
    fn page_after(&self, continue_token: String) -> Request {
        let resource_version = self.resource_version.clone();
        Request::List { resource_version, limit: self.limit, continue_token: Some(continue_token) }
    }
}

// === impl Output ===

impl Output {
    fn read(store: StoreAction) -> Self {
        Self { store, next: Next::Read, relist: None, rewatch: None }
    }

    fn send(store: StoreAction, request: Request) -> Self {
        Self { store, next: Next::Send(request), relist: None, rewatch: None }
    }

    fn wait(store: StoreAction, delay: Duration) -> Self {
        Self { store, next: Next::Wait(delay), relist: None, rewatch: None }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
