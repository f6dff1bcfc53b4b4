//! The factory: one informer per key, start, wait, shutdown.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use informant_cache::{InformerState, Scope, StartError};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{ApiResource, PartialObjectMeta};
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object};

/// client-go fact 116, Istio fact 31.
#[tokio::test(start_paused = true)]
async fn there_is_one_informer_per_type_scope_and_name() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let first = factory.informer::<ConfigMap>().kept();
    let second = factory.clone().informer::<ConfigMap>().scope(Scope::all()).kept();
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[object("a", 1)]).await;
    assert!(server.is_quiet_for(Duration::from_secs(60)).await, "there's one watch");
    assert_eq!((first.lister().len(), second.lister().len()), (1, 1));

    let resource = ApiResource::erase::<ConfigMap>(&());
    let others = [
        factory.informer::<ConfigMap>().scope(Scope::namespaced("web")).kept().name().to_owned(),
        factory.informer::<ConfigMap>().scope(Scope::all().with_labels("app=web")).kept().name().to_owned(),
        factory.dynamic(resource).kept().name().to_owned(),
        factory.informer::<ConfigMap>().named("mine").kept().name().to_owned(),
        factory.informer::<Secret>().kept().name().to_owned(),
    ];
    let registered = [
        "configmaps/v1",
        "configmaps/v1 in namespace \"web\"",
        "configmaps/v1 with labels \"app=web\"",
        "configmaps/v1",
        "configmaps/v1 named \"mine\"",
        "secrets/v1",
    ];
    assert_eq!(factory.registered(), registered);
    assert_eq!(others, registered[1..]);
    assert_eq!(factory.statuses().len(), 6);
    factory.shutdown().await;
}

/// client-go fact 117 and Istio fact 33, but for what's registered after the start: it begins at once.
#[tokio::test(start_paused = true)]
async fn a_factory_is_started_exactly_once_and_what_comes_later_begins_at_once() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let _first = factory.informer::<ConfigMap>().kept();
    assert!(!factory.is_started());
    assert_eq!(factory.status_line(), "configmaps/v1 (not started)");
    factory.start(&cancel).unwrap();
    assert_eq!(factory.clone().start(&CancellationToken::new()), Err(StartError::AlreadyStarted));
    assert!(factory.is_started() && !factory.is_ready());
    let _watch = server.sync("10", &[object("a", 1)]).await;
    assert!(server.is_quiet_for(Duration::from_secs(60)).await, "it was started once");
    assert!(factory.is_ready());

    let late = factory.informer::<Secret>().kept();
    let mut events = late.subscribe();
    assert!(!factory.is_ready());
    let _watch = server.sync("10", &[secret("b", 1)]).await;
    assert_eq!(events.wait_initial().await.unwrap().len(), 1);
    assert_eq!(factory.status_line(), "configmaps/v1 (synced), secrets/v1 (synced)");

    factory.shutdown().await;
    assert_eq!(factory.start(&cancel), Err(StartError::ShutDown));
    assert!(factory.is_started() && !factory.is_ready());
    assert_eq!(late.lister().len(), 1, "the caches stay readable");
    let too_late = factory.informer::<Secret>().scope(Scope::namespaced("web")).kept();
    assert_eq!(too_late.state(), InformerState::Stopped);
    assert!(server.is_quiet_for(Duration::from_secs(60)).await);
}

/// Istio fact 33: a shutdown also counts before the start, and nothing is left of what never ran.
#[tokio::test(start_paused = true)]
async fn a_factory_that_was_shut_down_before_its_start_never_starts() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let handler = informer.on_change(|_| {});
    factory.shutdown().await;
    assert_eq!(informer.state(), InformerState::Stopped);
    assert!(!handler.wait_synced().await);
    assert_eq!(factory.start(&cancel), Err(StartError::ShutDown));
    assert!(server.is_quiet_for(Duration::from_secs(60)).await);

    let factory = server.factory();
    let _informer = factory.informer::<ConfigMap>().kept();
    cancel.cancel();
    assert_eq!(factory.start(&cancel), Err(StartError::ShutDown));
    assert!(!factory.is_started());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_of_a_factory_ends_its_informers() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let before = alive_tasks();
    let factory = server.factory();
    let other = factory.clone();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[object("a", 1)]).await;
    informer.wait_synced().await.unwrap();
    drop(factory);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(informer.state(), InformerState::Synced);
    drop(other);
    informer.wait_state(|state| *state == InformerState::Stopped).await;
    assert_eq!(informer.lister().len(), 1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(alive_tasks(), before);
    assert!(server.is_quiet_for(Duration::from_secs(60)).await);
}

/// An informer that nobody uses any more is stopped alone, and the next who asks gets a new one.
#[tokio::test(start_paused = true)]
async fn an_informer_can_be_stopped_alone() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let configs = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let _configs_watch = server.sync("10", &[object("a", 1)]).await;
    configs.wait_synced().await.unwrap();
    let before = alive_tasks();
    let secrets = factory.informer::<Secret>().kept();
    let _handler = secrets.on_change(|_| {});
    let watch = server.sync("10", &[secret("b", 1)]).await;
    secrets.wait_synced().await.unwrap();
    factory.stop_informer(&secrets).await;
    assert_eq!(alive_tasks(), before);
    assert_eq!(secrets.state(), InformerState::Stopped);
    assert_eq!((secrets.lister().len(), factory.registered()), (1, vec!["configmaps/v1".to_owned()]));
    assert!(watch.is_closed(), "its connection is closed");
    secrets.stop().await;
    factory.wait_for_cache_sync(&cancel).await.unwrap();

    let again = factory.informer::<Secret>().kept();
    assert_eq!(again.lister().len(), 0);
    let _watch = server.sync("11", &[secret("b", 1), secret("c", 2)]).await;
    again.wait_synced().await.unwrap();
    assert_eq!((again.lister().len(), secrets.lister().len()), (2, 1));
    assert_eq!(configs.state(), InformerState::Synced);
    // One that never ran can be stopped, too.
    let other = server.factory();
    let never = other.informer::<Secret>().kept();
    never.stop().await;
    assert_eq!((never.state(), other.registered().len()), (InformerState::Stopped, 0));
    factory.shutdown().await;
}

/// An informer that another factory runs is counted in, and handed out to who asks for the like.
#[tokio::test(start_paused = true)]
async fn an_informer_of_another_factory_can_be_registered() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let (theirs, ours) = (server.factory(), server.factory());
    let informer = theirs.informer::<ConfigMap>().kept();
    assert!(ours.register(&informer));
    assert!(!ours.register(&informer), "the first stays");
    ours.start(&cancel).unwrap();
    assert_eq!(informer.state(), InformerState::NotStarted, "whoever made it starts it");
    theirs.start(&cancel).unwrap();
    let _watch = server.sync("10", &[object("a", 1)]).await;
    ours.wait_for_cache_sync(&CancellationToken::new()).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ours.informer::<ConfigMap>().kept().lister().len(), 1);
    ours.shutdown().await;
    assert_eq!(informer.state(), InformerState::Synced, "whoever made it stops it");
    theirs.shutdown().await;
}

/// What orkestra's factory knows of missing kinds, with sets that add up.
/// Istio fact 21, but that resources are named one by one: there are no patterns, and no list of exceptions to them; what's
/// named is taken back by name. A version that isn't served is missing without being named.
#[tokio::test(start_paused = true)]
async fn a_resource_said_to_be_missing_sends_nothing_until_that_is_taken_back() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let (configs, secrets) = (ApiResource::erase::<ConfigMap>(&()), ApiResource::erase::<Secret>(&()));
    let informer = factory.informer::<ConfigMap>().kept();
    factory.set_missing_on_startup([configs.clone()]);
    factory.set_missing_on_startup([secrets.clone(), configs.clone()]);
    factory.start(&cancel).unwrap();
    let late = factory.informer::<Secret>().kept();
    assert!(server.is_quiet_for(Duration::from_secs(600)).await);
    for state in [informer.state(), late.state()] {
        assert!(matches!(state, InformerState::Missing { .. }), "{state}");
    }
    let plurals: Vec<_> = factory.missing().into_iter().map(|resource| resource.plural).collect();
    assert_eq!(plurals, ["configmaps", "secrets"]);
    // Nobody starts them by themselves, so nobody waits for them.
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    assert!(factory.is_ready() && factory.is_missing(&secrets));

    assert!(factory.remove_missing(&secrets));
    assert!(!factory.remove_missing(&secrets));
    assert!(!factory.is_missing(&secrets) && factory.is_missing(&configs));
    let _watch = server.sync("10", &[secret("a", 1)]).await;
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    assert_eq!((late.lister().len(), late.state()), (1, InformerState::Synced));
    assert!(server.is_quiet_for(Duration::from_secs(60)).await);
    factory.shutdown().await;
}

/// A wait for "synced or known to be absent", for all informers or for those that are optional.
#[tokio::test(start_paused = true)]
async fn a_wait_can_pass_kinds_that_are_known_to_be_absent() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let optional = factory.informer::<Secret>().optional().kept();
    factory.start(&cancel).unwrap();
    let (waited, ()) = tokio::join!(factory.wait_for_cache_sync(&cancel), async {
        server.request().await.fail(404, "NotFound");
        server.discovery(&["pods"]).await;
    });
    waited.unwrap();
    assert!(factory.is_missing(optional.resource()) && factory.is_ready());
    // Now somebody needs it.
    let _needed = factory.informer::<Secret>().kept();
    factory.wait_for_cache_sync_or_absent(&cancel).await.unwrap();
    let patience = CancellationToken::new();
    let (waited, ()) = tokio::join!(factory.wait_for_cache_sync(&patience), async {
        tokio::task::yield_now().await;
        patience.cancel();
    });
    assert!(waited.unwrap_err().to_string().starts_with("not synced: secrets/v1 ("));
    factory.shutdown().await;
}

/// A dependent sends nothing until what it depends on is synced; on stop it ends first.
#[tokio::test(start_paused = true)]
async fn informers_begin_after_what_they_depend_on_and_end_before_it() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let configs = factory.informer::<ConfigMap>().kept();
    let secrets = factory.informer::<Secret>().depends_on(&configs).kept();
    let pods = factory.informer::<Pod>().depends_on(&secrets).kept();
    // Asked for again, with a dependency that says nothing new.
    let _again = factory.informer::<Pod>().depends_on(&configs).kept();
    let stops = Arc::new(Mutex::new(Vec::new()));
    let noted = |name| Noted { name, stops: Arc::clone(&stops) };
    let (one, two, three) = (noted("configs"), noted("pods"), noted("secrets"));
    configs.on_change(move |_| one.hold()).detach();
    pods.on_change(move |_| two.hold()).detach();
    secrets.on_change(move |_| three.hold()).detach();
    factory.start(&cancel).unwrap();
    let first = server.request().await;
    assert!(first.path.ends_with("/configmaps"));
    assert!(server.is_quiet_for(Duration::from_secs(60)).await);
    assert_eq!(
        factory.status_line(),
        "configmaps/v1 (waits for the server's first answer), secrets/v1 (waits for configmaps/v1), pods/v1 (waits for secrets/v1)"
    );
    first.list("10", &[]);
    let _configs_watch = server.request().await.open();
    let second = server.request().await;
    assert!(second.path.ends_with("/secrets"));
    // What's known to be absent isn't waited for.
    second.fail(404, "NotFound");
    server.discovery(&["pods"]).await;
    let mut third = server.request().await;
    while third.path == "/api/v1" {
        third.answer(200, r#"{"resources":[]}"#);
        third = server.request().await;
    }
    assert!(third.path.ends_with("/pods"), "{}", third.path);
    third.list("10", &[]);
    let _pods_watch = server.request().await.open();
    pods.wait_synced().await.unwrap();
    // Not by a shutdown: the order is the same whatever the cause.
    cancel.cancel();
    configs.wait_state(|state| *state == InformerState::Stopped).await;
    factory.shutdown().await;
    assert_eq!(*stops.lock().unwrap(), ["pods", "secrets", "configs"]);
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_was_stopped_holds_nobody_up() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let configs = factory.informer::<ConfigMap>().kept();
    let secrets = factory.informer::<Secret>().depends_on(&configs).kept();
    factory.start(&cancel).unwrap();
    let _unanswered = server.request().await;
    assert!(server.is_quiet_for(Duration::from_secs(10)).await);
    configs.stop().await;
    let _watch = server.sync("10", &[]).await;
    secrets.wait_synced().await.unwrap();
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_dependencies_is_an_error_that_names_it() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let configs = factory.informer::<ConfigMap>().kept();
    let secrets = factory.informer::<Secret>().depends_on(&configs).kept();
    let _pods = factory.informer::<Pod>().depends_on(&secrets).kept();
    let _again = factory.informer::<ConfigMap>().depends_on(&secrets).kept();
    let error = factory.start(&cancel).unwrap_err();
    assert_eq!(error.to_string(), "informers depend on each other in a circle: configmaps/v1 -> secrets/v1");
    assert!(!factory.is_started() && server.is_quiet_for(Duration::from_secs(60)).await);
    // Without it, the rest can start; after that, what would close a circle is ignored.
    configs.stop().await;
    factory.start(&cancel).unwrap();
    let _watch = server.sync("10", &[]).await;
    let pods = factory.informer::<Pod>().kept();
    let _again = factory.informer::<Secret>().depends_on(&pods).kept();
    let _watch = server.sync("10", &[]).await;
    pods.wait_synced().await.unwrap();
    factory.shutdown().await;
    assert_eq!(secrets.state(), InformerState::Stopped);
}

/// Says when the handler that holds it is gone.
struct Noted {
    name: &'static str,
    stops: Arc<Mutex<Vec<&'static str>>>,
}

impl Noted {
    fn hold(&self) {}
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.stops.lock().unwrap().push(self.name);
    }
}

/// A Secret in the namespace `web`.
fn secret(name: &str, resource_version: u64) -> serde_json::Value {
    let mut secret = object(name, resource_version);
    secret["kind"] = "Secret".into();
    secret.as_object_mut().unwrap().remove("data");
    secret
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// client-go facts 112 and 113; and 118 the other way: one that isn't started is named.
#[tokio::test(start_paused = true)]
async fn waiting_names_what_is_not_synced_and_why() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let _secrets = factory.informer::<Secret>().kept();
    let informer = factory.informer::<ConfigMap>().kept();
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

/// Istio fact 1: once a handler is synced, it has been called exactly once for each object that was there.
#[tokio::test(start_paused = true)]
async fn a_synced_handler_has_handled_what_was_there_before_the_start() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    let handler = informer.on_change(move |event| noted.lock().unwrap().push(event.key().to_string()));
    factory.start(&cancel).unwrap();
    assert!(!handler.has_synced());
    let _watch = server.sync("10", &[object("a", 1), object("b", 2)]).await;
    assert!(handler.wait_synced().await);
    assert_eq!(*calls.lock().unwrap(), ["web/a", "web/b"]);
    factory.shutdown().await;
}

/// Istio fact 7: a list that always fails is counted, named and tried again.
#[tokio::test(start_paused = true)]
async fn a_list_that_always_fails_is_counted_and_named() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    for _ in 0..3 {
        server.request().await.fail(500, "InternalError");
    }
    let _fourth = server.request().await;
    let status = informer.status();
    assert_eq!(status.counters.failures, 3);
    assert!(status.last_error.unwrap().message.contains("InternalError!"));
    factory.shutdown().await;
}

/// client-go facts 33, 101 and 119.
#[tokio::test(start_paused = true)]
async fn shutdown_ends_every_task_in_every_state_and_may_be_waited_for_by_many() {
    for answered in 0..3 {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
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
        assert_eq!(alive - left, 3, "the factory's task, the informer's and the handler's");
        assert_eq!(factory.start(&cancel), Err(StartError::ShutDown));
        assert!(factory.wait_for_cache_sync(&cancel).await.is_err() || answered == 2);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_token_of_the_start_stops_the_informers_too() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
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
    let informer = factory.informer::<ConfigMap>().kept();
    let _index = informer.index("name", |object: &ConfigMap| object.metadata.name.clone());
    informer.on_change(|_| {}).detach();
    assert_eq!(informer.state(), InformerState::NotStarted);
    assert_eq!(factory.start(&CancellationToken::new()), Err(StartError::NoRuntime));
}

#[tokio::test(start_paused = true)]
async fn metadata_only_objects_are_asked_for_as_such() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<PartialObjectMeta<ConfigMap>>().kept();
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
    let informer = factory.informer::<ConfigMap>().kept();
    let _handler = informer.on_change_with(informant_cache::HandlerOptions::named("print"), |_| {});
    factory.start(&cancel).unwrap();
    server.request().await.fail(404, "NotFound");
    server.discovery(&["pods"]).await;
    informer.wait_state(|state| matches!(state, InformerState::Missing { .. })).await;
    let status = serde_json::to_value(factory.statuses()).unwrap();
    assert_eq!(status[0]["informer"], "configmaps/v1");
    assert_eq!(status[0]["state"], "missing");
    assert_eq!(status[0]["since"], "2026-01-02T03:04:05Z");
    assert_eq!(status[0]["cause"], "noSuchKind");
    assert_eq!(status[0]["checkedBy"], "discovery");
    assert_eq!(status[0]["reason"], "discovery lists no configmaps in v1");
    assert_eq!(status[0]["checkError"]["message"], "NotFound! (404)");
    assert_eq!(status[0]["counters"]["lists"], 1);
    assert_eq!(status[0]["lastError"]["kind"], "notFound");
    assert_eq!(status[0]["handlers"][0]["handler"], "print");
    factory.shutdown().await;
}
