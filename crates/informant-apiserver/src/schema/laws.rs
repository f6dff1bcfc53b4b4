//! What holds for every schema and every value: pruning and defaulting settle after one pass, and a value that has been
//! through both has no unknown field left.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Definitions, Schema, SchemaView, default, prune, validate};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn scalar_schema() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "default": "x"})),
        Just(json!({"type": "string", "nullable": true, "default": "x"})),
        Just(json!({"type": "integer", "default": 5})),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    scalar_schema().prop_recursive(3, 16, 4, |inner| {
        let properties = prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner.clone(), 0..4);
        prop_oneof![
            (properties, any::<bool>(), any::<bool>()).prop_map(|(properties, keeps, defaults)| {
                let mut schema = json!({"type": "object", "properties": properties});
                if keeps {
                    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
                }
                if defaults {
                    schema["default"] = json!({});
                }
                schema
            }),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|values| json!({"type": "object", "additionalProperties": values})),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_i64..9).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner, 0..4).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
            }),
        ]
    })
}

fn object_schema() -> impl Strategy<Value = Schema> {
    prop::collection::btree_map(prop::sample::select(&NAMES[..]), schema(), 0..4)
        .prop_map(|properties| serde_json::from_value(json!({"type": "object", "properties": properties})).unwrap())
}

proptest! {
    #[test]
    fn pruning_and_defaulting_settle(schema in object_schema(), value in value()) {
        let definitions = Definitions::default();
        let view = SchemaView::new(&schema, &definitions);
        let mut once = value;
        default::apply(&mut once, view);
        prune::prune(&mut once, view);
        let mut twice = once.clone();
        prop_assert_eq!(prune::unknown_fields(&twice, view), Vec::<String>::new());
        prune::prune(&mut twice, view);
        prop_assert_eq!(&twice, &once, "pruned again");
        default::apply(&mut twice, view);
        prop_assert_eq!(&twice, &once, "defaulted again");
    }

    #[test]
    fn an_unchanged_value_is_always_taken_on_update(schema in object_schema(), value in value()) {
        let definitions = Definitions::default();
        let view = SchemaView::new(&schema, &definitions);
        prop_assert_eq!(validate::validate(&value, Some(&value), view), vec![]);
    }

    #[test]
    fn defaults_of_a_checked_schema_never_break_it(schema in object_schema()) {
        // What defaulting puts into an empty object is valid where each default by itself is.
        let definitions = Definitions::default();
        let view = SchemaView::new(&schema, &definitions);
        let mut object = json!({});
        default::apply(&mut object, view);
        prop_assert_eq!(validate::validate(&object, None, view), vec![]);
    }
}
