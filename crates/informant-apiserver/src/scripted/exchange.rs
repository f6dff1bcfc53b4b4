//! A request that waits for its answer, and an answer that's under way.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, request};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::Kind;
use super::answer::{Answer, Framing, Part};
use super::documents;

/// A request that waits for its answer. Dropping it without one refuses it, as [`refuse`](Self::refuse) does.
#[derive(Debug)]
pub struct Exchange {
    /// The method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The parameters of the query, as they stand in the URL (percent-encoded).
    pub query: BTreeMap<String, String>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    kind: Kind,
    answer_headers: HeaderMap,
    answer: oneshot::Sender<Answer>,
}

/// An open answer. Dropping it ends the answer as it should end, as [`end`](Self::end) does.
#[derive(Debug)]
pub struct Stream {
    parts: mpsc::UnboundedSender<Part>,
    kind: Kind,
}

// === impl Exchange ===

impl Exchange {
    pub(super) fn new(head: request::Parts, body: Bytes, kind: Kind) -> (Self, oneshot::Receiver<Answer>) {
        let (answer, answered) = oneshot::channel();
        let query = head.uri.query().unwrap_or("").split('&').filter(|pair| !pair.is_empty());
        let query = query.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), value.to_owned())
        });
        let exchange = Self {
            method: head.method,
            path: head.uri.path().to_owned(),
            query: query.collect(),
            headers: head.headers,
            body,
            kind,
            answer_headers: HeaderMap::new(),
            answer,
        };
        (exchange, answered)
    }

    /// A header's text, empty if it isn't there.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// What a client of the API asks for, in short: `LIST 0`, `WATCH 7`, `STREAM 7` (a watch that wants the present state
    /// first), each with the resource version if there's one; `POST /path` and the like for everything but `GET`.
    #[must_use]
    pub fn what(&self) -> String {
        if self.method != Method::GET {
            return format!("{} {}", self.method, self.path);
        }
        let has = |name: &str| self.query.contains_key(name);
        let kind = match (has("watch"), has("sendInitialEvents")) {
            (false, _) => "LIST",
            (true, false) => "WATCH",
            (true, true) => "STREAM",
        };
        let version = self.query.get("resourceVersion").map_or("", String::as_str);
        format!("{kind} {version}").trim_end().to_owned()
    }

    /// Answers in another kind than the script's.
    #[must_use]
    pub fn of(mut self, api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        self.kind = Kind { api_version: api_version.into(), kind: kind.into() };
        self
    }

    /// Puts a header into the answer. Without one, the answer says that it's JSON. On a socket the body is chunked unless
    /// there's a `content-length`, which needn't be true. A name or value that HTTP doesn't allow is left out;
    /// [`raw`](Self::raw) sends those too.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            self.answer_headers.append(name, value);
        }
        self
    }

    /// Answers with a whole body.
    pub fn answer(self, code: u16, body: impl AsRef<[u8]>) {
        self.begin(code).bytes(body);
    }

    /// Answers with an error of the API.
    pub fn fail(self, code: u16, reason: &str) {
        self.answer(code, documents::status(code, reason).to_string());
    }

    /// Answers with a whole list, or with its last page.
    pub fn list(self, resource_version: &str, items: &[Value]) {
        self.page(resource_version, "", items);
    }

    /// Answers with a page that isn't the last.
    pub fn page(self, resource_version: &str, continue_token: &str, items: &[Value]) {
        let body = documents::list(&self.kind.api_version, &self.kind.kind, resource_version, continue_token, items);
        self.answer(200, body);
    }

    /// Lets the connection be refused. On a socket, where the connection is there already, it's reset without a byte;
    /// [`Listening::refuse`](super::Listening::refuse) refuses connections.
    pub fn refuse(self) {}

    /// Never answers: the connection stays, and nothing comes. It lasts until the client gives up.
    pub fn ignore(self) {
        self.raw().half_open();
    }

    /// Answers with success and leaves the body open.
    #[must_use = "dropping the stream ends the answer"]
    pub fn open(self) -> Stream {
        self.begin(200)
    }

    /// Answers with a status (500 for a number that's none) and leaves the body open.
    #[must_use = "dropping the stream ends the answer"]
    pub fn begin(mut self, code: u16) -> Stream {
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if !self.answer_headers.contains_key(CONTENT_TYPE) {
            self.answer_headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let headers = std::mem::take(&mut self.answer_headers);
        self.send(Framing::Http { status, headers })
    }

    /// Answers with bytes that go over the wire as they are: status line, headers and framing are the test's. Only a socket
    /// has a wire; in process the client gets an error.
    #[must_use = "dropping the stream closes the connection"]
    pub fn raw(self) -> Stream {
        self.send(Framing::Raw)
    }

    fn send(self, framing: Framing) -> Stream {
        let (parts, receiver) = mpsc::unbounded_channel();
        // The client may have given up meanwhile.
        let _ = self.answer.send(Answer { framing, parts: receiver });
        Stream { parts, kind: self.kind }
    }
}

// === impl Stream ===

impl Stream {
    /// Sends one chunk.
    pub fn bytes(&self, chunk: impl AsRef<[u8]>) {
        let chunk = Bytes::copy_from_slice(chunk.as_ref());
        if !chunk.is_empty() {
            self.part(Part::Bytes(chunk));
        }
    }

    /// Sends bytes in chunks of this size at most (at least one byte).
    pub fn in_chunks(&self, bytes: impl AsRef<[u8]>, size: usize) {
        bytes.as_ref().chunks(size.max(1)).for_each(|chunk| self.bytes(chunk));
    }

    /// Sends one event in one chunk.
    pub fn event(&self, kind: &str, object: &Value) {
        self.bytes(documents::event(kind, object));
    }

    /// Sends a bookmark.
    pub fn bookmark(&self, resource_version: &str) {
        self.event("BOOKMARK", &documents::bookmark(&self.kind, resource_version));
    }

    /// Sends the bookmark that ends the initial events.
    pub fn end_of_initial_events(&self, resource_version: &str) {
        let Kind { api_version, kind } = &self.kind;
        self.event("BOOKMARK", &documents::end_of_initial_events(api_version, kind, resource_version));
    }

    /// Sends an `ERROR` event.
    pub fn error(&self, code: u16, reason: &str) {
        self.event("ERROR", &documents::status(code, reason));
    }

    /// Lets time pass before what's sent after it, without keeping the test waiting.
    pub fn pause(&self, time: Duration) {
        self.part(Part::Pause(time));
    }

    /// Breaks the connection: a reset on a socket, an error of the body in process.
    pub fn cut(self) {
        self.part(Part::Reset);
    }

    /// Ends the body as it should end, wherever it is.
    pub fn end(self) {}

    /// The peer is gone and nobody told: the connection stays, and never again a byte comes or is read, until the client
    /// gives up (in process) or the listener ends (on a socket).
    pub fn half_open(self) {
        self.part(Part::Silence);
    }

    /// Waits until the client has given the answer up.
    ///
    /// # Cancel safety
    /// It may be used in `select!`.
    pub async fn closed(&self) {
        self.parts.closed().await;
    }

    /// Whether the client has given the answer up.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.parts.is_closed()
    }

    fn part(&self, part: Part) {
        // The client may have given the answer up.
        let _ = self.parts.send(part);
    }
}
