//! The defaults of what makes Pods, and of autoscalers.

use serde_json::{Value, json};

use super::{Fields, claim_spec, each, inside, pod, set, text, within};
use crate::object;

pub(super) fn deployment(spec: &mut Fields) {
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "progressDeadlineSeconds", json!(600));
    within(spec, "strategy", |strategy| {
        set(strategy, "type", json!("RollingUpdate"));
        if text(strategy, "type") == "RollingUpdate" {
            within(strategy, "rollingUpdate", |rolling| {
                set(rolling, "maxUnavailable", json!("25%"));
                set(rolling, "maxSurge", json!("25%"));
            });
        }
    });
    pod::template(spec);
}

pub(super) fn replica_set(spec: &mut Fields) {
    set(spec, "replicas", json!(1));
    pod::template(spec);
}

pub(super) fn replication_controller(root: &mut Fields) {
    let template = root.get("spec").and_then(|spec| spec.get("template"));
    let labels = template.and_then(|template| template.get("metadata")).and_then(|meta| meta.get("labels")).cloned();
    inside(root, "spec", |spec| {
        set(spec, "replicas", json!(1));
        // The one field whose schema states a zero as default that Go doesn't write.
        if spec.get("minReadySeconds").and_then(Value::as_i64) == Some(0) {
            spec.remove("minReadySeconds");
        }
        if let Some(labels) = labels.clone()
            && is_empty(spec.get("selector"))
        {
            spec.insert("selector".to_owned(), labels);
        }
        pod::template(spec);
    });
    if let Some(labels) = labels {
        within(root, "metadata", |meta| {
            if is_empty(meta.get("labels")) {
                meta.insert("labels".to_owned(), labels);
            }
        });
    }
}

pub(super) fn stateful_set(spec: &mut Fields) {
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "podManagementPolicy", json!("OrderedReady"));
    set(spec, "serviceName", json!(""));
    within(spec, "updateStrategy", |strategy| {
        if text(strategy, "type").is_empty() {
            strategy.insert("type".to_owned(), json!("RollingUpdate"));
            set(strategy, "rollingUpdate", json!({}));
        }
        if text(strategy, "type") == "RollingUpdate" {
            inside(strategy, "rollingUpdate", |rolling| {
                set(rolling, "partition", json!(0));
                set(rolling, "maxUnavailable", json!(1));
            });
        }
    });
    within(spec, "persistentVolumeClaimRetentionPolicy", |policy| {
        set(policy, "whenDeleted", json!("Retain"));
        set(policy, "whenScaled", json!("Retain"));
    });
    each(spec, "volumeClaimTemplates", |claim| {
        set(claim, "apiVersion", json!("v1"));
        set(claim, "kind", json!("PersistentVolumeClaim"));
        inside(claim, "spec", claim_spec);
        within(claim, "status", |status| set(status, "phase", json!("Pending")));
    });
    pod::template(spec);
}

pub(super) fn daemon_set(object: &mut Value) {
    if let Some(meta) = object::meta_mut(object) {
        within(meta, "annotations", |annotations| {
            set(annotations, "deprecated.daemonset.template.generation", json!("1"));
        });
    }
    let Some(root) = object.as_object_mut() else { return };
    inside(root, "spec", |spec| {
        set(spec, "revisionHistoryLimit", json!(10));
        within(spec, "updateStrategy", |strategy| {
            set(strategy, "type", json!("RollingUpdate"));
            if text(strategy, "type") == "RollingUpdate" {
                within(strategy, "rollingUpdate", |rolling| {
                    set(rolling, "maxUnavailable", json!(1));
                    set(rolling, "maxSurge", json!(0));
                });
            }
        });
        pod::template(spec);
    });
}

/// A Job selects its Pods by its own uid, unless it says that it selects by hand.
pub(super) fn job(object: &mut Value) {
    let (name, uid) = (object::name(object).to_owned(), object::uid(object).to_owned());
    let Some(root) = object.as_object_mut() else { return };
    let mut labels = None;
    inside(root, "spec", |spec| {
        let by_hand = spec.get("manualSelector").and_then(Value::as_bool).unwrap_or(false);
        if !by_hand && !uid.is_empty() && !is_generated(spec) {
            select_by_uid(spec, &name, &uid);
        }
        labels = spec.get("template").and_then(|template| template.get("metadata")?.get("labels")).cloned();
        job_spec(spec);
        let defaults =
            [("completionMode", json!("NonIndexed")), ("suspend", json!(false)), ("manualSelector", json!(false))];
        for (field, value) in defaults {
            set(spec, field, value);
        }
        let by_policy = spec.get("podFailurePolicy").is_some_and(Value::is_object);
        set(spec, "podReplacementPolicy", json!(if by_policy { "Failed" } else { "TerminatingOrFailed" }));
        let per_index = spec.get("backoffLimitPerIndex").is_some_and(Value::is_number);
        set(spec, "backoffLimit", json!(if per_index { i32::MAX } else { 6 }));
        if spec.get("completions").is_none_or(Value::is_null) && spec.get("parallelism").is_none_or(Value::is_null) {
            spec.insert("completions".to_owned(), json!(1));
        }
        set(spec, "parallelism", json!(1));
    });
    if let Some(labels) = labels {
        within(root, "metadata", |meta| {
            if is_empty(meta.get("labels")) {
                meta.insert("labels".to_owned(), labels);
            }
        });
    }
}

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

fn is_generated(spec: &Fields) -> bool {
    let labels = spec.get("selector").and_then(|selector| selector.get("matchLabels"));
    labels.and_then(|labels| labels.get(CONTROLLER_UID)).is_some()
}

fn select_by_uid(spec: &mut Fields, name: &str, uid: &str) {
    within(spec, "template", |template| {
        within(template, "metadata", |meta| {
            within(meta, "labels", |labels| {
                for (key, value) in [
                    (CONTROLLER_UID, uid),
                    ("batch.kubernetes.io/job-name", name),
                    ("controller-uid", uid),
                    ("job-name", name),
                ] {
                    labels.insert(key.to_owned(), json!(value));
                }
            });
        });
    });
    within(spec, "selector", |selector| {
        within(selector, "matchLabels", |labels| drop(labels.insert(CONTROLLER_UID.to_owned(), json!(uid))));
    });
}

fn job_spec(spec: &mut Fields) {
    inside(spec, "podFailurePolicy", |policy| {
        each(policy, "rules", |rule| each(rule, "onPodConditions", |on| set(on, "status", json!("True"))));
    });
    pod::template(spec);
}

pub(super) fn cron_job(spec: &mut Fields) {
    set(spec, "concurrencyPolicy", json!("Allow"));
    set(spec, "suspend", json!(false));
    set(spec, "successfulJobsHistoryLimit", json!(3));
    set(spec, "failedJobsHistoryLimit", json!(1));
    inside(spec, "jobTemplate", |template| inside(template, "spec", job_spec));
}

pub(super) fn autoscaler(spec: &mut Fields, is_v1: bool) {
    set(spec, "minReplicas", json!(1));
    if is_v1 {
        set(spec, "targetCPUUtilizationPercentage", json!(80));
        return;
    }
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        spec.insert("metrics".to_owned(), json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    }
    inside(spec, "behavior", |behavior| {
        within(behavior, "scaleUp", |up| {
            set(up, "stabilizationWindowSeconds", json!(0));
            set(up, "selectPolicy", json!("Max"));
            let policies = [("Pods", 4), ("Percent", 100)];
            let policies = policies.map(|(kind, value)| json!({"type": kind, "value": value, "periodSeconds": 15}));
            set(up, "policies", json!(policies));
        });
        within(behavior, "scaleDown", |down| {
            set(down, "selectPolicy", json!("Max"));
            set(down, "policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
        });
    });
}

fn is_empty(map: Option<&Value>) -> bool {
    map.and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
}
