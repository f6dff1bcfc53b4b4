//! What a list or watch request asks for: its query parameters, and the rules for their combinations.

use super::continue_token::ContinueToken;
use crate::status::{Cause, Status};

/// The parameters of a list or watch request that have to do with versions and pages, as they stand in the query; empty
/// strings and zero mean "not given".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    /// `resourceVersion`.
    pub(crate) resource_version: String,
    /// `resourceVersionMatch`.
    pub(crate) resource_version_match: String,
    /// `limit`.
    pub(crate) limit: u64,
    /// `continue`.
    pub(crate) continue_token: String,
    /// `sendInitialEvents`.
    pub(crate) send_initial_events: Option<bool>,
    /// `allowWatchBookmarks`.
    pub(crate) allow_watch_bookmarks: bool,
    /// `timeoutSeconds`.
    pub(crate) timeout_seconds: u64,
}

/// What a list reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListPlan {
    /// Which state.
    pub(super) at: At,
    /// The first key that may be in the answer.
    pub(super) start: String,
    /// How many objects at most.
    pub(super) limit: usize,
}

/// Which state a list reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// The present.
    Latest,
    /// The present, once it's at least this version.
    NotOlderThan(u64),
    /// The state at this version.
    Exactly(u64),
}

/// How a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchPlan {
    /// From where.
    pub(crate) start: WatchStart,
    /// Whether the end of the initial objects is marked with a bookmark.
    pub(crate) mark_initial_end: bool,
}

/// From where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchStart {
    /// With all objects, as of the present once it's at least this version.
    Objects(u64),
    /// With what comes after the present.
    Present,
    /// With what comes after this version.
    After(u64),
}

/// `resourceVersionMatch`, known values only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    Unset,
    NotOlderThan,
    Exact,
}

// === impl ListOptions ===

impl ListOptions {
    /// Decides what a list reads.
    ///
    /// # Errors
    ///
    /// 422 for a combination that is refused, 400 for a version or token that can't be read.
    pub(super) fn plan_list(&self) -> Result<ListPlan, Status> {
        let rule = self.check_list()?;
        let limit = if self.limit == 0 { usize::MAX } else { usize::try_from(self.limit).unwrap_or(usize::MAX) };
        if !self.continue_token.is_empty() {
            return self.plan_next_page(limit);
        }
        let version = parse_version(&self.resource_version)?;
        let (at, limit) = match (version, rule) {
            (None, _) => (At::Latest, limit),
            // A real server answers these from its cache, as a whole.
            (Some(0), _) => (At::Latest, usize::MAX),
            (Some(version), Match::Exact) => (At::Exactly(version), limit),
            // A limit without a rule means exactly this version, since before there were rules.
            (Some(version), Match::Unset) if self.limit > 0 => (At::Exactly(version), limit),
            (Some(version), Match::Unset | Match::NotOlderThan) => (At::NotOlderThan(version), limit),
        };
        Ok(ListPlan { at, start: String::new(), limit })
    }

    /// Decides how a watch begins.
    ///
    /// # Errors
    ///
    /// 422 for a combination that is refused, 400 for a version that can't be read.
    pub(crate) fn plan_watch(&self) -> Result<WatchPlan, Status> {
        self.check_watch()?;
        let version = parse_version(&self.resource_version)?;
        let (start, initial) = match (self.send_initial_events, version) {
            (Some(true), version) => (WatchStart::Objects(version.unwrap_or(0)), true),
            (Some(false), None | Some(0)) => (WatchStart::Present, false),
            // So it is also without being asked for, on a real server.
            (None, None) => (WatchStart::Objects(0), true),
            (None, Some(0)) => (WatchStart::Objects(0), false),
            (Some(false) | None, Some(version)) => (WatchStart::After(version), false),
        };
        Ok(WatchPlan { start, mark_initial_end: initial && self.allow_watch_bookmarks })
    }

    fn plan_next_page(&self, limit: usize) -> Result<ListPlan, Status> {
        if !matches!(self.resource_version.as_str(), "" | "0") {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        let token = ContinueToken::decode(&self.continue_token)?;
        let at = token.version().map_or(At::Latest, At::Exactly);
        Ok(ListPlan { at, start: token.start().to_owned(), limit })
    }

    fn check_list(&self) -> Result<Match, Status> {
        let mut causes = Vec::new();
        let rule = self.parse_match(&mut causes);
        if self.send_initial_events.is_some() {
            causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        if !self.resource_version_match.is_empty() {
            let mut forbid = |why: &str| causes.push(Cause::forbidden("resourceVersionMatch", why));
            if self.resource_version.is_empty() {
                forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_token.is_empty() {
                forbid("resourceVersionMatch is forbidden when continue is provided");
            }
            if rule == Match::Exact && self.resource_version == "0" {
                forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
        }
        refuse(causes).map(|()| rule)
    }

    fn check_watch(&self) -> Result<(), Status> {
        let mut causes = Vec::new();
        let rule = self.parse_match(&mut causes);
        let mut forbid = |why: &str| causes.push(Cause::forbidden("resourceVersionMatch", why));
        match self.send_initial_events {
            None if !self.resource_version_match.is_empty() => {
                forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
            }
            Some(_) if rule != Match::NotOlderThan => {
                forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
            }
            Some(_) | None => {}
        }
        refuse(causes)
    }

    fn parse_match(&self, causes: &mut Vec<Cause>) -> Match {
        match self.resource_version_match.as_str() {
            "" => Match::Unset,
            "Exact" => Match::Exact,
            "NotOlderThan" => Match::NotOlderThan,
            other => {
                let message = format!("Unsupported value: \"{other}\": supported values: \"Exact\", \"NotOlderThan\"");
                causes.push(Cause::new("FieldValueNotSupported", message, "resourceVersionMatch"));
                Match::Unset
            }
        }
    }
}

/// Reads a resource version: `None` when it's unset. One past 2^64 is from the future whatever it is.
///
/// # Errors
///
/// 400 when it isn't a number.
pub(super) fn parse_version(text: &str) -> Result<Option<u64>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Status::bad_request(format!("resourceVersion: Invalid value: \"{text}\": it isn't a number")));
    }
    Ok(Some(text.parse().unwrap_or(u64::MAX)))
}

fn refuse(causes: Vec<Cause>) -> Result<(), Status> {
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", "ListOptions", "", causes)) }
}
