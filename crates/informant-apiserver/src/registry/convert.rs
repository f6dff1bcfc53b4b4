//! From the version in which an object is stored to the one in which it's asked for, and back.
//!
//! Custom kinds and most built-in ones look the same in all their versions: only `apiVersion` changes. Two don't: Events
//! are served by two groups with other field names, and `autoscaling/v1` knows CPU as the only metric.

use serde_json::{Map, Value, json};

use crate::object::at_path;
use crate::resource::Resource;

/// Events as core has them, then as `events.k8s.io` has them; everything else has the same name in both.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The `apiVersion` in which a built-in resource is stored.
pub(crate) fn storage_api_version(resource: &Resource) -> String {
    match (&*resource.storage.group, &*resource.storage.plural) {
        ("", "events") => "v1".to_owned(),
        ("autoscaling", "horizontalpodautoscalers") => "autoscaling/v2".to_owned(),
        _ => resource.api_version(),
    }
}

/// A stored object as `resource` shows it.
pub(crate) fn from_storage(object: &Value, resource: &Resource) -> Value {
    let api_version = resource.api_version();
    let mut shown = match (&*resource.storage.group, &*resource.storage.plural, api_version.as_str()) {
        ("", "events", "events.k8s.io/v1") => rename(object, |(core, events)| (core, events)),
        ("autoscaling", "horizontalpodautoscalers", "autoscaling/v1") => autoscaler_to_v1(object),
        _ => object.clone(),
    };
    set_api_version(&mut shown, &api_version);
    shown
}

/// An object written through `resource` as it's stored. `stored` is what is there already, for what the written version
/// can't say.
pub(crate) fn to_storage(object: Value, resource: &Resource, storage_version: &str, stored: Option<&Value>) -> Value {
    let api_version = resource.api_version();
    if api_version == storage_version {
        return object;
    }
    let mut converted = match (&*resource.storage.group, &*resource.storage.plural, api_version.as_str()) {
        ("", "events", "events.k8s.io/v1") => rename(&object, |(core, events)| (events, core)),
        ("autoscaling", "horizontalpodautoscalers", "autoscaling/v1") => autoscaler_from_v1(object, stored),
        _ => object,
    };
    set_api_version(&mut converted, storage_version);
    converted
}

fn set_api_version(object: &mut Value, api_version: &str) {
    if let Some(root) = object.as_object_mut() {
        root.insert("apiVersion".into(), json!(api_version));
    }
}

fn rename(object: &Value, direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str)) -> Value {
    let fields = object.as_object().into_iter().flatten().map(|(field, value)| {
        let renamed = EVENT_FIELDS.iter().map(|pair| direction(*pair)).find(|(from, _)| from == field);
        (renamed.map_or(field.as_str(), |(_, to)| to).to_owned(), value.clone())
    });
    Value::Object(fields.collect())
}

/// The CPU metric becomes the one number that `v1` has.
fn autoscaler_to_v1(object: &Value) -> Value {
    let mut shown = object.clone();
    if let Some(spec) = map_at(&mut shown, "spec") {
        let metrics = spec.remove("metrics");
        spec.remove("behavior");
        if let Some(target) = metrics.as_ref().and_then(|metrics| cpu_number(metrics, "target")) {
            spec.insert("targetCPUUtilizationPercentage".into(), target);
        }
    }
    if let Some(status) = map_at(&mut shown, "status") {
        let metrics = status.remove("currentMetrics");
        status.remove("conditions");
        if let Some(current) = metrics.as_ref().and_then(|metrics| cpu_number(metrics, "current")) {
            status.insert("currentCPUUtilizationPercentage".into(), current);
        }
    }
    shown
}

/// The number of `v1` becomes the CPU metric; other metrics, behavior and conditions stay as they're stored.
fn autoscaler_from_v1(mut object: Value, stored: Option<&Value>) -> Value {
    let kept = |path: &str| stored.and_then(|stored| at_path(stored, path)).cloned();
    if let Some(spec) = map_at(&mut object, "spec") {
        let cpu = spec.remove("targetCPUUtilizationPercentage").filter(|value| !value.is_null());
        insert_metrics(spec, "metrics", kept("spec.metrics"), cpu_metric("target", cpu));
        if let Some(behavior) = kept("spec.behavior") {
            spec.insert("behavior".into(), behavior);
        }
    }
    if let Some(status) = map_at(&mut object, "status") {
        let cpu = status.remove("currentCPUUtilizationPercentage").filter(|value| !value.is_null());
        insert_metrics(status, "currentMetrics", kept("status.currentMetrics"), cpu_metric("current", cpu));
        if let Some(conditions) = kept("status.conditions") {
            status.insert("conditions".into(), conditions);
        }
    }
    object
}

fn cpu_metric(side: &str, number: Option<Value>) -> Option<Value> {
    let mut value = json!({"averageUtilization": number?});
    if side == "target" {
        value["type"] = json!("Utilization");
    }
    Some(json!({"type": "Resource", "resource": {"name": "cpu", side: value}}))
}

fn insert_metrics(place: &mut Map<String, Value>, field: &str, stored: Option<Value>, cpu: Option<Value>) {
    let others = stored.as_ref().and_then(Value::as_array).into_iter().flatten().filter(|metric| !is_cpu(metric));
    let metrics: Vec<Value> = cpu.into_iter().chain(others.cloned()).collect();
    if !metrics.is_empty() {
        place.insert(field.to_owned(), Value::Array(metrics));
    }
}

fn cpu_number(metrics: &Value, side: &str) -> Option<Value> {
    let metric = metrics.as_array()?.iter().find(|metric| is_cpu(metric))?;
    metric.get("resource")?.get(side)?.get("averageUtilization").cloned()
}

fn is_cpu(metric: &Value) -> bool {
    let utilization = |side: &str| at_path(metric, &format!("resource.{side}.averageUtilization")).is_some();
    at_path(metric, "resource.name").and_then(Value::as_str) == Some("cpu")
        && (utilization("target") || utilization("current"))
}

fn map_at<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(field)?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::testing::resource;

    #[test]
    fn an_event_reads_the_same_in_both_groups() {
        let mut events = resource("events.k8s.io", "v1", "Event", "events");
        events.storage.group = "".into();
        let stored = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "message": "hello",
            "involvedObject": {"name": "web"}, "reason": "Started", "count": 2});
        let shown = from_storage(&stored, &events);
        assert_eq!(shown["note"], json!("hello"));
        assert_eq!(shown["regarding"], json!({"name": "web"}));
        assert_eq!(shown["apiVersion"], json!("events.k8s.io/v1"));
        assert_eq!(to_storage(shown, &events, "v1", Some(&stored)), stored);
    }

    #[test]
    fn a_write_through_autoscaling_v1_keeps_what_v1_cannot_say() {
        let v1 = resource("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers");
        let stored = json!({"apiVersion": "autoscaling/v2", "spec": {"maxReplicas": 5, "behavior": {"scaleUp": {}}, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
            {"type": "Pods", "pods": {}}]}});
        let mut shown = from_storage(&stored, &v1);
        assert_eq!(shown["spec"], json!({"maxReplicas": 5, "targetCPUUtilizationPercentage": 50}));
        shown["spec"]["targetCPUUtilizationPercentage"] = json!(80);
        let written = to_storage(shown, &v1, "autoscaling/v2", Some(&stored));
        assert_eq!(at_path(&written, "spec.behavior"), Some(&json!({"scaleUp": {}})));
        assert_eq!(written["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], json!(80));
        assert_eq!(written["spec"]["metrics"][1]["type"], json!("Pods"));
    }

    #[test]
    fn other_kinds_change_their_api_version_only() {
        let v1 = resource("example.org", "v1", "Widget", "widgets");
        let stored = json!({"apiVersion": "example.org/v2", "spec": {"a": 1}});
        assert_eq!(from_storage(&stored, &v1), json!({"apiVersion": "example.org/v1", "spec": {"a": 1}}));
    }
}
