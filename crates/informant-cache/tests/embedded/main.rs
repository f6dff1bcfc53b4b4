//! Whole informers against the embedded API server: in process under paused time, and over real HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod availability;
mod crd;
mod front;
mod http;
mod in_process;
mod late_kind;
mod live_read;
mod projection;
mod protobuf;
mod versions;

use std::collections::BTreeMap;
use std::time::Duration;

use informant_apiserver::ApiServer;
use informant_cache::{InformerFactory, InformerFactoryBuilder, SharedInformer};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta};

fn server() -> ApiServer {
    ApiServer::builder().seed(1).build()
}

fn client(server: &ApiServer) -> kube::Client {
    kube::Client::new(server.service(), "default")
}

fn builder(server: &ApiServer) -> InformerFactoryBuilder {
    InformerFactory::builder(client(server)).seed(1)
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("value".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

fn widgets() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Widget"), "widgets")
}

fn widget(name: &str) -> DynamicObject {
    DynamicObject::new(name, &widgets()).within("default").data(serde_json::json!({"spec": {"size": 1}}))
}

/// Waits until the cache holds what a list of the server says, by key and resource version.
async fn assert_holds_what_the_server_has(informer: &SharedInformer<ConfigMap>, client: &kube::Client) {
    let api = kube::Api::<ConfigMap>::all(client.clone());
    let mut last = (Vec::new(), Vec::new());
    for _ in 0..500 {
        let listed = api.list(&kube::api::ListParams::default()).await.unwrap().items;
        let version = |object: &ConfigMap| {
            let metadata = &object.metadata;
            (metadata.namespace.clone(), metadata.name.clone(), metadata.resource_version.clone())
        };
        let mut there: Vec<_> = listed.iter().map(version).collect();
        let mut held: Vec<_> = informer.lister().list().iter().map(|object| version(object)).collect();
        there.sort();
        held.sort();
        if there == held {
            return;
        }
        last = (there, held);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the server has {:#?}, the cache holds {:#?}", last.0, last.1);
}
