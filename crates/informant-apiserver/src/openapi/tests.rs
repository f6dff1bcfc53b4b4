use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

fn custom() -> Vec<Arc<Resource>> {
    let mut crd = json!({"metadata": {"name": "widgets.demo.example.com"}, "spec": {"group": "demo.example.com",
        "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1",
        "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema":
            {"type": "object", "description": "A widget.", "required": ["spec"], "properties": {"spec": {"type": "object",
                "properties": {"replicas": {"type": "integer", "minimum": 1.0}, "port": {"x-kubernetes-int-or-string": true},
                "template": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true}}}}}}}]}});
    crate::crd::prepare(&mut crd, None);
    crate::crd::resources(&crd).unwrap().into_iter().map(Arc::new).collect()
}

fn all() -> Vec<Arc<Resource>> {
    crate::builtin::resources().into_iter().chain(custom()).collect()
}

/// Every `$ref` of a document names a schema of that document.
fn assert_closed(document: &Value) {
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                    let name = target.strip_prefix("#/components/schemas/").unwrap();
                    assert!(schemas.contains_key(name), "{name} is missing");
                }
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
}

#[test]
fn a_custom_kind_is_described_with_its_identity() {
    let document = document(&all(), "demo.example.com", "v1", &Descriptions::default()).unwrap();
    assert_closed(&document);
    let widget = &document["components"]["schemas"]["com.example.demo.v1.Widget"];
    assert_eq!(widget["description"], "A widget.");
    assert_eq!(
        widget["x-kubernetes-group-version-kind"],
        json!([{"group": "demo.example.com", "version": "v1", "kind": "Widget"}])
    );
    assert_eq!(
        widget["properties"]["metadata"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    let spec = &widget["properties"]["spec"]["properties"];
    assert_eq!(spec["replicas"]["minimum"].to_string(), "1");
    assert_eq!(spec["port"]["anyOf"], json!([{"type": "integer"}, {"type": "string"}]));
    assert_eq!(spec["template"]["required"], json!(["apiVersion", "kind"]));
    assert!(document["components"]["schemas"]["com.example.demo.v1.WidgetList"]["properties"]["items"].is_object());
}

#[test]
fn writing_operations_list_field_validation() {
    let document = document(&all(), "demo.example.com", "v1", &Descriptions::default()).unwrap();
    let item = &document["paths"]["/apis/demo.example.com/v1/namespaces/{namespace}/widgets/{name}"];
    let collection = &document["paths"]["/apis/demo.example.com/v1/namespaces/{namespace}/widgets"];
    for operation in [&item["patch"], &item["put"], &collection["post"]] {
        let names: Vec<&Value> = operation["parameters"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
        assert!(names.contains(&&json!("fieldValidation")) && names.contains(&&json!("dryRun")), "{names:?}");
        assert_eq!(operation["x-kubernetes-group-version-kind"]["kind"], "Widget");
    }
    assert!(document["paths"]["/apis/demo.example.com/v1/widgets"]["get"].is_object());
    assert!(document["paths"]["/apis/demo.example.com/v1/namespaces/{namespace}/widgets/{name}/status"].is_object());
    assert!(collection["get"]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].is_string());
}

#[test]
fn every_group_version_of_the_index_has_a_closed_document() {
    let resources = all();
    let index = index(&resources, &Descriptions::default());
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.len() > 20);
    for path in paths.keys() {
        let mut parts = path.splitn(3, '/');
        let (group, version) = match (parts.next(), parts.next(), parts.next()) {
            (Some("api"), Some(version), None) => ("", version),
            (Some("apis"), Some(group), Some(version)) => (group, version),
            other => panic!("{other:?}"),
        };
        let document = document(&resources, group, version, &Descriptions::default()).unwrap();
        assert_closed(&document);
    }
    assert_eq!(document(&resources, "none.example.com", "v1", &Descriptions::default()), None);
}

#[test]
fn built_in_operations_refer_to_their_kinds() {
    let document = document(&all(), "", "v1", &Descriptions::default()).unwrap();
    let post = &document["paths"]["/api/v1/namespaces/{namespace}/pods"]["post"];
    assert_eq!(
        post["requestBody"]["content"]["application/json"]["schema"]["$ref"],
        "#/components/schemas/io.k8s.api.core.v1.Pod"
    );
    assert!(document["paths"]["/api/v1/namespaces/{name}"]["get"].is_object());
}

#[test]
fn descriptions_are_merged_in_and_change_the_hash() {
    let resources = all();
    let name = "io.k8s.api.core.v1.Pod".to_owned();
    let text =
        Description { text: "A pod.".to_owned(), fields: BTreeMap::from([("spec".to_owned(), "What.".to_owned())]) };
    let texts = BTreeMap::from([(name.clone(), text)]);
    let descriptions = Descriptions::by_group_version(move |_| texts.clone());
    let document = document(&resources, "", "v1", &descriptions).unwrap();
    let pod = &document["components"]["schemas"][&name];
    assert_eq!(pod["description"], "A pod.");
    assert_eq!(pod["properties"]["spec"]["description"], "What.");
    assert!(pod["properties"]["spec"]["allOf"][0]["$ref"].is_string());
    let plain = Descriptions::default();
    assert_ne!(hash(&resources, "", "v1", &plain), hash(&resources, "", "v1", &descriptions));
    assert_eq!(hash(&resources, "", "v1", &plain), hash(&resources, "", "v1", &plain));
}

#[test]
fn a_changed_schema_changes_the_hash() {
    let before = all();
    let mut after = before.clone();
    let mut widget = Resource::clone(after.last().unwrap());
    widget.schema = crate::resource::ResourceSchema::default();
    *after.last_mut().unwrap() = Arc::new(widget);
    let plain = Descriptions::default();
    assert_ne!(hash(&before, "demo.example.com", "v1", &plain), hash(&after, "demo.example.com", "v1", &plain));
    assert_eq!(hash(&before, "apps", "v1", &plain), hash(&after, "apps", "v1", &plain));
}
