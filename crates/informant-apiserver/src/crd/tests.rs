use serde_json::{Value, json};

use super::*;
use crate::status::Cause;

fn base() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tests.x.example.com"},
        "spec": {"group": "x.example.com", "names": {"plural": "tests", "kind": "Test"}, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"type": "object", "properties": {}}}}}}]}})
}

fn errors_of(mut crd: Value, old: Option<&Value>) -> Vec<String> {
    prepare(&mut crd, old);
    validate(&crd, old).unwrap().iter().map(Cause::to_string).collect()
}

/// The errors of the base CRD after a change at each pointer.
fn errors(changes: &[(&str, Value)]) -> Vec<String> {
    let mut crd = base();
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        crd.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    errors_of(crd, None)
}

/// The errors of one property, without the path before it.
fn property_errors(schema: Value) -> Vec<String> {
    let prefix = "spec.validation.openAPIV3Schema.properties[spec].properties[x]";
    let errors = errors(&[("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/x", schema)]);
    errors.iter().map(|error| error.replace(prefix, "x")).collect()
}

#[test]
fn a_good_crd_has_no_errors() {
    assert_eq!(errors(&[]), Vec::<String>::new());
}

#[test]
fn name_group_and_scope_are_checked() {
    assert_eq!(
        errors(&[("/metadata/name", json!("wrong.x.example.com"))]),
        ["metadata.name: Invalid value: \"wrong.x.example.com\": must be spec.names.plural+\".\"+spec.group",]
    );
    assert_eq!(
        errors(&[("/metadata/name", json!("tests.x")), ("/spec/group", json!("x"))]),
        ["spec.group: Invalid value: \"x\": should be a domain with at least one dot",]
    );
    assert_eq!(
        errors(&[("/spec/scope", json!("Foo"))]),
        ["spec.scope: Unsupported value: \"Foo\": supported values: \"Cluster\", \"Namespaced\"",]
    );
    assert_eq!(errors(&[("/spec/scope", Value::Null)]), ["spec.scope: Required value"]);
    assert_eq!(errors(&[("/spec/names", Value::Null)]).len(), 5);
    assert_eq!(
        errors(&[("/spec/names/listKind", json!("Test"))]),
        ["spec.names.listKind: Invalid value: \"Test\": kind and listKind may not be the same",]
    );
}

#[test]
fn versions_are_unique_and_one_is_stored() {
    assert_eq!(
        errors(&[("/spec/versions/0/storage", json!(false))]),
        [
            "spec.versions: Invalid value: [\"v1\"]: must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ]
    );
    let version = base()["spec"]["versions"][0].clone();
    let mut other = version.clone();
    other["storage"] = json!(false);
    assert_eq!(
        errors(&[("/spec/versions", json!([version, other]))]),
        ["spec.versions: Invalid value: [\"v1\",\"v1\"]: must contain unique version names",]
    );
    assert_eq!(
        errors(&[("/spec/versions/0/schema", Value::Null)]),
        ["spec.versions[0].schema.openAPIV3Schema: Required value",]
    );
}

#[test]
fn subresources_columns_and_selectable_fields_are_checked() {
    let scale =
        json!({"specReplicasPath": "spec.replicas", "statusReplicasPath": ".spec.x", "labelSelectorPath": ".x"});
    assert_eq!(
        errors(&[("/spec/versions/0/subresources", json!({"scale": scale}))]),
        [
            "spec.subresources.scale.specReplicasPath: Invalid value: \"spec.replicas\": must be a simple json path starting with .",
            "spec.subresources.scale.statusReplicasPath: Invalid value: \".spec.x\": should be a json path under .status",
            "spec.subresources.scale.labelSelectorPath: Invalid value: \".x\": should be a json path under either .spec or .status",
        ]
    );
    let columns = json!([{"name": "A", "type": "foo", "jsonPath": "x"}]);
    assert_eq!(
        errors(&[("/spec/versions/0/additionalPrinterColumns", columns)]),
        [
            "spec.additionalPrinterColumns[0].type: Invalid value: \"foo\": must be one of boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"x\": must be a simple json path starting with .",
        ]
    );
    assert_eq!(
        errors(&[("/spec/versions/0/selectableFields", json!([{"jsonPath": ".spec.zz"}]))]),
        [
            "spec.selectableFields[0].jsonPath: Invalid value: \".spec.zz\": is an invalid path: does not refer to a valid field",
        ]
    );
}

#[test]
fn protected_groups_need_approval() {
    let group = [("/metadata/name", json!("tests.x.k8s.io")), ("/spec/group", json!("x.k8s.io"))];
    assert_eq!(errors(&group)[0].split(": ").nth(1), Some("Required value"));
    for (annotation, count) in [("foo", 1), ("https://example.com/1", 0), ("unapproved, a trial", 0)] {
        let mut changes = group.to_vec();
        changes.push(("/metadata/annotations", json!({"api-approved.kubernetes.io": annotation})));
        assert_eq!(errors(&changes).len(), count, "{annotation}");
    }
}

#[test]
fn the_schema_must_be_structural() {
    let table = [
        (json!({}), vec!["x.type: Required value: must not be empty for specified object fields"]),
        (json!({"type": "array"}), vec!["x.items: Required value: must be specified"]),
        (
            json!({"type": "array", "items": {}}),
            vec!["x.items.type: Required value: must not be empty for specified array items"],
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            vec!["x.items: Forbidden: items must be a schema object and not an array"],
        ),
        (
            json!({"type": "foo"}),
            vec![
                "x.type: Unsupported value: \"foo\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}),
            vec!["x.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
        ),
        (json!({"type": "object", "additionalProperties": false}), vec![]),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            vec![
                "x.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ],
        ),
        (json!({"$ref": "#/x"}), vec!["x.$ref: Forbidden: $ref is not supported"]),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            vec!["x.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            vec![
                "x.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            ],
        ),
        (
            json!({"type": "string", "anyOf": [{"type": "string", "default": "x"}]}),
            vec![
                "x.anyOf[0].default: Forbidden: must be undefined to be structural",
                "x.anyOf[0].type: Forbidden: must be empty to be structural",
            ],
        ),
        (json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}), vec![]),
        (json!({"x-kubernetes-preserve-unknown-fields": true}), vec![]),
    ];
    for (schema, expected) in table {
        assert_eq!(property_errors(schema.clone()), expected, "{schema}");
    }
    assert_eq!(
        errors(&[("/spec/versions/0/schema/openAPIV3Schema/type", json!("string"))]),
        ["spec.validation.openAPIV3Schema.type: Invalid value: \"string\": must be object at the root",]
    );
    let branch = json!([{"properties": {"zz": {"minLength": 1}}}]);
    assert_eq!(
        errors(&[("/spec/versions/0/schema/openAPIV3Schema/anyOf", branch)]),
        ["spec.validation.openAPIV3Schema.properties[zz]: Required value: because it is defined in \
         spec.validation.openAPIV3Schema.anyOf[0].properties[zz]",]
    );
}

#[test]
fn list_types_need_their_keys() {
    let table = [
        (
            json!({"type": "object", "x-kubernetes-list-type": "set"}),
            vec!["x.type: Invalid value: \"object\": must be array if x-kubernetes-list-type is specified"],
        ),
        (
            json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
            vec!["x.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"],
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}),
            vec![
                "x.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
                "x.x-kubernetes-list-map-keys: Invalid value: [\"a\",\"b\"]: entries must all be names of item properties",
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
            vec![
                "x.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            ],
        ),
    ];
    for (schema, expected) in table {
        assert_eq!(property_errors(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn defaults_are_values_of_their_schema() {
    let table = [
        (
            json!({"type": "integer", "default": "x"}),
            vec!["x.default: Invalid value: \"string\": x.default in body must be of type integer: \"string\""],
        ),
        (
            json!({"type": "object", "default": {"a": 1}, "properties": {"b": {"type": "string"}}}),
            vec!["x.default: Invalid value: {\"a\":1}: must not have unknown fields"],
        ),
        (
            json!({"type": "object", "default": {}, "required": ["a"], "properties": {"a": {"type": "integer", "default": 1}}}),
            vec!["x.default.a: Required value"],
        ),
        (
            json!({"type": "string", "enum": ["a"], "default": "b"}),
            vec!["x.default: Unsupported value: \"b\": supported values: \"a\""],
        ),
        (json!({"type": "string", "nullable": true, "default": null}), vec![]),
    ];
    for (schema, expected) in table {
        assert_eq!(property_errors(schema.clone()), expected, "{schema}");
    }
    let root = "/spec/versions/0/schema/openAPIV3Schema/properties/apiVersion";
    assert_eq!(
        errors(&[(root, json!({"type": "string", "default": "x"}))]),
        [
            "spec.validation.openAPIV3Schema.properties[apiVersion].default: Forbidden: must not be set in top-level apiVersion",
        ]
    );
}

#[test]
fn an_update_keeps_what_places_the_objects() {
    let mut old = base();
    prepare(&mut old, None);
    old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    let change = |pointer: &str, value: Value| {
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        errors_of(new, Some(&old))
    };
    assert_eq!(
        change("/spec/names/kind", json!("Foo")),
        ["spec.names.kind: Invalid value: \"Foo\": field is immutable"]
    );
    assert_eq!(change("/spec/scope", json!("Cluster")), ["spec.scope: Invalid value: \"Cluster\": field is immutable"]);
    let renamed = change("/spec/versions/0/name", json!("v2"));
    assert!(
        renamed[0].starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions"),
        "{renamed:?}"
    );
    assert_eq!(change("/spec/names/singular", json!("one")), Vec::<String>::new());
}

#[test]
fn a_field_of_the_wrong_type_is_a_bad_request() {
    let mut crd = base();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["maxLength"] = json!("5");
    let status = validate(&crd, None).unwrap_err();
    assert_eq!(status.code, 400);
    assert!(
        status.message.starts_with("CustomResourceDefinition in version \"v1\" cannot be handled"),
        "{}",
        status.message
    );
}

#[test]
fn preparing_fills_in_names_conversion_and_status() {
    let mut crd = base();
    prepare(&mut crd, None);
    assert_eq!(
        crd["spec"]["names"],
        json!({"plural": "tests", "kind": "Test", "singular": "test", "listKind": "TestList"})
    );
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
}

#[test]
fn each_served_version_is_a_resource() {
    let mut crd = base();
    crd["spec"]["versions"][0]["subresources"] = json!({"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas"}});
    crd["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "R", "type": "integer", "jsonPath": ".spec.r"}]);
    let mut old = crd["spec"]["versions"][0].clone();
    old["name"] = json!("v1alpha1");
    old["storage"] = json!(false);
    old["deprecated"] = json!(true);
    old["subresources"] = Value::Null;
    let mut gone = old.clone();
    gone["name"] = json!("v0");
    gone["served"] = json!(false);
    crd["spec"]["versions"].as_array_mut().unwrap().extend([old, gone]);
    prepare(&mut crd, None);
    let resources = resources(&crd).unwrap();
    let versions: Vec<&str> = resources.iter().map(|resource| resource.version.as_str()).collect();
    assert_eq!(versions, ["v1", "v1alpha1"]);
    let v1 = &resources[0];
    assert_eq!(
        (v1.singular.as_str(), v1.list_kind.as_str(), v1.namespaced, v1.custom),
        ("test", "TestList", true, true)
    );
    assert!(v1.has_subresource("status"));
    assert_eq!(v1.subresource("scale").unwrap().scale.as_ref().unwrap().spec_replicas, "spec.replicas");
    assert_eq!(v1.printer_columns[0].json_path, ".spec.r");
    assert_eq!(resources[1].subresources, []);
    assert_eq!(resources[1].deprecation_warning.as_deref(), Some("x.example.com/v1alpha1 Test is deprecated"));
    assert!(v1.schema.view().property("spec").is_some());

    crd["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(!super::resources(&crd).unwrap()[0].has_verb("create"));
}

#[test]
fn rules_and_unknown_formats_are_warned_about() {
    let mut crd = base();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] =
        json!({"a": {"type": "string", "format": "whatever", "x-kubernetes-validations": [{"rule": "true"}]}});
    let warnings = warnings(&crd);
    assert_eq!(warnings.len(), 2);
    assert!(warnings.contains(&"unrecognized format \"whatever\"".to_owned()), "{warnings:?}");
}
