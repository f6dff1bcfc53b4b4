//! An informer whose objects are kept in a form of the user's: handlers, listers and indexes don't notice.

use std::sync::Arc;

use informant_cache::{DecodeError, Document, Event, Held, Metadata, Representation};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, GroupVersionKind};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::scripted::{Server, object, object_with};

/// What this user needs of a ConfigMap. It's no `kube::Resource`.
#[derive(Debug, Deserialize)]
struct Slim {
    metadata: SlimMetadata,
    data: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct SlimMetadata {
    name: String,
    namespace: Option<String>,
    labels: std::collections::BTreeMap<String, String>,
}

impl Metadata for Slim {
    fn name(&self) -> &str {
        &self.metadata.name
    }
    fn namespace(&self) -> Option<&str> {
        self.metadata.namespace.as_deref()
    }
    fn uid(&self) -> Option<&str> {
        None
    }
    fn resource_version(&self) -> Option<&str> {
        None
    }
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.get(key).map(String::as_str)
    }
}

/// Keeps the fields that it has.
struct Slimmed;

impl Representation<Slim> for Slimmed {
    fn held_bytes(&self, _held: &Held<Slim>, _document: &Document<'_>) -> usize {
        1000
    }

    fn hold(&self, document: &Document<'_>) -> Result<Held<Slim>, DecodeError> {
        document.decode().map(|object| Held::Full(Arc::new(object)))
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_listers_and_indexes_do_not_notice_the_form() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "ConfigMap"), "configmaps");
    let informer = factory.informer_for::<Slim>(resource.clone()).held_as(Slimmed);
    let again = factory.informer_for::<Slim>(resource).held_as(Slimmed);
    assert_eq!(factory.statuses().len(), 1, "the same object type, form, resource and scope is the same informer");
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let labelled = object_with("b", 2, &serde_json::json!({"app": "web"}));
    let watch = server.sync("10", &[object("a", 1), labelled]).await;
    let initial = events.wait_initial().await.unwrap();
    assert_eq!(initial.iter().map(|event| event.key().as_str()).collect::<Vec<_>>(), ["web/a", "web/b"]);
    watch.event("MODIFIED", &object("a", 11));
    let event = events.next().await.unwrap();
    // What the form says, and more for keys, uids and versions.
    assert!((2000..3000).contains(&informer.memory().objects), "{:?}", informer.memory());

    let Event::Updated { old, new } = &event else { panic!("{event:?}") };
    assert_eq!((old.resource_version(), new.resource_version()), ("1", "11"));
    assert_eq!(event.old().unwrap().data["version"], "1");
    assert_eq!(again.lister().get(event.key()).unwrap().data["version"], "11");
    let selected = informer.lister().select(&"app=web".parse().unwrap());
    assert_eq!(selected.iter().map(|object| object.name()).collect::<Vec<_>>(), ["b"]);
    let by_version = informer.index("version", |object: &Slim| object.data.get("version").cloned());
    assert_eq!(by_version.keys(&"11".to_owned()).len(), 1);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn packed_objects_are_compressed_and_read_as_they_were_sent() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let packed = factory.informer::<ConfigMap>().packed();
    let mut events = packed.subscribe();
    factory.start(&cancel).unwrap();
    let objects: Vec<_> = (1..=600).map(|number| with_managed_fields(object(&format!("o{number}"), number))).collect();
    let sent: usize = objects.iter().map(|object| object.to_string().len()).sum();
    let watch = server.sync("1000", &objects).await;
    assert_eq!(events.wait_initial().await.unwrap().len(), 600);
    let bytes = packed.memory().total() as usize;
    assert!(bytes * 2 < sent, "{bytes} bytes are held of {sent}");

    let cached = packed.lister().cached(&"web/o7".parse().unwrap()).unwrap();
    let mut expected = objects[6].clone();
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&cached.to_json().unwrap()).unwrap(), expected);
    let object = cached.object();
    assert_eq!(serde_json::from_value::<ConfigMap>(expected).unwrap(), *object);
    assert!(Arc::ptr_eq(&object, &packed.lister().get(cached.key()).unwrap()), "the last ones are kept decoded");

    watch.event("MODIFIED", &object_with("o7", 1001, &serde_json::json!({"app": "web"})));
    let event = events.next().await.unwrap();
    assert_eq!(event.old().unwrap().metadata.resource_version.as_deref(), Some("7"));
    let selected = packed.lister().select(&"app=web".parse().unwrap());
    assert_eq!(selected.iter().map(|object| object.name()).collect::<Vec<_>>(), ["o7"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_filter_and_a_transform_work_on_packed_objects() {
    for transformed in [false, true] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let builder = factory.informer::<ConfigMap>().filter(|object| object.name() != "b");
        let informer = if transformed {
            let transform = |mut object: ConfigMap| {
                object.metadata.annotations = Some([("trimmed".to_owned(), "yes".to_owned())].into());
                Ok(object)
            };
            builder.transform(transform).packed()
        } else {
            builder.raw()
        };
        factory.start(&cancel).unwrap();
        let _watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
        factory.wait_for_cache_sync(&cancel).await.unwrap();
        assert_eq!(informer.lister().keys().iter().map(|key| key.as_str()).collect::<Vec<_>>(), ["web/a"]);
        let annotated = informer.lister().list().pop().unwrap().annotation("trimmed").is_some();
        assert_eq!(annotated, transformed);
        factory.shutdown().await;
    }
}

/// As a server sends it, with something in it.
fn with_managed_fields(mut object: serde_json::Value) -> serde_json::Value {
    object["data"]["text"] = "what all of them have in common ".repeat(60).into();
    object["metadata"]["managedFields"] = serde_json::json!([{"manager": "kubectl", "fieldsV1": {"f:data": {}}}]);
    object
}
