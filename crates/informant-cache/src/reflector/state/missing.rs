//! What follows when the server says that it has no such thing.
//!
//! A 404 is looked into before anything is done about it: only what's known to be absent is missing, and only then is the
//! store emptied. That rests on a watch of CRDs, or on two looks at discovery a moment apart: a server that's coming up
//! may not know all kinds yet, and emptying the cache for that would be a disaster.

use std::time::Duration;

use super::{MISSING_RECHECK, Next, Output, Phase, Plan, State, Step, StoreAction};
use crate::availability::{Absence, Verdict};
use crate::error::RequestError;
use crate::status::{AvailabilityCheck, MissingCause};

impl State {
    /// The server has no such thing. Whether that's the kind isn't known yet.
    pub(super) fn missing(&mut self, error: RequestError) -> Output {
        self.refusal = Some(error);
        self.check()
    }

    /// Looks into what the server serves.
    pub(super) fn check(&mut self) -> Output {
        self.step = Step::Waiting(Plan::Check);
        let next = Next::Check { refused: self.refusal.is_some() };
        Output { store: StoreAction::Discard, next, relist: None, rewatch: None }
    }

    /// Whether it waits for a kind, so that news of CRDs may end the delay.
    pub(crate) fn awaits_kind(&self) -> bool {
        matches!(self.step, Step::Waiting(Plan::Check))
    }

    pub(super) fn checked(&mut self, now: Duration, verdict: Verdict) -> Output {
        match (verdict, self.refusal.take()) {
            (Verdict::Absent(absence), refusal) => self.absent(now, absence, refusal),
            (Verdict::ServedAs(_), _) => self.moved(now),
            // Without a refusal the thing itself is the best question.
            (Verdict::Served | Verdict::Unknown(_), None) => self.cycle(now),
            (Verdict::Served, Some(refusal)) => {
                self.missing_answers = 0;
                let message = format!("the server serves the kind, and yet it answered: {}", refusal.message);
                let error = RequestError { message, ..refusal };
                self.set_failure(&error);
                self.wait(now, Plan::Cycle, StoreAction::Discard, &error)
            }
            (Verdict::Unknown(error), Some(_)) if self.filled => {
                self.set_failure(&error);
                self.wait(now, Plan::Cycle, StoreAction::Discard, &error)
            }
            (Verdict::Unknown(error), Some(refusal)) => {
                let reason = format!("the server said: {}; whether it has the kind can't be asked", refusal.message);
                let cause = MissingCause::DiscoveryFailing;
                let absence = Absence { cause, reason, checked_by: AvailabilityCheck::Discovery, error: Some(error) };
                self.wait_for_kind(now, absence, StoreAction::Discard)
            }
        }
    }

    fn absent(&mut self, now: Duration, mut absence: Absence, refusal: Option<RequestError>) -> Output {
        if let Some(error) = absence.error.take().or(refusal) {
            self.refused_with = Some(error);
        }
        absence.error.clone_from(&self.refused_with);
        self.missing_answers += 1;
        let by_discovery = absence.checked_by == AvailabilityCheck::Discovery;
        // A CRD that looks well while discovery doesn't know it: the server is about to serve it, or about to say that
        // it's gone.
        let undecided = absence.cause == MissingCause::NotEstablished;
        if self.filled && by_discovery && (undecided || self.missing_answers == 1) {
            let error =
                absence.error.unwrap_or_else(|| RequestError::new(super::Kind::NotFound, absence.reason.clone()));
            self.phase = Phase::Retrying(RequestError { message: absence.reason, ..error });
            self.step = Step::Waiting(Plan::Check);
            let delay = if undecided { self.missing_backoff.delay(now, &mut self.rng) } else { MISSING_RECHECK };
            return Output::wait(StoreAction::Discard, delay);
        }
        let store = if std::mem::take(&mut self.filled) { StoreAction::Clear } else { StoreAction::Discard };
        self.emptied |= store == StoreAction::Clear;
        if self.emptied && absence.cause == MissingCause::NoSuchKind {
            absence.cause = MissingCause::Deleted;
        }
        self.wait_for_kind(now, absence, store)
    }

    /// The kind is served in another version, which will do: another shape of the same objects.
    fn moved(&mut self, now: Duration) -> Output {
        let filled = std::mem::take(&mut self.filled);
        self.emptied |= filled;
        self.forget_versions();
        let store = if filled { StoreAction::Clear } else { StoreAction::Discard };
        self.missing_answers += 1;
        if self.missing_answers > 1 {
            // It was refused there too.
            self.step = Step::Waiting(Plan::Cycle);
            return Output::wait(store, self.missing_backoff.delay(now, &mut self.rng));
        }
        Output { store, ..self.cycle(now) }
    }

    fn wait_for_kind(&mut self, now: Duration, absence: Absence, store: StoreAction) -> Output {
        if !matches!(&self.phase, Phase::Missing(before) if before.cause == absence.cause) {
            // It's news, and more may follow soon.
            self.missing_backoff.reset();
        }
        self.phase = Phase::Missing(absence);
        self.step = Step::Waiting(Plan::Check);
        self.forget_versions();
        Output::wait(store, self.missing_backoff.delay(now, &mut self.rng))
    }

    /// If the kind returns, it's another, and perhaps on another server.
    fn forget_versions(&mut self) {
        self.resource_version.clear();
        self.resource_version_unavailable = false;
        self.paginated = false;
    }
}
