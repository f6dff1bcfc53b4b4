//! Informers whose objects are kept as a projection: everything works on them as on whole objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use informant_cache::{Event, Metadata, Projection, Scope};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::scripted::{Server, object, object_with};

#[derive(Debug, Clone, PartialEq, Projection)]
#[projection(api_version = "v1", kind = "ConfigMap")]
struct Config {
    #[projection(path = "metadata.name")]
    name: String,
    #[projection(path = "metadata.namespace")]
    namespace: Arc<str>,
    #[projection(path = "metadata.labels")]
    labels: BTreeMap<Arc<str>, Arc<str>>,
    #[projection(path = "data.version")]
    version: String,
}

#[tokio::test(start_paused = true)]
async fn handlers_listers_selectors_and_indexes_work_on_a_projection() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.projection::<Config>().projected();
    let again = factory.projection::<Config>().projected();
    let by_version = informer.index("version", |object: &Config| Some(object.version.clone()));
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let web = json!({"app": "web"});
    let watch = server.sync("10", &[object_with("a", 1, &web), object_with("b", 2, &web), object("c", 3)]).await;
    let initial = events.wait_initial().await.unwrap();
    assert_eq!(initial.iter().map(|event| event.object().name.clone()).collect::<Vec<_>>(), ["a", "b", "c"]);
    let status = &factory.statuses()[0];
    assert_eq!((factory.statuses().len(), status.objects, &*status.form), (1, 3, "projected"));

    let lister = informer.lister();
    let [a, b] = ["web/a", "web/b"].map(|key| lister.get(&key.parse().unwrap()).expect(key));
    assert!(Arc::ptr_eq(&a.namespace, &b.namespace), "one text for both");
    assert!(Arc::ptr_eq(&a.labels["app"], &b.labels["app"]));
    let mut selected: Vec<_> =
        lister.select(&"app=web".parse().unwrap()).iter().map(|object| object.name.clone()).collect();
    selected.sort();
    assert_eq!(selected, ["a", "b"]);
    assert_eq!((a.name(), Metadata::namespace(&*a), a.label("app"), a.uid()), ("a", Some("web"), Some("web"), None));
    assert_eq!(
        lister.cached(&"web/a".parse().unwrap()).unwrap().uid(),
        "uid-a",
        "the cache knows what the struct leaves out"
    );

    watch.event("MODIFIED", &object_with("a", 11, &web));
    watch.event("DELETED", &object("c", 12));
    let Event::Updated { old, new } = events.next().await.unwrap() else { panic!("an update") };
    assert_eq!((old.object().version.as_str(), new.object().version.as_str()), ("1", "11"));
    assert_eq!(events.next().await.unwrap().key().as_str(), "web/c");
    assert_eq!(by_version.get("11")[0].name, "a");
    assert!(by_version.get("1").is_empty() && again.lister().len() == 2);
    factory.shutdown().await;
}

/// Counts how often it's decoded.
#[derive(Debug, Clone, PartialEq)]
struct Counted(String);

static DECODED: AtomicUsize = AtomicUsize::new(0);

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DECODED.fetch_add(1, Ordering::Relaxed);
        String::deserialize(deserializer).map(Self)
    }
}

#[derive(Debug, Projection)]
#[projection(api_version = "v1", kind = "ConfigMap")]
struct CountedConfig {
    #[projection(path = "data.version")]
    version: Counted,
}

#[tokio::test(start_paused = true)]
async fn a_list_anew_decodes_and_announces_what_changed_and_nothing_else() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.projection::<CountedConfig>().projected();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    events.wait_initial().await.unwrap();
    assert_eq!(DECODED.load(Ordering::Relaxed), 2);
    let before = informer.lister().cached(&"web/a".parse().unwrap()).unwrap();
    sleep(Duration::from_secs(60)).await;
    watch.error(410, "Expired");
    server.request().await.list("20", &[object("a", 1), object("b", 12)]);
    let _watch = server.request().await.open();
    let event = events.next().await.unwrap();
    assert_eq!((event.key().as_str(), &event.object().version), ("web/b", &Counted("12".to_owned())));
    assert_eq!(DECODED.load(Ordering::Relaxed), 3);
    assert!(informer.lister().cached(&"web/a".parse().unwrap()).unwrap().is_same(&before));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_not_as_the_struct_says_is_named_with_the_path_and_the_others_are_there() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.projection::<Config>().projected();
    factory.start(&cancel).unwrap();
    let mut bad = object("bad", 2);
    bad["data"] = json!({"version": 7});
    let mut empty = object("empty", 3);
    empty["data"] = Value::Null;
    let watch = server.sync("10", &[object("a", 1), bad, empty]).await;
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    let status = informer.status();
    assert_eq!((status.objects, status.counters.undecodable), (1, 2));
    assert_eq!(status.undecodable["web/bad"], "data.version: invalid type: integer, expected a string");
    assert_eq!(status.undecodable["web/empty"], "data.version: it's absent, and the field `version` can't do without");
    watch.event("MODIFIED", &object("bad", 11));
    informer.wait_until("11").await.unwrap();
    assert_eq!(informer.status().undecodable.len(), 1);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn filters_and_transforms_get_the_projection() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory
        .projection::<Config>()
        .scope(Scope::namespaced("web"))
        .filter(|object: &Config| object.name != "b")
        .transform(|mut object| {
            object.version.push('!');
            Ok(object)
        })
        .projected();
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    let kept: Vec<_> = informer.lister().list().iter().map(|object| object.version.clone()).collect();
    assert_eq!(kept, ["1!"]);
    factory.shutdown().await;
}

/// Of a text that many objects hold there's one, and what it takes doesn't grow with them.
#[tokio::test(start_paused = true)]
async fn shared_texts_count_once() {
    async fn held(value: &str) -> informant_cache::Memory {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.projection::<Config>().projected();
        factory.start(&cancel).unwrap();
        let labels = json!({"app": value});
        let items: Vec<_> = (0..100).map(|number| object_with(&format!("n{number:02}"), 1, &labels)).collect();
        let _watch = server.sync("10", &items).await;
        factory.wait_for_cache_sync(&cancel).await.unwrap();
        let memory = informer.memory();
        factory.shutdown().await;
        memory
    }
    let (short, long) = (held("v").await, held(&"v".repeat(61)).await);
    assert_eq!((long.objects, long.shared), (short.objects, short.shared + 60));
    assert!(short.objects >= 100 * size_of::<Config>() as u64);
}
