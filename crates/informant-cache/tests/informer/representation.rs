//! An informer whose objects are kept in a form of the user's: handlers, listers and indexes don't notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use informant_cache::{DecodeError, Document, Event, Held, LazyObject, Metadata, Representation, Selector};
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

/// Keeps the bytes and decodes when read; counts how often it does.
struct Bytes {
    reads: Arc<AtomicUsize>,
}

struct Kept {
    bytes: Vec<u8>,
    reads: Arc<AtomicUsize>,
}

impl Representation<Slim> for Bytes {
    fn held_bytes(&self, _held: &Held<Slim>, _document: &Document<'_>) -> usize {
        1000
    }

    fn hold(&self, document: &Document<'_>) -> Result<Held<Slim>, DecodeError> {
        document.decode::<Slim>()?;
        Ok(Held::Lazy(Arc::new(Kept { bytes: document.to_json()?.into_owned(), reads: Arc::clone(&self.reads) })))
    }
}

impl LazyObject<Slim> for Kept {
    fn read(&self) -> Arc<Slim> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        Arc::new(serde_json::from_slice(&self.bytes).expect("it was read before"))
    }

    fn matches(&self, selector: &Selector) -> bool {
        let object = self.read();
        selector.matches(|key| object.label(key))
    }
}

#[tokio::test(start_paused = true)]
async fn objects_kept_as_bytes_are_decoded_only_when_read() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "ConfigMap"), "configmaps");
    let reads = Arc::new(AtomicUsize::new(0));
    let representation = Bytes { reads: Arc::clone(&reads) };
    let informer = factory.informer_for::<Slim>(resource.clone()).held_as(representation);
    let again = factory.informer_for::<Slim>(resource).held_as(Bytes { reads: Arc::default() });
    assert_eq!(factory.statuses().len(), 1, "the same object type, form, resource and scope is the same informer");
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let labelled = object_with("b", 2, &serde_json::json!({"app": "web"}));
    let watch = server.sync("10", &[object("a", 1), labelled]).await;
    let initial = events.wait_initial().await.unwrap();
    assert_eq!(initial.iter().map(|event| event.key().as_str()).collect::<Vec<_>>(), ["web/a", "web/b"]);
    watch.event("MODIFIED", &object("a", 11));
    let event = events.next().await.unwrap();
    assert_eq!((informer.lister().list_cached().len(), reads.load(Ordering::SeqCst)), (2, 0), "nobody looked");
    // What the form says, and "web/a" with its uid and "11", "web/b" with its uid and "2".
    let uids: usize = informer.lister().list_cached().iter().map(|object| object.uid().len()).sum();
    assert_eq!(informer.status().bytes, (2013 + uids) as u64);

    let Event::Updated { old, new } = &event else { panic!("{event:?}") };
    assert_eq!((old.resource_version(), new.resource_version()), ("1", "11"));
    assert_eq!(event.old().unwrap().data["version"], "1");
    assert_eq!(event.object().data["version"], "11");
    assert_eq!(again.lister().get(event.key()).unwrap().data["version"], "11");
    assert_eq!(reads.load(Ordering::SeqCst), 3);
    let selected = informer.lister().select(&"app=web".parse().unwrap());
    assert_eq!(selected.iter().map(|object| object.name()).collect::<Vec<_>>(), ["b"]);
    let by_version = informer.index("version", |object: &Slim| object.data.get("version").cloned());
    assert_eq!(by_version.keys(&"11".to_owned()).len(), 1);
    factory.shutdown().await;
}
