//! In process, under paused time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informant_cache::{Event, HandlerOptions, RelistReason, Scope};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{assert_holds_what_the_server_has, builder, client, config_map, server};

async fn next(events: &mut informant_cache::Subscription<ConfigMap>) -> (String, String) {
    let event = events.next().await.unwrap();
    (event.kind().to_string(), event.key().to_string())
}

fn said(kind: &str, key: &str) -> (String, String) {
    (kind.to_owned(), key.to_owned())
}

#[tokio::test(start_paused = true)]
async fn an_informer_follows_creation_change_and_deletion_by_stream_and_by_list() {
    for watch_list in [true, false] {
        let (server, cancel) = (server(), CancellationToken::new());
        let api = Api::<ConfigMap>::namespaced(client(&server), "default");
        api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
        let factory = builder(&server).watch_list(watch_list).build();
        let informer = factory.informer::<ConfigMap>().full();
        let mut events = informer.subscribe();
        factory.start(&cancel).unwrap();
        factory.wait_for_cache_sync(&cancel).await.unwrap();
        let initial = events.wait_initial().await.unwrap();
        assert!(initial.iter().all(Event::is_initial));
        assert!(informer.lister().get(&"default/a".parse().unwrap()).is_some());

        api.create(&PostParams::default(), &config_map("b", "1")).await.unwrap();
        let patch = Patch::Merge(json!({"data": {"value": "2"}}));
        api.patch("a", &PatchParams::default(), &patch).await.unwrap();
        api.delete("b", &DeleteParams::default()).await.unwrap();
        assert_eq!(next(&mut events).await, said("added", "default/b"));
        assert_eq!(next(&mut events).await, said("updated", "default/a"));
        assert_eq!(next(&mut events).await, said("deleted", "default/b"));
        assert_holds_what_the_server_has(&informer, &client(&server)).await;
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_objects_is_synced_at_once() {
    let (server, cancel) = (server(), CancellationToken::new());
    let factory = builder(&server).build();
    let informer = factory.informer::<ConfigMap>().scope(Scope::all().with_labels("no=such")).full();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    assert!(informer.lister().is_empty());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_larger_than_a_page_is_held_whole_whether_or_not_the_server_heeds_the_limit() {
    let (server, cancel) = (server(), CancellationToken::new());
    let api = Api::<ConfigMap>::namespaced(client(&server), "default");
    for number in 0..53 {
        api.create(&PostParams::default(), &config_map(&format!("c{number}"), "1")).await.unwrap();
    }
    let factory = builder(&server).watch_list(false).page_size(5).build();
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaced("default")).full();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    let listed = api.list(&kube::api::ListParams::default()).await.unwrap().items.len();
    assert_eq!(informer.lister().len(), listed);
    factory.shutdown().await;
}

/// A selector's watch deletes what stops matching and adds what starts to.
#[tokio::test(start_paused = true)]
async fn a_scope_with_a_selector_follows_what_comes_into_it_and_leaves_it() {
    let (server, cancel) = (server(), CancellationToken::new());
    let api = Api::<ConfigMap>::namespaced(client(&server), "default");
    let factory = builder(&server).build();
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaced("default").with_labels("app=web")).full();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    events.wait_initial().await.unwrap();
    api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    for (labels, kind) in
        [(json!({"app": "web"}), "added"), (json!({"app": "db"}), "deleted"), (json!({"app": "web"}), "added")]
    {
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        api.patch("a", &PatchParams::default(), &patch).await.unwrap();
        assert_eq!(next(&mut events).await, said(kind, "default/a"));
    }
    factory.shutdown().await;
}

/// What's compacted away while a watch is closed is made up for by a new list: a delete that was missed comes with the
/// last known state.
#[tokio::test(start_paused = true)]
async fn a_compaction_while_the_watch_is_closed_ends_in_a_new_list_that_misses_nothing() {
    let (server, cancel) = (server(), CancellationToken::new());
    let api = Api::<ConfigMap>::namespaced(client(&server), "default");
    for name in ["a", "b"] {
        api.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    }
    let gate = Arc::new(AtomicBool::new(true));
    let factory = gated(&server, &gate);
    let informer = factory.informer::<ConfigMap>().full();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    events.wait_initial().await.unwrap();

    // The watch ends by its timeout while nothing gets through; meanwhile the world goes on.
    gate.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(700)).await;
    api.delete("b", &DeleteParams::default()).await.unwrap();
    api.create(&PostParams::default(), &config_map("c", "1")).await.unwrap();
    server.compact(server.resource_version());
    gate.store(true, Ordering::SeqCst);

    let mut seen = vec![next(&mut events).await, next(&mut events).await];
    seen.sort();
    assert_eq!(seen, [said("added", "default/c"), said("deleted", "default/b")]);
    assert_holds_what_the_server_has(&informer, &client(&server)).await;
    assert_eq!(informer.status().counters.relists.get(&RelistReason::Expired), Some(&1));
    factory.shutdown().await;
}

/// A factory whose requests are refused while the gate is closed.
fn gated(server: &informant_apiserver::ApiServer, gate: &Arc<AtomicBool>) -> informant_cache::InformerFactory {
    use tower::{ServiceExt, service_fn};
    let (service, gate) = (server.service(), Arc::clone(gate));
    let gated = service_fn(move |request: http::Request<kube::client::Body>| {
        let (service, open) = (service.clone(), gate.load(Ordering::SeqCst));
        async move {
            if !open {
                return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
            }
            service.oneshot(request).await.map_err(std::io::Error::other)
        }
    });
    informant_cache::InformerFactory::builder(kube::Client::new(gated, "default")).seed(1).build()
}

/// Late handlers under load: each sees the present, then every change, and ends with the truth.
#[tokio::test(start_paused = true)]
async fn handlers_added_under_load_end_with_what_the_server_has() {
    let (server, cancel) = (server(), CancellationToken::new());
    let api = Api::<ConfigMap>::namespaced(client(&server), "default");
    let factory = builder(&server).build();
    let informer = factory.informer::<ConfigMap>().full();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    let mut handlers = Vec::new();
    let mut rng = fastrand::Rng::with_seed(3);
    for round in 0..400 {
        let name = format!("c{}", rng.usize(..20));
        if api.get_opt(&name).await.unwrap().is_none() {
            api.create(&PostParams::default(), &config_map(&name, "0")).await.unwrap();
        } else if rng.bool() {
            api.delete(&name, &DeleteParams::default()).await.unwrap();
        } else {
            let patch = Patch::Merge(json!({"data": {"value": round.to_string()}}));
            api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
        }
        if round % 50 == 0 {
            let seen = Arc::new(Mutex::new(std::collections::BTreeMap::new()));
            let to = Arc::clone(&seen);
            let options = HandlerOptions::named(format!("late {round}")).with_bound(1 + round / 50);
            let handler = informer.on_change_with(options, move |event| {
                let mut seen = to.lock().unwrap();
                match &event {
                    Event::Added { object, .. } => assert!(seen.insert(event.key().clone(), object.clone()).is_none()),
                    Event::Updated { old, new } => {
                        let known = seen.insert(event.key().clone(), new.clone());
                        assert!(known.is_some_and(|known| known.is_same(old)));
                    }
                    Event::Deleted { .. } => assert!(seen.remove(event.key()).is_some()),
                }
            });
            handlers.push((handler, seen));
        }
    }
    assert_holds_what_the_server_has(&informer, &client(&server)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    for (handler, seen) in &handlers {
        let status = handler.status().unwrap();
        assert_eq!((status.panics, status.queued), (0, 0), "{status:?}");
        let keys: Vec<_> = seen.lock().unwrap().keys().cloned().collect();
        assert_eq!(keys, informer.lister().keys());
    }
    factory.shutdown().await;
}
