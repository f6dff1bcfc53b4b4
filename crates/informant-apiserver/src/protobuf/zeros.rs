//! Zeros that mean "not set".
//!
//! A server that holds objects in Go structs can't tell `minReadySeconds: 0` or `hostNetwork: false` from nothing, and
//! leaves both out when it writes the object. Only the Go types, so the table of this module, know which fields are such.

use serde_json::Value;

use super::is_zero;
use super::table::{Kind, Message, Shape, Table, table};

/// Takes such zeros out of an object of a built-in kind; of another kind nothing.
pub(crate) fn omit(object: &mut Value, api_version: &str, kind: &str) {
    let table = table();
    if let Some(message) = table.kind(api_version, kind) {
        visit(table, message, object);
    }
}

fn visit(table: &Table, message: &Message, object: &mut Value) {
    for field in &message.fields {
        let inner = match field.kind {
            Kind::Message(number) => table.message(number),
            _ => None,
        };
        if field.shape == Shape::Embedded {
            if let Some(inner) = inner {
                visit(table, inner, object);
            }
            continue;
        }
        let Some(fields) = object.as_object_mut() else { return };
        let Some(value) = fields.get_mut(&field.name) else { continue };
        match (field.shape, inner, value) {
            (Shape::One, None, value) if field.omit_empty && field.kind.is_scalar() && is_zero(value) => {
                fields.remove(&field.name);
            }
            (Shape::List, Some(inner), Value::Array(items)) => {
                items.iter_mut().for_each(|item| visit(table, inner, item));
            }
            (Shape::Map, Some(inner), Value::Object(entries)) => {
                entries.values_mut().for_each(|entry| visit(table, inner, entry));
            }
            (Shape::One | Shape::Pointer, Some(inner), value) => visit(table, inner, value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn zeros_go_where_go_writes_none_and_stay_where_a_pointer_keeps_them() {
        let mut deployment = json!({"spec": {
            "replicas": 0, "minReadySeconds": 0, "paused": false,
            "template": {"spec": {"hostNetwork": false, "automountServiceAccountToken": false,
                "volumes": [{"name": "v", "emptyDir": {"medium": ""}}],
                "containers": [{"name": "", "image": "", "tty": false}]}},
        }});
        omit(&mut deployment, "apps/v1", "Deployment");
        let expected = json!({"spec": {
            "replicas": 0,
            "template": {"spec": {"automountServiceAccountToken": false,
                "volumes": [{"name": "v", "emptyDir": {}}], "containers": [{"name": ""}]}},
        }});
        assert_eq!(deployment, expected);
    }

    #[test]
    fn objects_of_other_kinds_stay_as_they_are() {
        let mut shirt = json!({"spec": {"size": 0}});
        omit(&mut shirt, "shop.example.org/v1", "Shirt");
        assert_eq!(shirt, json!({"spec": {"size": 0}}));
    }
}
