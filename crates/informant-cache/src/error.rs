//! What can go wrong, classified once where it enters.
//!
//! A variant is a decision that the reflector or a caller takes; everything else is text.

mod classify;
pub(crate) mod scrub;

use std::fmt;
use std::time::Duration;

use serde::Serialize;

pub(crate) use self::scrub::complaint;
use crate::status::InformerState;

/// An object that can't be decoded. It's skipped, counted and named; the informer goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct DecodeError {
    reason: String,
}

impl DecodeError {
    /// An error with this reason, which should say what of the object isn't as it should be.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// The error of a JSON parser: what it expected and found, without the value that it found.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "it's used as a function that maps an error")]
    pub fn from_json(error: serde_json::Error) -> Self {
        Self::new(scrub::json(&error))
    }

    /// The error of a JSON parser, and where in the document it was.
    pub(crate) fn at(path: &str, error: &serde_json::Error) -> Self {
        Self::new(format!("{path}: {}", scrub::json(error)))
    }
}

/// Why a request to the API server failed, or a watch was ended with an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// What to do about it.
    pub kind: RequestErrorKind,
    /// What the server or the connection said.
    pub message: String,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
}

/// The kinds of [`RequestError`], each of which is handled in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestErrorKind {
    /// 410, or a reason of Expired or Gone: the resource version or continue token is older than what the server keeps.
    Expired,
    /// The server hasn't reached this resource version yet.
    ResourceVersionTooLarge,
    /// 429: the server asks for patience.
    TooManyRequests,
    /// Nobody listens at the server's address.
    ConnectionRefused,
    /// 404: the server has no such kind.
    NotFound,
    /// 403: the credentials don't allow it.
    Forbidden,
    /// 401: the server doesn't know the credentials.
    Unauthorized,
    /// 400 or 422: the server doesn't understand the request.
    Invalid,
    /// Any other answer of the server.
    Server,
    /// The connection failed, ended early or went silent.
    Connection,
    /// The answer isn't what the API promises.
    Malformed,
}

impl RequestError {
    /// An error of this kind.
    #[must_use]
    pub fn new(kind: RequestErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }
}

impl fmt::Display for RequestErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "expired",
            Self::ResourceVersionTooLarge => "resource version too large",
            Self::TooManyRequests => "too many requests",
            Self::ConnectionRefused => "connection refused",
            Self::NotFound => "not found",
            Self::Forbidden => "forbidden",
            Self::Unauthorized => "unauthorized",
            Self::Invalid => "invalid request",
            Self::Server => "server error",
            Self::Connection => "connection error",
            Self::Malformed => "malformed answer",
        })
    }
}

/// Why [`InformerFactory::start`](crate::InformerFactory::start) started nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It was started before. Informers that are made after the start begin by themselves.
    #[error("the informer factory was started already; informers made since then run")]
    AlreadyStarted,
    /// The factory was shut down, or the token it was started with was cancelled. It can't be started again.
    #[error("the informer factory was shut down; make a new one")]
    ShutDown,
    /// There's no tokio runtime here to run the informers on.
    #[error("informers run on a tokio runtime: call start from within one")]
    NoRuntime,
    /// Informers depend on each other in a circle, so none of them could begin.
    #[error("informers depend on each other in a circle: {}", informers.join(" -> "))]
    Cycle {
        /// Their names, each depending on the next and the last on the first.
        informers: Vec<String>,
    },
}

/// Why waiting for caches ended before they were synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncError {
    /// What isn't synced, sorted by name.
    pub not_synced: Vec<NotSynced>,
}

/// One informer that isn't synced, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotSynced {
    /// The informer's name, such as `deployments.apps/v1 in namespace "web"`.
    pub informer: String,
    /// What it's doing instead.
    pub state: InformerState,
}

impl std::error::Error for NotSynced {}

impl fmt::Display for NotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not synced: {} ({})", self.informer, self.state)
    }
}

impl std::error::Error for SyncError {}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not synced: ")?;
        for (position, NotSynced { informer, state }) in self.not_synced.iter().enumerate() {
            let separator = if position > 0 { "; " } else { "" };
            write!(f, "{separator}{informer} ({state})")?;
        }
        Ok(())
    }
}
