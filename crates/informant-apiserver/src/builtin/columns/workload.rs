//! The columns of Pods and of what makes, scales and protects them.

use serde_json::{Value, json};

use super::{AGE, Column, NAME, Row, boolean, cell, count, integer, pod, row, text, text_or, typed, wide};
use crate::table::age;

pub(super) fn core(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "pods" => PODS,
        "podtemplates" => POD_TEMPLATES,
        "replicationcontrollers" => REPLICATION_CONTROLLERS,
        _ => return None,
    })
}

pub(super) fn of(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "deployments" => DEPLOYMENTS,
        "replicasets" => REPLICA_SETS,
        "statefulsets" => STATEFUL_SETS,
        "daemonsets" => DAEMON_SETS,
        "controllerrevisions" => CONTROLLER_REVISIONS,
        "jobs" => JOBS,
        "cronjobs" => CRON_JOBS,
        "horizontalpodautoscalers" => HORIZONTAL_POD_AUTOSCALERS,
        "poddisruptionbudgets" => POD_DISRUPTION_BUDGETS,
        _ => return None,
    })
}

const CONTAINERS: Column = wide(cell("Containers", |row| row.containers("spec.template.spec.containers", "name")));
const IMAGES: Column = wide(cell("Images", |row| row.containers("spec.template.spec.containers", "image")));
const SELECTOR: Column = wide(cell("Selector", |row| json!(row.selector("spec.selector"))));

const PODS: &[Column] = &[
    NAME,
    cell("Ready", pod::ready),
    cell("Status", pod::status),
    cell("Restarts", pod::restarts),
    AGE,
    wide(cell("IP", pod::ip)),
    wide(text_or("Node", "spec.nodeName", "<none>")),
    wide(text_or("Nominated Node", "status.nominatedNodeName", "<none>")),
    wide(cell("Readiness Gates", pod::readiness_gates)),
];

const POD_TEMPLATES: &[Column] = &[
    NAME,
    cell("Containers", |row| row.containers("template.spec.containers", "name")),
    cell("Images", |row| row.containers("template.spec.containers", "image")),
    cell("Pod Labels", |row| json!(row.labels("template.metadata.labels"))),
];

const REPLICATION_CONTROLLERS: &[Column] = &[
    NAME,
    integer("Desired", "spec.replicas"),
    integer("Current", "status.replicas"),
    integer("Ready", "status.readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    wide(cell("Selector", |row| json!(row.labels("spec.selector")))),
];

const DEPLOYMENTS: &[Column] = &[
    NAME,
    cell("Ready", ready_of_desired),
    typed("string", integer("Up-to-date", "status.updatedReplicas")),
    typed("string", integer("Available", "status.availableReplicas")),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const REPLICA_SETS: &[Column] = &[
    NAME,
    integer("Desired", "spec.replicas"),
    integer("Current", "status.replicas"),
    integer("Ready", "status.readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const STATEFUL_SETS: &[Column] = &[NAME, cell("Ready", ready_of_desired), AGE, CONTAINERS, IMAGES];

const DAEMON_SETS: &[Column] = &[
    NAME,
    integer("Desired", "status.desiredNumberScheduled"),
    integer("Current", "status.currentNumberScheduled"),
    integer("Ready", "status.numberReady"),
    integer("Up-to-date", "status.updatedNumberScheduled"),
    integer("Available", "status.numberAvailable"),
    cell("Node Selector", |row| json!(row.labels("spec.template.spec.nodeSelector"))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const CONTROLLER_REVISIONS: &[Column] =
    &[NAME, cell("Controller", controller), typed("string", integer("Revision", "revision")), AGE];

const JOBS: &[Column] = &[
    NAME,
    cell("Status", job_status),
    cell("Completions", job_completions),
    cell("Duration", job_duration),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const CRON_JOBS: &[Column] = &[
    NAME,
    text("Schedule", "spec.schedule"),
    text_or("Timezone", "spec.timeZone", "<none>"),
    typed("boolean", cell("Suspend", suspend)),
    count("Active", "status.active"),
    cell("Last Schedule", last_schedule),
    AGE,
    wide(cell("Containers", |row| row.containers("spec.jobTemplate.spec.template.spec.containers", "name"))),
    wide(cell("Images", |row| row.containers("spec.jobTemplate.spec.template.spec.containers", "image"))),
    wide(cell("Selector", |row| json!(row.selector("spec.jobTemplate.spec.selector")))),
];

const HORIZONTAL_POD_AUTOSCALERS: &[Column] = &[
    NAME,
    cell("Reference", |row| {
        json!(format!("{}/{}", row.text("spec.scaleTargetRef.kind"), row.text("spec.scaleTargetRef.name")))
    }),
    cell("Targets", targets),
    text_or("MinPods", "spec.minReplicas", "<unset>"),
    typed("string", integer("MaxPods", "spec.maxReplicas")),
    typed("string", integer("Replicas", "status.currentReplicas")),
    AGE,
];

const POD_DISRUPTION_BUDGETS: &[Column] = &[
    NAME,
    text_or("Min Available", "spec.minAvailable", "N/A"),
    text_or("Max Unavailable", "spec.maxUnavailable", "N/A"),
    integer("Allowed Disruptions", "status.disruptionsAllowed"),
    AGE,
];

fn ready_of_desired(row: &Row<'_>) -> Value {
    json!(format!("{}/{}", row.integer("status.readyReplicas"), row.integer("spec.replicas")))
}

fn controller(row: &Row<'_>) -> Value {
    let is_controller = |owner: &Row<'_>| owner.at("controller").and_then(Value::as_bool).unwrap_or(false);
    let Some(owner) = row.items("metadata.ownerReferences").find(is_controller) else { return json!("<none>") };
    let group = owner.text("apiVersion").split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
    json!(format!("{}{group}/{}", owner.text("kind").to_lowercase(), owner.text("name")))
}

fn job_status(row: &Row<'_>) -> Value {
    let first = |types: &[&'static str]| types.iter().find(|name| row.has_true_condition(name)).copied();
    let status = match first(&["Complete", "Failed"]) {
        Some(end) => end,
        None if row.is_terminating() => "Terminating",
        None => first(&["Suspended", "FailureTarget", "SuccessCriteriaMet"]).unwrap_or("Running"),
    };
    json!(status)
}

fn job_completions(row: &Row<'_>) -> Value {
    let succeeded = row.integer("status.succeeded");
    if row.has("spec.completions") {
        return json!(format!("{succeeded}/{}", row.integer("spec.completions")));
    }
    match row.integer("spec.parallelism") {
        parallelism if parallelism > 1 => json!(format!("{succeeded}/1 of {parallelism}")),
        _ => json!(format!("{succeeded}/1")),
    }
}

fn job_duration(row: &Row<'_>) -> Value {
    let Some(start) = age::seconds(row.text("status.startTime")) else { return json!("") };
    let end = age::seconds(row.text("status.completionTime")).unwrap_or(row.now);
    json!(age::human_duration(end - start))
}

/// The boolean's name with a capital, as upstream prints it.
fn suspend(row: &Row<'_>) -> Value {
    json!(match row.at("spec.suspend").and_then(Value::as_bool) {
        None => "<unset>",
        Some(false) => "False",
        Some(true) => "True",
    })
}

fn last_schedule(row: &Row<'_>) -> Value {
    if row.has("status.lastScheduleTime") { json!(row.age("status.lastScheduleTime")) } else { json!("<none>") }
}

/// Each metric as `current/target`; metrics of both versions of the kind.
fn targets(row: &Row<'_>) -> Value {
    if row.has("spec.targetCPUUtilizationPercentage") {
        let current = match row.at("status.currentCPUUtilizationPercentage") {
            Some(percent) => format!("{percent}%"),
            None => "<unknown>".to_owned(),
        };
        return json!(format!("cpu: {current}/{}%", row.integer("spec.targetCPUUtilizationPercentage")));
    }
    let statuses: Vec<Row<'_>> = row.items("status.currentMetrics").collect();
    let list: Vec<String> =
        row.items("spec.metrics").enumerate().map(|(at, spec)| metric(spec, statuses.get(at).copied())).collect();
    if list.is_empty() { json!("<none>") } else { json!(row::with_more(&list, 2, ", ")) }
}

fn metric(spec: Row<'_>, status: Option<Row<'_>>) -> String {
    let (field, by_value) = match spec.text("type") {
        "External" => ("external", true),
        "Object" => ("object", true),
        "Pods" => ("pods", false),
        "Resource" => ("resource", false),
        "ContainerResource" => ("containerResource", false),
        _ => return "<unknown type>".to_owned(),
    };
    let current = |name: &str| {
        status.map_or("<unknown>".to_owned(), |s| s.shown_or(&format!("{field}.current.{name}"), "<unknown>"))
    };
    let target = |name: &str, missing: &str| spec.shown_or(&format!("{field}.target.{name}"), missing);
    let average = spec.has(&format!("{field}.target.averageValue"));
    match (field, average) {
        ("pods", _) => format!("{}/{}", current("averageValue"), target("averageValue", "0")),
        (_, true) if by_value => format!("{}/{} (avg)", current("averageValue"), target("averageValue", "0")),
        (_, false) if by_value => format!("{}/{}", current("value"), target("value", "0")),
        (_, average) => {
            let name = spec.text(&format!("{field}.name")).to_owned();
            if average {
                return format!("{name}: {}/{}", current("averageValue"), target("averageValue", "0"));
            }
            let percent = |text: String| if text.starts_with('<') { text } else { text + "%" };
            let now = percent(current("averageUtilization"));
            format!("{name}: {now}/{}", percent(target("averageUtilization", "<auto>")))
        }
    }
}

// Kinds with a boolean column only, kept beside the workloads that they rank.
pub(super) const PRIORITY_CLASSES: &[Column] = &[
    NAME,
    integer("Value", "value"),
    boolean("Global-Default", "globalDefault", false),
    AGE,
    text("PreemptionPolicy", "preemptionPolicy"),
];
