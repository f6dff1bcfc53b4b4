//! The factory: one informer per key, start, wait, shutdown.

use std::time::Duration;

use informant_cache::{InformerState, Scope, StartError};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, PartialObjectMeta};
use tokio_util::sync::CancellationToken;

use crate::scripted::{Server, object};

/// client-go facts 116 and 117.
#[tokio::test(start_paused = true)]
async fn there_is_one_informer_per_type_and_scope_and_it_is_started_once() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let first = factory.informer::<ConfigMap>().full();
    let second = factory.clone().informer::<ConfigMap>().scope(Scope::all()).full();
    factory.start(&cancel).unwrap();
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[object("a", 1)]).await;
    assert!(server.is_quiet_for(Duration::from_secs(60)).await, "there's one watch");
    assert_eq!((first.lister().len(), second.lister().len()), (1, 1));

    let resource = ApiResource::erase::<ConfigMap>(&());
    let others = [
        factory.informer::<ConfigMap>().scope(Scope::namespaced("web")).full().name().to_owned(),
        factory.informer::<ConfigMap>().scope(Scope::all().with_labels("app=web")).full().name().to_owned(),
        factory.dynamic(resource).full().name().to_owned(),
        factory.informer::<Secret>().full().name().to_owned(),
    ];
    assert_eq!(factory.statuses().len(), 5);
    assert_eq!(others[0], "configmaps/v1 in namespace \"web\"");
    assert_eq!(others[1], "configmaps/v1 with labels \"app=web\"");
    // What's made later needs another start.
    assert!(server.is_quiet_for(Duration::from_secs(60)).await);
    factory.start(&cancel).unwrap();
    for _ in 0..4 {
        server.request().await.refuse();
    }
    factory.shutdown().await;
}

/// client-go facts 112 and 113.
#[tokio::test(start_paused = true)]
async fn waiting_names_what_is_not_synced_and_why() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let _secrets = factory.informer::<Secret>().full();
    let informer = factory.informer::<ConfigMap>().full();
    // client-go would ignore what isn't started; then a cache that nobody fills passes for synced.
    let error = factory.wait_for_cache_sync(&cancel).await.unwrap_err();
    assert_eq!(error.to_string(), "not synced: configmaps/v1 (not started); secrets/v1 (not started)");
    factory.start(&cancel).unwrap();
    for _ in 0..2 {
        let request = server.request().await;
        if request.path.ends_with("secrets") { request.fail(500, "InternalError") } else { request.list("10", &[]) }
    }
    informer.wait_synced().await.unwrap();
    let patience = CancellationToken::new();
    let waited = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        patience.cancel();
    };
    let (error, ()) = tokio::join!(factory.wait_for_cache_sync(&patience), waited);
    let error = error.unwrap_err();
    assert_eq!(error.not_synced.len(), 1);
    assert!(error.to_string().starts_with("not synced: secrets/v1 (failing since "), "{error}");
    assert!(error.to_string().ends_with("server error: InternalError! (500))"), "{error}");
    factory.shutdown().await;
}

/// client-go facts 33, 101 and 119.
#[tokio::test(start_paused = true)]
async fn shutdown_ends_every_task_in_every_state_and_may_be_waited_for_by_many() {
    for answered in 0..3 {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().full();
        let _handler = informer.on_change(|_| {});
        factory.start(&cancel).unwrap();
        let mut open = Vec::new();
        match answered {
            0 => {}
            1 => server.request().await.fail(500, "InternalError"),
            _ => open.push(server.sync("10", &[object("a", 1)]).await),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        tokio::join!(factory.shutdown(), factory.shutdown());
        assert_eq!(informer.state(), InformerState::Stopped);
        let left = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        assert_eq!(alive - left, 2, "the informer's task and the handler's");
        assert_eq!(factory.start(&cancel), Err(StartError::ShutDown));
        assert!(factory.wait_for_cache_sync(&cancel).await.is_err() || answered == 2);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_token_of_the_start_stops_the_informers_too() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().full();
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[]).await;
    informer.wait_synced().await.unwrap();
    cancel.cancel();
    informer.wait_state(|state| *state == InformerState::Stopped).await;
    assert!(informer.has_synced());
    factory.shutdown().await;
}

#[test]
fn making_informers_needs_no_runtime_and_starting_them_does() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let guard = runtime.enter();
    let server = Server::new();
    drop(guard);
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().full();
    let _index = informer.index("name", |object: &ConfigMap| object.metadata.name.clone());
    informer.on_change(|_| {}).detach();
    assert_eq!(informer.state(), InformerState::NotStarted);
    assert_eq!(factory.start(&CancellationToken::new()), Err(StartError::NoRuntime));
}

#[tokio::test(start_paused = true)]
async fn metadata_only_objects_are_asked_for_as_such() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<PartialObjectMeta<ConfigMap>>().full();
    factory.start(&cancel).unwrap();
    let request = server.request().await;
    assert!(request.header("accept").contains("as=PartialObjectMetadata"), "{}", request.header("accept"));
    request.list("10", &[object("a", 1)]);
    let watch = server.request().await.open();
    watch.event("ADDED", &serde_json::json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "b", "resourceVersion": "11"}}));
    let mut events = informer.subscribe();
    for _ in 0..2 {
        events.next().await.unwrap();
    }
    assert_eq!(informer.lister().len(), 2);
    factory.shutdown().await;
}

/// What `/katalog` shows.
#[tokio::test(start_paused = true)]
async fn a_status_is_readable_as_json() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let start = "2026-01-02T03:04:05Z".parse().unwrap();
    let factory = server.builder().watch_list(false).start_time(start).build();
    let informer = factory.informer::<ConfigMap>().full();
    let _handler = informer.on_change_with(informant_cache::HandlerOptions::named("print"), |_| {});
    factory.start(&cancel).unwrap();
    server.request().await.fail(404, "NotFound");
    informer.wait_state(|state| matches!(state, InformerState::Missing { .. })).await;
    let status = serde_json::to_value(factory.statuses()).unwrap();
    assert_eq!(status[0]["informer"], "configmaps/v1");
    assert_eq!(status[0]["state"], "missing");
    assert_eq!(status[0]["since"], "2026-01-02T03:04:05Z");
    assert_eq!(status[0]["reason"], "NotFound! (404)");
    assert_eq!(status[0]["counters"]["lists"], 1);
    assert_eq!(status[0]["lastError"]["kind"], "notFound");
    assert_eq!(status[0]["handlers"][0]["handler"], "print");
    factory.shutdown().await;
}
