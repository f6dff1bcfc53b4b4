//! Each verb and its rules, through the in-process service under paused time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/client.rs"]
mod support;

use informant_apiserver::ApiServer;
use serde_json::{Value, json};
use support::{Events, call, delete, get, merge, post, put};

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";

fn server() -> ApiServer {
    ApiServer::builder().seed(7).start_time("2026-01-02T03:04:05Z".parse().unwrap()).build()
}

fn config(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

#[tokio::test(start_paused = true)]
async fn create_sets_what_the_server_owns_and_refuses_a_second() {
    let server = server();
    let mut body = config("one");
    body["metadata"]["uid"] = json!("mine");
    body["metadata"]["creationTimestamp"] = json!("2000-01-01T00:00:00Z");
    let created = post(&server, CONFIGS, &body).await.expect(201).json();
    assert_eq!(created["metadata"]["namespace"], "default");
    assert_eq!(created["metadata"]["creationTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(created["metadata"]["uid"].as_str().map(str::len), Some(36));
    assert_eq!(created["metadata"]["resourceVersion"], server.resource_version().to_string());
    assert_eq!(created["metadata"].get("generation"), None);
    let again = post(&server, CONFIGS, &config("one")).await.expect(409);
    assert_eq!(
        (again.reason().as_str(), again.message().as_str()),
        ("AlreadyExists", "configmaps \"one\" already exists")
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_uids() {
    let first = post(&server(), CONFIGS, &config("one")).await.json();
    let second = post(&server(), CONFIGS, &config("one")).await.json();
    assert_eq!(first, second);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_fit_its_path_is_refused() {
    let server = server();
    let mut elsewhere = config("one");
    elsewhere["metadata"]["namespace"] = json!("other");
    assert_eq!(post(&server, CONFIGS, &elsewhere).await.expect(400).reason(), "BadRequest");
    let mut secret = config("one");
    secret["kind"] = json!("Secret");
    post(&server, CONFIGS, &secret).await.expect(400);
    let mut version = config("one");
    version["apiVersion"] = json!("v2");
    post(&server, CONFIGS, &version).await.expect(400);
    post(&server, "/api/v1/namespaces/nowhere/configmaps", &config("one")).await.expect(404);
    let mut versioned = config("one");
    versioned["metadata"]["resourceVersion"] = json!("5");
    post(&server, CONFIGS, &versioned).await.expect(400);
    post(&server, &format!("{CONFIGS}/one"), &config("one")).await.expect(405);
    let nameless = post(&server, CONFIGS, &json!({"apiVersion": "v1", "kind": "ConfigMap"})).await.expect(422);
    assert_eq!(nameless.json()["details"]["causes"][0]["field"], "metadata.name");
    post(&server, CONFIGS, &config("Not_A_Name")).await.expect(422);
}

#[tokio::test(start_paused = true)]
async fn names_are_generated() {
    let server = server();
    let body = json!({"metadata": {"generateName": "job-"}});
    let first = post(&server, CONFIGS, &body).await.expect(201).json();
    let second = post(&server, CONFIGS, &body).await.expect(201).json();
    let name = first["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("job-") && name.len() == 9, "{name}");
    assert_ne!(first["metadata"]["name"], second["metadata"]["name"]);
}

#[tokio::test(start_paused = true)]
async fn get_finds_the_object_or_says_which_is_missing() {
    let server = server();
    post(&server, CONFIGS, &config("one")).await.expect(201);
    let found = get(&server, &format!("{CONFIGS}/one")).await.expect(200).json();
    assert_eq!(found["kind"], "ConfigMap");
    let missing = get(&server, &format!("{CONFIGS}/two")).await.expect(404);
    assert_eq!(missing.message(), "configmaps \"two\" not found");
    assert_eq!(missing.json()["details"], json!({"name": "two", "kind": "configmaps"}));
    let head = call(&server, "HEAD", &format!("{CONFIGS}/one")).send().await.expect(200);
    assert_eq!(head.text, "");
}

#[tokio::test(start_paused = true)]
async fn an_update_from_an_old_version_is_a_conflict() {
    let server = server();
    let first = post(&server, CONFIGS, &config("one")).await.expect(201).json();
    let path = format!("{CONFIGS}/one");
    let mut next = first.clone();
    next["data"]["a"] = json!("2");
    let second = put(&server, &path, &next).await.expect(200).json();
    assert_ne!(first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]);
    assert_eq!(first["metadata"]["uid"], second["metadata"]["uid"]);
    next["data"]["a"] = json!("3");
    let stale = put(&server, &path, &next).await.expect(409);
    assert_eq!(stale.reason(), "Conflict");
    assert!(
        stale
            .message()
            .starts_with("Operation cannot be fulfilled on configmaps \"one\": the object has been modified")
    );
    put(&server, &path, &config("one")).await.expect(200);
    put(&server, &path, &config("two")).await.expect(400);
    put(&server, &format!("{CONFIGS}/two"), &config("two")).await.expect(404);
    let mut other = config("one");
    other["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000000");
    put(&server, &path, &other).await.expect(409);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_changes_nothing() {
    let server = server();
    let first = post(&server, CONFIGS, &config("one")).await.expect(201).json();
    let version = server.resource_version();
    let path = format!("{CONFIGS}/one");
    assert_eq!(put(&server, &path, &first).await.expect(200).json(), first);
    assert_eq!(merge(&server, &path, &json!({"data": {"a": "1"}})).await.expect(200).json(), first);
    assert_eq!(server.resource_version(), version);
}

#[tokio::test(start_paused = true)]
async fn patches_of_each_kind_change_the_object() {
    let server = server();
    post(&server, CONFIGS, &config("one")).await.expect(201);
    let path = format!("{CONFIGS}/one");
    let patched = merge(&server, &path, &json!({"data": {"b": "2", "a": null}})).await.expect(200).json();
    assert_eq!(patched["data"], json!({"b": "2"}));
    let operations =
        json!([{"op": "test", "path": "/data/b", "value": "2"}, {"op": "add", "path": "/data/c", "value": "3"}]);
    let send =
        |content_type: &str, body: &Value| call(&server, "PATCH", &path).body(content_type, body.to_string()).send();
    let patched = send("application/json-patch+json", &operations).await.expect(200).json();
    assert_eq!(patched["data"], json!({"b": "2", "c": "3"}));
    let failing = json!([{"op": "test", "path": "/data/b", "value": "9"}]);
    assert_eq!(send("application/json-patch+json", &failing).await.expect(422).reason(), "Invalid");
    let patched = send("application/strategic-merge-patch+json", &json!({"data": {"d": "4"}})).await.expect(200).json();
    assert_eq!(patched["data"], json!({"b": "2", "c": "3", "d": "4"}));
    assert_eq!(send("application/json", &json!({})).await.expect(415).reason(), "UnsupportedMediaType");
    send("application/merge-patch+json", &json!([])).await.expect(400);
    send("application/merge-patch+json", &json!({"metadata": {"name": "other"}})).await.expect(400);
    send("application/merge-patch+json", &json!({"data": 5})).await.expect(422);
    send("application/merge-patch+json", &json!({"kind": "Secret"})).await.expect(422);
    let stale = json!({"metadata": {"resourceVersion": "1"}, "data": {"e": "5"}});
    assert_eq!(send("application/merge-patch+json", &stale).await.expect(409).reason(), "Conflict");
    merge(&server, &format!("{CONFIGS}/two"), &json!({})).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn apply_creates_owns_and_conflicts() {
    let server = server();
    let path = format!("{CONFIGS}/one");
    let apply = |manager: &str, force: bool, body: Value| {
        let path = format!("{path}?fieldManager={manager}&force={force}");
        call(&server, "PATCH", &path).body("application/apply-patch+yaml", body.to_string()).send()
    };
    let created = apply("alice", false, config("one")).await.expect(201).json();
    assert_eq!(created["metadata"]["managedFields"][0]["manager"], "alice");
    let version = server.resource_version();
    assert_eq!(apply("alice", false, config("one")).await.expect(200).json(), created);
    assert_eq!(server.resource_version(), version);
    let mut other = config("one");
    other["data"]["a"] = json!("2");
    let conflict = apply("bob", false, other.clone()).await.expect(409);
    assert_eq!(conflict.json()["details"]["causes"][0]["reason"], "FieldManagerConflict");
    assert_eq!(conflict.json()["details"]["causes"][0]["field"], ".data.a");
    assert_eq!(apply("bob", true, other).await.expect(200).json()["data"]["a"], "2");
    let unmanaged = call(&server, "PATCH", &path).body("application/apply-patch+yaml", "a: b").send().await.expect(422);
    assert_eq!(unmanaged.json()["details"]["causes"][0]["field"], "fieldManager");
}

#[tokio::test(start_paused = true)]
async fn delete_answers_with_a_status_and_finalizers_hold() {
    let server = server();
    let created = post(&server, CONFIGS, &config("one")).await.expect(201).json();
    let path = format!("{CONFIGS}/one");
    let status = delete(&server, &path).await.expect(200).json();
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(status["details"], json!({"name": "one", "kind": "configmaps", "uid": created["metadata"]["uid"]}));
    delete(&server, &path).await.expect(404);

    let mut held = config("one");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    post(&server, CONFIGS, &held).await.expect(201);
    let marked = delete(&server, &path).await.expect(200).json();
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    let version = server.resource_version();
    delete(&server, &path).await.expect(200);
    assert_eq!(server.resource_version(), version, "a second delete changes nothing");
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    merge(&server, &path, &more).await.expect(422);
    merge(&server, &path, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    get(&server, &path).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn deletes_have_preconditions() {
    let server = server();
    let created = post(&server, CONFIGS, &config("one")).await.expect(201).json();
    let path = format!("{CONFIGS}/one");
    let with = |preconditions: Value| {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions});
        call(&server, "DELETE", &path).json(&options).send()
    };
    assert_eq!(with(json!({"uid": "other"})).await.expect(409).reason(), "Conflict");
    assert_eq!(with(json!({"resourceVersion": "1"})).await.expect(409).reason(), "Conflict");
    with(json!({"uid": created["metadata"]["uid"]})).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn deletecollection_deletes_what_is_selected() {
    let server = server();
    for name in ["a", "b", "c"] {
        let mut body = config(name);
        body["metadata"]["labels"] = json!({"keep": (name == "b").to_string()});
        post(&server, CONFIGS, &body).await.expect(201);
    }
    let deleted = delete(&server, &format!("{CONFIGS}?labelSelector=keep%3Dfalse")).await.expect(200).json();
    assert_eq!(deleted["items"].as_array().map(Vec::len), Some(2));
    let left = get(&server, &format!("{CONFIGS}?labelSelector=keep")).await.json();
    assert_eq!(left["items"][0]["metadata"]["name"], "b");
    assert_eq!(left["items"].as_array().map(Vec::len), Some(1));
    delete(&server, "/api/v1/configmaps").await.expect(405);
}

#[tokio::test(start_paused = true)]
async fn dry_run_does_everything_but_store() {
    let server = server();
    let version = server.resource_version();
    let dry = post(&server, &format!("{CONFIGS}?dryRun=All"), &config("one")).await.expect(201).json();
    assert_eq!(dry["metadata"]["name"], "one");
    get(&server, &format!("{CONFIGS}/one")).await.expect(404);
    post(&server, &format!("{CONFIGS}?dryRun=Some"), &config("one")).await.expect(422);
    assert_eq!(server.resource_version(), version);
    post(&server, CONFIGS, &config("one")).await.expect(201);
    let path = format!("{CONFIGS}/one");
    delete(&server, &format!("{path}?dryRun=All")).await.expect(200);
    let dry = merge(&server, &format!("{path}?dryRun=All"), &json!({"data": {"a": "9"}})).await.expect(200).json();
    assert_eq!(dry["data"]["a"], "9");
    assert_eq!(get(&server, &path).await.expect(200).json()["data"]["a"], "1");
}

#[tokio::test(start_paused = true)]
async fn unknown_and_duplicate_fields_are_warned_of_or_refused() {
    let server = server();
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"1","a":"2"},"extra":1}"#;
    let send = |validation: &str| {
        let path = format!("{CONFIGS}?dryRun=All&fieldValidation={validation}");
        call(&server, "POST", &path).body("application/json", body).send()
    };
    let warned = send("Warn").await.expect(201);
    assert_eq!(
        warned.header("warning"),
        [r#"299 - "unknown field \"extra\"""#, r#"299 - "duplicate field \"data.a\"""#]
    );
    assert_eq!(warned.json().get("extra"), None);
    assert!(send("Ignore").await.expect(201).header("warning").is_empty());
    let refused = send("Strict").await.expect(400);
    assert!(refused.message().contains("strict decoding error: unknown field \"extra\""), "{}", refused.message());
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_each_change_once_and_in_order() {
    let server = server();
    post(&server, CONFIGS, &config("before")).await.expect(201);
    let version = server.resource_version();
    let mut events = Events::open(&server, &format!("{CONFIGS}?watch=true&resourceVersion={version}")).await;
    assert_eq!(server.watchers(), 1);
    post(&server, CONFIGS, &config("one")).await.expect(201);
    merge(&server, &format!("{CONFIGS}/one"), &json!({"data": {"a": "2"}})).await.expect(200);
    delete(&server, &format!("{CONFIGS}/one")).await.expect(200);
    for kind in ["ADDED", "MODIFIED", "DELETED"] {
        assert_eq!(events.next_short().await, Some((kind.to_owned(), "one".to_owned())));
    }
    drop(events);
    assert_eq!(server.watchers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_list_ends_its_start_with_a_marked_bookmark() {
    let server = server();
    post(&server, CONFIGS, &config("one")).await.expect(201);
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
                 &fieldSelector=metadata.name%3Done";
    let mut events = Events::open(&server, &format!("{CONFIGS}?{query}")).await;
    assert_eq!(events.next_short().await, Some(("ADDED".to_owned(), "one".to_owned())));
    let bookmark = events.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(bookmark["object"]["kind"], "ConfigMap");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_timeout() {
    let server = server();
    let mut events = Events::open(
        &server,
        &format!("{CONFIGS}?watch=1&resourceVersion=0&timeoutSeconds=5&fieldSelector=metadata.name=x"),
    )
    .await;
    let before = tokio::time::Instant::now();
    assert_eq!(events.next().await, None);
    assert_eq!(before.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_list_has_pages_and_leaves_out_what_it_says_itself() {
    let server = server();
    for name in ["a", "b", "c"] {
        post(&server, CONFIGS, &config(name)).await.expect(201);
    }
    let page = get(&server, &format!("{CONFIGS}?limit=2")).await.expect(200).json();
    assert_eq!((&page["kind"], &page["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    assert_eq!(page["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(page["items"][0].get("kind"), None);
    assert_eq!(page["metadata"]["remainingItemCount"], 2);
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = get(&server, &format!("{CONFIGS}?limit=2&continue={token}")).await.expect(200).json();
    assert_eq!(rest["metadata"]["resourceVersion"], page["metadata"]["resourceVersion"]);
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(2));
    get(&server, &format!("{CONFIGS}?continue=garbage")).await.expect(400);
    get(&server, &format!("{CONFIGS}?labelSelector=a%20b%20c")).await.expect(400);
    get(&server, &format!("{CONFIGS}?fieldSelector=spec.x%3D1")).await.expect(400);
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_answered_when_it_is_asked_for() {
    let server = server();
    post(&server, CONFIGS, &config("one")).await.expect(201);
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let one = call(&server, "GET", &format!("{CONFIGS}/one")).header("accept", accept).send().await.expect(200).json();
    assert_eq!(one["kind"], "PartialObjectMetadata");
    assert_eq!(one.get("data"), None);
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = call(&server, "GET", CONFIGS).header("accept", accept).send().await.expect(200).json();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    let yaml = call(&server, "GET", &format!("{CONFIGS}/one")).header("accept", "application/yaml").send().await;
    assert!(yaml.text.contains("kind: ConfigMap"), "{}", yaml.text);
    let only = "application/cbor";
    call(&server, "GET", CONFIGS).header("accept", only).send().await.expect(406);
}

#[tokio::test(start_paused = true)]
async fn every_cluster_has_its_namespaces_and_every_namespace_its_furniture() {
    let server = server();
    let namespaces = get(&server, "/api/v1/namespaces").await.expect(200).json();
    let names: Vec<&str> =
        namespaces["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    post(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await.expect(201);
    get(&server, "/api/v1/namespaces/shop/serviceaccounts/default").await.expect(200);
    get(&server, "/api/v1/namespaces/shop/configmaps/kube-root-ca.crt").await.expect(200);
    get(&server, "/api/v1/namespaces/default/services/kubernetes").await.expect(200);
    delete(&server, "/api/v1/namespaces/default").await.expect(403);
}

#[tokio::test(start_paused = true)]
async fn documents_are_served_and_other_paths_are_not_found() {
    let server = server();
    assert_eq!(get(&server, "/version/").await.expect(200).json()["minor"], "37");
    for path in ["/livez", "/readyz", "/healthz", "/readyz/ping"] {
        assert_eq!(get(&server, path).await.expect(200).text, "ok");
    }
    assert!(get(&server, "/readyz?verbose").await.expect(200).text.ends_with("readyz check passed\n"));
    get(&server, "/readyz/nothing").await.expect(404);
    let lost = get(&server, "/apis/apps/v1/things").await.expect(404);
    assert_eq!(lost.message(), "the server could not find the requested resource");
    // Where not even the group is there, the answer is no Status.
    for path in ["/apis/nothing.example.org/v1/things", "/apis/nothing.example.org", "/nowhere"] {
        assert_eq!(get(&server, path).await.expect(404).text, "404 page not found\n");
    }
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let groups = call(&server, "GET", "/apis").header("accept", aggregated).send().await.expect(200);
    assert_eq!(groups.header("content-type"), [aggregated]);
    let tag = groups.header("etag").concat();
    let again = call(&server, "GET", "/apis").header("accept", aggregated).header("if-none-match", &tag).send().await;
    assert_eq!((again.code, again.text.as_str()), (304, ""));
    assert_eq!(get(&server, "/api").await.expect(200).json()["kind"], "APIVersions");
    assert_eq!(get(&server, "/api/v1").await.expect(200).json()["kind"], "APIResourceList");
    call(&server, "OPTIONS", CONFIGS).send().await.expect(405);
    assert_eq!(get(&server, "/version").await.header("cache-control"), ["no-cache, private"]);
    assert_eq!(get(&server, "/version").await.header("audit-id").concat().len(), 36);
}

fn widgets(scope: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.demo.example.com"},
        "spec": {"group": "demo.example.com", "scope": scope,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["size"], "properties": {
                        "size": {"type": "integer", "minimum": 1}, "color": {"type": "string", "default": "red"},
                        "replicas": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "ready": {"type": "boolean"}}}}}}}]},
    })
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/demo.example.com/v1/namespaces/default/widgets";

fn widget(name: &str) -> Value {
    json!({"apiVersion": "demo.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}})
}

#[tokio::test(start_paused = true)]
async fn a_crd_is_served_as_soon_as_it_is_created_and_gone_as_soon_as_it_is_deleted() {
    let server = server();
    get(&server, WIDGETS).await.expect(404);
    post(&server, CRDS, &widgets("Namespaced")).await.expect(201);
    let crd = get(&server, &format!("{CRDS}/widgets.demo.example.com")).await.expect(200).json();
    let established = crd["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    assert!(established, "{crd}");
    get(&server, "/apis/demo.example.com/v1").await.expect(200);
    let created = post(&server, WIDGETS, &widget("one")).await.expect(201).json();
    assert_eq!(created["spec"], json!({"size": 1, "color": "red"}));
    assert_eq!(created["metadata"]["generation"], 1);
    let list = get(&server, WIDGETS).await.expect(200).json();
    assert_eq!((&list["kind"], &list["items"][0]["kind"]), (&json!("WidgetList"), &json!("Widget")));

    let version = server.resource_version();
    let mut events = Events::open(&server, &format!("{WIDGETS}?watch=true&resourceVersion={version}")).await;
    delete(&server, &format!("{CRDS}/widgets.demo.example.com")).await.expect(200);
    assert_eq!(events.next_short().await, Some(("DELETED".to_owned(), "one".to_owned())));
    assert_eq!(events.next().await, None);
    get(&server, WIDGETS).await.expect(404);
    get(&server, &format!("{CRDS}/widgets.demo.example.com")).await.expect(404);
    post(&server, CRDS, &widgets("Namespaced")).await.expect(201);
    assert_eq!(get(&server, WIDGETS).await.expect(200).json()["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_crd_waits_for_objects_with_finalizers_and_takes_no_new_ones() {
    let server = server();
    post(&server, CRDS, &widgets("Namespaced")).await.expect(201);
    let mut held = widget("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    post(&server, WIDGETS, &held).await.expect(201);
    delete(&server, &format!("{CRDS}/widgets.demo.example.com")).await.expect(200);
    let left = get(&server, &format!("{WIDGETS}/held")).await.expect(200).json();
    assert!(left["metadata"]["deletionTimestamp"].is_string());
    post(&server, WIDGETS, &widget("new")).await.expect(403);
    merge(&server, &format!("{WIDGETS}/held"), &json!({"metadata": {"finalizers": []}})).await.expect(200);
    get(&server, WIDGETS).await.expect(404);
    get(&server, &format!("{CRDS}/widgets.demo.example.com")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn custom_objects_are_pruned_validated_and_keep_spec_and_status_apart() {
    let server = server();
    post(&server, CRDS, &widgets("Namespaced")).await.expect(201);
    let mut body = widget("one");
    body["spec"]["unknown"] = json!(1);
    body["status"] = json!({"ready": true});
    let created = post(&server, WIDGETS, &body).await.expect(201);
    assert_eq!(created.header("warning"), [r#"299 - "unknown field \"spec.unknown\"""#]);
    let created = created.json();
    assert_eq!(created["spec"], json!({"size": 1, "color": "red"}));
    assert_eq!(created.get("status"), None);
    let path = format!("{WIDGETS}/one");
    let invalid = merge(&server, &path, &json!({"spec": {"size": 0}})).await.expect(422);
    assert_eq!(invalid.json()["details"]["causes"][0]["field"], "spec.size");
    let status =
        merge(&server, &format!("{path}/status"), &json!({"status": {"ready": true}, "spec": {"size": 9}})).await;
    let status = status.expect(200).json();
    assert_eq!((&status["status"], &status["spec"]["size"]), (&json!({"ready": true}), &json!(1)));
    assert_eq!(status["metadata"]["generation"], 1);
    let main =
        merge(&server, &path, &json!({"status": {"ready": false}, "spec": {"size": 2}})).await.expect(200).json();
    assert_eq!((&main["status"], &main["spec"]["size"]), (&json!({"ready": true}), &json!(2)));
    assert_eq!(main["metadata"]["generation"], 2);
    let labelled = merge(&server, &path, &json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200).json();
    assert_eq!(labelled["metadata"]["generation"], 2);
    let unversioned = put(&server, &path, &widget("one")).await.expect(422);
    assert_eq!(unversioned.json()["details"]["causes"][0]["field"], "metadata.resourceVersion");
    let strategic = call(&server, "PATCH", &path).body("application/strategic-merge-patch+json", "{}").send().await;
    assert_eq!(strategic.expect(415).reason(), "UnsupportedMediaType");
    post(&server, WIDGETS, &json!({"metadata": {"name": "x"}})).await.expect(400);
}

#[tokio::test(start_paused = true)]
async fn scale_reads_and_writes_the_replicas() {
    let server = server();
    post(&server, CRDS, &widgets("Namespaced")).await.expect(201);
    post(&server, WIDGETS, &widget("one")).await.expect(201);
    let path = format!("{WIDGETS}/one/scale");
    let scale = merge(&server, &path, &json!({"spec": {"replicas": 3}})).await.expect(200).json();
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(3)));
    let object = get(&server, &format!("{WIDGETS}/one")).await.json();
    assert_eq!((&object["spec"]["replicas"], &object["metadata"]["generation"]), (&json!(3), &json!(2)));
    let mut scale = get(&server, &path).await.expect(200).json();
    scale["spec"]["replicas"] = json!(5);
    put(&server, &path, &scale).await.expect(200);
    put(&server, &path, &scale).await.expect(409);
    get(&server, "/api/v1/namespaces/default/configmaps/kube-root-ca.crt/scale").await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn a_changed_schema_ends_the_open_watches_and_holds_for_what_is_stored() {
    let server = server();
    post(&server, CRDS, &widgets("Namespaced")).await.expect(201);
    post(&server, WIDGETS, &widget("one")).await.expect(201);
    let version = server.resource_version();
    let mut events = Events::open(&server, &format!("{WIDGETS}?watch=true&resourceVersion={version}")).await;
    let mut crd = get(&server, &format!("{CRDS}/widgets.demo.example.com")).await.json();
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    spec["shape"] = json!({"type": "string", "default": "round"});
    put(&server, &format!("{CRDS}/widgets.demo.example.com"), &crd).await.expect(200);
    assert_eq!(events.next().await, None);
    assert_eq!(get(&server, &format!("{WIDGETS}/one")).await.json()["spec"]["shape"], "round");
}

#[tokio::test(start_paused = true)]
async fn events_are_one_store_with_two_views() {
    let server = server();
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"name": "web", "namespace": "default"},
        "reason": "Started", "message": "hello", "type": "Normal"});
    post(&server, "/api/v1/namespaces/default/events", &event).await.expect(201);
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    let shown = get(&server, &format!("{path}/e")).await.expect(200).json();
    assert_eq!((&shown["apiVersion"], &shown["note"]), (&json!("events.k8s.io/v1"), &json!("hello")));
    let found = get(&server, &format!("{path}?fieldSelector=regarding.name%3Dweb")).await.expect(200).json();
    assert_eq!(found["items"][0]["note"], "hello");
    let found =
        get(&server, "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dother").await.json();
    assert_eq!(found["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn reviews_and_tokens_are_answered_and_not_stored() {
    let server = server();
    let version = server.resource_version();
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}});
    assert_eq!(post(&server, reviews, &review).await.expect(201).json()["status"]["allowed"], true);
    let whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let admin = post(&server, whoami, &json!({})).await.expect(201).json();
    assert_eq!(admin["status"]["userInfo"]["username"], "system:admin");
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let token = post(&server, path, &json!({"spec": {}})).await.expect(201).json();
    let bearer = format!("Bearer {}", token["status"]["token"].as_str().unwrap());
    let account = call(&server, "POST", whoami).header("authorization", &bearer).json(&json!({})).send().await;
    assert_eq!(account.expect(201).json()["status"]["userInfo"]["username"], "system:serviceaccount:default:default");
    get(&server, reviews).await.expect(405);
    assert_eq!(server.resource_version(), version);
}

#[tokio::test(start_paused = true)]
async fn with_tokens_configured_others_are_not_let_in() {
    let user = informant_apiserver::User::new("alice", ["team"]);
    let server = ApiServer::builder().token("secret", user).build();
    assert_eq!(get(&server, CONFIGS).await.expect(401).reason(), "Unauthorized");
    call(&server, "GET", CONFIGS).header("authorization", "Bearer wrong").send().await.expect(401);
    call(&server, "GET", CONFIGS).header("authorization", "Bearer secret").send().await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_table_has_columns_in_its_first_watch_event_only() {
    let server = server();
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let version = server.resource_version();
    post(&server, CONFIGS, &config("one")).await.expect(201);
    post(&server, CONFIGS, &config("two")).await.expect(201);
    let table = call(&server, "GET", CONFIGS).header("accept", accept).send().await.expect(200).json();
    assert_eq!((&table["kind"], &table["columnDefinitions"][0]["name"]), (&json!("Table"), &json!("Name")));
    assert_eq!(table["rows"][1]["cells"][0], "one");
    let path = format!("{CONFIGS}?watch=1&resourceVersion={version}&timeoutSeconds=1");
    let watched = call(&server, "GET", &path).header("accept", accept).send().await.expect(200);
    let events: Vec<Value> = watched.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events[0]["object"]["columnDefinitions"].is_array(), "{}", events[0]);
    assert!(events[1]["object"]["columnDefinitions"].is_null(), "{}", events[1]);
}

#[tokio::test(start_paused = true)]
async fn the_name_of_an_object_on_its_way_out_is_taken_and_says_why() {
    let server = server();
    let mut held = config("one");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    post(&server, CONFIGS, &held).await.expect(201);
    delete(&server, &format!("{CONFIGS}/one")).await.expect(200);
    let taken = post(&server, CONFIGS, &config("one")).await.expect(409);
    assert_eq!(taken.message(), "object is being deleted: configmaps \"one\" already exists");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once_and_evicted_and_gone_after_its_grace_period() {
    let server = server();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    post(&server, pods, &pod).await.expect(201);
    let binding = json!({"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}});
    post(&server, &format!("{pods}/web/binding"), &binding).await.expect(201);
    post(&server, &format!("{pods}/web/binding"), &binding).await.expect(409);
    let bound = get(&server, &format!("{pods}/web")).await.expect(200).json();
    assert_eq!((&bound["spec"]["nodeName"], &bound["metadata"]["generation"]), (&json!("n1"), &json!(1)));
    post(&server, &format!("{pods}/web/eviction"), &json!({"metadata": {"name": "web"}})).await.expect(201);
    let leaving = get(&server, &format!("{pods}/web")).await.expect(200).json();
    assert_eq!(leaving["metadata"]["deletionTimestamp"], "2026-01-02T03:04:35Z");
    assert_eq!(get(&server, &format!("{pods}/web/log")).await.expect(503).reason(), "ServiceUnavailable");
    tokio::time::sleep(std::time::Duration::from_secs(31)).await;
    get(&server, &format!("{pods}/web")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn services_get_an_address_of_their_own_and_keep_it() {
    let server = server();
    let services = "/api/v1/namespaces/default/services";
    let service =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let first = post(&server, services, &service("a")).await.expect(201).json();
    let second = post(&server, services, &service("b")).await.expect(201).json();
    assert_ne!(first["spec"]["clusterIP"], second["spec"]["clusterIP"]);
    assert_eq!(first["spec"]["clusterIPs"], json!([first["spec"]["clusterIP"]]));
    let port = first["spec"]["ports"][0]["nodePort"].as_u64().unwrap();
    assert!((30_000..32_768).contains(&port));
    let replaced = put(&server, &format!("{services}/a"), &service("a")).await.expect(200).json();
    assert_eq!(replaced["spec"]["clusterIP"], first["spec"]["clusterIP"]);
    assert_eq!(replaced["spec"]["ports"][0]["nodePort"], port);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_created_by_its_update() {
    let server = server();
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    let created = put(&server, path, &lease).await.expect(201).json();
    assert_eq!(created["spec"]["holderIdentity"], "a");
    put(&server, path, &lease).await.expect(422);
    put(&server, path, &created).await.expect(200);
}
