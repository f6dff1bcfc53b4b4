//! One entry of managedFields: its identity, its time, its fields, and its JSON form.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Writer;
use crate::field_set::{FieldSet, fields_v1};

/// How a manager came to own its fields. In the order in which entries are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

/// What makes two entries one: name, operation, subresource, and for updates the version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ManagerId {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    /// Empty for apply: whoever applies in another version is still the same.
    api_version: String,
    pub(crate) subresource: String,
}

/// What a manager owns, since when, and in which version it said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) api_version: String,
    /// RFC 3339; none for an apply that has changed nothing yet, and for `scale`.
    pub(crate) time: Option<String>,
    pub(crate) fields: FieldSet,
}

// === impl Operation ===

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

// === impl ManagerId ===

impl ManagerId {
    pub(crate) fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        Self {
            manager: manager.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// As conflicts name it: `"kubectl" with subresource "status" using v1`; only updates say the version.
    pub(crate) fn described(&self) -> String {
        let mut text = json!(self.manager).to_string();
        if !self.subresource.is_empty() {
            text += &format!(" with subresource {}", json!(self.subresource));
        }
        if self.operation == Operation::Update {
            text += &format!(" using {}", self.api_version);
        }
        text
    }
}

// === impl Entry ===

impl Entry {
    /// The fields of a writer, as of now.
    pub(crate) fn new(writer: &Writer<'_>, fields: FieldSet) -> Self {
        // The one door that real servers note no time for.
        let time = (writer.subresource != "scale").then(|| writer.now.to_owned());
        Self { api_version: writer.api_version.to_owned(), time, fields }
    }
}

/// Reads one entry; the error says what isn't understood.
pub(super) fn decode(entry: &Value) -> Result<(ManagerId, Entry), String> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or("");
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        other => return Err(format!("operation must be `Apply` or `Update`, but is \"{other}\"")),
    };
    if text("apiVersion").is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    if text("fieldsType") != "FieldsV1" {
        return Err(format!("fieldsType must be FieldsV1, but is \"{}\"", text("fieldsType")));
    }
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => fields_v1::decode(fields)?,
    };
    let id = ManagerId::new(text("manager"), operation, text("apiVersion"), text("subresource"));
    let time = Some(text("time").to_owned()).filter(|time| !time.is_empty());
    Ok((id, Entry { api_version: text("apiVersion").to_owned(), time, fields }))
}

/// The entries as a list: applies before updates, then by time, manager, version and subresource.
pub(super) fn encode_sorted(entries: &BTreeMap<ManagerId, Entry>) -> Vec<Value> {
    let mut sorted: Vec<_> = entries.iter().collect();
    // RFC 3339 in UTC with seconds sorts as text; no time at all comes first.
    sorted.sort_by(|(a, x), (b, y)| {
        (a.operation, &x.time, &a.manager, &x.api_version, &a.subresource).cmp(&(
            b.operation,
            &y.time,
            &b.manager,
            &y.api_version,
            &b.subresource,
        ))
    });
    sorted.into_iter().map(|(id, entry)| encode(id, entry)).collect()
}

fn encode(id: &ManagerId, entry: &Entry) -> Value {
    let mut encoded = Map::new();
    let mut set = |field: &str, value: Value| encoded.insert(field.to_owned(), value);
    if !id.manager.is_empty() {
        set("manager", json!(id.manager));
    }
    set("operation", json!(id.operation.as_str()));
    set("apiVersion", json!(entry.api_version));
    if let Some(time) = &entry.time {
        set("time", json!(time));
    }
    set("fieldsType", json!("FieldsV1"));
    set("fieldsV1", fields_v1::encode(&entry.fields));
    if !id.subresource.is_empty() {
        set("subresource", json!(id.subresource));
    }
    Value::Object(encoded)
}
