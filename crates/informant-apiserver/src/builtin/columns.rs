//! The table columns of the built-in kinds: heading, type, priority, and where each cell comes from.
//!
//! A column and its cell stand on one line, so they can't drift apart. Cells that take more than a path are functions, in
//! files by area.

mod cluster;
mod network;
mod pod;
mod row;
mod storage;
mod workload;

use serde_json::{Value, json};

pub(crate) use row::Row;

/// One column of a built-in kind's table.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    /// `string`, `integer`, `boolean` or `date`.
    pub(crate) type_name: &'static str,
    /// 0 is always shown, 1 only in wide output.
    pub(crate) priority: i64,
    source: Source,
}

/// Where a cell comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    Name,
    /// The name with a mark.
    NamedBy(fn(&Row<'_>) -> Value),
    Age,
    /// The creation time itself.
    Created,
    /// The text at a path, or a stand-in.
    Text(&'static str, &'static str),
    /// The number at a path, or 0.
    Integer(&'static str),
    /// The boolean at a path, or a stand-in.
    Boolean(&'static str, bool),
    /// How many items or entries there are at a path.
    Count(&'static str),
    Cell(fn(&Row<'_>) -> Value),
}

const NAME: Column = column("Name", "string", Source::Name);
const AGE: Column = column("Age", "string", Source::Age);
const CREATED_AT: Column = column("Created At", "date", Source::Created);
/// What kinds without columns of their own have.
const DEFAULT: &[Column] = &[NAME, CREATED_AT];
const NAME_AND_AGE: &[Column] = &[NAME, AGE];

const fn column(heading: &'static str, type_name: &'static str, source: Source) -> Column {
    Column { heading, type_name, priority: 0, source }
}

/// The text at a path, or nothing.
const fn text(heading: &'static str, path: &'static str) -> Column {
    column(heading, "string", Source::Text(path, ""))
}

/// The text at a path, or a stand-in.
const fn text_or(heading: &'static str, path: &'static str, missing: &'static str) -> Column {
    column(heading, "string", Source::Text(path, missing))
}

const fn integer(heading: &'static str, path: &'static str) -> Column {
    column(heading, "integer", Source::Integer(path))
}

const fn boolean(heading: &'static str, path: &'static str, missing: bool) -> Column {
    column(heading, "boolean", Source::Boolean(path, missing))
}

const fn count(heading: &'static str, path: &'static str) -> Column {
    column(heading, "integer", Source::Count(path))
}

const fn cell(heading: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    column(heading, "string", Source::Cell(cell))
}

const fn named_by(cell: fn(&Row<'_>) -> Value) -> Column {
    column("Name", "string", Source::NamedBy(cell))
}

/// The same column, in wide output only.
const fn wide(column: Column) -> Column {
    Column { priority: 1, ..column }
}

/// The same column with another type.
const fn typed(type_name: &'static str, column: Column) -> Column {
    Column { type_name, ..column }
}

/// The columns of a built-in resource.
pub(crate) fn of(group: &str, plural: &str) -> &'static [Column] {
    match group {
        "" => cluster::core(plural).or_else(|| workload::core(plural)).or_else(|| network::core(plural)),
        "apps" | "batch" | "autoscaling" | "policy" => workload::of(plural),
        "networking.k8s.io" | "discovery.k8s.io" => network::of(plural),
        "storage.k8s.io" | "resource.k8s.io" => storage::of(plural),
        _ => cluster::of(plural),
    }
    .unwrap_or(DEFAULT)
}

// === impl Column ===

impl Column {
    /// `name` marks the column that identifies the row.
    pub(crate) fn format(&self) -> &'static str {
        if matches!(self.source, Source::Name | Source::NamedBy(_)) { "name" } else { "" }
    }

    /// The cell of this column in an object's row.
    pub(crate) fn cell(&self, row: &Row<'_>) -> Value {
        match self.source {
            Source::Name => json!(row.text("metadata.name")),
            Source::Age => json!(row.age("metadata.creationTimestamp")),
            Source::Created => json!(row.text("metadata.creationTimestamp")),
            Source::Text(path, missing) => match row.at(path) {
                None | Some(Value::Null) => json!(missing),
                Some(Value::String(text)) if text.is_empty() => json!(missing),
                Some(Value::String(text)) => json!(text),
                Some(other) => json!(other.to_string()),
            },
            Source::Integer(path) => json!(row.integer(path)),
            Source::Boolean(path, missing) => json!(row.at(path).and_then(Value::as_bool).unwrap_or(missing)),
            Source::Count(path) => json!(row.count(path)),
            Source::Cell(cell) | Source::NamedBy(cell) => cell(row),
        }
    }
}

#[cfg(test)]
mod tests;
