//! What an informer is doing and what it has done, readable in code and as JSON.

mod cell;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

pub(crate) use self::cell::StatusCell;
use crate::durations::Durations;
use crate::error::RequestErrorKind;
use crate::key::ObjectKey;
use crate::memory::Memory;

/// What an informer is doing right now.
///
/// Whether its cache was ever complete is another question: see [`InformerStatus::synced`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "state")]
pub enum InformerState {
    /// Made, and not started: call [`InformerFactory::start`](crate::InformerFactory::start).
    NotStarted,
    /// Started; it waits for its turn before its first request.
    Waiting {
        /// What it waits for, such as another informer that goes first.
        #[serde(rename = "for")]
        for_: String,
    },
    /// Started; its first request isn't answered yet.
    Starting,
    /// Takes in the present state, as a list or as a stream.
    Listing,
    /// Its cache is complete, and it watches for changes.
    Synced,
    /// The server doesn't serve the kind. The cache is empty. The informer starts by itself when that changes: at once
    /// where it's told of CRDs, else when it next asks.
    Missing {
        /// Since when.
        since: Timestamp,
        /// What of it is missing.
        cause: MissingCause,
        /// The same in words.
        reason: String,
        /// How it's known, and how the informer will learn of a change.
        checked_by: AvailabilityCheck,
        /// The last failed request of the check: the server's refusal, or why discovery failed.
        #[serde(rename = "checkError", skip_serializing_if = "Option::is_none")]
        last_error: Option<LastError>,
    },
    /// The credentials don't allow it. What was in the cache stays. The informer asks again.
    Forbidden {
        /// Since when.
        since: Timestamp,
        /// What the server said.
        reason: String,
    },
    /// The last request failed and another will follow. What was in the cache stays, and grows older.
    Retrying {
        /// Since when it has been failing.
        since: Timestamp,
        /// The kind of the last error.
        kind: RequestErrorKind,
        /// The last error.
        reason: String,
    },
    /// Ended for good by what it was set up to end at. What was in the cache stays readable.
    Failed {
        /// Since when.
        since: Timestamp,
        /// What ended it.
        reason: String,
    },
    /// Ended for good. What was in the cache stays readable.
    Stopped,
}

/// What is missing where a kind isn't served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MissingCause {
    /// The server knows nothing of the kind: no CRD, no group, or a group without it.
    NoSuchKind,
    /// Its CRD is there and isn't served yet.
    NotEstablished,
    /// It's served in these versions only.
    OtherVersions(Vec<String>),
    /// It's served for the whole cluster only, and one namespace was asked for.
    OtherScope,
    /// It was served before, and is gone.
    Deleted,
    /// The server refused the kind, and can't be asked whether it serves it. It isn't known to be absent.
    DiscoveryFailing,
    /// The program said that it's missing: nothing is asked for.
    Excluded,
}

/// How it's known whether a kind is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AvailabilityCheck {
    /// By a watch of CRDs: a change is noticed at once.
    CrdWatch,
    /// By asking the server's discovery documents, at most 30 s apart: CRDs can't be watched, or it's no kind of a CRD.
    Discovery,
    /// It isn't: the program said so.
    Program,
}

/// Why the present state was taken in again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RelistReason {
    /// The server no longer had the changes since the last resource version (410).
    Expired,
    /// The server hadn't reached the resource version asked for.
    ResourceVersionTooLarge,
    /// The server ended the watch with an error.
    WatchError,
    /// A list or a stream of the present state ended before it was complete.
    Incomplete,
    /// The kind was gone and is back.
    Returned,
    /// The stream held something that can't be attributed to an object.
    Unreadable,
    /// The informer's own task failed.
    Internal,
}

/// Why a watch was opened again where the last one ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchRestartReason {
    /// The server ended it, as it does after the time that it was asked for.
    Ended,
    /// The server ended it within a second.
    Short,
    /// The connection broke off.
    Broken,
    /// It was silent for so long that it was taken for dead.
    Idle,
    /// Nobody accepted the connection.
    Refused,
    /// The server had no time for it (429).
    TooManyRequests,
    /// The credentials weren't accepted, or don't allow it.
    Denied,
    /// The server ended it with an error event.
    ErrorEvent,
    /// The request for it failed otherwise.
    Failed,
}

/// An informer's state, numbers and troubles at one moment.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InformerStatus {
    /// The informer's name, such as `deployments.apps/v1 in namespace "web"`.
    pub informer: String,
    /// The API group of its resource; empty for the core group.
    pub group: String,
    /// The version of its resource.
    pub version: String,
    /// The plural name of its resource.
    pub resource: String,
    /// The kind of its objects.
    pub kind: String,
    /// The form in which it holds them: `full`, `full, dynamic`, `metadata`, or the type of the representation.
    pub form: String,
    /// The part of the resource that it covers; empty for all of it.
    pub scope: String,
    /// Other informers of the same factory that hold some of the same objects, as in `metadata of secrets/v1`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_held_as: Vec<String>,
    /// What it's doing.
    #[serde(flatten)]
    pub state: InformerState,
    /// Whether the cache was complete at least once. Stays true while the informer reconnects.
    pub synced: bool,
    /// How many objects the cache holds.
    pub objects: usize,
    /// What it holds in memory.
    pub memory: Memory,
    /// The resource version up to which the cache follows the server; empty before the first sync.
    pub resource_version: String,
    /// What happened so far.
    pub counters: Counters,
    /// How long it took to apply a batch of changes to the cache and to put it into the handlers' backlogs.
    pub processing: Durations,
    /// The last failed request, also if all is well since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// Objects on the server that can't be decoded now, with the reason; the first 100.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub undecodable: BTreeMap<ObjectKey, String>,
    /// Objects that an index misses because its function failed or panicked for their present state, with the reason, by
    /// the index's name; the first 100 of each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unindexed: BTreeMap<String, BTreeMap<ObjectKey, String>>,
    /// The handlers, in the order they were added.
    pub handlers: Vec<HandlerStatus>,
}

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// When.
    pub at: Timestamp,
    /// Its kind.
    pub kind: RequestErrorKind,
    /// What the server or the connection said.
    pub message: String,
}

/// What an informer counted since it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Changes of the store that were announced.
    pub events: u64,
    /// Requests for a list, one per page, and for a stream of the present state.
    pub lists: u64,
    /// How often the present state was taken in again after the first time, by reason.
    pub relists: BTreeMap<RelistReason, u64>,
    /// How often a watch was opened again where the last one ended, without a new list, by reason.
    pub watch_restarts: BTreeMap<WatchRestartReason, u64>,
    /// Requests that failed.
    pub failures: u64,
    /// Objects received that couldn't be decoded; each received state counts.
    pub undecodable: u64,
    /// Events that were neither a change, a bookmark nor an error, or of another kind.
    pub unexpected: u64,
    /// Events merged away in handlers' backlogs.
    pub conflated: u64,
    /// Calls of an index function that panicked; the object is then missing in that index.
    pub index_panics: u64,
    /// Calls of an index function that failed; the object is then missing in that index.
    pub index_errors: u64,
    /// How often the informer's own task failed and was started again.
    pub restarts: u64,
}

/// One handler's state and numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HandlerStatus {
    /// Its name.
    pub handler: String,
    /// Whether it has handled the whole initial state.
    pub synced: bool,
    /// Events that wait for it.
    pub queued: usize,
    /// Events that it was given.
    pub delivered: u64,
    /// Events merged away in its backlog.
    pub conflated: u64,
    /// Calls that panicked.
    pub panics: u64,
    /// How long after they came from the server its events were handled; of a subscription: taken. Of changes that were
    /// merged the first counts. The initial state and resyncs don't.
    pub lag: Durations,
    /// Why it gets no more events, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

// === impl InformerState ===

impl InformerState {
    /// Whether the server is known not to serve the kind, so that an empty cache is the whole truth.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Missing { cause, .. } if *cause != MissingCause::DiscoveryFailing)
    }

    /// The state's name, as JSON and metrics have it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotStarted => "notStarted",
            Self::Waiting { .. } => "waiting",
            Self::Starting => "starting",
            Self::Listing => "listing",
            Self::Synced => "synced",
            Self::Missing { .. } => "missing",
            Self::Forbidden { .. } => "forbidden",
            Self::Retrying { .. } => "retrying",
            Self::Failed { .. } => "failed",
            Self::Stopped => "stopped",
        }
    }
}

impl fmt::Display for InformerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => f.write_str("not started"),
            Self::Waiting { for_ } => write!(f, "waits for {for_}"),
            Self::Starting => f.write_str("waits for the server's first answer"),
            Self::Listing => f.write_str("takes in the present state"),
            Self::Synced => f.write_str("synced"),
            Self::Missing { since, cause, reason, checked_by, last_error } => {
                write!(f, "{cause} since {since}: {reason} (known by {checked_by})")?;
                match last_error {
                    Some(error) => write!(f, "; last error at {}: {}", error.at, error.message),
                    None => Ok(()),
                }
            }
            Self::Forbidden { since, reason } => write!(f, "forbidden since {since}: {reason}"),
            Self::Retrying { since, kind, reason } => write!(f, "failing since {since}, {kind}: {reason}"),
            Self::Failed { since, reason } => write!(f, "failed for good at {since}: {reason}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl fmt::Display for MissingCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchKind => f.write_str("no such kind"),
            Self::NotEstablished => f.write_str("not served yet"),
            Self::OtherVersions(versions) => write!(f, "served in other versions only ({})", versions.join(", ")),
            Self::OtherScope => f.write_str("not in namespaces"),
            Self::Deleted => f.write_str("no such kind any more"),
            Self::DiscoveryFailing => f.write_str("perhaps no such kind"),
            Self::Excluded => f.write_str("said to be missing"),
        }
    }
}

impl fmt::Display for AvailabilityCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CrdWatch => "a watch of CRDs",
            Self::Discovery => "discovery",
            Self::Program => "what the program said",
        })
    }
}
