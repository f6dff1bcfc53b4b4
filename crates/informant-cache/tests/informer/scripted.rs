//! A server that answers what the test tells it to: a [`Script`] of ConfigMaps with an informer's way to it.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

pub(crate) use crate::forms::InForm;
pub(crate) use informant_apiserver::scripted::event as line;
use informant_apiserver::scripted::{self, Exchange, Script, Stream};
use informant_cache::{Event, FinalState, InformerFactory, InformerFactoryBuilder, SharedInformer, Subscription};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

/// A script of ConfigMaps, and an informer's way to it.
pub(crate) struct Server {
    script: Script,
    client: kube::Client,
}

impl Server {
    pub(crate) fn new() -> Self {
        let script = Script::of("v1", "ConfigMap");
        Self { client: kube::Client::new(script.service(), "default"), script }
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
        self.script.request_within(Duration::from_secs(3600)).await.expect("no request came")
    }

    /// Whether a request comes within a time.
    pub(crate) async fn is_quiet_for(&mut self, time: Duration) -> bool {
        self.script.request_within(time).await.is_none()
    }

    /// Answers a request for the resources of `v1`.
    pub(crate) async fn discovery(&mut self, resources: &[&str]) {
        let request = self.request().await;
        assert_eq!(request.path, "/api/v1");
        let resources: Vec<_> = resources.iter().map(|name| json!({"name": name, "namespaced": true})).collect();
        request
            .answer(200, json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources}).to_string());
    }

    /// Answers a list and opens its watch.
    pub(crate) async fn sync(&mut self, resource_version: &str, items: &[Value]) -> Stream {
        self.request().await.list(resource_version, items);
        self.request().await.open()
    }
}

impl Deref for Server {
    type Target = Script;

    fn deref(&self) -> &Script {
        &self.script
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Script {
        &mut self.script
    }
}

pub(crate) fn list(resource_version: &str, continue_token: Option<&str>, items: &[Value]) -> String {
    scripted::list("v1", "ConfigMap", resource_version, continue_token.unwrap_or(""), items)
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
        Event::Deleted { object, final_state: FinalState::OutOfScope } => format!("-~{object:?}"),
    }
}

/// The next event of a subscription, in short.
pub(crate) async fn next(subscription: &mut Subscription<ConfigMap>) -> String {
    show(&subscription.next().await.expect("an event"))
}

/// The keys of what the cache holds.
pub(crate) fn keys(informer: &SharedInformer<ConfigMap>) -> Vec<String> {
    informer.lister().keys().iter().map(ToString::to_string).collect()
}
