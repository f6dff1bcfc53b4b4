//! The rules of what makes Pods, scales them and protects them.

use serde_json::{Value, json};

use super::{At, int_or_percent, label_selector, pod, selects};
use crate::name_rules::path_segment;
use crate::status::Cause;

pub(super) fn check(plural: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    at.with("spec", |spec| match plural {
        "deployments" => deployment(spec, causes),
        "replicasets" => {
            pods(spec, "deployment", causes);
            spec.not_negative(&["replicas", "minReadySeconds"], causes);
        }
        "daemonsets" => daemon_set(spec, causes),
        "statefulsets" => stateful_set(spec, causes),
        "jobs" => {
            let uid = at.get("metadata").get("uid").and_then(Value::as_str).unwrap_or("");
            job_selector(spec, uid, causes);
            job(spec, causes);
        }
        "cronjobs" => cron_job(spec, causes),
        "poddisruptionbudgets" => disruption_budget(spec, causes),
        "horizontalpodautoscalers" => autoscaler(spec, causes),
        _ => {}
    });
}

/// A selector and the template whose labels it must select; `kind` is the word in the message.
fn pods(spec: At<'_>, kind: &str, causes: &mut Vec<Cause>) {
    let selector = spec.get("selector");
    let is_empty = selector.as_object().is_some_and(|_| {
        let parts = ["matchLabels", "matchExpressions"].map(|part| selector.get(part));
        parts.into_iter().flatten().all(|part| {
            part.as_object().is_none_or(serde_json::Map::is_empty) && part.as_array().is_none_or(Vec::is_empty)
        })
    });
    let mut can_select = true;
    if selector.is_null() {
        causes.push(Cause::required(spec.place("selector"), ""));
    } else if !label_selector(spec, "selector", causes) {
        causes.push(Cause::invalid(spec.place("selector"), selector, "invalid label selector"));
        can_select = false;
    } else if is_empty {
        causes.push(Cause::invalid(spec.place("selector"), selector, format!("empty selector is invalid for {kind}")));
        can_select = false;
    }
    let labels = spec.get("template").get("metadata").and_then(|meta| meta.get("labels")).unwrap_or(&Value::Null);
    if can_select && (selector.is_null() || !selects(selector, labels)) {
        causes.push(Cause::invalid(
            format!("{}.metadata.labels", spec.place("template")),
            labels,
            "`selector` does not match template `labels`",
        ));
    }
    spec.with("template", |template| {
        pod::template(template, causes);
        pod::runs_on(template, causes);
    });
}

fn deployment(spec: At<'_>, causes: &mut Vec<Cause>) {
    pods(spec, "deployment", causes);
    spec.not_negative(&["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"], causes);
    let ready = spec.integer("minReadySeconds").unwrap_or(0);
    if spec.integer("progressDeadlineSeconds").is_some_and(|seconds| seconds >= 0 && seconds <= ready) && ready >= 0 {
        let value = spec.get("progressDeadlineSeconds");
        causes.push(Cause::invalid(
            spec.place("progressDeadlineSeconds"),
            value,
            "must be greater than minReadySeconds",
        ));
    }
    spec.with("strategy", |strategy| match strategy.text("type") {
        "Recreate" => {
            if !strategy.get("rollingUpdate").is_null() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                causes.push(Cause::forbidden(strategy.place("rollingUpdate"), why));
            }
        }
        "RollingUpdate" => strategy.with("rollingUpdate", |rolling| rolling_update(rolling, causes)),
        "" => {}
        _ => causes.push(Cause::not_supported(
            strategy.here(),
            strategy.value,
            &[json!("Recreate"), json!("RollingUpdate")],
        )),
    });
}

fn rolling_update(at: At<'_>, causes: &mut Vec<Cause>) {
    int_or_percent(at, "maxUnavailable", causes);
    int_or_percent(at, "maxSurge", causes);
    let is_zero =
        |name: &str| matches!(at.get(name), Value::Number(n) if n.as_i64() == Some(0)) || at.text(name) == "0%";
    if is_zero("maxUnavailable") && is_zero("maxSurge") {
        let why = "may not be 0 when `maxSurge` is 0";
        causes.push(Cause::invalid(at.place("maxUnavailable"), at.get("maxUnavailable"), why));
    }
}

fn daemon_set(spec: At<'_>, causes: &mut Vec<Cause>) {
    pods(spec, "daemonset", causes);
    spec.not_negative(&["minReadySeconds", "revisionHistoryLimit"], causes);
    spec.with("updateStrategy", |strategy| {
        if !matches!(strategy.text("type"), "" | "RollingUpdate" | "OnDelete") {
            let supported = [json!("RollingUpdate"), json!("OnDelete")];
            causes.push(Cause::not_supported(strategy.here(), strategy.value, &supported));
        }
    });
}

fn stateful_set(spec: At<'_>, causes: &mut Vec<Cause>) {
    if !matches!(spec.text("podManagementPolicy"), "OrderedReady" | "Parallel") {
        let (place, value) = (spec.place("podManagementPolicy"), spec.get("podManagementPolicy"));
        causes.push(Cause::invalid(place, value, "must be 'OrderedReady' or 'Parallel'"));
    }
    spec.with("updateStrategy", |strategy| {
        if !matches!(strategy.text("type"), "RollingUpdate" | "OnDelete") {
            causes.push(Cause::invalid(strategy.here(), strategy.value, "must be 'RollingUpdate' or 'OnDelete'"));
        }
    });
    spec.not_negative(&["replicas", "minReadySeconds", "revisionHistoryLimit"], causes);
    pods(spec, "statefulset", causes);
}

/// A Job selects by its uid unless it says otherwise, and must select its own template.
fn job_selector(spec: At<'_>, uid: &str, causes: &mut Vec<Cause>) {
    let selector = spec.get("selector");
    if selector.is_null() || uid.is_empty() {
        return;
    }
    let generated = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    let old = json!({"matchLabels": {"controller-uid": uid}});
    if !spec.is_true("manualSelector") && *selector != generated && *selector != old {
        causes.push(Cause::invalid(spec.place("selector"), selector, "`selector` not auto-generated"));
    }
    let labels = spec.get("template").get("metadata").and_then(|meta| meta.get("labels")).unwrap_or(&Value::Null);
    if !selects(selector, labels) {
        let place = format!("{}.metadata.labels", spec.place("template"));
        causes.push(Cause::invalid(place, labels, "`selector` does not match template `labels`"));
    }
}

fn job(spec: At<'_>, causes: &mut Vec<Cause>) {
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
    ];
    spec.not_negative(&numbers, causes);
    spec.one_of("completionMode", &["NonIndexed", "Indexed"], causes);
    spec.with("template", |template| {
        pod::template(template, causes);
        pod::comes_to_an_end(template, causes);
    });
}

fn cron_job(spec: At<'_>, causes: &mut Vec<Cause>) {
    let schedule = spec.text("schedule");
    if spec.required("schedule", causes)
        && let Some(why) = schedule_error(schedule)
    {
        causes.push(Cause::invalid(spec.place("schedule"), &json!(schedule), why));
    }
    spec.one_of("concurrencyPolicy", &["Allow", "Forbid", "Replace"], causes);
    spec.not_negative(&["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"], causes);
    spec.within("jobTemplate", "spec", |job_spec| job(job_spec, causes));
}

/// Five fields, or a name such as `@daily`.
fn schedule_error(schedule: &str) -> Option<String> {
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    match fields.as_slice() {
        [one, ..] if one.starts_with('@') => {
            let known = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@every"];
            (!known.contains(one)).then(|| format!("unrecognized descriptor: {schedule}"))
        }
        [_, _, _, _, _] => None,
        other => Some(format!("expected exactly 5 fields, found {}: [{}]", other.len(), other.join(" "))),
    }
}

fn disruption_budget(spec: At<'_>, causes: &mut Vec<Cause>) {
    if !spec.get("minAvailable").is_null() && !spec.get("maxUnavailable").is_null() {
        causes.push(Cause::invalid(spec.here(), spec.value, "minAvailable and maxUnavailable cannot be both set"));
    }
    int_or_percent(spec, "minAvailable", causes);
    int_or_percent(spec, "maxUnavailable", causes);
    label_selector(spec, "selector", causes);
}

fn autoscaler(spec: At<'_>, causes: &mut Vec<Cause>) {
    let (least, most) = (spec.integer("minReplicas").unwrap_or(1), spec.integer("maxReplicas").unwrap_or(0));
    if least < 1 {
        causes.push(Cause::invalid(spec.place("minReplicas"), &json!(least), "must be greater than or equal to 1"));
    }
    if most < 1 {
        causes.push(Cause::required(spec.place("maxReplicas"), ""));
    }
    if most < least {
        causes.push(Cause::invalid(
            spec.place("maxReplicas"),
            &json!(most),
            "must be greater than or equal to `minReplicas`",
        ));
    }
    spec.with("scaleTargetRef", |target| {
        for name in ["kind", "name"] {
            if target.required(name, causes) {
                target.named(name, path_segment, causes);
            }
        }
        let api_version = target.text("apiVersion");
        if api_version.is_empty() {
            let why = "apiVersion must specify API group";
            causes.push(Cause::invalid(target.place("apiVersion"), &json!(api_version), why));
        }
    });
}
