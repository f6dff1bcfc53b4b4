//! kube-rs's own informers on the embedded server: its `watcher` by both strategies, and its `Controller`.
//!
//! Nothing of ours is between them, so what they accept is what any kube-rs program accepts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use informant_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Client, CustomResource, CustomResourceExt, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A client of a server of its own, in this process, without a socket.
fn client() -> Client {
    Client::new(ApiServer::builder().build().service(), "default")
}

type Events = Pin<Box<dyn Stream<Item = watcher::Result<Event<ConfigMap>>> + Send>>;

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([("set".to_owned(), "some".to_owned())])),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("value".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

/// One event in short: what happened, and to whom with which value.
async fn next(events: &mut Events) -> String {
    let event = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
    let told = |what: &str, object: &ConfigMap| {
        let value = object.data.as_ref().and_then(|data| data.get("value")).map_or("", String::as_str);
        format!("{what} {}={value}", object.name_any())
    };
    match event.expect("an event comes in time").expect("the stream goes on").expect("it's no error") {
        Event::Init => "init".to_owned(),
        Event::InitApply(object) => told("init-apply", &object),
        Event::InitDone => "init-done".to_owned(),
        Event::Apply(object) => told("apply", &object),
        Event::Delete(object) => told("delete", &object),
    }
}

async fn a_watcher_syncs_and_follows(config: watcher::Config) {
    let api: Api<ConfigMap> = Api::namespaced(client(), "default");
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    }
    let mut events: Events = Box::pin(watcher(api.clone(), config.labels("set=some")));
    assert_eq!(next(&mut events).await, "init");
    let mut present = vec![next(&mut events).await, next(&mut events).await, next(&mut events).await];
    present.sort();
    assert_eq!(present, ["init-apply a=1", "init-apply b=1", "init-apply c=1"]);
    assert_eq!(next(&mut events).await, "init-done");
    api.create(&PostParams::default(), &config_map("d", "1")).await.unwrap();
    assert_eq!(next(&mut events).await, "apply d=1");
    let change = Patch::Merge(json!({"data": {"value": "2"}}));
    api.patch("a", &PatchParams::default(), &change).await.unwrap();
    assert_eq!(next(&mut events).await, "apply a=2");
    api.delete("b", &DeleteParams::default()).await.unwrap();
    assert_eq!(next(&mut events).await, "delete b=1");
}

async fn a_watcher_syncs_with_nothing(config: watcher::Config) {
    let api: Api<ConfigMap> = Api::namespaced(client(), "default");
    let mut events: Events = Box::pin(watcher(api.clone(), config.labels("set=none")));
    assert_eq!(next(&mut events).await, "init");
    assert_eq!(next(&mut events).await, "init-done");
}

#[tokio::test(start_paused = true)]
async fn its_watcher_lists_in_pages_then_watches() {
    a_watcher_syncs_and_follows(watcher::Config::default().page_size(2)).await;
    a_watcher_syncs_with_nothing(watcher::Config::default()).await;
}

#[tokio::test(start_paused = true)]
async fn its_watcher_streams_the_initial_list() {
    a_watcher_syncs_and_follows(watcher::Config::default().streaming_lists()).await;
    a_watcher_syncs_with_nothing(watcher::Config::default().streaming_lists()).await;
}

#[derive(CustomResource, Serialize, Deserialize, Debug, Clone, JsonSchema)]
#[kube(
    group = "peers.example.com",
    version = "v1",
    kind = "Copy",
    plural = "copies",
    namespaced,
    status = "CopyStatus"
)]
struct CopySpec {
    value: String,
}

#[derive(Serialize, Deserialize, Debug, Clone, Default, JsonSchema)]
struct CopyStatus {
    copied: String,
}

/// Writes the value into a ConfigMap that it owns, by server-side apply, and then into its own status.
async fn reconcile(copy: Arc<Copy>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let namespace = copy.namespace().unwrap_or_default();
    let apply = PatchParams::apply("copier").force();
    let child = ConfigMap {
        metadata: ObjectMeta {
            name: Some(copy.name_any()),
            owner_references: copy.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        ..config_map(&copy.name_any(), &copy.spec.value)
    };
    let children: Api<ConfigMap> = Api::namespaced(client.as_ref().clone(), &namespace);
    children.patch(&copy.name_any(), &apply, &Patch::Apply(&child)).await?;
    let copies: Api<Copy> = Api::namespaced(client.as_ref().clone(), &namespace);
    let status = json!({
        "apiVersion": Copy::api_version(&()),
        "kind": Copy::kind(&()),
        "status": {"copied": copy.spec.value},
    });
    copies.patch_status(&copy.name_any(), &apply, &Patch::Apply(&status)).await?;
    Ok(Action::await_change())
}

async fn value_in_the_end(api: &Api<ConfigMap>, wanted: &str) {
    let holds = |object: Option<&ConfigMap>| {
        object.and_then(|object| object.data.as_ref()?.get("value")).is_some_and(|value| value == wanted)
    };
    tokio::time::timeout(Duration::from_secs(60), await_condition(api.clone(), "one", holds))
        .await
        .expect("the child has the value in time")
        .expect("it can be watched");
}

#[tokio::test(start_paused = true)]
async fn its_controller_reconciles_owns_and_follows() {
    let client = client();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &Copy::crd()).await.unwrap();
    let established = await_condition(definitions, "copies.peers.example.com", conditions::is_crd_established());
    tokio::time::timeout(Duration::from_secs(10), established).await.expect("established in time").unwrap();

    let copies: Api<Copy> = Api::namespaced(client.clone(), "default");
    let children: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let controller = Controller::new(copies.clone(), watcher::Config::default())
        .owns(children.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new(client))
        .for_each(|_| std::future::ready(()));
    let story = async {
        copies.create(&PostParams::default(), &Copy::new("one", CopySpec { value: "x".to_owned() })).await.unwrap();
        value_in_the_end(&children, "x").await;
        // A child that somebody changes or deletes is put right again.
        let change = Patch::Merge(json!({"data": {"value": "changed"}}));
        children.patch("one", &PatchParams::default(), &change).await.unwrap();
        value_in_the_end(&children, "x").await;
        children.delete("one", &DeleteParams::default()).await.unwrap();
        value_in_the_end(&children, "x").await;
        let change = Patch::Merge(json!({"spec": {"value": "y"}}));
        copies.patch("one", &PatchParams::default(), &change).await.unwrap();
        value_in_the_end(&children, "y").await;
        let copied =
            |copy: Option<&Copy>| copy.and_then(|copy| copy.status.as_ref()).is_some_and(|status| status.copied == "y");
        tokio::time::timeout(Duration::from_secs(60), await_condition(copies, "one", copied))
            .await
            .expect("the status follows in time")
            .unwrap();
    };
    tokio::select! {
        () = controller => panic!("the controller ended by itself"),
        () = story => {}
    }
}
