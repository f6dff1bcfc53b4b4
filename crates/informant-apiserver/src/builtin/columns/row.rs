//! One object as the cells of a row read it, and the forms that many cells share.

use serde_json::{Value, json};

use crate::object;
use crate::table::age;

/// An object and the moment from which ages count, in seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'v> {
    object: &'v Value,
    pub(super) now: i64,
}

// === impl Row ===

impl<'v> Row<'v> {
    pub(crate) fn new(object: &'v Value, now: i64) -> Self {
        Self { object, now }
    }

    /// The same moment, another value: an item of a list.
    pub(super) fn of(self, object: &'v Value) -> Self {
        Self { object, now: self.now }
    }

    pub(super) fn at(self, path: &str) -> Option<&'v Value> {
        object::at_path(self.object, path)
    }

    pub(super) fn has(self, path: &str) -> bool {
        self.at(path).is_some_and(|value| !value.is_null())
    }

    /// The text at a path; empty when there is none.
    pub(super) fn text(self, path: &str) -> &'v str {
        self.at(path).and_then(Value::as_str).unwrap_or("")
    }

    /// The text at a path, or a stand-in for an empty one.
    pub(super) fn text_or(self, path: &str, missing: &'v str) -> &'v str {
        match self.text(path) {
            "" => missing,
            text => text,
        }
    }

    /// A number or text at a path, as text.
    pub(super) fn shown_or(self, path: &str, missing: &str) -> String {
        match self.at(path) {
            Some(Value::String(text)) => text.clone(),
            Some(value) if !value.is_null() => value.to_string(),
            _ => missing.to_owned(),
        }
    }

    pub(super) fn integer(self, path: &str) -> i64 {
        self.at(path).and_then(Value::as_i64).unwrap_or(0)
    }

    /// The rows of a list's items.
    pub(super) fn items(self, path: &str) -> impl DoubleEndedIterator<Item = Row<'v>> + ExactSizeIterator {
        let items = self.at(path).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        items.iter().map(move |item| self.of(item))
    }

    /// The texts of a list.
    pub(super) fn texts(self, path: &str) -> Vec<&'v str> {
        self.at(path).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// How many items or entries there are.
    pub(super) fn count(self, path: &str) -> usize {
        match self.at(path) {
            Some(Value::Array(list)) => list.len(),
            Some(Value::Object(map)) => map.len(),
            _ => 0,
        }
    }

    pub(super) fn age(self, path: &str) -> String {
        age::since(self.at(path).and_then(Value::as_str), self.now)
    }

    pub(super) fn is_terminating(self) -> bool {
        object::is_terminating(self.object)
    }

    /// The condition of that type.
    pub(super) fn condition(self, type_name: &str) -> Option<Row<'v>> {
        self.items("status.conditions").find(|condition| condition.text("type") == type_name)
    }

    pub(super) fn has_true_condition(self, type_name: &str) -> bool {
        self.condition(type_name).is_some_and(|condition| condition.text("status") == "True")
    }

    /// The names and the images of the containers in a pod spec.
    pub(super) fn containers(self, path: &str, field: &str) -> Value {
        json!(self.items(path).map(|container| container.text(field)).collect::<Vec<_>>().join(","))
    }

    /// A map of labels as `a=b,c=d`; `<none>` when it's empty.
    pub(super) fn labels(self, path: &str) -> String {
        let labels: Vec<String> = pairs(self.at(path)).collect();
        if labels.is_empty() { "<none>".to_owned() } else { labels.join(",") }
    }

    /// A label selector as `a=b,c in (d,e),!f`; `<none>` when it's empty.
    pub(super) fn selector(self, path: &str) -> String {
        let selector = match self.at(path) {
            Some(selector) => self.of(selector),
            None => return "<none>".to_owned(),
        };
        // Requirements stand in the order of their keys.
        let mut parts: Vec<(String, String)> = pairs(selector.at("matchLabels"))
            .map(|pair| (pair.split('=').next().unwrap_or_default().to_owned(), pair))
            .collect();
        for requirement in selector.items("matchExpressions") {
            let key = requirement.text("key");
            let mut values = requirement.texts("values");
            values.sort_unstable();
            let values = values.join(",");
            let part = match requirement.text("operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                "DoesNotExist" => format!("!{key}"),
                _ => return "<error>".to_owned(),
            };
            parts.push((key.to_owned(), part));
        }
        parts.sort_by(|a, b| a.0.cmp(&b.0));
        let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
        if parts.is_empty() { "<none>".to_owned() } else { parts.join(",") }
    }
}

fn pairs(map: Option<&Value>) -> impl Iterator<Item = String> {
    let map = map.and_then(Value::as_object).into_iter().flatten();
    map.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
}

/// At most `shown` of the texts, and how many more there are.
pub(super) fn with_more(texts: &[String], shown: usize, separator: &str) -> String {
    let head = texts.get(..shown).unwrap_or(texts).join(separator);
    if texts.len() > shown { format!("{head} + {} more...", texts.len() - shown) } else { head }
}
