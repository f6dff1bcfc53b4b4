//! Server-side apply and field ownership through the in-process service: what a real 1.37 server answers to the same requests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/client.rs"]
mod support;

use std::time::Duration;

use informant_apiserver::ApiServer;
use serde_json::{Value, json};
use support::{Answer, Events, call, get, merge, post, put};

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const WIDGETS: &str = "/apis/demo.example.org/v1/namespaces/default/widgets";

fn server() -> ApiServer {
    ApiServer::builder().seed(7).start_time("2026-12-01T06:00:00Z".parse().unwrap()).build()
}

async fn server_with_widgets() -> ApiServer {
    let server = server();
    let text = json!({"type": "string"});
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == "v1", "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    "size": {"type": "integer"}, "color": {"type": "string", "default": "red"},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
                }},
                "status": {"type": "object", "properties": {
                    "phase": text,
                    "conditions": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                        "items": {"type": "object", "required": ["type"], "properties": {"type": text, "status": text}},
                    },
                }},
            },
        }}})
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.demo.example.org"},
        "spec": {
            "group": "demo.example.org", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1"), version("v2")],
        },
    });
    post(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    tokio::time::sleep(Duration::from_secs(1)).await;
    server
}

async fn apply_at(server: &ApiServer, path: &str, query: &str, body: &Value) -> Answer {
    call(server, "PATCH", &format!("{path}?{query}"))
        .body("application/apply-patch+yaml", body.to_string())
        .send()
        .await
}

async fn apply(server: &ApiServer, path: &str, manager: &str, body: &Value) -> Answer {
    apply_at(server, path, &format!("fieldManager={manager}"), body).await
}

async fn force(server: &ApiServer, path: &str, manager: &str, body: &Value) -> Answer {
    apply_at(server, path, &format!("fieldManager={manager}&force=true"), body).await
}

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data})
}

fn widget(spec: Value) -> Value {
    json!({"apiVersion": "demo.example.org/v1", "kind": "Widget", "metadata": {"name": "x"}, "spec": spec})
}

fn widget_status(status: Value) -> Value {
    json!({"apiVersion": "demo.example.org/v1", "kind": "Widget", "metadata": {"name": "x"}, "status": status})
}

fn item(collection: &str) -> String {
    format!("{collection}/x")
}

/// `manager operation subresource` and the fields of each entry.
fn owners(object: &Value) -> Value {
    let described = |entry: &Value| {
        let text = |field: &str| entry[field].as_str().unwrap_or("-").to_owned();
        json!([format!("{} {} {}", text("manager"), text("operation"), text("subresource")), entry["fieldsV1"]])
    };
    object["metadata"]["managedFields"].as_array().unwrap_or(&Vec::new()).iter().map(described).collect()
}

#[tokio::test(start_paused = true)]
async fn an_apply_creates_changes_and_leaves_alone() {
    let server = server();
    let path = item(CONFIGS);
    let created = apply(&server, &path, "one", &config(json!({"a": "1", "b": "2"}))).await.expect(201).json();
    assert_eq!(owners(&created), json!([["one Apply -", {"f:data": {"f:a": {}, "f:b": {}}}]]));
    assert_eq!(created["metadata"]["managedFields"][0]["time"], "2026-12-01T06:00:00Z");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let again = apply(&server, &path, "one", &config(json!({"a": "1", "b": "2"}))).await.expect(200).json();
    assert_eq!(again, created, "nothing has changed, so neither have version and time");
    let fewer = apply(&server, &path, "one", &config(json!({"a": "1"}))).await.expect(200).json();
    assert_eq!(fewer["data"], json!({"a": "1"}));
    assert_eq!(fewer["metadata"]["managedFields"][0]["time"], "2026-12-01T06:00:05Z");
    assert_ne!(fewer["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
}

#[tokio::test(start_paused = true)]
async fn an_apply_of_the_same_to_defaulted_fields_is_no_write() {
    let server = server_with_widgets().await;
    let path = item(WIDGETS);
    let created = apply(&server, &path, "one", &widget(json!({"size": 1}))).await.expect(201).json();
    assert_eq!(created["spec"], json!({"size": 1, "color": "red"}));
    assert_eq!(owners(&created), json!([["one Apply -", {"f:spec": {"f:size": {}}}]]), "nobody owns a default");
    let mut events = Events::open(
        &server,
        &format!("{WIDGETS}?watch=true&resourceVersion={}", created["metadata"]["resourceVersion"].as_str().unwrap()),
    )
    .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let again = apply(&server, &path, "one", &widget(json!({"size": 1}))).await.expect(200).json();
    assert_eq!(again, created);
    apply(&server, &path, "one", &widget(json!({"size": 2}))).await.expect(200);
    let event = events.next().await.unwrap();
    assert_eq!(event["object"]["spec"]["size"], 2, "the apply without effect made no event");
}

#[tokio::test(start_paused = true)]
async fn conflicts_name_owner_and_field_and_force_takes_it() {
    let server = server();
    let path = item(CONFIGS);
    post(&server, &format!("{CONFIGS}?fieldManager=creator"), &config(json!({"a": "1"}))).await.expect(201);
    let refused = apply(&server, &path, "one", &config(json!({"a": "2"}))).await.expect(409);
    assert_eq!(refused.reason(), "Conflict");
    assert_eq!(refused.message(), "Apply failed with 1 conflict: conflict with \"creator\" using v1: .data.a");
    assert_eq!(
        refused.json()["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"creator\" using v1", "field": ".data.a"}])
    );
    assert_eq!(get(&server, &path).await.json()["data"]["a"], "1");
    let taken = force(&server, &path, "one", &config(json!({"a": "2"}))).await.expect(200).json();
    assert_eq!(taken["data"]["a"], "2");
    assert_eq!(owners(&taken), json!([["one Apply -", {"f:data": {"f:a": {}}}], ["creator Update -", {"f:data": {}}]]));
}

#[tokio::test(start_paused = true)]
async fn what_is_needed_for_an_apply() {
    let server = server();
    let path = item(CONFIGS);
    let body = config(json!({"a": "1"}));
    let nameless = apply_at(&server, &path, "", &body).await.expect(422);
    assert_eq!(
        nameless.message(),
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
    let forced =
        call(&server, "PATCH", &format!("{path}?force=true")).body("application/merge-patch+json", "{}").send().await;
    assert_eq!(forced.expect(422).reason(), "Invalid");
    let mut owned = body.clone();
    owned["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Apply"}]);
    assert_eq!(apply(&server, &path, "one", &owned).await.expect(400).message(), "metadata.managedFields must be nil");
    let mut other = body.clone();
    other["kind"] = json!("Secret");
    assert_eq!(
        apply(&server, &path, "one", &other).await.expect(400).message(),
        "invalid object type: /v1, Kind=Secret"
    );
    let mut unknown = body.clone();
    unknown["spec"] = json!({});
    let refused = apply(&server, &path, "one", &unknown).await.expect(500);
    assert!(
        refused.message().ends_with("/v1, Kind=ConfigMap): .spec: field not declared in schema"),
        "{}",
        refused.text
    );
    get(&server, &path).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn version_and_uid_in_the_configuration_are_preconditions() {
    let server = server();
    let path = item(CONFIGS);
    let created = apply(&server, &path, "one", &config(json!({"a": "1"}))).await.expect(201).json();
    let mut body = config(json!({"a": "2"}));
    body["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(apply(&server, &path, "one", &body).await.expect(409).reason(), "Conflict");
    body["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    apply(&server, &path, "one", &body).await.expect(200);
    let mut body = config(json!({"a": "3"}));
    body["metadata"]["uid"] = json!("nope");
    let refused = apply(&server, &path, "one", &body).await.expect(422);
    assert!(
        refused.message().contains("metadata.uid: Invalid value: \"nope\": field is immutable"),
        "{}",
        refused.text
    );
}

#[tokio::test(start_paused = true)]
async fn status_is_owned_through_its_own_door() {
    let server = server_with_widgets().await;
    let (path, status) = (item(WIDGETS), format!("{}/status", item(WIDGETS)));
    let missing = apply(&server, &status, "sa", &widget_status(json!({"phase": "up"}))).await;
    missing.expect(404);
    post(&server, &format!("{WIDGETS}?fieldManager=creator"), &widget(json!({"size": 1}))).await.expect(201);
    let by_patch =
        json!({"status": {"phase": "up", "conditions": [{"type": "R", "status": "T"}]}, "spec": {"size": 7}});
    merge(&server, &format!("{status}?fieldManager=ctl"), &by_patch).await.expect(200);
    let shared =
        apply(&server, &status, "sa", &widget_status(json!({"conditions": [{"type": "S", "status": "F"}]}))).await;
    let shared = shared.expect(200).json();
    let condition = json!({".": {}, "f:status": {}, "f:type": {}});
    assert_eq!(
        owners(&shared),
        json!([
            ["sa Apply status", {"f:status": {"f:conditions": {"k:{\"type\":\"S\"}": condition}}}],
            ["creator Update -", {"f:spec": {".": {}, "f:color": {}, "f:size": {}}}],
            ["ctl Update status", {"f:status": {
                ".": {}, "f:phase": {}, "f:conditions": {".": {}, "k:{\"type\":\"R\"}": condition},
            }}],
        ])
    );
    assert_eq!(shared["spec"], json!({"size": 1, "color": "red"}));
    let refused = apply(&server, &status, "sa", &widget_status(json!({"phase": "down"}))).await.expect(409);
    let owner = "\"ctl\" with subresource \"status\" using demo.example.org/v1";
    assert_eq!(refused.message(), format!("Apply failed with 1 conflict: conflict with {owner}: .status.phase"));
    let taken = force(&server, &status, "sa", &widget_status(json!({"phase": "down"}))).await.expect(200).json();
    assert_eq!(taken["status"], json!({"phase": "down", "conditions": [{"type": "R", "status": "T"}]}));
    // The main door neither writes nor owns status.
    let mut both = widget(json!({"size": 1}));
    both["status"] = json!({"phase": "zzz"});
    let main = apply(&server, &path, "main", &both).await.expect(200).json();
    assert_eq!(main["status"]["phase"], "down");
    assert_eq!(owners(&main)[0], json!(["main Apply -", {"f:spec": {"f:size": {}}}]));
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_built_in_kind_is_merged_by_condition() {
    let server = server();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    });
    post(&server, pods, &pod).await.expect(201);
    let status = format!("{pods}/x/status");
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    merge(&server, &format!("{status}?fieldManager=kubelet"), &ready).await.expect(200);
    let body = |conditions: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "status": {"conditions": conditions}});
    let names = |pod: Value| -> Vec<String> {
        let conditions = pod["status"]["conditions"].as_array().unwrap().clone();
        conditions.iter().map(|condition| condition["type"].as_str().unwrap().to_owned()).collect()
    };
    let both =
        apply(&server, &status, "agent", &body(json!([{"type": "Mine", "status": "True"}]))).await.expect(200).json();
    assert_eq!(names(both), ["Ready", "Mine"]);
    let one = apply(&server, &status, "agent", &body(json!([]))).await.expect(200).json();
    assert_eq!(names(one), ["Ready"]);
}

#[tokio::test(start_paused = true)]
async fn containers_of_two_managers_live_together() {
    let server = server();
    let path = item(DEPLOYMENTS);
    let body = |containers: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
            "spec": {
                "selector": {"matchLabels": {"app": "x"}},
                "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}},
            },
        })
    };
    let names = |deployment: &Value| -> Vec<String> {
        let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap();
        containers.iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect()
    };
    let app = json!({"name": "app", "image": "app:1", "ports": [{"containerPort": 80}]});
    apply(&server, &path, "one", &body(json!([app]))).await.expect(201);
    let mesh = json!({"name": "mesh", "image": "mesh:1"});
    let both = apply(&server, &path, "two", &body(json!([mesh]))).await.expect(200).json();
    assert_eq!(names(&both), ["app", "mesh"]);
    assert_eq!(both["metadata"]["generation"], 2);
    let refused = apply(&server, &path, "two", &body(json!([{"name": "app", "image": "app:2"}]))).await.expect(409);
    let field = ".spec.template.spec.containers[name=\"app\"].image";
    assert_eq!(refused.json()["details"]["causes"][0]["field"], field);
    let scaled =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": 5}});
    let scaled = apply(&server, &path, "scaler", &scaled).await.expect(200).json();
    assert_eq!(scaled["spec"]["replicas"], 5);
    let alone = apply(&server, &path, "one", &body(json!([]))).await.expect(200).json();
    assert_eq!(names(&alone), ["mesh"]);
    assert_eq!(alone["spec"]["replicas"], 5);
}

#[tokio::test(start_paused = true)]
async fn scaling_is_owned_through_its_own_door() {
    let server = server();
    let path = item(DEPLOYMENTS);
    let body = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
        },
    });
    apply(&server, &path, "one", &body).await.expect(201);
    merge(&server, &format!("{path}/scale?fieldManager=hpa"), &json!({"spec": {"replicas": 3}})).await.expect(200);
    let refused = apply(&server, &path, "one", &body).await.expect(409);
    assert_eq!(
        refused.message(),
        "Apply failed with 1 conflict: conflict with \"hpa\" with subresource \"scale\" using apps/v1: .spec.replicas"
    );
}

#[tokio::test(start_paused = true)]
async fn every_writer_is_tracked_by_its_name_or_its_program() {
    let server = server();
    let path = item(CONFIGS);
    call(&server, "POST", CONFIGS)
        .header("user-agent", "kubectl/v1.37")
        .json(&config(json!({"a": "1"})))
        .send()
        .await
        .expect(201);
    let mut object = get(&server, &path).await.json();
    assert_eq!(owners(&object), json!([["kubectl Update -", {"f:data": {".": {}, "f:a": {}}}]]));
    object["data"]["b"] = json!("2");
    put(&server, &format!("{path}?fieldManager=putter"), &object).await.expect(200);
    let patched =
        merge(&server, &format!("{path}?fieldManager=patcher"), &json!({"data": {"b": null, "c": "3"}})).await;
    assert_eq!(
        owners(&patched.expect(200).json()),
        json!([["kubectl Update -", {"f:data": {".": {}, "f:a": {}}}], ["patcher Update -", {"f:data": {"f:c": {}}}]])
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = get(&server, &path).await.json();
    merge(&server, &format!("{path}?fieldManager=other"), &json!({"data": {"c": "3"}})).await.expect(200);
    assert_eq!(get(&server, &path).await.json(), before, "a write without effect isn't tracked");
}

#[tokio::test(start_paused = true)]
async fn managed_fields_can_be_reset() {
    let server = server();
    let path = item(CONFIGS);
    apply(&server, &path, "one", &config(json!({"a": "1"}))).await.expect(201);
    for reset in [json!([{}]), json!([])] {
        let body = json!({"metadata": {"managedFields": reset}});
        let answer = merge(&server, &path, &body).await.expect(200).json();
        assert_eq!(answer["metadata"].get("managedFields"), None);
    }
    let applied = apply(&server, &path, "two", &config(json!({"b": "2"}))).await.expect(200).json();
    assert_eq!(
        owners(&applied),
        json!([
            ["two Apply -", {"f:data": {"f:b": {}}}],
            ["before-first-apply Update -", {"f:data": {".": {}, "f:a": {}}}],
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn one_manager_may_apply_in_several_versions() {
    let server = server_with_widgets().await;
    apply(&server, &item(WIDGETS), "one", &widget(json!({"size": 1, "tags": ["a"]}))).await.expect(201);
    let mut second = widget(json!({"size": 2}));
    second["apiVersion"] = json!("demo.example.org/v2");
    let path = item(&WIDGETS.replace("/v1/", "/v2/"));
    let applied = apply(&server, &path, "one", &second).await.expect(200).json();
    assert_eq!(applied["spec"], json!({"size": 2, "color": "red"}));
    let entries = applied["metadata"]["managedFields"].as_array().unwrap().clone();
    assert_eq!((entries.len(), &entries[0]["apiVersion"]), (1, &json!("demo.example.org/v2")));
}

#[tokio::test(start_paused = true)]
async fn a_definition_can_be_applied_too() {
    let server = server();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.demo.example.org";
    let definition = |size: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "gadgets.demo.example.org"},
            "spec": {
                "group": "demo.example.org", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": size}}},
                }}}],
            },
        })
    };
    apply(&server, path, "operator", &definition(json!({"type": "integer", "default": 1}))).await.expect(201);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = get(&server, path).await.json();
    let again =
        apply(&server, path, "operator", &definition(json!({"type": "integer", "default": 1}))).await.expect(200);
    assert_eq!(again.json(), before);
    let gadget = json!({"apiVersion": "demo.example.org/v1", "kind": "Gadget", "metadata": {"name": "x"}, "spec": {}});
    let gadgets = "/apis/demo.example.org/v1/namespaces/default/gadgets/x";
    assert_eq!(apply(&server, gadgets, "operator", &gadget).await.expect(201).json()["spec"]["size"], 1);
    let changed = apply(&server, path, "operator", &definition(json!({"type": "integer"}))).await.expect(200).json();
    let size = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size";
    assert_eq!(changed.pointer(size), Some(&json!({"type": "integer"})), "what is no longer applied is gone");
}

#[tokio::test(start_paused = true)]
async fn status_may_be_applied_without_a_name_as_operators_do() {
    let server = server_with_widgets().await;
    post(&server, WIDGETS, &widget(json!({"size": 1}))).await.expect(201);
    let body = json!({"apiVersion": "demo.example.org/v1", "kind": "Widget", "status": {"phase": "up"}});
    let applied = apply(&server, &format!("{}/status", item(WIDGETS)), "operator", &body).await.expect(200).json();
    assert_eq!(applied["status"], json!({"phase": "up"}));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_and_stores_nothing() {
    let server = server();
    let path = item(CONFIGS);
    let body = config(json!({"a": "1"}));
    let tried = apply_at(&server, &path, "fieldManager=one&dryRun=All", &body).await.expect(201).json();
    assert_eq!(tried["data"]["a"], "1");
    get(&server, &path).await.expect(404);
    apply(&server, &path, "one", &body).await.expect(201);
    let tried = apply_at(&server, &path, "fieldManager=one&dryRun=All", &config(json!({"a": "2"}))).await.expect(200);
    assert_eq!(tried.json()["data"]["a"], "2");
    assert_eq!(get(&server, &path).await.json()["data"]["a"], "1");
}

#[tokio::test(start_paused = true)]
async fn the_configuration_may_be_yaml() {
    let server = server();
    let path = item(CONFIGS);
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  a: |\n    text\n";
    let answer = call(&server, "PATCH", &format!("{path}?fieldManager=one")).body("application/apply-patch+yaml", body);
    assert_eq!(answer.send().await.expect(201).json()["data"]["a"], "text\n");
}
