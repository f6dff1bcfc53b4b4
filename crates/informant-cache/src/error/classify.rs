//! From what the server or the connection said to a [`RequestError`]: the one place where that's decided.

use std::error::Error;
use std::io;
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use kube::client::AuthError;
use serde::Deserialize;

use super::{DecodeError, RequestError, RequestErrorKind, scrub};
use crate::protobuf::{self, Envelope, MAGIC};

/// A `Status` of the API, as much as is needed to decide.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ApiStatus {
    code: Option<u16>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    causes: Option<Vec<Cause>>,
    retry_after_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Cause {
    reason: Option<String>,
    message: Option<String>,
}

const TOO_LARGE: &str = "Too large resource version";

impl RequestError {
    /// The error that an answer with this code and body means.
    pub(crate) fn from_answer(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let status = ApiStatus::read(body).unwrap_or_else(|_| {
            // Not from the API itself: a proxy's page, or `404 page not found`.
            let text = String::from_utf8_lossy(body.get(..200).unwrap_or(body));
            ApiStatus { message: Some(scrub::text(text.trim())), ..ApiStatus::default() }
        });
        let mut error = Self::from_status(&status, Some(code));
        if error.retry_after.is_none() {
            let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            error.retry_after = seconds.map(Duration::from_secs);
        }
        error
    }

    /// The error that a watch's ERROR event means. The event's own code decides, whatever the answer's was.
    pub(crate) fn from_event(object: &[u8]) -> Self {
        Self::from_event_status(ApiStatus::read(object))
    }

    /// As [`from_event`](Self::from_event), of a status that's a message without its envelope.
    pub(crate) fn from_protobuf(status: &[u8]) -> Self {
        Self::from_event_status(ApiStatus::from_message(status))
    }

    fn from_event_status(status: Result<ApiStatus, DecodeError>) -> Self {
        match status {
            Ok(status) => Self::from_status(&status, None),
            Err(error) => {
                Self::new(RequestErrorKind::Malformed, format!("an ERROR event without a readable status: {error}"))
            }
        }
    }

    /// Whether a document is a status of the API.
    pub(crate) fn is_status(document: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Kind {
            kind: String,
        }
        if document.starts_with(MAGIC) {
            return Envelope::open(document).is_ok_and(|envelope| envelope.kind == "Status");
        }
        serde_json::from_slice::<Kind>(document).is_ok_and(|document| document.kind == "Status")
    }

    fn from_status(status: &ApiStatus, code: Option<StatusCode>) -> Self {
        let number = status.code.or(code.map(|code| code.as_u16())).unwrap_or(0);
        let reason = status.reason.as_deref().unwrap_or("");
        let text = status.message.as_deref().unwrap_or("");
        let message = match (text, reason) {
            ("", "") => format!("code {number}"),
            ("", reason) => format!("{reason} ({number})"),
            (text, _) => format!("{} ({number})", scrub::text(text)),
        };
        let retry_after = status.details.as_ref().and_then(|details| details.retry_after_seconds);
        Self {
            kind: status.kind(number, reason, text),
            message,
            retry_after: retry_after.filter(|seconds| *seconds > 0).map(Duration::from_secs),
        }
    }

    /// The error of a request that got no answer, or of a body that ended early.
    pub(crate) fn from_connection(error: &(dyn Error + 'static)) -> Self {
        let refused = chain(error).any(is_refused);
        let kind = if refused { RequestErrorKind::ConnectionRefused } else { RequestErrorKind::Connection };
        let secret = chain(error).filter_map(|error| error.downcast_ref::<AuthError>()).find_map(scrub::auth);
        if let Some(text) = secret {
            return Self::new(kind, text);
        }
        // Each error says its own part; some repeat their source.
        let mut message = String::new();
        for part in chain(error).map(ToString::to_string) {
            if !message.contains(&part) {
                if !message.is_empty() {
                    message.push_str(": ");
                }
                message.push_str(&part);
            }
        }
        Self::new(kind, message)
    }
}

/// Whether this error says that nobody listens. An I/O error that wraps another doesn't count it among its sources.
fn is_refused(error: &(dyn Error + 'static)) -> bool {
    let Some(error) = error.downcast_ref::<io::Error>() else { return false };
    let wrapped = error.get_ref().and_then(|wrapped| wrapped.downcast_ref::<io::Error>());
    [Some(error), wrapped].into_iter().flatten().any(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// An error and its sources.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn Error + 'static) = *error;
        error.source()
    })
}

impl ApiStatus {
    /// Reads a status, JSON or protobuf in its envelope.
    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        if !bytes.starts_with(MAGIC) {
            return serde_json::from_slice(bytes).map_err(DecodeError::from_json);
        }
        let envelope = Envelope::open(bytes)?;
        if envelope.kind != "Status" {
            return Err(DecodeError::new("it's another kind"));
        }
        Self::from_message(envelope.raw)
    }

    fn from_message(message: &[u8]) -> Result<Self, DecodeError> {
        let status = protobuf::table().kind("v1", "Status").ok_or_else(|| DecodeError::new("its form isn't known"))?;
        Ok(protobuf::Object::new(status, message).decode()?)
    }

    fn kind(&self, code: u16, reason: &str, message: &str) -> RequestErrorKind {
        if self.is_too_large(code, reason, message) {
            return RequestErrorKind::ResourceVersionTooLarge;
        }
        match (code, reason) {
            // Some servers send the reason with another code.
            (410, _) | (_, "Expired" | "Gone") => RequestErrorKind::Expired,
            (429, _) | (_, "TooManyRequests") => RequestErrorKind::TooManyRequests,
            (404, _) => RequestErrorKind::NotFound,
            (403, _) => RequestErrorKind::Forbidden,
            (401, _) => RequestErrorKind::Unauthorized,
            (400 | 422, _) => RequestErrorKind::Invalid,
            _ => RequestErrorKind::Server,
        }
    }

    /// Current servers name the cause; older ones say so in the cause's message or only in the message.
    fn is_too_large(&self, code: u16, reason: &str, message: &str) -> bool {
        let causes = self.details.iter().flat_map(|details| details.causes.iter().flatten());
        let mut causes = causes.map(|cause| (cause.reason.as_deref(), cause.message.as_deref().unwrap_or("")));
        let timed_out = code == 504 || reason == "Timeout";
        causes.any(|(reason, message)| {
            reason == Some("ResourceVersionTooLarge") || (timed_out && message.contains(TOO_LARGE))
        }) || (timed_out && message.contains(TOO_LARGE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, body: &str) -> RequestError {
        let code = StatusCode::from_u16(code).expect("a code");
        RequestError::from_answer(code, &HeaderMap::new(), body.as_bytes())
    }

    /// client-go fact 9.
    #[test]
    fn a_resource_version_that_is_too_large_is_known_in_each_of_its_shapes() {
        for body in [
            r#"{"code":504,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}"#,
            r#"{"code":504,"reason":"Timeout","details":{"causes":[{"message":"Too large resource version"}]}}"#,
            r#"{"code":504,"reason":"Timeout","message":"Timeout: Too large resource version: 100, current: 5"}"#,
        ] {
            assert_eq!(answer(504, body).kind, RequestErrorKind::ResourceVersionTooLarge, "{body}");
        }
        assert_eq!(
            answer(504, r#"{"code":504,"reason":"Timeout","message":"etcd is slow"}"#).kind,
            RequestErrorKind::Server
        );
    }

    #[test]
    fn expiry_is_known_by_code_or_by_reason() {
        for event in [
            r#"{"code":410,"reason":"Expired"}"#,
            r#"{"code":200,"reason":"Gone","message":"too old resource version: 5 (900)"}"#,
            r#"{"code":410}"#,
        ] {
            assert_eq!(RequestError::from_event(event.as_bytes()).kind, RequestErrorKind::Expired, "{event}");
        }
    }

    #[test]
    fn the_server_s_wish_to_wait_is_taken_from_body_or_header() {
        let body = r#"{"code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":2}}"#;
        let error = answer(429, body);
        assert_eq!((error.kind, error.retry_after), (RequestErrorKind::TooManyRequests, Some(Duration::from_secs(2))));
        let headers = HeaderMap::from_iter([(header::RETRY_AFTER, "3".parse().expect("a value"))]);
        let error = RequestError::from_answer(StatusCode::TOO_MANY_REQUESTS, &headers, b"slow down");
        assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
        assert_eq!(error.message, "slow down (429)");
    }

    #[test]
    fn each_code_has_its_kind_and_the_server_s_words() {
        use RequestErrorKind as Kind;
        for (code, kind) in [
            (404, Kind::NotFound),
            (403, Kind::Forbidden),
            (401, Kind::Unauthorized),
            (422, Kind::Invalid),
            (500, Kind::Server),
        ] {
            let error = answer(code, "404 page not found\n");
            assert_eq!((error.kind, error.message), (kind, format!("404 page not found ({code})")));
        }
    }

    #[test]
    fn a_refused_connection_is_told_from_a_broken_one() {
        let refused = io::Error::other(io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!(RequestError::from_connection(&refused).kind, RequestErrorKind::ConnectionRefused);
        let broken = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(RequestError::from_connection(&broken).kind, RequestErrorKind::Connection);
    }
}
