//! The server with its objects: whoever writes, and the truth of what was written.

use std::collections::{BTreeMap, BTreeSet};

use http::{Method, Request};
use http_body_util::BodyExt;
use informant_apiserver::{ApiServer, ControllerOptions};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::settings::{APPS, Kind, NAMES, NAMESPACES, PHASES, Settings};
use crate::trace::Trace;
use crate::truth::{Sight, State, Truth};

/// The label by which namespaces are selected.
pub(crate) const SELECTED: &str = "selected";

pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) truth: Truth,
    kind: Kind,
    selected: BTreeSet<String>,
    rng: fastrand::Rng,
    /// So that no two states are alike.
    writes: u64,
    trace: Trace,
}

impl World {
    pub(crate) async fn new(settings: &Settings, seed: u64, trace: &Trace) -> Self {
        // Nothing is to write but the history.
        let mut controllers = ControllerOptions::default();
        (controllers.garbage_collector, controllers.namespaces, controllers.pod_finisher) = (false, false, false);
        controllers.event_ttl = None;
        let server = ApiServer::builder()
            .seed(seed)
            .start_time("2026-01-01T00:00:00Z".parse().unwrap())
            .controllers(controllers)
            .history(settings.server.history_events, std::time::Duration::from_secs(300))
            .bookmark_interval(settings.server.bookmark_interval)
            .watch_list(settings.server.watch_list)
            .build();
        let rng = fastrand::Rng::with_seed(seed ^ 0x5eed);
        let world = Self {
            server,
            truth: Truth::default(),
            kind: settings.kind,
            selected: BTreeSet::new(),
            rng,
            writes: 0,
            trace: trace.clone(),
        };
        for namespace in NAMESPACES {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            world.ask(Method::POST, "/api/v1/namespaces", &body).await;
        }
        world
    }

    pub(crate) fn plural(&self) -> &'static str {
        match self.kind {
            Kind::ConfigMap => "configmaps",
            Kind::Pod => "pods",
        }
    }

    /// One write to any object.
    pub(crate) async fn write(&mut self) {
        let key = self.any_key();
        if self.truth.now(&key).is_none() {
            return self.create(&key).await;
        }
        match self.rng.u8(..10) {
            0..3 => self.change(&key).await,
            3..5 => self.relabel(&key).await,
            5 | 6 => self.move_phase(&key).await,
            7 | 8 => self.delete(&key).await,
            _ => {
                self.delete(&key).await;
                self.create(&key).await;
            }
        }
    }

    /// Changes every object once more.
    pub(crate) async fn touch_all(&mut self) {
        for key in self.truth.present(&Sight::default()).into_keys() {
            self.change(&key).await;
        }
    }

    /// Labels a namespace so that selectors of namespaces select it, or no longer.
    pub(crate) async fn select_namespace(&mut self, namespace: &str, selected: bool) {
        let label = if selected { json!("yes") } else { Value::Null };
        let patch = json!({"metadata": {"labels": {SELECTED: label}}});
        self.ask(Method::PATCH, &format!("/api/v1/namespaces/{namespace}"), &patch).await;
        self.trace.say("server", || format!("namespace {namespace} selected: {selected}"));
        if selected {
            self.selected.insert(namespace.to_owned());
        } else {
            self.selected.remove(namespace);
        }
    }

    /// The namespaces that selectors of namespaces select.
    pub(crate) fn selected(&self) -> &BTreeSet<String> {
        &self.selected
    }

    /// The objects that the server lists for a sight.
    pub(crate) async fn list(&self, sight: &Sight) -> BTreeMap<String, Value> {
        let encoded = |text: String| text.replace('=', "%3D").replace(',', "%2C");
        let (labels, fields) = (encoded(sight.labels()), encoded(sight.fields()));
        let plural = self.plural();
        let path = format!("/api/v1/{plural}?labelSelector={labels}&fieldSelector={fields}");
        let list = self.ask(Method::GET, &path, &Value::Null).await;
        let items = list["items"].as_array().expect("a list has items").iter();
        let items = items.filter_map(|item| {
            let metadata = &item["metadata"];
            let namespace = metadata["namespace"].as_str().unwrap_or("");
            let inside = sight.namespaces.as_ref().is_none_or(|wanted| wanted.contains(namespace));
            // What the server makes by itself is none of the history's.
            let ours = NAMESPACES.contains(&namespace) && metadata["annotations"]["value"].is_string();
            let key = format!("{namespace}/{}", metadata["name"].as_str().unwrap_or(""));
            (inside && ours).then(|| (key, item.clone()))
        });
        items.collect()
    }

    fn any_key(&mut self) -> String {
        let (namespace, name) = (self.rng.usize(..NAMESPACES.len()), self.rng.usize(..NAMES.len()));
        format!("{}/{}", NAMESPACES[namespace], NAMES[name])
    }

    fn any_app(&mut self) -> Value {
        let number = self.rng.usize(..=APPS.len());
        APPS.get(number).map_or(Value::Null, |app| json!(app))
    }

    async fn create(&mut self, key: &str) {
        let (_, name) = key.split_once('/').expect("a key has a namespace");
        let (app, value) = (self.any_app(), self.next_value());
        let mut metadata = json!({"name": name, "annotations": {"value": value}});
        if !app.is_null() {
            metadata["labels"] = json!({"app": app});
        }
        let body = match self.kind {
            Kind::ConfigMap => json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}),
            Kind::Pod => {
                let spec = json!({"containers": [{"name": "main", "image": "image"}]});
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
            }
        };
        let collection = self.path(key).rsplit_once('/').expect("a path has parts").0.to_owned();
        let created = self.ask(Method::POST, &collection, &body).await;
        self.wrote("created", key, &created);
    }

    async fn change(&mut self, key: &str) {
        let value = self.next_value();
        self.patch(key, "", &json!({"metadata": {"annotations": {"value": value}}})).await;
    }

    async fn relabel(&mut self, key: &str) {
        let app = self.any_app();
        self.patch(key, "", &json!({"metadata": {"labels": {"app": app}}})).await;
    }

    async fn move_phase(&mut self, key: &str) {
        if self.kind != Kind::Pod {
            return self.change(key).await;
        }
        let phase = PHASES[self.rng.usize(..PHASES.len())];
        self.patch(key, "/status", &json!({"status": {"phase": phase}})).await;
    }

    async fn patch(&mut self, key: &str, subresource: &str, patch: &Value) {
        let path = format!("{}{subresource}", self.path(key));
        let patched = self.ask(Method::PATCH, &path, patch).await;
        // A patch that changes nothing is no write.
        if self.truth.now(key).map(|state| state.version) != Some(State::of(&patched).version) {
            self.wrote("changed", key, &patched);
        }
    }

    async fn delete(&mut self, key: &str) {
        let path = format!("{}?gracePeriodSeconds=0", self.path(key));
        self.ask(Method::DELETE, &path, &Value::Null).await;
        // Nobody else writes, so it's the deletion's.
        let version = self.server.resource_version();
        self.trace.say("server", || format!("deleted {key} at {version}"));
        self.truth.deleted(key, version);
    }

    fn wrote(&mut self, what: &str, key: &str, object: &Value) {
        let state = State::of(object);
        self.trace.say("server", || format!("{what} {key}: {state:?}"));
        self.truth.wrote(key, state);
    }

    fn next_value(&mut self) -> String {
        self.writes += 1;
        self.writes.to_string()
    }

    fn path(&self, key: &str) -> String {
        let (namespace, name) = key.split_once('/').expect("a key has a namespace");
        format!("/api/v1/namespaces/{namespace}/{}/{name}", self.plural())
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> Value {
        let patches = method == Method::PATCH;
        let content_type = if patches { "application/merge-patch+json" } else { "application/json" };
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder().method(&method).uri(path).header("content-type", content_type);
        let request = request.body(http_body_util::Full::new(bytes::Bytes::from(text))).expect("a request");
        let answer = self.server.service().oneshot(request).await.expect("the server never fails");
        let status = answer.status();
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        let text = String::from_utf8_lossy(&body);
        assert!(status.is_success(), "{method} {path} was answered with {status}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }
}
