//! The `scale` subresource: an `autoscaling/v1` `Scale` read from an object's paths, and written back to one of them.

use serde_json::{Map, Value, json};

use crate::object::{self, at_path};
use crate::resource::{PrinterColumn, Resource, ResourceSchema, Rules, ScalePaths, StorageId};
use crate::status::{Cause, Status};

/// `Scale` as a resource, for the columns of its table.
pub(crate) fn resource() -> Resource {
    let column = |name: &str, type_name: &str, json_path: &str| PrinterColumn {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: json_path.to_owned(),
    };
    Resource {
        group: "autoscaling".to_owned(),
        version: "v1".to_owned(),
        kind: "Scale".to_owned(),
        list_kind: "ScaleList".to_owned(),
        plural: "scales".to_owned(),
        singular: "scale".to_owned(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: Vec::new(),
        subresources: Vec::new(),
        storage: StorageId { group: "autoscaling".into(), plural: "scales".into() },
        schema: ResourceSchema::default(),
        // Its columns are given here and not in the built-in table.
        custom: true,
        rules: Rules::default(),
        printer_columns: vec![
            column("Desired", "integer", ".spec.replicas"),
            column("Available", "integer", ".status.replicas"),
            column("Age", "date", ".metadata.creationTimestamp"),
        ],
        selectable_fields: Vec::new(),
        deprecation_warning: None,
    }
}

/// The `Scale` of an object.
pub(crate) fn read(object: &Value, paths: &ScalePaths) -> Value {
    let number = |path: &str| at_path(object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut meta = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = at_path(object, "metadata").and_then(|meta| meta.get(field)) {
            meta.insert(field.to_owned(), value.clone());
        }
    }
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    if let Some(selector) = selector_text(object, &paths.label_selector) {
        status["selector"] = json!(selector);
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta,
        "spec": {"replicas": number(&paths.spec_replicas)}, "status": status,
    })
}

/// The object with the replicas of `scale` written into it.
///
/// # Errors
/// 400 when the body isn't a `Scale`, 422 for a negative number, 409 for another resource version or uid.
pub(crate) fn write(resource: &Resource, object: &Value, paths: &ScalePaths, scale: &Value) -> Result<Value, Status> {
    let name = object::name(object);
    if scale.get("kind").and_then(Value::as_str).is_some_and(|kind| kind != "Scale") {
        return Err(Status::bad_request(
            "the body of a write to the scale subresource must be an autoscaling/v1 Scale",
        ));
    }
    let replicas = match at_path(scale, "spec.replicas") {
        None | Some(Value::Null) => 0,
        Some(value) => value.as_i64().filter(|number| i32::try_from(*number).is_ok()).ok_or_else(|| {
            Status::bad_request("the Scale can't be read: spec.replicas must be a 32-bit whole number")
        })?,
    };
    if replicas < 0 {
        let cause = Cause::invalid("spec.replicas", &json!(replicas), "must be greater than or equal to 0");
        return Err(Status::invalid("autoscaling", "Scale", name, vec![cause]));
    }
    let asked = object::resource_version(scale);
    if !asked.is_empty() && asked != object::resource_version(object) {
        return Err(super::stale(resource, name));
    }
    let uid = object::uid(scale);
    if !uid.is_empty() && uid != object::uid(object) {
        let why =
            format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", object::uid(object));
        return Err(Status::conflict(&resource.group, &resource.plural, name, why));
    }
    let mut object = object.clone();
    set_path(&mut object, &paths.spec_replicas, json!(replicas));
    Ok(object)
}

/// A selector as text: strings stay, label selector objects and plain maps are written out.
fn selector_text(object: &Value, path: &str) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    match at_path(object, path)? {
        Value::String(text) => Some(text.clone()),
        Value::Object(selector) => Some(write_selector(selector)),
        _ => None,
    }
}

fn write_selector(selector: &Map<String, Value>) -> String {
    let structured = selector.contains_key("matchLabels") || selector.contains_key("matchExpressions");
    let labels = if structured { selector.get("matchLabels").and_then(Value::as_object) } else { Some(selector) };
    let mut parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| value.as_str().map(|value| format!("{key}={value}")))
        .collect();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    parts.extend(expressions.into_iter().flatten().filter_map(write_expression));
    parts.join(",")
}

fn write_expression(expression: &Value) -> Option<String> {
    let key = expression.get("key")?.as_str()?;
    let values: Vec<&str> =
        expression.get("values").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let values = values.join(",");
    match expression.get("operator")?.as_str()? {
        "In" => Some(format!("{key} in ({values})")),
        "NotIn" => Some(format!("{key} notin ({values})")),
        "Exists" => Some(key.to_owned()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
}

fn set_path(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for field in path.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Some(map) = place.as_object_mut() else { return };
        place = map.entry(field).or_insert(Value::Null);
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::testing::resource;

    fn paths() -> ScalePaths {
        ScalePaths {
            spec_replicas: "spec.replicas".into(),
            status_replicas: "status.replicas".into(),
            label_selector: "spec.selector".into(),
        }
    }

    fn deployment() -> Value {
        json!({"metadata": {"name": "web", "resourceVersion": "7", "uid": "u"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]}},
            "status": {"replicas": 1}})
    }

    #[test]
    fn the_scale_shows_both_numbers_and_the_selector() {
        let scale = read(&deployment(), &paths());
        assert_eq!(scale["spec"], json!({"replicas": 2}));
        assert_eq!(scale["status"], json!({"replicas": 1, "selector": "app=web,tier in (a,b)"}));
        assert_eq!(scale["metadata"]["resourceVersion"], json!("7"));
    }

    #[test]
    fn writing_changes_the_replicas_only_and_checks_the_version() {
        let resource = resource("apps", "v1", "Deployment", "deployments");
        let written = write(&resource, &deployment(), &paths(), &json!({"spec": {"replicas": 5}})).unwrap();
        assert_eq!(at_path(&written, "spec.replicas"), Some(&json!(5)));
        let stale = json!({"metadata": {"resourceVersion": "6"}, "spec": {"replicas": 5}});
        assert_eq!(write(&resource, &deployment(), &paths(), &stale).map_err(|status| status.code), Err(409));
        let negative = json!({"spec": {"replicas": -1}});
        assert_eq!(write(&resource, &deployment(), &paths(), &negative).map_err(|status| status.code), Err(422));
    }
}
