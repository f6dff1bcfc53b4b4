//! What a transform is given, and who sees what it makes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use informant_cache::HandlerOptions;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object, show};

/// Marks an object once more with each run.
fn mark(mut object: ConfigMap) -> ConfigMap {
    object.data.get_or_insert_default().entry("mark".to_owned()).or_default().push('x');
    object
}

fn marked(object: &ConfigMap) -> String {
    object.data.as_ref().map(|data| data["mark"].clone()).unwrap_or_default()
}

/// Public report C-048 (kubernetes/kubernetes#124344). client-go facts 63, 70 and 108; and 48 but that what was streamed
/// isn't transformed again when it's put into the store.
#[tokio::test(start_paused = true)]
async fn an_object_is_transformed_once_whether_it_is_streamed_listed_told_again_or_found_gone() {
    for watch_list in [true, false] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.builder().watch_list(watch_list).build();
        let given = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&given);
        let transform = move |object: ConfigMap| {
            to.lock().unwrap().push(object.metadata.resource_version.clone().unwrap());
            Ok(mark(object))
        };
        let informer = factory.informer::<ConfigMap>().transform(transform).kept();
        let log = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&log);
        let options = HandlerOptions::default().with_resync(Duration::from_secs(10));
        let handler = informer.on_change_with(options, move |event| {
            let old = event.old().map(|old| marked(&old)).unwrap_or_default();
            to.lock().unwrap().push(format!("{} {old}{}", show(&event), marked(&event.object())));
        });
        factory.start(&cancel).unwrap();
        let watch = if watch_list {
            let stream = server.request().await.open();
            stream.event("ADDED", &object("a", 1));
            stream.event("ADDED", &object("b", 2));
            stream.event("ADDED", &object("d", 3));
            stream.end_of_initial_events("10");
            stream
        } else {
            server.sync("10", &[object("a", 1), object("b", 2), object("d", 3)]).await
        };
        assert!(handler.wait_synced().await);
        assert_eq!(*log.lock().unwrap(), ["+!web/a@1 x", "+!web/b@2 x", "+!web/d@3 x"]);
        sleep(Duration::from_secs(15)).await;
        watch.event("MODIFIED", &object("a", 11));
        watch.event("DELETED", &object("a", 12));
        sleep(Duration::from_secs(1)).await;
        let seen = std::mem::take(&mut *log.lock().unwrap());
        let again = ["web/a@1>1 xx", "web/b@2>2 xx", "web/d@3>3 xx"];
        assert_eq!(
            (&seen[3..6], &seen[6..]),
            (&again.map(str::to_owned)[..], &["web/a@1>11 xx".to_owned(), "-web/a@12 x".to_owned()][..])
        );
        sleep(Duration::from_secs(60)).await;
        log.lock().unwrap().clear();
        watch.error(410, "Expired");
        let request = server.request().await;
        let _watch = if watch_list {
            let stream = request.open();
            stream.event("ADDED", &object("c", 13));
            stream.event("ADDED", &object("d", 3));
            stream.end_of_initial_events("20");
            stream
        } else {
            request.list("20", &[object("c", 13), object("d", 3)]);
            server.request().await.open()
        };
        sleep(Duration::from_secs(1)).await;
        assert_eq!(*log.lock().unwrap(), ["-?web/b@2 x", "+web/c@13 x"]);
        assert_eq!(*given.lock().unwrap(), ["1", "2", "3", "11", "12", "13"], "each received state once, nothing else");
        assert!(informer.lister().list().iter().all(|object| marked(object) == "x"));
        factory.shutdown().await;
    }
}

/// client-go facts 78 and 91, where an object's key and the store's version follow from what the transform made: here
/// they are the server's, so nothing gets lost or stays behind when a transform strips or changes the names.
#[tokio::test(start_paused = true)]
async fn keys_and_versions_are_the_server_s_whatever_a_transform_makes_of_them() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let rename = |mut object: ConfigMap| {
        object.metadata.name = object.metadata.name.map(|name| format!("new-{name}"));
        object.metadata.resource_version = None;
        object.metadata.uid = None;
        Ok(object)
    };
    let informer = factory.informer::<ConfigMap>().transform(rename).kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[object("a", 1)]).await;
    let added = events.next().await.unwrap();
    assert_eq!((show(&added).as_str(), added.object().metadata.name.as_deref()), ("+!web/a@1", Some("new-a")));
    watch.event("MODIFIED", &object("a", 1));
    watch.event("MODIFIED", &object("a", 11));
    assert_eq!(show(&events.next().await.unwrap()), "web/a@1>11", "a state that's known is no news, as ever");
    assert_eq!(informer.last_store_resource_version(), "11");
    let held = informer.lister().get(&"web/a".parse().unwrap()).unwrap();
    assert_eq!((held.metadata.name.as_deref(), &held.metadata.resource_version), (Some("new-a"), &None));
    watch.event("DELETED", &object("a", 12));
    assert_eq!(show(&events.next().await.unwrap()), "-web/a@12");
    assert_eq!((informer.last_store_resource_version().as_str(), informer.lister().len()), ("12", 0));
    factory.shutdown().await;
}
