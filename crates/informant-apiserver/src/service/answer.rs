//! Answers: the response body type, and from values, lists and errors to responses.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use serde_json::Value;

use crate::protobuf::encode;
use crate::service::negotiate::{Format, PROTOBUF};
use crate::status::Status;

/// Longest text of one `Warning` header, in bytes.
const MAX_WARNING: usize = 512;
/// Most `Warning` headers of one answer: clients limit what they take of headers.
const MAX_WARNINGS: usize = 20;

/// The body of a response: nothing, one piece, or the frames of a watch as they come.
pub struct ResponseBody {
    inner: Inner,
}

enum Inner {
    Empty,
    Whole(Bytes),
    Frames(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

/// A response before it becomes one of the `http` crate's.
#[derive(Debug)]
pub(crate) struct Answer {
    code: u16,
    content_type: String,
    body: ResponseBody,
    headers: Vec<(HeaderName, HeaderValue)>,
}

// === impl ResponseBody ===

impl ResponseBody {
    /// A body without a byte.
    pub(crate) fn empty() -> Self {
        Self { inner: Inner::Empty }
    }

    /// A body in one piece.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self { inner: Inner::Whole(bytes.into()) }
    }

    /// A body that goes on until the stream ends.
    pub(crate) fn frames(frames: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { inner: Inner::Frames(Box::pin(frames)) }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.inner {
            Inner::Empty => Poll::Ready(None),
            Inner::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                self.inner = Inner::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Inner::Frames(frames) => {
                frames.as_mut().poll_next(context).map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Empty => true,
            Inner::Whole(bytes) => bytes.is_empty(),
            Inner::Frames(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Empty => SizeHint::with_exact(0),
            Inner::Whole(bytes) => SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            Inner::Frames(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.inner {
            Inner::Empty => "ResponseBody(empty)",
            Inner::Whole(_) => "ResponseBody(whole)",
            Inner::Frames(_) => "ResponseBody(frames)",
        })
    }
}

// === impl Answer ===

impl Answer {
    /// An answer of a content type.
    pub(crate) fn new(code: u16, content_type: impl Into<String>, body: ResponseBody) -> Self {
        Self { code, content_type: content_type.into(), body, headers: Vec::new() }
    }

    /// A JSON document.
    pub(crate) fn json(code: u16, value: &Value) -> Self {
        Self::new(code, "application/json", ResponseBody::whole(value.to_string()))
    }

    /// Plain text.
    pub(crate) fn text(code: u16, text: impl Into<String>) -> Self {
        Self::new(code, "text/plain; charset=utf-8", ResponseBody::whole(text.into()))
    }

    /// A `Status` of an error.
    pub(crate) fn failure(status: &Status) -> Self {
        let answer = Self::json(status.code, &status.to_value());
        match status.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0) {
            Some(seconds) => answer.header(RETRY_AFTER, &seconds.to_string()),
            None => answer,
        }
    }

    /// The same JSON answer in another syntax; as it is when it can't be written so.
    pub(crate) fn in_format(mut self, format: Format) -> Self {
        let Inner::Whole(bytes) = &self.body.inner else { return self };
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return self };
        let written = match format {
            Format::Json => None,
            Format::Yaml => {
                serde_saphyr::to_string(&value).ok().map(|text| ("application/yaml", ResponseBody::whole(text)))
            }
            Format::Protobuf => encode::object(&value).map(|bytes| (PROTOBUF, ResponseBody::whole(bytes))),
        };
        if let Some((content_type, body)) = written {
            self.content_type = content_type.to_owned();
            self.body = body;
        }
        self
    }

    /// The same answer with a header; one whose value can't stand in a header is left out.
    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// The same answer with a `Warning` header for each text.
    pub(crate) fn warnings(mut self, texts: &[String]) -> Self {
        for text in texts.iter().take(MAX_WARNINGS) {
            self = self.header(WARNING, &warning(text));
        }
        self
    }

    /// The response. `audit_id` names the request.
    pub(crate) fn into_response(self, audit_id: &str, head: bool) -> Response<ResponseBody> {
        let mut response = Response::new(if head { ResponseBody::empty() } else { self.body });
        *response.status_mut() = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        if !headers.contains_key(CACHE_CONTROL) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        }
        if let Ok(value) = HeaderValue::from_str(&self.content_type) {
            headers.insert(CONTENT_TYPE, value);
        }
        if let Ok(value) = HeaderValue::from_str(audit_id) {
            headers.insert(HeaderName::from_static("audit-id"), value);
        }
        response
    }
}

/// `299 - "text"`, with quotes and backslashes escaped and without what can't stand in a header.
fn warning(text: &str) -> String {
    let mut quoted = String::new();
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
        if quoted.len() >= MAX_WARNING {
            break;
        }
    }
    format!("299 - \"{quoted}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_quoted_and_bounded() {
        assert_eq!(warning("unknown field \"a\"\n"), r#"299 - "unknown field \"a\"""#);
        assert!(warning(&"x".repeat(10_000)).len() < 600);
        let texts = vec!["w".to_owned(); 50];
        let response = Answer::json(200, &Value::Null).warnings(&texts).into_response("id", false);
        assert_eq!(response.headers().get_all(WARNING).iter().count(), MAX_WARNINGS);
    }

    #[test]
    fn a_failure_tells_when_to_come_again() {
        let response = Answer::failure(&Status::resource_version_too_large(9, 1)).into_response("id", false);
        assert_eq!(response.status(), 504);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
    }
}
