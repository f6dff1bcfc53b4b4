//! Lists of type `set` and `map`: their items are unique, and an item of a `map` is known by its key fields.

use serde_json::{Map, Value};

use crate::schema::path::FieldPath;
use crate::schema::{ListType, SchemaView};
use crate::status::Cause;

/// One `Duplicate value` for each value that occurs more than once, at its second place.
pub(crate) fn validate(items: &[Value], schema: SchemaView<'_>, path: &FieldPath<'_>) -> Vec<Cause> {
    let mut seen: Vec<(Value, bool)> = Vec::with_capacity(items.len());
    let mut causes = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let identity = match schema.list_type() {
            ListType::Atomic => return causes,
            ListType::Set => item.clone(),
            ListType::Map(keys) => key_fields(item, keys),
        };
        match seen.iter_mut().find(|(earlier, _)| *earlier == identity) {
            Some((_, told)) if *told => {}
            Some((_, told)) => {
                *told = true;
                causes.push(Cause::duplicate(&path.index(index), &identity));
            }
            None => seen.push((identity, false)),
        }
    }
    causes
}

/// The item of the old list that stands for the same thing; only lists of type `map` tell.
pub(crate) fn counterpart<'a>(item: &Value, old: &'a [Value], list_type: ListType<'_>) -> Option<&'a Value> {
    let ListType::Map(keys) = list_type else { return None };
    let identity = key_fields(item, keys);
    old.iter().find(|candidate| key_fields(candidate, keys) == identity)
}

fn key_fields(item: &Value, keys: &[String]) -> Value {
    let fields: Map<String, Value> =
        keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect();
    Value::Object(fields)
}
