//! Sending a request and reading its answer's body chunk by chunk.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::Body;

use crate::document::Encoding;
use crate::error::{RequestError, RequestErrorKind};
use crate::frame::{FrameError, GzipDecoder};
use crate::protobuf::{self, Message};
use crate::request::Request;
use crate::scope::Scope;
use crate::shared_informer::Shared;

/// How long a server may take for the head of an answer; its own limit for a request is a minute.
const HEAD_PATIENCE: Duration = Duration::from_secs(70);
/// How long a list may pause.
const PAUSE_PATIENCE: Duration = Duration::from_secs(60);
/// How much of an error's body is read.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// What's asked for by who takes both; a server that can't write protobuf writes JSON.
const PROTOBUF_OR_JSON: &str = "application/vnd.kubernetes.protobuf, application/json";

/// A successful answer.
pub(crate) struct Answer {
    encoding: Encoding,
    body: Body,
    gzip: Option<GzipDecoder>,
}

/// Sends a request; an answer that isn't a success is an error.
pub(super) async fn send<K: Send + Sync + 'static>(
    informer: &Shared<K>,
    part: Option<&str>,
    list_or_watch: &Request,
) -> Result<Answer, RequestError> {
    if let Some(namespace) = part.or(informer.scope.namespace())
        && !Scope::is_namespace_name(namespace)
    {
        // A path with it may be another one (`..`), or that of no resource at all, and the answer to that would mislead.
        let message = format!(
            "{namespace:?} can't be the name of a namespace, so nothing is asked: it takes 1 to 63 of a-z, 0-9 and '-', \
             with '-' neither first nor last"
        );
        return Err(RequestError::new(RequestErrorKind::Invalid, message));
    }
    let url = list_or_watch.url(&informer.followed_resource(), &informer.scope, part);
    let mut request = http::Request::get(url);
    if !matches!(list_or_watch, Request::List { .. }) {
        // We'd read it, but a client may have a layer that asks for gzip and reads the first event only.
        request = request.header(header::ACCEPT_ENCODING, "identity");
    }
    answer(informer, request).await
}

/// Sends what's asked for in the form that the informer wants; an answer that isn't a success is an error.
pub(crate) async fn answer<K: Send + Sync + 'static>(
    informer: &Shared<K>,
    request: http::request::Builder,
) -> Result<Answer, RequestError> {
    let request = request.body(()).map_err(|error| {
        RequestError::new(RequestErrorKind::Malformed, format!("the request can't be built: {error}"))
    })?;
    loop {
        let protobuf = informer.protobuf();
        let accept = if protobuf.is_some() { PROTOBUF_OR_JSON } else { informer.representation.accept() };
        let mut request = request.clone();
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(accept));
        let answer = tokio::time::timeout(HEAD_PATIENCE, informer.source.request(request)).await;
        let answer = answer.map_err(|_| paused(HEAD_PATIENCE))??;
        let (parts, body) = answer.into_parts();
        let refused = matches!(parts.status, StatusCode::NOT_ACCEPTABLE | StatusCode::UNSUPPORTED_MEDIA_TYPE);
        if refused && protobuf.is_some() {
            // Without it the request is another one, so this ends.
            informer.settle_for_json();
            continue;
        }
        let gzip = parts.headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
        let gzip = gzip.is_some_and(|encoding| encoding.eq_ignore_ascii_case(b"gzip")).then(GzipDecoder::new);
        let mut answer = Answer { encoding: Encoding::Json, body, gzip };
        if parts.status.is_success() {
            answer.encoding = encoding(&parts.headers, protobuf)?;
            return Ok(answer);
        }
        let body = answer.beginning().await;
        return Err(RequestError::from_answer(parts.status, &parts.headers, &body));
    }
}

/// The form of an answer by what it says of itself, whatever other answers had. What says nothing is JSON.
fn encoding(headers: &HeaderMap, protobuf: Option<&'static Message>) -> Result<Encoding, RequestError> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else { return Ok(Encoding::Json) };
    let given = String::from_utf8_lossy(given.as_bytes()).to_ascii_lowercase();
    let media_type = given.split(';').next().unwrap_or_default().trim();
    match (media_type, protobuf) {
        (protobuf::MEDIA_TYPE, Some(message)) => Ok(Encoding::Protobuf(message)),
        (protobuf::MEDIA_TYPE | "application/cbor" | "application/cbor-seq" | "application/yaml", _) => {
            let message = format!("the server answered in {media_type}, which nobody asked for");
            Err(RequestError::new(RequestErrorKind::Malformed, message))
        }
        _ => Ok(Encoding::Json),
    }
}

impl Answer {
    /// The form in which it comes.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The next chunk of a list; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, RequestError> {
        tokio::time::timeout(PAUSE_PATIENCE, self.stream_chunk()).await.unwrap_or_else(|_| Err(paused(PAUSE_PATIENCE)))
    }

    /// The next chunk of a stream, however long it takes; `None` at its end.
    ///
    /// Cancel safe: no chunk is lost.
    pub(super) async fn stream_chunk(&mut self) -> Result<Option<Bytes>, RequestError> {
        loop {
            if let Some(piece) = self.gzip.as_mut().map_or(Ok(None), GzipDecoder::next).map_err(broken)? {
                return Ok(Some(piece));
            }
            let Some(frame) = self.body.frame().await else { break };
            let frame = frame.map_err(|error| RequestError::from_connection(&error))?;
            match (frame.into_data(), &mut self.gzip) {
                (Ok(chunk), Some(gzip)) => gzip.push(chunk),
                (Ok(chunk), None) if !chunk.is_empty() => return Ok(Some(chunk)),
                _ => {}
            }
        }
        self.gzip.as_ref().map_or(Ok(()), GzipDecoder::finish).map_err(broken)?;
        Ok(None)
    }

    /// The beginning of an error's body, as far as it comes.
    async fn beginning(&mut self) -> Vec<u8> {
        let mut beginning = Vec::new();
        while beginning.len() < ERROR_BYTES_MAX
            && let Ok(Some(chunk)) = self.chunk().await
        {
            beginning.extend_from_slice(&chunk);
        }
        beginning.truncate(ERROR_BYTES_MAX);
        beginning
    }
}

fn broken(error: FrameError) -> RequestError {
    let kind = if error == FrameError::Cut { RequestErrorKind::Connection } else { RequestErrorKind::Malformed };
    RequestError::new(kind, error.to_string())
}

fn paused(patience: Duration) -> RequestError {
    let message = format!("the server sent nothing for {} s", patience.as_secs());
    RequestError::new(RequestErrorKind::Connection, message)
}
