//! Custom resources from the creation of their CRD to its deletion, through the in-process service under paused time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/client.rs"]
mod support;

use informant_apiserver::ApiServer;
use serde_json::{Value, json};
use support::{Events, call, delete, get, merge, post, put};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/demo.example.com/v1/namespaces/default/widgets";
const OLD_WIDGETS: &str = "/apis/demo.example.com/v1alpha1/namespaces/default/widgets";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn server() -> ApiServer {
    ApiServer::builder().seed(7).start_time("2026-01-02T03:04:05Z".parse().unwrap()).build()
}

/// Two served versions, status and scale, printer columns, a selectable field.
fn crd() -> Value {
    let spec = json!({"type": "object", "required": ["image"], "properties": {
        "image": {"type": "string", "pattern": "^[a-z0-9.:]+$"},
        "replicas": {"type": "integer", "minimum": 1, "default": 1},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"},
                "port": {"type": "integer", "default": 80}}}},
    }});
    let status =
        json!({"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.demo.example.com"},
    "spec": {"group": "demo.example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["toys"]},
        "versions": [
            {"name": "v1alpha1", "served": true, "storage": false, "deprecated": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}}}},
            {"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"],
                    "properties": {"spec": spec, "status": status}}},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
                "selectableFields": [{"jsonPath": ".spec.image"}],
                "additionalPrinterColumns": [
                    {"name": "Image", "type": "string", "jsonPath": ".spec.image"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}]},
        ]}})
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "demo.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"image": "a:1"}})
}

async fn server_with_crd() -> ApiServer {
    let server = server();
    post(&server, CRDS, &crd()).await.expect(201);
    server
}

fn condition<'a>(crd: &'a Value, name: &str) -> &'a Value {
    let conditions = crd["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == name).unwrap_or(&Value::Null)
}

fn causes(status: &Value) -> Vec<String> {
    let causes = status["details"]["causes"].as_array().unwrap();
    causes
        .iter()
        .map(|cause| format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_crd_is_served_as_soon_as_its_create_is_answered() {
    let server = server();
    get(&server, WIDGETS).await.expect(404);
    get(&server, "/apis/demo.example.com").await.expect(404);
    let created = post(&server, CRDS, &crd()).await.expect(201).json();
    assert_eq!(created["spec"]["names"]["singular"], "widget");
    assert_eq!(created["spec"]["conversion"]["strategy"], "None");

    let stored = get(&server, &format!("{CRDS}/widgets.demo.example.com")).await.expect(200).json();
    assert_eq!(condition(&stored, "Established")["status"], "True");
    assert_eq!(stored["status"]["storedVersions"], json!(["v1"]));
    let list = get(&server, WIDGETS).await.expect(200).json();
    assert_eq!((list["kind"].as_str(), list["items"].as_array().map(Vec::len)), (Some("WidgetList"), Some(0)));

    let group = get(&server, "/apis/demo.example.com").await.expect(200).json();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let resources = get(&server, "/apis/demo.example.com/v1").await.expect(200).json();
    let names: Vec<&Value> = resources["resources"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
    let aggregated = call(&server, "GET", "/apis").header("accept", AGGREGATED).send().await.expect(200);
    assert_eq!(aggregated.header("content-type"), [AGGREGATED]);
    let groups = aggregated.json()["items"].as_array().unwrap().clone();
    assert_eq!(groups.last().unwrap()["metadata"]["name"], "demo.example.com");

    let index = get(&server, "/openapi/v3").await.expect(200).json();
    let url = index["paths"]["apis/demo.example.com/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = get(&server, &url).await.expect(200).json();
    let kind = &document["components"]["schemas"]["com.example.demo.v1.Widget"];
    assert_eq!(kind["properties"]["spec"]["properties"]["image"]["type"], "string");
}

#[tokio::test(start_paused = true)]
async fn a_bad_crd_is_refused_with_every_cause() {
    let server = server();
    let mut bad = crd();
    bad["metadata"]["name"] = json!("wrong.demo.example.com");
    bad["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"] = json!({});
    let refused = post(&server, CRDS, &bad).await.expect(422).json();
    assert_eq!(
        causes(&refused),
        [
            "metadata.name: Invalid value: \"wrong.demo.example.com\": must be spec.names.plural+\".\"+spec.group",
            "spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[replicas].type: Required value: must not be \
             empty for specified object fields",
        ]
    );
    get(&server, WIDGETS).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn rules_are_taken_with_a_warning_that_they_are_not_evaluated() {
    let server = server();
    let mut ruled = crd();
    ruled["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "self.replicas < 5"}]);
    let warnings = post(&server, CRDS, &ruled).await.expect(201).header("warning");
    assert!(warnings.iter().any(|warning| warning.contains("does not evaluate")), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn objects_are_defaulted_and_pruned() {
    let server = server_with_crd().await;
    let mut body = widget("one");
    body["spec"]["ports"] = json!([{"name": "http"}]);
    body["spec"]["unknown"] = json!({"a": 1});
    body["extra"] = json!(1);
    let created = post(&server, WIDGETS, &body).await.expect(201);
    let warnings = created.header("warning");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let created = created.json();
    assert_eq!(created["spec"], json!({"image": "a:1", "replicas": 1, "ports": [{"name": "http", "port": 80}]}));
    assert_eq!(created.get("extra"), None);
    assert_eq!(get(&server, &format!("{WIDGETS}/one")).await.json(), created);

    let strict = post(&server, &format!("{WIDGETS}?fieldValidation=Strict"), &body).await.expect(400);
    assert!(
        strict.message().contains("unknown field \"extra\", unknown field \"spec.unknown\""),
        "{}",
        strict.message()
    );
}

#[tokio::test(start_paused = true)]
async fn every_schema_error_is_told_at_once() {
    let server = server_with_crd().await;
    let mut body = widget("one");
    body["spec"] = json!({"replicas": 0, "ports": [{"name": "a"}, {"name": "a"}]});
    let refused = post(&server, WIDGETS, &body).await.expect(422).json();
    assert_eq!(
        causes(&refused),
        [
            "spec.image: Required value",
            "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1",
            "spec.ports[1]: Duplicate value: {\"name\":\"a\"}",
        ]
    );
    assert_eq!(refused["details"]["kind"], "Widget");
    assert!(
        refused["message"].as_str().unwrap().starts_with("Widget.demo.example.com \"one\" is invalid: [spec.image")
    );
    assert_eq!(get(&server, WIDGETS).await.json()["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_read_in_each_served_version() {
    let server = server_with_crd().await;
    post(&server, WIDGETS, &widget("one")).await.expect(201);
    let old = get(&server, &format!("{OLD_WIDGETS}/one")).await.expect(200);
    assert_eq!(old.header("warning"), ["299 - \"demo.example.com/v1alpha1 Widget is deprecated\""]);
    let old = old.json();
    assert_eq!(old["apiVersion"], "demo.example.com/v1alpha1");
    assert_eq!(old["spec"]["image"], "a:1");

    let mut by_old = widget("two");
    by_old["apiVersion"] = json!("demo.example.com/v1alpha1");
    post(&server, OLD_WIDGETS, &by_old).await.expect(201);
    let list = get(&server, WIDGETS).await.json();
    let versions: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["apiVersion"]).collect();
    assert_eq!(versions, ["demo.example.com/v1", "demo.example.com/v1"]);
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_are_written_apart() {
    let server = server_with_crd().await;
    let mut body = widget("one");
    body["status"] = json!({"replicas": 9});
    let created = post(&server, WIDGETS, &body).await.expect(201).json();
    assert_eq!((created.get("status"), &created["metadata"]["generation"]), (None, &json!(1)));

    let path = format!("{WIDGETS}/one");
    let status = json!({"spec": {"image": "b:2"}, "status": {"replicas": 3}});
    let patched = merge(&server, &format!("{path}/status"), &status).await.expect(200).json();
    assert_eq!((&patched["spec"]["image"], &patched["status"]["replicas"]), (&json!("a:1"), &json!(3)));
    assert_eq!(patched["metadata"]["generation"], 1);
    let patched = merge(&server, &path, &status).await.expect(200).json();
    assert_eq!((&patched["spec"]["image"], &patched["status"]["replicas"]), (&json!("b:2"), &json!(3)));
    assert_eq!(patched["metadata"]["generation"], 2);

    let wrong = merge(&server, &format!("{path}/status"), &json!({"status": {"replicas": "x"}})).await.expect(422);
    assert_eq!(wrong.json()["details"]["causes"][0]["field"], "status.replicas");
    get(&server, &format!("{OLD_WIDGETS}/one/status")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn scale_reads_and_writes_the_replicas() {
    let server = server_with_crd().await;
    post(&server, WIDGETS, &widget("one")).await.expect(201);
    let status = json!({"status": {"replicas": 1, "selector": "app=one"}});
    merge(&server, &format!("{WIDGETS}/one/status"), &status).await.expect(200);
    let scale = get(&server, &format!("{WIDGETS}/one/scale")).await.expect(200).json();
    assert_eq!(scale["kind"], "Scale");
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["replicas"]), (&json!(1), &json!(1)));
    assert_eq!(scale["status"]["selector"], "app=one");
    merge(&server, &format!("{WIDGETS}/one/scale"), &json!({"spec": {"replicas": 4}})).await.expect(200);
    assert_eq!(get(&server, &format!("{WIDGETS}/one")).await.json()["spec"]["replicas"], 4);
}

#[tokio::test(start_paused = true)]
async fn tables_have_the_columns_of_the_crd() {
    let server = server_with_crd().await;
    post(&server, WIDGETS, &widget("one")).await.expect(201);
    let table = call(&server, "GET", WIDGETS).header("accept", TABLE).send().await.expect(200).json();
    let columns: Vec<&Value> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(columns, ["Name", "Image", "Replicas"]);
    assert_eq!(table["rows"][0]["cells"], json!(["one", "a:1", 1]));
}

#[tokio::test(start_paused = true)]
async fn a_selectable_field_selects() {
    let server = server_with_crd().await;
    post(&server, WIDGETS, &widget("one")).await.expect(201);
    let mut other = widget("two");
    other["spec"]["image"] = json!("b:1");
    post(&server, WIDGETS, &other).await.expect(201);
    let list = get(&server, &format!("{WIDGETS}?fieldSelector=spec.image%3Db:1")).await.expect(200).json();
    assert_eq!(list["items"][0]["metadata"]["name"], "two");
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    get(&server, &format!("{WIDGETS}?fieldSelector=spec.replicas%3D1")).await.expect(400);
}

#[tokio::test(start_paused = true)]
async fn only_patches_without_a_go_type_are_taken() {
    let server = server_with_crd().await;
    post(&server, WIDGETS, &widget("one")).await.expect(201);
    let patch = call(&server, "PATCH", &format!("{WIDGETS}/one"))
        .body("application/strategic-merge-patch+json", "{\"spec\":{\"replicas\":2}}")
        .send()
        .await
        .expect(415);
    assert!(patch.message().contains("application/apply-patch+yaml"), "{}", patch.message());
}

#[tokio::test(start_paused = true)]
async fn a_changed_schema_ends_the_watches_and_judges_what_follows() {
    let server = server_with_crd().await;
    post(&server, WIDGETS, &widget("one")).await.expect(201);
    let mut events = Events::open(&server, &format!("{WIDGETS}?watch=true")).await;
    assert_eq!(events.next_short().await.unwrap(), ("ADDED".to_owned(), "one".to_owned()));

    let path = format!("{CRDS}/widgets.demo.example.com");
    let mut changed = get(&server, &path).await.json();
    changed["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["image"] =
        json!({"type": "string", "pattern": "^b"});
    put(&server, &path, &changed).await.expect(200);
    assert_eq!(events.next().await, None);

    post(&server, WIDGETS, &widget("two")).await.expect(422);
    // What was valid before may be kept, not made worse.
    let one = format!("{WIDGETS}/one");
    merge(&server, &one, &json!({"spec": {"replicas": 2}})).await.expect(200);
    merge(&server, &one, &json!({"spec": {"image": "c"}})).await.expect(422);
    merge(&server, &one, &json!({"spec": {"image": "b"}})).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn what_places_the_objects_can_not_change() {
    let server = server_with_crd().await;
    let path = format!("{CRDS}/widgets.demo.example.com");
    let refused = merge(&server, &path, &json!({"spec": {"scope": "Cluster"}})).await.expect(422).json();
    assert_eq!(causes(&refused), ["spec.scope: Invalid value: \"Cluster\": field is immutable"]);
    let mut renamed = get(&server, &path).await.json();
    renamed["spec"]["versions"][1]["name"] = json!("v2");
    let refused = put(&server, &path, &renamed).await.expect(422).json();
    assert_eq!(refused["details"]["causes"][0]["field"], "status.storedVersions[0]");
}

#[tokio::test(start_paused = true)]
async fn a_new_storage_version_is_remembered_beside_the_old() {
    let server = server_with_crd().await;
    post(&server, WIDGETS, &widget("one")).await.expect(201);
    let path = format!("{CRDS}/widgets.demo.example.com");
    let mut changed = get(&server, &path).await.json();
    changed["spec"]["versions"][0]["storage"] = json!(true);
    changed["spec"]["versions"][1]["storage"] = json!(false);
    let changed = put(&server, &path, &changed).await.expect(200).json();
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v1alpha1"]));
    assert_eq!(get(&server, &format!("{WIDGETS}/one")).await.json()["apiVersion"], "demo.example.com/v1");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_no_longer_served_is_gone() {
    let server = server_with_crd().await;
    post(&server, WIDGETS, &widget("one")).await.expect(201);
    let path = format!("{CRDS}/widgets.demo.example.com");
    let mut changed = get(&server, &path).await.json();
    changed["spec"]["versions"][0]["served"] = json!(false);
    put(&server, &path, &changed).await.expect(200);
    get(&server, OLD_WIDGETS).await.expect(404);
    get(&server, &format!("{WIDGETS}/one")).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_crd_waits_for_its_objects_and_takes_its_path_with_it() {
    let server = server_with_crd().await;
    let mut held = widget("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    post(&server, WIDGETS, &held).await.expect(201);
    post(&server, WIDGETS, &widget("free")).await.expect(201);
    let mut events = Events::open(&server, &format!("{WIDGETS}?watch=true")).await;
    for name in ["free", "held"] {
        assert_eq!(events.next_short().await.unwrap(), ("ADDED".to_owned(), name.to_owned()));
    }

    let path = format!("{CRDS}/widgets.demo.example.com");
    let answer = delete(&server, &path).await.expect(200).json();
    assert_eq!(answer["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    let terminating = get(&server, &path).await.expect(200).json();
    assert_eq!(condition(&terminating, "Terminating")["status"], "True");
    let refused = post(&server, WIDGETS, &widget("late")).await.expect(403);
    assert!(refused.message().contains("create not allowed while custom resource definition is terminating"));
    assert_eq!(events.next_short().await.unwrap(), ("DELETED".to_owned(), "free".to_owned()));
    assert_eq!(events.next_short().await.unwrap(), ("MODIFIED".to_owned(), "held".to_owned()));

    merge(&server, &format!("{WIDGETS}/held"), &json!({"metadata": {"finalizers": null}})).await.expect(200);
    assert_eq!(events.next_short().await.unwrap(), ("DELETED".to_owned(), "held".to_owned()));
    assert_eq!(events.next().await, None);
    get(&server, &path).await.expect(404);
    get(&server, WIDGETS).await.expect(404);
    get(&server, "/apis/demo.example.com/v1").await.expect(404);

    post(&server, CRDS, &crd()).await.expect(201);
    assert_eq!(get(&server, WIDGETS).await.expect(200).json()["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_clashing_crd_is_served_once_the_other_is_gone() {
    let server = server_with_crd().await;
    let mut other = crd();
    other["metadata"]["name"] = json!("gadgets.demo.example.com");
    other["spec"]["names"] = json!({"plural": "gadgets", "kind": "Widget"});
    post(&server, CRDS, &other).await.expect(201);
    let path = format!("{CRDS}/gadgets.demo.example.com");
    let clashing = get(&server, &path).await.json();
    assert_eq!(condition(&clashing, "NamesAccepted")["status"], "False");
    assert_eq!(condition(&clashing, "Established")["status"], "False");
    let gadgets = "/apis/demo.example.com/v1/namespaces/default/gadgets";
    get(&server, gadgets).await.expect(404);

    delete(&server, &format!("{CRDS}/widgets.demo.example.com")).await.expect(200);
    assert_eq!(condition(&get(&server, &path).await.json(), "Established")["status"], "True");
    get(&server, gadgets).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn stored_objects_are_read_by_the_schema_of_now() {
    let server = server_with_crd().await;
    let mut body = widget("one");
    body["spec"]["ports"] = json!([{"name": "http"}]);
    post(&server, WIDGETS, &body).await.expect(201);
    let path = format!("{CRDS}/widgets.demo.example.com");
    let mut changed = get(&server, &path).await.json();
    let properties =
        &mut changed["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    properties["colour"] = json!({"type": "string", "default": "red"});
    properties.as_object_mut().unwrap().remove("ports");
    put(&server, &path, &changed).await.expect(200);
    let expected = json!({"image": "a:1", "replicas": 1, "colour": "red"});
    assert_eq!(get(&server, &format!("{WIDGETS}/one")).await.json()["spec"], expected);
    assert_eq!(get(&server, WIDGETS).await.json()["items"][0]["spec"], expected);
    let mut events = Events::open(&server, &format!("{WIDGETS}?watch=true")).await;
    assert_eq!(events.next().await.unwrap()["object"]["spec"], expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_fits_the_storage_version_whichever_version_wrote_it() {
    let server = server_with_crd().await;
    let body = json!({"apiVersion": "demo.example.com/v1alpha1", "kind": "Widget", "metadata": {"name": "one"},
        "spec": {"image": "a:1", "legacy": {"a": 1}}});
    let expected = json!({"image": "a:1", "replicas": 1});
    assert_eq!(post(&server, OLD_WIDGETS, &body).await.expect(201).json()["spec"], expected);
    for path in [OLD_WIDGETS, WIDGETS] {
        assert_eq!(get(&server, &format!("{path}/one")).await.expect(200).json()["spec"], expected, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_kind_has_no_namespace() {
    let server = server();
    let mut cluster = crd();
    cluster["spec"]["scope"] = json!("Cluster");
    post(&server, CRDS, &cluster).await.expect(201);
    let widgets = "/apis/demo.example.com/v1/widgets";
    let created = post(&server, widgets, &widget("one")).await.expect(201).json();
    assert_eq!(created["metadata"].get("namespace"), None);
    get(&server, &format!("{widgets}/one")).await.expect(200);
    get(&server, WIDGETS).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn an_embedded_object_is_pruned_and_checked() {
    let server = server();
    let mut with_template = crd();
    with_template["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["template"] =
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    post(&server, CRDS, &with_template).await.expect(201);
    let mut body = widget("one");
    body["spec"]["template"] = json!({"kind": "Pod", "metadata": {"colour": "red"}, "spec": {"any": 1}});
    let refused = post(&server, WIDGETS, &body).await.expect(422).json();
    assert_eq!(causes(&refused), ["spec.template.apiVersion: Required value"]);
    body["spec"]["template"]["apiVersion"] = json!("v1");
    let created = post(&server, WIDGETS, &body).await.expect(201).json();
    assert_eq!(
        created["spec"]["template"],
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"any": 1}})
    );
}
