//! Table answers: what kubectl prints.
//!
//! A table is made for one resource at one moment, since ages are part of it. Built-in kinds have the columns of
//! `builtin::columns`, custom ones those of their CRD. Every column is sent, the wide ones too: clients choose by priority.

pub(crate) mod age;
mod json_path;

use serde_json::{Value, json};

use crate::builtin::columns::{self, Row};
use crate::object;
use crate::resource::{PrinterColumn, Resource};
use crate::status::Status;
use json_path::JsonPath;

/// How much of each object goes with its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// The columns of a resource's table, and the time from which ages count.
#[derive(Debug)]
pub(crate) struct Table<'r> {
    columns: Columns<'r>,
    now: i64,
    include: IncludeObject,
}

#[derive(Debug)]
enum Columns<'r> {
    BuiltIn(&'static [columns::Column]),
    Custom(Vec<CustomColumn<'r>>),
}

#[derive(Debug)]
struct CustomColumn<'r> {
    column: &'r PrinterColumn,
    path: Option<JsonPath>,
}

// === impl IncludeObject ===

impl IncludeObject {
    /// Reads the query parameter `includeObject`.
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(Status::bad_request(format!(
                "unrecognized includeObject value: {other:?}; it can be None, Metadata or Object"
            ))),
        }
    }
}

// === impl Table ===

impl<'r> Table<'r> {
    /// The table of a resource; `now` is an RFC 3339 time.
    pub(crate) fn new(resource: &'r Resource, now: &str, include: IncludeObject) -> Self {
        let columns = if resource.custom {
            let parse = |column: &'r PrinterColumn| CustomColumn { column, path: JsonPath::parse(&column.json_path) };
            Columns::Custom(resource.printer_columns.iter().map(parse).collect())
        } else {
            Columns::BuiltIn(columns::of(&resource.group, &resource.plural))
        };
        Self { columns, now: age::seconds(now).unwrap_or_default(), include }
    }

    /// The table of a list; `list_meta` is the list's own metadata.
    pub(crate) fn list<'v>(&self, items: impl IntoIterator<Item = &'v Value>, list_meta: Value) -> Value {
        let rows: Vec<Value> = items.into_iter().map(|item| self.row(item)).collect();
        table(list_meta, Some(self.column_definitions()), rows)
    }

    /// The table of one object. In a watch only the first event has columns.
    pub(crate) fn single(&self, item: &Value, with_columns: bool) -> Value {
        let list_meta = match object::resource_version(item) {
            "" => json!({}),
            version => json!({"resourceVersion": version}),
        };
        table(list_meta, with_columns.then(|| self.column_definitions()), vec![self.row(item)])
    }

    fn column_definitions(&self) -> Value {
        match &self.columns {
            Columns::BuiltIn(columns) => columns
                .iter()
                .map(|column| definition(column.heading, column.type_name, column.format(), "", column.priority))
                .collect(),
            Columns::Custom(columns) if columns.is_empty() => {
                [definition("Name", "string", "name", "", 0), definition("Age", "date", "", "", 0)]
                    .into_iter()
                    .collect()
            }
            Columns::Custom(columns) => std::iter::once(definition("Name", "string", "name", "", 0))
                .chain(columns.iter().map(|CustomColumn { column, .. }| {
                    definition(&column.name, &column.type_name, &column.format, &column.description, column.priority)
                }))
                .collect(),
        }
    }

    fn row(&self, item: &Value) -> Value {
        let cells: Value = match &self.columns {
            Columns::BuiltIn(columns) => {
                let row = Row::new(item, self.now);
                columns.iter().map(|column| column.cell(&row)).collect()
            }
            Columns::Custom(columns) if columns.is_empty() => {
                let created = object::meta_str(item, "creationTimestamp");
                json!([object::name(item), age::since(Some(created), self.now)])
            }
            Columns::Custom(columns) => std::iter::once(json!(object::name(item)))
                .chain(columns.iter().map(|column| column.cell(item, self.now)))
                .collect(),
        };
        json!({"cells": cells, "object": self.included(item)})
    }

    fn included(&self, item: &Value) -> Value {
        match self.include {
            IncludeObject::None => Value::Null,
            IncludeObject::Object => item.clone(),
            IncludeObject::Metadata => partial_metadata(item),
        }
    }
}

/// An object reduced to its metadata, as `PartialObjectMetadata`.
pub(crate) fn partial_metadata(item: &Value) -> Value {
    let metadata = item.get("metadata").cloned().unwrap_or_else(|| json!({}));
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

fn table(list_meta: Value, columns: Option<Value>, rows: Vec<Value>) -> Value {
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list_meta,
        "columnDefinitions": columns, "rows": rows,
    })
}

fn definition(name: &str, type_name: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({"name": name, "type": type_name, "format": format, "description": description, "priority": priority})
}

// === impl CustomColumn ===

impl CustomColumn<'_> {
    /// A cell of the column's type; null where the value is missing or of another type.
    fn cell(&self, item: &Value, now: i64) -> Value {
        let Some(value) = self.path.as_ref().and_then(|path| path.first(item)) else { return Value::Null };
        match (self.column.type_name.as_str(), value) {
            (_, Value::Null) => Value::Null,
            ("string", Value::String(_)) => value.clone(),
            ("string", other) => Value::String(other.to_string()),
            ("integer", Value::Number(number)) => match number.as_i64() {
                Some(integer) => json!(integer),
                None => json!(number.as_f64().unwrap_or_default() as i64),
            },
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(time)) => json!(age::since(Some(time), now)),
            _ => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    const NOW: &str = "2026-12-01T01:00:00Z";

    fn resource(plural: &str) -> std::sync::Arc<Resource> {
        builtin::resources().into_iter().find(|resource| resource.plural == plural).unwrap()
    }

    fn custom(columns: &[(&str, &str, &str)]) -> Resource {
        let mut resource = Resource::clone(&resource("configmaps"));
        resource.custom = true;
        resource.printer_columns = columns
            .iter()
            .map(|(name, type_name, path)| PrinterColumn {
                name: (*name).to_owned(),
                type_name: (*type_name).to_owned(),
                format: String::new(),
                description: String::new(),
                priority: 0,
                json_path: (*path).to_owned(),
            })
            .collect();
        resource
    }

    #[test]
    fn a_list_of_config_maps_has_name_data_and_age() {
        let item = json!({
            "metadata": {"name": "settings", "creationTimestamp": "2026-12-01T00:55:00Z", "uid": "u"},
            "data": {"a": "1", "b": "2"}, "binaryData": {"c": "AA=="},
        });
        let resource = resource("configmaps");
        let table = Table::new(&resource, NOW, IncludeObject::Metadata);
        let answer = table.list([&item], json!({"resourceVersion": "7"}));
        assert_eq!(answer["kind"], "Table");
        assert_eq!(answer["metadata"]["resourceVersion"], "7");
        let headings: Vec<&Value> =
            answer["columnDefinitions"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
        assert_eq!(headings, ["Name", "Data", "Age"]);
        assert_eq!(answer["rows"][0]["cells"], json!(["settings", 3, "5m"]));
        assert_eq!(answer["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(answer["rows"][0]["object"]["metadata"]["uid"], "u");
        assert_eq!(answer["rows"][0]["object"].get("data"), None);
    }

    #[test]
    fn a_later_event_of_a_watch_has_no_columns_and_the_version_of_its_object() {
        let item = json!({"metadata": {"name": "a", "resourceVersion": "9"}});
        let resource = resource("configmaps");
        let table = Table::new(&resource, NOW, IncludeObject::None);
        let answer = table.single(&item, false);
        assert_eq!(answer["columnDefinitions"], Value::Null);
        assert_eq!(answer["metadata"], json!({"resourceVersion": "9"}));
        assert_eq!(answer["rows"][0], json!({"cells": ["a", 0, "<unknown>"], "object": null}));
    }

    #[test]
    fn custom_columns_follow_their_paths_and_types() {
        let resource = custom(&[
            ("Replicas", "integer", ".spec.replicas"),
            ("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
            ("Since", "date", ".status.since"),
            ("Tags", "string", ".spec.tags"),
            ("Missing", "string", ".spec.nothing"),
            ("Wrong", "boolean", ".spec.replicas"),
        ]);
        let item = json!({
            "metadata": {"name": "shop", "creationTimestamp": "2026-12-01T00:00:00Z"},
            "spec": {"replicas": 3, "tags": ["a", "b"]},
            "status": {"since": "2026-12-01T00:59:30Z", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        let answer = Table::new(&resource, NOW, IncludeObject::None).list([&item], json!({}));
        let expected = json!(["shop", 3, "True", "30s", "[\"a\",\"b\"]", null, null]);
        assert_eq!(answer["rows"][0]["cells"], expected);
    }

    #[test]
    fn a_custom_kind_without_columns_has_name_and_age() {
        let item = json!({"metadata": {"name": "shop", "creationTimestamp": "2026-12-01T00:00:00Z"}});
        let answer = Table::new(&custom(&[]), NOW, IncludeObject::Object).list([&item], json!({}));
        assert_eq!(answer["columnDefinitions"][1]["type"], "date");
        assert_eq!(answer["rows"][0]["cells"], json!(["shop", "60m"]));
        assert_eq!(answer["rows"][0]["object"], item);
    }
}
