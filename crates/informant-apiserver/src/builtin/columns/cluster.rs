//! The columns of configuration, identity, rights, extension and cluster kinds.

use serde_json::{Value, json};

use super::{
    AGE, CREATED_AT, Column, NAME, NAME_AND_AGE, Row, cell, count, integer, storage, text, text_or, typed, wide,
    workload,
};
use crate::table::age;

pub(super) fn core(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "componentstatuses" => COMPONENT_STATUSES,
        "configmaps" => CONFIG_MAPS,
        "events" => EVENTS,
        "namespaces" => NAMESPACES,
        "nodes" => NODES,
        "persistentvolumes" => storage::PERSISTENT_VOLUMES,
        "persistentvolumeclaims" => storage::PERSISTENT_VOLUME_CLAIMS,
        "resourcequotas" => RESOURCE_QUOTAS,
        "secrets" => SECRETS,
        "serviceaccounts" => NAME_AND_AGE,
        _ => return None,
    })
}

pub(super) fn of(plural: &str) -> Option<&'static [Column]> {
    Some(match plural {
        "apiservices" => API_SERVICES,
        "certificatesigningrequests" => CERTIFICATE_SIGNING_REQUESTS,
        "clusterrolebindings" | "rolebindings" => ROLE_BINDINGS,
        "clustertrustbundles" => CLUSTER_TRUST_BUNDLES,
        "customresourcedefinitions" => CUSTOM_RESOURCE_DEFINITIONS,
        "events" => EVENTS,
        "flowschemas" => FLOW_SCHEMAS,
        "leases" => LEASES,
        "mutatingadmissionpolicies" => MUTATING_ADMISSION_POLICIES,
        "mutatingadmissionpolicybindings" | "validatingadmissionpolicybindings" => ADMISSION_POLICY_BINDINGS,
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => WEBHOOK_CONFIGURATIONS,
        "podcertificaterequests" => POD_CERTIFICATE_REQUESTS,
        "priorityclasses" => workload::PRIORITY_CLASSES,
        "prioritylevelconfigurations" => PRIORITY_LEVELS,
        "runtimeclasses" => RUNTIME_CLASSES,
        "storageversionmigrations" => STORAGE_VERSION_MIGRATIONS,
        "validatingadmissionpolicies" => VALIDATING_ADMISSION_POLICIES,
        _ => return None,
    })
}

const COMPONENT_STATUSES: &[Column] =
    &[NAME, text_or("Status", "status", "Unknown"), text("Message", "message"), text("Error", "error")];

const CONFIG_MAPS: &[Column] =
    &[NAME, typed("string", cell("Data", |row| json!(row.count("data") + row.count("binaryData")))), AGE];

const EVENTS: &[Column] = &[
    cell("Last Seen", |row| json!(last_seen(*row))),
    text("Type", "type"),
    text("Reason", "reason"),
    cell("Object", |row| json!(event_object(*row))),
    wide(cell("Subobject", |row| json!(first_text(*row, &["involvedObject.fieldPath", "regarding.fieldPath"])))),
    wide(cell("Source", event_source)),
    cell("Message", |row| json!(first_text(*row, &["message", "note"]).trim())),
    wide(cell("First Seen", |row| json!(first_seen(*row)))),
    wide(cell("Count", event_count)),
    wide(NAME),
];

const NAMESPACES: &[Column] = &[NAME, text("Status", "status.phase"), AGE];

const NODES: &[Column] = &[
    NAME,
    cell("Status", node_status),
    cell("Roles", node_roles),
    AGE,
    text("Version", "status.nodeInfo.kubeletVersion"),
    wide(cell("Internal-IP", |row| json!(node_address(*row, "InternalIP")))),
    wide(cell("External-IP", |row| json!(node_address(*row, "ExternalIP")))),
    wide(text_or("OS-Image", "status.nodeInfo.osImage", "<unknown>")),
    wide(cell("Kernel-Version", kernel_version)),
    wide(text_or("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>")),
];

const RESOURCE_QUOTAS: &[Column] =
    &[NAME, cell("Request", |row| json!(quota(*row, false))), cell("Limit", |row| json!(quota(*row, true))), AGE];

const SECRETS: &[Column] = &[NAME, text("Type", "type"), typed("string", count("Data", "data")), AGE];

const API_SERVICES: &[Column] = &[NAME, cell("Service", api_service), cell("Available", api_available), AGE];

const CERTIFICATE_SIGNING_REQUESTS: &[Column] = &[
    NAME,
    AGE,
    text_or("SignerName", "spec.signerName", "<none>"),
    text("Requestor", "spec.username"),
    cell("RequestedDuration", |row| match row.integer("spec.expirationSeconds") {
        0 => json!("<none>"),
        seconds => json!(age::human_duration(seconds)),
    }),
    cell("Condition", signing_request_condition),
];

const ROLE_BINDINGS: &[Column] = &[
    NAME,
    cell("Role", |row| json!(format!("{}/{}", row.text("roleRef.kind"), row.text("roleRef.name")))),
    AGE,
    wide(cell("Users", |row| json!(subjects(*row, "User")))),
    wide(cell("Groups", |row| json!(subjects(*row, "Group")))),
    wide(cell("ServiceAccounts", |row| json!(subjects(*row, "ServiceAccount")))),
];

const CLUSTER_TRUST_BUNDLES: &[Column] = &[NAME, text_or("SignerName", "spec.signerName", "<none>")];

const CUSTOM_RESOURCE_DEFINITIONS: &[Column] = &[
    NAME,
    text("Scope", "spec.scope"),
    cell("Versions", |row| {
        json!(row.items("spec.versions").map(|version| version.text("name")).collect::<Vec<_>>().join(","))
    }),
    CREATED_AT,
    wide(text("Group", "spec.group")),
    wide(text("Kind", "spec.names.kind")),
    wide(cell("ShortNames", |row| json!(row.texts("spec.names.shortNames").join(",")))),
    wide(typed("boolean", cell("Established", |row| json!(row.has_true_condition("Established"))))),
];

const FLOW_SCHEMAS: &[Column] = &[
    NAME,
    text("PriorityLevel", "spec.priorityLevelConfiguration.name"),
    typed("string", integer("MatchingPrecedence", "spec.matchingPrecedence")),
    text_or("DistinguisherMethod", "spec.distinguisherMethod.type", "<none>"),
    AGE,
    cell("MissingPL", |row| json!(row.condition("Dangling").map_or("?", |condition| condition.text("status")))),
];

const LEASES: &[Column] = &[NAME, text("Holder", "spec.holderIdentity"), AGE];

const MUTATING_ADMISSION_POLICIES: &[Column] =
    &[NAME, count("Mutations", "spec.mutations"), cell("ParamKind", param_kind), AGE];

const VALIDATING_ADMISSION_POLICIES: &[Column] =
    &[NAME, count("Validations", "spec.validations"), cell("ParamKind", param_kind), AGE];

const ADMISSION_POLICY_BINDINGS: &[Column] =
    &[NAME, text("PolicyName", "spec.policyName"), cell("ParamRef", param_ref), AGE];

const WEBHOOK_CONFIGURATIONS: &[Column] = &[NAME, count("Webhooks", "webhooks"), AGE];

const POD_CERTIFICATE_REQUESTS: &[Column] = &[
    NAME,
    text("PodName", "spec.podName"),
    text("ServiceAccountName", "spec.serviceAccountName"),
    text("NodeName", "spec.nodeName"),
    text("SignerName", "spec.signerName"),
    cell("State", |row| {
        let known = ["Issued", "Denied", "Failed"];
        let mut state = row.items("status.conditions").map(|condition| condition.text("type"));
        json!(state.rfind(|state| known.contains(state)).unwrap_or("Pending"))
    }),
    cell("UnverifiedUserAnnotations", |row| json!(row.labels("spec.unverifiedUserAnnotations"))),
];

const PRIORITY_LEVELS: &[Column] = &[
    NAME,
    text("Type", "spec.type"),
    cell("NominalConcurrencyShares", |row| number_or_none(*row, "spec.limited.nominalConcurrencyShares")),
    cell("Queues", |row| number_or_none(*row, "spec.limited.limitResponse.queuing.queues")),
    cell("HandSize", |row| number_or_none(*row, "spec.limited.limitResponse.queuing.handSize")),
    cell("QueueLengthLimit", |row| number_or_none(*row, "spec.limited.limitResponse.queuing.queueLengthLimit")),
    AGE,
];

const RUNTIME_CLASSES: &[Column] = &[NAME, text("Handler", "handler"), AGE];

const STORAGE_VERSION_MIGRATIONS: &[Column] = &[
    NAME,
    cell("Resource", |row| match row.text("spec.resource.group") {
        "" => json!(row.text("spec.resource.resource")),
        group => json!(format!("{}.{group}", row.text("spec.resource.resource"))),
    }),
    cell("Status", |row| {
        let states = ["Running", "Failed", "Succeeded"];
        json!(states.iter().rfind(|state| row.has_true_condition(state)).copied().unwrap_or("Unknown"))
    }),
];

fn number_or_none(row: Row<'_>, path: &str) -> Value {
    row.at(path).filter(|value| value.is_number()).cloned().unwrap_or_else(|| json!("<none>"))
}

/// The first of the fields that has a text: the two groups of events name them differently.
fn first_text<'v>(row: Row<'v>, paths: &[&str]) -> &'v str {
    paths.iter().map(|path| row.text(path)).find(|text| !text.is_empty()).unwrap_or("")
}

fn first_seen(row: Row<'_>) -> String {
    let time = first_text(row, &["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]);
    age::since(Some(time), row.now)
}

fn last_seen(row: Row<'_>) -> String {
    match first_text(row, &["series.lastObservedTime", "lastTimestamp", "deprecatedLastTimestamp"]) {
        "" => first_seen(row),
        time => age::since(Some(time), row.now),
    }
}

fn event_object(row: Row<'_>) -> String {
    let kind = first_text(row, &["involvedObject.kind", "regarding.kind"]).to_lowercase();
    match first_text(row, &["involvedObject.name", "regarding.name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn event_source(row: &Row<'_>) -> Value {
    let component = first_text(
        *row,
        &["source.component", "deprecatedSource.component", "reportingComponent", "reportingController"],
    );
    match first_text(*row, &["source.host", "deprecatedSource.host", "reportingInstance"]) {
        "" => json!(component),
        instance => json!(format!("{component}, {instance}")),
    }
}

fn event_count(row: &Row<'_>) -> Value {
    let counts = ["series.count", "count", "deprecatedCount"].map(|path| row.integer(path));
    json!(counts.into_iter().find(|count| *count != 0).unwrap_or(1))
}

fn node_status(row: &Row<'_>) -> Value {
    let ready = match row.condition("Ready") {
        Some(condition) if condition.text("status") == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let unschedulable = row.at("spec.unschedulable").and_then(Value::as_bool).unwrap_or(false);
    json!(if unschedulable { format!("{ready},SchedulingDisabled") } else { ready.to_owned() })
}

fn node_roles(row: &Row<'_>) -> Value {
    let labels = row.at("metadata.labels").and_then(Value::as_object);
    let role = |(key, value): (&'_ String, &'_ Value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None if key == "kubernetes.io/role" => value.as_str().map(str::to_owned),
        None => None,
    };
    let mut roles: Vec<String> =
        labels.into_iter().flatten().filter_map(role).filter(|role| !role.is_empty()).collect();
    roles.sort_unstable();
    roles.dedup();
    json!(if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") })
}

fn node_address<'v>(row: Row<'v>, type_name: &str) -> &'v str {
    let address = row.items("status.addresses").find(|address| address.text("type") == type_name);
    address.map_or("<none>", |address| address.text("address"))
}

fn kernel_version(row: &Row<'_>) -> Value {
    let version = row.text_or("status.nodeInfo.kernelVersion", "<unknown>");
    match row.text("status.nodeInfo.architecture") {
        "" => json!(version),
        architecture => json!(format!("{version} ({architecture})")),
    }
}

/// `cpu: 1/2, pods: 0/10`, of limits or of everything else.
fn quota(row: Row<'_>, limits: bool) -> String {
    let hard = row.at("status.hard").and_then(Value::as_object);
    let used = row.at("status.used");
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("0").to_owned();
    let entries = hard.into_iter().flatten().filter(|(name, _)| name.starts_with("limits.") == limits);
    let shown = |(name, hard): (&String, &Value)| {
        format!("{name}: {}/{}", text(used.and_then(|used| used.get(name))), text(Some(hard)))
    };
    entries.map(shown).collect::<Vec<_>>().join(", ")
}

fn api_service(row: &Row<'_>) -> Value {
    if !row.has("spec.service") {
        return json!("Local");
    }
    json!(format!("{}/{}", row.text("spec.service.namespace"), row.text("spec.service.name")))
}

fn api_available(row: &Row<'_>) -> Value {
    let Some(condition) = row.condition("Available") else { return json!("Unknown") };
    match (condition.text("status"), condition.text("reason")) {
        ("True", _) => json!("True"),
        (status, "") => json!(status),
        (status, reason) => json!(format!("{status} ({reason})")),
    }
}

fn signing_request_condition(row: &Row<'_>) -> Value {
    let mut words = vec![if row.condition("Denied").is_some() {
        "Denied"
    } else if row.condition("Approved").is_some() {
        "Approved"
    } else {
        "Pending"
    }];
    if row.condition("Failed").is_some() {
        words.push("Failed");
    }
    if !row.text("status.certificate").is_empty() {
        words.push("Issued");
    }
    json!(words.join(","))
}

fn subjects(row: Row<'_>, kind: &str) -> String {
    let names = row.items("subjects").filter(|subject| subject.text("kind") == kind).map(|subject| match kind {
        "ServiceAccount" => format!("{}/{}", subject.text("namespace"), subject.text("name")),
        _ => subject.text("name").to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn param_kind(row: &Row<'_>) -> Value {
    if !row.has("spec.paramKind") {
        return json!("<unset>");
    }
    json!(format!("{}/{}", row.text("spec.paramKind.apiVersion"), row.text("spec.paramKind.kind")))
}

fn param_ref(row: &Row<'_>) -> Value {
    match (row.text("spec.paramRef.namespace"), row.text("spec.paramRef.name")) {
        (_, "") if row.has("spec.paramRef.selector") => json!(row.selector("spec.paramRef.selector")),
        (_, "") => json!("<unset>"),
        ("", name) => json!(format!("*/{name}")),
        (namespace, name) => json!(format!("{namespace}/{name}")),
    }
}
