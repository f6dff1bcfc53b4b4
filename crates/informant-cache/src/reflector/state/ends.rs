//! What follows when a stream ends, a request fails or the server says no.

use std::time::Duration;

use super::{
    FAILED_WATCHES_MAX, Input, Kind, LIST_RESTARTS_MAX, Listing, Output, Plan, RECENT_LIST, State, Step, StoreAction,
    UNFINISHED_STREAMS_MAX, WATCH_FLOOR,
};
use crate::error::RequestError;
use crate::status::{RelistReason, WatchRestartReason};

impl State {
    /// A stream is over: the server ended it, or it broke.
    pub(super) fn ended(&mut self, now: Duration, error: Option<RequestError>) -> Output {
        self.note_life(now);
        match self.step {
            Step::Streaming { .. } => self.stream_ended_early(now, error),
            Step::Watching { resumable: false, .. } => {
                let error = error.unwrap_or_else(|| {
                    RequestError::new(Kind::Malformed, "the list had no resource version to watch from")
                });
                self.relist_later(now, RelistReason::Incomplete, &error)
            }
            Step::Watching { opened, had_event, .. } => self.watch_ended(now, opened, had_event, error),
            Step::Waiting(_) => Output::read(StoreAction::Nothing),
            Step::Listing(_) => {
                let error = error.unwrap_or_else(|| RequestError::new(Kind::Connection, "the list ended early"));
                self.failed(now, error)
            }
        }
    }

    fn stream_ended_early(&mut self, now: Duration, error: Option<RequestError>) -> Output {
        self.unfinished_streams += 1;
        if self.unfinished_streams >= UNFINISHED_STREAMS_MAX {
            // Pages make progress where a stream can't.
            self.unfinished_streams = 0;
            return self.list(StoreAction::Discard);
        }
        let error = error.unwrap_or_else(|| RequestError::new(Kind::Connection, "the initial events ended early"));
        self.set_failure(&error);
        self.wait(now, Plan::Cycle, StoreAction::Discard, &error)
    }

    fn watch_ended(&mut self, now: Duration, opened: Duration, had_event: bool, error: Option<RequestError>) -> Output {
        let lived = now.saturating_sub(opened);
        if lived >= WATCH_FLOOR {
            self.failed_watches = 0;
            return self.watch(now);
        }
        if had_event {
            self.step = Step::Waiting(Plan::Watch);
            return Output::wait(StoreAction::Nothing, WATCH_FLOOR.saturating_sub(lived));
        }
        self.failed_watches += 1;
        let error = error.unwrap_or_else(|| RequestError::new(Kind::Connection, "the watch ended at once"));
        self.set_failure(&error);
        if self.failed_watches >= FAILED_WATCHES_MAX {
            return self.relist_later(now, RelistReason::WatchError, &error);
        }
        self.wait(now, Plan::Watch, StoreAction::Nothing, &error)
    }

    pub(super) fn failed(&mut self, now: Duration, error: RequestError) -> Output {
        if error.kind == Kind::NotFound {
            return self.missing(error);
        }
        self.missing_answers = 0;
        match &self.step {
            Step::Streaming { resource_version, .. } => {
                let had_version = !resource_version.is_empty();
                self.stream_failed(now, had_version, error)
            }
            Step::Listing(_) => self.list_failed(now, error),
            Step::Watching { .. } => self.watch_failed(now, error),
            Step::Waiting(_) => self.wait(now, Plan::Cycle, StoreAction::Discard, &error),
        }
    }

    fn stream_failed(&mut self, now: Duration, had_version: bool, error: RequestError) -> Output {
        match error.kind {
            Kind::TooManyRequests | Kind::ConnectionRefused => {
                self.set_failure(&error);
                self.wait(now, Plan::Cycle, StoreAction::Discard, &error)
            }
            Kind::Expired | Kind::ResourceVersionTooLarge if had_version => {
                self.resource_version_unavailable = true;
                self.stream(now, StoreAction::Discard)
            }
            Kind::Invalid => {
                self.watch_list_refused = true;
                self.list(StoreAction::Discard)
            }
            Kind::Expired
            | Kind::ResourceVersionTooLarge
            | Kind::NotFound
            | Kind::Forbidden
            | Kind::Unauthorized
            | Kind::Server
            | Kind::Connection
            | Kind::Malformed => self.list(StoreAction::Discard),
        }
    }

    fn list_failed(&mut self, now: Duration, error: RequestError) -> Output {
        if let Step::Listing(Listing { resource_version, limit, page, restarts }) = &self.step {
            let (first_page, limit, restarts) = (*page == 1, *limit, *restarts);
            match error.kind {
                // A continue token grew too old, and what came of the list so far is no state at all.
                Kind::Expired if !first_page && !self.policy.read_from_cache && restarts < LIST_RESTARTS_MAX => {
                    return self.list_with(String::new(), limit, StoreAction::Discard, restarts + 1);
                }
                // The server's cache has no pages: the same again in one piece.
                Kind::Expired if !first_page && self.policy.read_from_cache && restarts == 0 => {
                    let resource_version = resource_version.clone();
                    return self.list_with(resource_version, 0, StoreAction::Discard, 1);
                }
                Kind::Expired | Kind::ResourceVersionTooLarge if !resource_version.is_empty() => {
                    self.resource_version_unavailable = true;
                    return self.list(StoreAction::Discard);
                }
                Kind::Expired
                | Kind::ResourceVersionTooLarge
                | Kind::TooManyRequests
                | Kind::ConnectionRefused
                | Kind::NotFound
                | Kind::Forbidden
                | Kind::Unauthorized
                | Kind::Invalid
                | Kind::Server
                | Kind::Connection
                | Kind::Malformed => {}
            }
        }
        self.set_failure(&error);
        self.wait(now, Plan::Cycle, StoreAction::Discard, &error)
    }

    /// A watch couldn't be opened.
    fn watch_failed(&mut self, now: Duration, error: RequestError) -> Output {
        match error.kind {
            Kind::Expired => self.expired(now, &error),
            Kind::ResourceVersionTooLarge => {
                self.resource_version_unavailable = true;
                self.relist_later(now, RelistReason::ResourceVersionTooLarge, &error)
            }
            // The server is there, or will be, and asks for patience: nothing is lost by it.
            Kind::TooManyRequests
            | Kind::ConnectionRefused
            | Kind::Connection
            | Kind::Forbidden
            | Kind::Unauthorized
            | Kind::NotFound => {
                self.set_failure(&error);
                self.wait(now, Plan::Watch, StoreAction::Nothing, &error)
            }
            Kind::Invalid | Kind::Server | Kind::Malformed => {
                self.set_failure(&error);
                self.failed_watches += 1;
                if self.failed_watches >= FAILED_WATCHES_MAX {
                    return self.relist_later(now, RelistReason::WatchError, &error);
                }
                self.wait(now, Plan::Watch, StoreAction::Nothing, &error)
            }
        }
    }

    pub(super) fn error_event(&mut self, now: Duration, error: RequestError) -> Output {
        self.note_life(now);
        if self.awaits_initial_events_end() {
            return self.failed(now, error);
        }
        match error.kind {
            Kind::Expired => self.expired(now, &error),
            // Nothing of what came since is lost by it.
            Kind::TooManyRequests | Kind::Forbidden | Kind::Unauthorized => {
                self.set_failure(&error);
                self.wait(now, Plan::Watch, StoreAction::Nothing, &error)
            }
            Kind::ResourceVersionTooLarge
            | Kind::ConnectionRefused
            | Kind::NotFound
            | Kind::Invalid
            | Kind::Server
            | Kind::Connection
            | Kind::Malformed => {
                self.set_failure(&error);
                self.relist_later(now, RelistReason::WatchError, &error)
            }
        }
    }

    /// Keeps why a watch is over, for when it's opened again.
    pub(super) fn note_watch_end(&mut self, now: Duration, input: &Input) {
        let Step::Watching { opened, .. } = self.step else { return };
        let by_kind = |error: &RequestError, otherwise| match error.kind {
            Kind::TooManyRequests => WatchRestartReason::TooManyRequests,
            Kind::ConnectionRefused => WatchRestartReason::Refused,
            Kind::Forbidden | Kind::Unauthorized => WatchRestartReason::Denied,
            Kind::Expired
            | Kind::ResourceVersionTooLarge
            | Kind::NotFound
            | Kind::Invalid
            | Kind::Server
            | Kind::Connection
            | Kind::Malformed => otherwise,
        };
        self.watch_end = Some(match input {
            Input::Ended if now.saturating_sub(opened) < WATCH_FLOOR => WatchRestartReason::Short,
            Input::Ended => WatchRestartReason::Ended,
            Input::Broken(_) => WatchRestartReason::Broken,
            Input::Idle(_) => WatchRestartReason::Idle,
            Input::ErrorEvent(error) => by_kind(error, WatchRestartReason::ErrorEvent),
            Input::Failed(error) => by_kind(error, WatchRestartReason::Failed),
            _ => return,
        });
    }

    /// A watch is over. If it lasted, the server is well, and what failed before is forgotten.
    fn note_life(&mut self, now: Duration) {
        if let Step::Watching { opened, .. } = self.step
            && now.saturating_sub(opened) >= WATCH_FLOOR
        {
            self.backoff.reset();
        }
    }

    /// The changes since the last resource version are gone.
    fn expired(&mut self, now: Duration, error: &RequestError) -> Output {
        let recent = self.last_complete.is_some_and(|last| now.saturating_sub(last) < RECENT_LIST);
        if recent {
            return self.relist_later(now, RelistReason::Expired, error);
        }
        Output { relist: Some(RelistReason::Expired), ..self.cycle(now) }
    }
}
