//! A server that answers what the test tells it to.
//!
//! The informer under test gets a real `kube::Client` over an in-process service. Each of its requests waits until the
//! test has taken it with [`Server::request`] and answered it.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use informant_cache::{Event, FinalState, InformerFactory, InformerFactoryBuilder};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tower::service_fn;

type Chunk = Result<Frame<Bytes>, std::io::Error>;
type Answer = Response<StreamBody<stream::BoxStream<'static, Chunk>>>;
type Pending = (Request<Body>, oneshot::Sender<Answer>);

pub(crate) struct Server {
    client: kube::Client,
    requests: mpsc::UnboundedReceiver<Pending>,
}

/// A request that waits for its answer.
pub(crate) struct Exchange {
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) accept: String,
    answer: oneshot::Sender<Answer>,
}

/// An open answer.
pub(crate) struct Stream {
    chunks: mpsc::UnboundedSender<Chunk>,
}

impl Server {
    pub(crate) fn new() -> Self {
        let (sender, requests) = mpsc::unbounded_channel::<Pending>();
        let service = service_fn(move |request: Request<Body>| {
            let (answer, answered) = oneshot::channel();
            let sent = sender.send((request, answer));
            async move {
                let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
                sent.map_err(|_| refused())?;
                answered.await.map_err(|_| refused())
            }
        });
        Self { client: kube::Client::new(service, "default"), requests }
    }

    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// A factory that starts with lists.
    pub(crate) fn factory(&self) -> InformerFactory {
        self.builder().watch_list(false).build()
    }

    pub(crate) fn builder(&self) -> InformerFactoryBuilder {
        InformerFactory::builder(self.client()).seed(1)
    }

    /// The next request, however long it takes (in paused time).
    pub(crate) async fn request(&mut self) -> Exchange {
        let waited = tokio::time::timeout(Duration::from_secs(3600), self.requests.recv()).await;
        let (request, answer) = waited.expect("no request came").expect("the client is there");
        let uri = request.uri();
        let query = uri.query().unwrap_or("").split('&').filter(|pair| !pair.is_empty());
        let query = query.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), value.to_owned())
        });
        let accept = request.headers().get("accept").map(|value| value.to_str().unwrap().to_owned());
        Exchange { path: uri.path().to_owned(), query: query.collect(), accept: accept.unwrap_or_default(), answer }
    }

    /// Whether a request comes within a time.
    pub(crate) async fn is_quiet_for(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.requests.recv()).await.is_err()
    }

    /// Answers a list and opens its watch.
    pub(crate) async fn sync(&mut self, resource_version: &str, items: &[Value]) -> Stream {
        self.request().await.list(resource_version, items);
        self.request().await.open()
    }
}

impl Exchange {
    /// `LIST 0`, `WATCH 7` or `STREAM 7`: the kind of request and its resource version.
    pub(crate) fn what(&self) -> String {
        let has = |name: &str| self.query.contains_key(name);
        let kind = match (has("watch"), has("sendInitialEvents")) {
            (false, _) => "LIST",
            (true, false) => "WATCH",
            (true, true) => "STREAM",
        };
        let version = self.query.get("resourceVersion").map_or("", String::as_str);
        format!("{kind} {version}").trim_end().to_owned()
    }

    /// Answers with a whole body.
    pub(crate) fn answer(self, code: u16, body: &str) {
        let stream = self.begin(code);
        stream.bytes(body);
    }

    /// Answers with an error of the API.
    pub(crate) fn fail(self, code: u16, reason: &str) {
        self.answer(code, &status(code, reason).to_string());
    }

    /// Answers with a whole list.
    pub(crate) fn list(self, resource_version: &str, items: &[Value]) {
        self.answer(200, &list(resource_version, None, items));
    }

    /// Answers with a page.
    pub(crate) fn page(self, resource_version: &str, continue_token: &str, items: &[Value]) {
        self.answer(200, &list(resource_version, Some(continue_token), items));
    }

    /// Lets the connection be refused.
    pub(crate) fn refuse(self) {
        drop(self.answer);
    }

    /// Answers with success and leaves the body open.
    pub(crate) fn open(self) -> Stream {
        self.begin(200)
    }

    fn begin(self, code: u16) -> Stream {
        let (chunks, receiver) = mpsc::unbounded_channel();
        let body = stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|chunk: Chunk| (chunk, receiver))
        });
        let answer = Response::builder()
            .status(StatusCode::from_u16(code).unwrap())
            .header("content-type", "application/json")
            .body(StreamBody::new(body.boxed()));
        // The informer may have been stopped meanwhile.
        let _ = self.answer.send(answer.unwrap());
        Stream { chunks }
    }
}

impl Stream {
    /// Sends one chunk.
    pub(crate) fn bytes(&self, chunk: impl AsRef<[u8]>) {
        let _ = self.chunks.send(Ok(Frame::data(Bytes::copy_from_slice(chunk.as_ref()))));
    }

    /// Sends one event in one chunk.
    pub(crate) fn event(&self, kind: &str, object: &Value) {
        self.bytes(line(kind, object));
    }

    pub(crate) fn bookmark(&self, resource_version: &str) {
        self.event(
            "BOOKMARK",
            &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": resource_version}}),
        );
    }

    pub(crate) fn end_of_initial_events(&self, resource_version: &str) {
        let annotations = json!({"k8s.io/initial-events-end": "true"});
        let metadata = json!({"resourceVersion": resource_version, "annotations": annotations});
        self.event("BOOKMARK", &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}));
    }

    pub(crate) fn error(&self, code: u16, reason: &str) {
        self.event("ERROR", &status(code, reason));
    }

    /// Breaks the connection.
    pub(crate) fn cut(self) {
        let _ = self.chunks.send(Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)));
    }

    /// Ends the body as it should end.
    pub(crate) fn end(self) {}
}

pub(crate) fn line(kind: &str, object: &Value) -> String {
    // As API servers write it: the type first.
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

pub(crate) fn list(resource_version: &str, continue_token: Option<&str>, items: &[Value]) -> String {
    let metadata = json!({"resourceVersion": resource_version, "continue": continue_token.unwrap_or("")});
    json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}).to_string()
}

pub(crate) fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": format!("{reason}!"), "reason": reason, "code": code})
}

/// A ConfigMap in the namespace `web` whose uid follows from its name.
pub(crate) fn object(name: &str, resource_version: u64) -> Value {
    object_with(name, resource_version, &json!({}))
}

pub(crate) fn object_with(name: &str, resource_version: u64, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "web", "uid": format!("uid-{name}"), "resourceVersion": resource_version.to_string(), "labels": labels},
        "data": {"version": resource_version.to_string()},
    })
}

/// An event in short: `+web/a@1` (`+!` if initial), `web/a@1>2`, `-web/a@2` (`-?` if its end was missed).
pub(crate) fn show(event: &Event<ConfigMap>) -> String {
    match event {
        Event::Added { object, initial } => format!("+{}{object:?}", if *initial { "!" } else { "" }),
        Event::Updated { old, new } => format!("{old:?}>{}", new.resource_version()),
        Event::Deleted { object, final_state: FinalState::Known } => format!("-{object:?}"),
        Event::Deleted { object, final_state: FinalState::Unknown } => format!("-?{object:?}"),
    }
}
