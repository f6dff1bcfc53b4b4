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
    /// What of streamed initial state the server does.
    pub(crate) watch_list: WatchListSupport,
}

/// How a server answers watches that ask for the present state as a stream (KEP-3157), for tests of clients that must do
/// without: servers and proxies differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchListSupport {
    /// It sends the state, and marks its end with a bookmark: Kubernetes 1.34 and later.
    #[default]
    Full,
    /// It sends the state and never marks its end.
    WithoutEndMark,
    /// It refuses `sendInitialEvents` with 422, as Kubernetes 1.33 does.
    Refused,
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
        let limit = self.page_limit();
        if !self.continue_token.is_empty() {
            return self.plan_next_page(limit);
        }
        let version = parse_version(&self.resource_version)?;
        let (at, limit) = match (version, rule) {
            (None, _) => (At::Latest, limit),
            (Some(0), _) => (At::Latest, limit),
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
        let marks_end = self.watch_list == WatchListSupport::Full;
        let (start, initial) = match (self.send_initial_events, version) {
            (Some(true), version) => (WatchStart::Objects(version.unwrap_or(0)), true),
            (Some(false), None | Some(0)) => (WatchStart::Present, false),
            // So a real server does it also without being asked.
            (None, None | Some(0)) => (WatchStart::Objects(0), true),
            (Some(false) | None, Some(version)) => (WatchStart::After(version), false),
        };
        Ok(WatchPlan { start, mark_initial_end: initial && marks_end && self.allow_watch_bookmarks })
    }

    /// Version `0` means "whatever is at hand", which a real server takes from its cache and never cuts into pages.
    fn page_limit(&self) -> usize {
        if self.limit == 0 || self.resource_version == "0" {
            return usize::MAX;
        }
        usize::try_from(self.limit).unwrap_or(usize::MAX)
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
        let rule = self.parse_match();
        if !self.resource_version_match.is_empty() {
            let mut forbid = |why: &str| causes.push(Cause::forbidden("resourceVersionMatch", why));
            if self.resource_version.is_empty() {
                forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_token.is_empty() {
                forbid("resourceVersionMatch is forbidden when continue is provided");
            }
            if rule == Some(Match::Exact) && self.resource_version == "0" {
                forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
        }
        if rule.is_none() {
            causes.push(self.unsupported_match(r#""Exact", "NotOlderThan", """#));
        }
        if self.send_initial_events.is_some() {
            causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        refuse(causes).map(|()| rule.unwrap_or(Match::Unset))
    }

    fn check_watch(&self) -> Result<(), Status> {
        let mut causes = Vec::new();
        let mut forbid = |why: &str| causes.push(Cause::forbidden("resourceVersionMatch", why));
        match (self.send_initial_events, self.parse_match()) {
            (None, Some(Match::Unset)) | (Some(_), Some(Match::NotOlderThan)) => {}
            (None, _) => forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
            (Some(_), rule) => {
                forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
                if rule != Some(Match::Unset) {
                    causes.push(self.unsupported_match(r#""NotOlderThan""#));
                }
            }
        }
        if self.send_initial_events.is_some() && self.watch_list == WatchListSupport::Refused {
            let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            causes.push(Cause::forbidden("sendInitialEvents", why));
        }
        refuse(causes)
    }

    /// `None` for a value that isn't known.
    fn parse_match(&self) -> Option<Match> {
        match self.resource_version_match.as_str() {
            "" => Some(Match::Unset),
            "Exact" => Some(Match::Exact),
            "NotOlderThan" => Some(Match::NotOlderThan),
            _ => None,
        }
    }

    fn unsupported_match(&self, supported: &str) -> Cause {
        let value = &self.resource_version_match;
        let message = format!("Unsupported value: \"{value}\": supported values: {supported}");
        Cause::new("FieldValueNotSupported", message, "resourceVersionMatch")
    }
}

/// Reads a resource version: `None` when it's unset.
///
/// # Errors
///
/// 400 when it isn't a number of 64 bits.
pub(super) fn parse_version(text: &str) -> Result<Option<u64>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let refused = || {
        let why = "it must be a number, as it stands in the metadata of a list or an object";
        Status::bad_request(format!("invalid resource version: resourceVersion: Invalid value: \"{text}\": {why}"))
    };
    // The standard parser would also take a plus sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).map(Some).ok_or_else(refused)
}

fn refuse(causes: Vec<Cause>) -> Result<(), Status> {
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", "ListOptions", "", causes)) }
}
