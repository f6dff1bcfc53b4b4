//! The documents that an API server writes: events, lists, errors.

use serde_json::{Value, json};

use super::Kind;

/// One event of a watch with its newline, the type first, as API servers write it.
#[must_use]
pub fn event(kind: &str, object: &Value) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

/// A list of a kind; an empty `continue_token` says that it's the last page.
#[must_use]
pub fn list(api_version: &str, kind: &str, resource_version: &str, continue_token: &str, items: &[Value]) -> String {
    let metadata = json!({"resourceVersion": resource_version, "continue": continue_token});
    json!({"kind": format!("{kind}List"), "apiVersion": api_version, "metadata": metadata, "items": items}).to_string()
}

/// A `Status` that says no, with a message made of its reason.
#[must_use]
pub fn status(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("{reason}!"), "reason": reason, "code": code,
    })
}

/// The bookmark that ends the initial events of a watch list.
#[must_use]
pub fn end_of_initial_events(api_version: &str, kind: &str, resource_version: &str) -> Value {
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    let metadata = json!({"resourceVersion": resource_version, "annotations": annotations});
    json!({"kind": kind, "apiVersion": api_version, "metadata": metadata})
}

pub(super) fn bookmark(kind: &Kind, resource_version: &str) -> Value {
    json!({"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"resourceVersion": resource_version}})
}
