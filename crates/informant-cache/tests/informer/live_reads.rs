//! Reading one object from the server, past the cache.

use informant_cache::{LiveReadError, Lookup, NamespaceSet, ObjectKey, Scope, SharedInformer};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object, object_with};

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("web", name)
}

/// Reads an object live, of which the server sends this.
async fn answered(
    server: &mut Server,
    informer: &SharedInformer<ConfigMap>,
    code: u16,
    body: &Value,
) -> Result<Option<String>, LiveReadError> {
    let key = key("a");
    let (read, ()) = tokio::join!(informer.get_live(&key), async {
        let request = server.request().await;
        assert_eq!((request.path.as_str(), request.query.len()), ("/api/v1/namespaces/web/configmaps/a", 0));
        assert_eq!(request.header("accept"), "application/vnd.kubernetes.protobuf, application/json");
        request.answer(code, body.to_string());
    });
    read.map(|object| object.metadata.resource_version.clone())
}

#[tokio::test(start_paused = true)]
async fn a_live_read_is_one_get_whose_failures_are_told_apart() {
    let mut server = Server::new();
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    // It needs no start.
    assert_eq!(answered(&mut server, &informer, 200, &object("a", 7)).await.unwrap().as_deref(), Some("7"));
    let status = |code: u16, reason: &str| json!({"kind": "Status", "code": code, "reason": reason, "message": "so"});
    let missing = answered(&mut server, &informer, 404, &status(404, "NotFound")).await.unwrap_err();
    assert!(matches!(&missing, LiveReadError::NotFound { key, .. } if key.name() == "a"), "{missing}");
    assert_eq!(missing.to_string(), "configmaps/v1: the server has no web/a: so (404)");
    let forbidden = answered(&mut server, &informer, 403, &status(403, "Forbidden")).await.unwrap_err();
    assert!(matches!(forbidden, LiveReadError::Forbidden { .. }), "{forbidden}");
    let failed = answered(&mut server, &informer, 500, &status(500, "InternalError")).await.unwrap_err();
    assert!(matches!(failed, LiveReadError::Request { .. }), "{failed}");
    let mut bad = object("a", 8);
    bad["data"] = json!(7);
    for body in [bad, object("another", 9)] {
        let undecodable = answered(&mut server, &informer, 200, &body).await.unwrap_err();
        assert!(matches!(undecodable, LiveReadError::Undecodable { .. }), "{undecodable}");
    }
    assert!(informer.lister().is_empty(), "the cache has nothing of it");
    assert_eq!(informer.status().counters.failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_live_read_of_a_namespace_that_is_not_covered_asks_nobody() {
    let mut server = Server::new();
    let factory = server.factory();
    let set = NamespaceSet::new("tenants", ["one", "web"]);
    let one = factory.informer::<ConfigMap>().scope(Scope::namespaced("one")).kept();
    let many = factory.informer::<ConfigMap>().scope(Scope::namespaces(&set)).kept();
    let error = one.get_live(&key("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "web/a is out of the scope of configmaps/v1 in namespace \"one\"");
    assert_eq!(answered(&mut server, &many, 200, &object("a", 7)).await.unwrap().as_deref(), Some("7"));
    set.remove("web");
    assert!(matches!(many.get_live(&key("a")).await, Err(LiveReadError::OutOfScope { .. })));
    assert!(server.is_quiet_for(std::time::Duration::from_secs(60)).await);
}

/// What the cache makes of an object, a live read makes of it too, but for what keeps objects out.
#[tokio::test(start_paused = true)]
async fn a_live_read_transforms_and_does_not_filter() {
    let mut server = Server::new();
    let factory = server.factory();
    let bare = |mut object: ConfigMap| {
        object.metadata.resource_version = object.data.take().map(|data| format!("{} of data", data.len()));
        Ok(object)
    };
    let informer = factory.informer::<ConfigMap>().transform(bare).filter(|_| false).kept();
    let read = answered(&mut server, &informer, 200, &object("a", 7)).await;
    assert_eq!(read.unwrap().as_deref(), Some("1 of data"));
}

/// Public report C-095 (Azure/azure-service-operator#4926): a Secret that isn't labelled yet is out of the cache's scope,
/// which isn't absent; and whoever wants to is given it live.
#[tokio::test(start_paused = true)]
async fn what_a_selector_keeps_out_of_the_cache_can_be_read_live() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<Secret>().scope(Scope::all().with_labels("x=true")).kept();
    factory.start(&cancel).unwrap();
    let secret = |name, labels: &Value| {
        let mut secret = object_with(name, 1, labels);
        secret["kind"] = json!("Secret");
        secret["data"] = json!({});
        secret
    };
    server.request().await.of("v1", "Secret").list("9", &[secret("a", &json!({"x": "true"}))]);
    let _watch = server.request().await.open();
    informer.wait_synced().await.unwrap();
    assert!(matches!(informer.lister().lookup(&key("b")), Lookup::OutOfScope));
    let (held, wanted) = (key("a"), key("b"));
    assert!(informer.get_or_live(&held).await.is_ok(), "that's no request");
    let (read, ()) = tokio::join!(informer.get_or_live(&wanted), async {
        let request = server.request().await;
        assert_eq!(request.path, "/api/v1/namespaces/web/secrets/b");
        request.answer(200, secret("b", &json!({})).to_string());
    });
    assert_eq!(read.unwrap().metadata.name.as_deref(), Some("b"));
    assert!(informer.lister().get(&wanted).is_none());
    factory.shutdown().await;
}
