//! The fields of `metadata` and their types: what an object embedded in a custom one may carry there.

use serde_json::Value;

/// The JSON shapes that metadata fields have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Integer,
    TextMap,
    TextList,
    ObjectList,
}

const FIELDS: [(&str, Shape); 15] = [
    ("annotations", Shape::TextMap),
    ("creationTimestamp", Shape::Text),
    ("deletionGracePeriodSeconds", Shape::Integer),
    ("deletionTimestamp", Shape::Text),
    ("finalizers", Shape::TextList),
    ("generateName", Shape::Text),
    ("generation", Shape::Integer),
    ("labels", Shape::TextMap),
    ("managedFields", Shape::ObjectList),
    ("name", Shape::Text),
    ("namespace", Shape::Text),
    ("ownerReferences", Shape::ObjectList),
    ("resourceVersion", Shape::Text),
    ("selfLink", Shape::Text),
    ("uid", Shape::Text),
];

/// Whether `metadata` has a field of that name.
pub(crate) fn is_field(name: &str) -> bool {
    FIELDS.iter().any(|(field, _)| *field == name)
}

/// The first field of `metadata` whose value has the wrong type, with the type it should have.
pub(crate) fn type_error(metadata: &Value) -> Option<(String, &'static str)> {
    let Some(fields) = metadata.as_object() else {
        return Some((String::new(), "object"));
    };
    for (name, value) in fields {
        let shape = FIELDS.iter().find(|(field, _)| field == name).map(|(_, shape)| *shape);
        if let Some(expected) = shape.and_then(|shape| shape.mismatch(value)) {
            return Some((name.clone(), expected));
        }
    }
    None
}

// === impl Shape ===

impl Shape {
    fn mismatch(self, value: &Value) -> Option<&'static str> {
        if value.is_null() {
            return None;
        }
        match self {
            Self::Text => (!value.is_string()).then_some("string"),
            Self::Integer => (!value.is_i64()).then_some("integer"),
            Self::TextMap => {
                (!value.as_object().is_some_and(|map| map.values().all(Value::is_string))).then_some("map of strings")
            }
            Self::TextList => {
                (!value.as_array().is_some_and(|list| list.iter().all(Value::is_string))).then_some("list of strings")
            }
            Self::ObjectList => {
                (!value.as_array().is_some_and(|list| list.iter().all(Value::is_object))).then_some("list of objects")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wrong_type_is_named_with_the_right_one() {
        assert_eq!(type_error(&json!({"name": "a", "labels": {"a": "b"}, "creationTimestamp": null})), None);
        assert_eq!(type_error(&json!({"labels": {"a": 1}})), Some(("labels".to_owned(), "map of strings")));
        assert_eq!(type_error(&json!("x")), Some((String::new(), "object")));
    }
}
