//! Validation of a custom object by its schema: every error at once, in the words of the real server.
//!
//! An update is ratcheted: where a value hasn't changed, it isn't looked at, so that an object which a stricter schema would
//! refuse can still be changed elsewhere (see `ratchet`).

pub(crate) mod embedded;
pub(crate) mod format;
pub(crate) mod list_type;
mod number;
mod ratchet;

use serde_json::{Map, Value};

use self::ratchet::Counterparts;
use super::path::FieldPath;
use super::{AdditionalProperties, Schema, SchemaView};
use crate::status::Cause;

/// Causes after which the rest of an object isn't looked at.
const MAX_CAUSES: usize = 1_000;

/// Every way in which `new` breaks `schema`, up to a thousand; empty when it is valid. `old` is the stored object on an
/// update.
pub(crate) fn validate(new: &Value, old: Option<&Value>, schema: SchemaView<'_>) -> Vec<Cause> {
    let mut causes = validate_values(new, old, schema, &FieldPath::ROOT);
    causes.extend(embedded::validate(new, schema, &FieldPath::ROOT));
    let lists = list_type::validate(new, schema, &FieldPath::ROOT);
    // An object that had duplicates before may keep them, and may even get more.
    if !lists.is_empty() && old.is_none_or(|old| list_type::validate(old, schema, &FieldPath::ROOT).is_empty()) {
        causes.extend(lists);
    }
    causes.truncate(MAX_CAUSES);
    causes
}

/// The same for a default at its place in a CRD. Duplicates in its lists are of no matter there.
pub(crate) fn validate_default(value: &Value, schema: SchemaView<'_>, path: &FieldPath<'_>) -> Vec<Cause> {
    let mut causes = validate_values(value, None, schema, path);
    causes.extend(embedded::validate(value, schema, path));
    causes
}

fn validate_values(new: &Value, old: Option<&Value>, schema: SchemaView<'_>, path: &FieldPath<'_>) -> Vec<Cause> {
    let mut validator = Validator::default();
    validator.value(new, old, schema, path);
    validator.causes
}

#[derive(Default)]
struct Validator {
    causes: Vec<Cause>,
    /// How many values were looked at: of branches that all fail, the one that looked furthest is told about.
    visited: usize,
}

// === impl Validator ===

impl Validator {
    fn value(&mut self, new: &Value, old: Option<&Value>, schema: SchemaView<'_>, path: &FieldPath<'_>) {
        self.visited += 1;
        if self.causes.len() >= MAX_CAUSES {
            return;
        }
        if old.is_some_and(|old| ratchet::is_unchanged(new, old, schema)) {
            return;
        }
        let node = schema.node();
        if self.has_right_type(new, schema, path) && !new.is_null() {
            self.junctors(new, old, schema, path);
            match new {
                Value::String(text) => self.string(text, node, path),
                Value::Number(number) => self.causes.extend(number::validate(number, node, path)),
                Value::Array(items) => self.array(items, old.and_then(Value::as_array), schema, path),
                Value::Object(fields) => self.object(fields, old.and_then(Value::as_object), schema, path),
                Value::Null | Value::Bool(_) => {}
            }
        } else if let Value::Number(number) = new {
            self.causes.extend(number::range_of_format(number, &node.format, path));
        }
        self.enumeration(new, node, path);
    }

    fn has_right_type(&mut self, new: &Value, schema: SchemaView<'_>, path: &FieldPath<'_>) -> bool {
        let node = schema.node();
        let expected = if node.int_or_string { "integer,string" } else { node.type_name.as_str() };
        let actual = type_of(new);
        let fits = match actual {
            _ if expected.is_empty() => true,
            "null" => schema.nullable(),
            "integer" => matches!(expected, "integer" | "number" | "integer,string"),
            "string" => matches!(expected, "string" | "integer,string"),
            other => expected == other,
        };
        if !fits {
            // Where there is a format, the real server names it and its own idea of the value's format.
            let (expected, actual) = match (node.format.as_str(), actual) {
                ("", _) | (_, "null" | "string" | "array") => (expected, actual),
                (format, "integer") => (format, "int64"),
                (format, "number") => (format, "float64"),
                (format, _) => (format, ""),
            };
            let why = format!("{path} in body must be of type {expected}: \"{actual}\"");
            self.causes.push(Cause::type_invalid(path, &Value::from(actual), why));
        }
        fits
    }

    fn string(&mut self, text: &str, node: &Schema, path: &FieldPath<'_>) {
        let value = || Value::from(text);
        let length = text.chars().count() as u64;
        if let Some(limit) = node.max_length.filter(|limit| length > *limit) {
            self.causes.push(Cause::too_long(path, limit));
        }
        if let Some(limit) = node.min_length.filter(|limit| length < *limit) {
            let why = format!("{path} in body should be at least {limit} chars long");
            self.causes.push(Cause::invalid(path, &value(), why));
        }
        if let Some(pattern) = node.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            let why = format!("{path} in body should match '{}'", pattern.as_str());
            self.causes.push(Cause::invalid(path, &value(), why));
        }
        if !format::is_valid(&node.format, text) {
            let why = format!("{path} in body must be of type {}: \"{text}\"", node.format);
            self.causes.push(Cause::type_invalid(path, &value(), why));
        }
    }

    fn array(&mut self, new: &[Value], old: Option<&Vec<Value>>, schema: SchemaView<'_>, path: &FieldPath<'_>) {
        let node = schema.node();
        let count = new.len() as u64;
        if let Some(limit) = node.max_items.filter(|limit| count > *limit) {
            self.causes.push(Cause::too_many(path, count, limit));
        }
        if let Some(limit) = node.min_items.filter(|limit| count < *limit) {
            let why = format!("{path} in body should have at least {limit} items");
            self.causes.push(Cause::invalid(path, &Value::from(count), why));
        }
        let Some(item_schema) = schema.items() else { return };
        let counterparts = Counterparts::among(old.map_or(&[], Vec::as_slice), schema.list_type());
        for (index, item) in new.iter().enumerate() {
            self.value(item, counterparts.of(item), item_schema, &path.index(index));
        }
    }

    fn object(
        &mut self,
        new: &Map<String, Value>,
        old: Option<&Map<String, Value>>,
        schema: SchemaView<'_>,
        path: &FieldPath<'_>,
    ) {
        let node = schema.node();
        let count = new.len() as u64;
        if let Some(limit) = node.max_properties.filter(|limit| count > *limit) {
            self.causes.push(Cause::too_many(path, count, limit));
        }
        if let Some(limit) = node.min_properties.filter(|limit| count < *limit) {
            let why = format!("{path} in body should have at least {limit} properties");
            self.causes.push(Cause::invalid(path, &Value::from(count), why));
        }
        for name in node.required.iter().filter(|name| !new.contains_key(*name)) {
            self.causes.push(Cause::required(&path.field(name), ""));
        }
        for (name, value) in new {
            if let Some(field) = schema.field(name) {
                self.value(value, old.and_then(|old| old.get(name)), field, &path.field(name));
            } else if node.additional_properties.as_deref() == Some(&AdditionalProperties::Allowed(false)) {
                let path = path.field(name);
                let why = format!("{path} in body is a forbidden property");
                self.causes.push(Cause::invalid(&path, &Value::from(""), why));
            }
        }
    }

    fn enumeration(&mut self, new: &Value, node: &Schema, path: &FieldPath<'_>) {
        // Null is no value of an enum, even of one that lists it.
        let listed = !new.is_null() && node.enumeration.iter().any(|allowed| number::equal(allowed, new));
        if !node.enumeration.is_empty() && !listed {
            let shown: Vec<Value> = node.enumeration.iter().map(as_text).collect();
            self.causes.push(Cause::not_supported(path, new, &shown));
        }
    }

    /// `allOf`, `anyOf`, `oneOf` and `not`: they judge values, they bring no structure.
    fn junctors(&mut self, new: &Value, old: Option<&Value>, schema: SchemaView<'_>, path: &FieldPath<'_>) {
        let node = schema.node();
        let branch = |branch: &Schema| {
            let mut inner = Validator::default();
            inner.value(new, old, schema.at(branch), path);
            inner
        };
        let mut say = |why: String, causes: Vec<Cause>| {
            // The real server gives these no field of their own.
            self.causes.push(Cause::invalid("<nil>", &Value::from(""), why));
            self.causes.extend(causes);
        };
        if !node.any_of.is_empty() {
            let tried: Vec<Validator> = node.any_of.iter().map(branch).collect();
            if tried.iter().all(|branch| !branch.causes.is_empty()) {
                say(format!("\"{path}\" must validate at least one schema (anyOf)"), furthest(tried));
            }
        }
        if !node.one_of.is_empty() {
            let tried: Vec<Validator> = node.one_of.iter().map(branch).collect();
            let valid = tried.iter().filter(|branch| branch.causes.is_empty()).count();
            if valid == 0 {
                let why = format!("\"{path}\" must validate one and only one schema (oneOf). Found none valid");
                say(why, furthest(tried));
            } else if valid > 1 {
                let why = format!(
                    "\"{path}\" must validate one and only one schema (oneOf). Found {valid} valid alternatives"
                );
                say(why, Vec::new());
            }
        }
        if !node.all_of.is_empty() {
            let tried: Vec<Validator> = node.all_of.iter().map(branch).collect();
            let valid = tried.iter().filter(|branch| branch.causes.is_empty()).count();
            if valid < tried.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                let why = format!("\"{path}\" must validate all the schemas (allOf){none}");
                say(why, tried.into_iter().flat_map(|branch| branch.causes).collect());
            }
        }
        if node.not.as_deref().is_some_and(|not| branch(not).causes.is_empty()) {
            say(format!("\"{path}\" must not validate the schema (not)"), Vec::new());
        }
    }
}

/// The failures of the branch that looked at most values; of equals the first.
fn furthest(tried: Vec<Validator>) -> Vec<Cause> {
    let most = tried.iter().map(|branch| branch.visited).max();
    tried.into_iter().find(|branch| Some(branch.visited) == most).map(|branch| branch.causes).unwrap_or_default()
}

/// How messages list the values of an enum: as strings, whatever they are.
fn as_text(value: &Value) -> Value {
    if value.is_string() { value.clone() } else { Value::from(value.to_string()) }
}

/// The JSON type's name; a number without a fraction is an integer.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(number) if number::is_integer(number) => "integer",
        Value::Number(_) => "number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Definitions;
    use serde_json::json;

    fn causes(schema: &Value, new: Value, old: Option<Value>) -> Vec<String> {
        let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
        let definitions = Definitions::default();
        let causes = validate(&new, old.as_ref(), SchemaView::new(&schema, &definitions));
        causes.iter().map(Cause::to_string).collect()
    }

    fn spec(properties: Value) -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
    }

    /// One property `x`, one value, the expected errors.
    fn check(schema: Value, value: Value, expected: &[&str]) {
        assert_eq!(causes(&spec(json!({"x": schema})), json!({"spec": {"x": value}}), None), expected, "{schema}");
    }

    #[test]
    fn types_are_checked() {
        check(json!({"type": "integer"}), json!(1), &[]);
        check(json!({"type": "integer"}), json!(1.0), &[]);
        check(
            json!({"type": "integer"}),
            json!("one"),
            &["spec.x: Invalid value: \"string\": spec.x in body must be of type integer: \"string\""],
        );
        check(
            json!({"type": "string"}),
            Value::Null,
            &["spec.x: Invalid value: \"null\": spec.x in body must be of type string: \"null\""],
        );
        check(json!({"type": "string", "nullable": true}), Value::Null, &[]);
        for (value, actual) in [(json!(true), ""), (json!({}), "")] {
            let expected =
                format!("spec.x: Invalid value: \"{actual}\": spec.x in body must be of type int32: \"{actual}\"");
            check(json!({"type": "integer", "format": "int32"}), value, &[&expected]);
        }
        check(
            json!({"type": "integer", "format": "int32"}),
            json!(5_000_000_000_i64),
            &["<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.x"],
        );
        check(json!({"x-kubernetes-int-or-string": true}), json!("50%"), &[]);
        check(json!({"x-kubernetes-int-or-string": true}), json!(5), &[]);
        check(
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            &["spec.x: Invalid value: \"boolean\": spec.x in body must be of type integer,string: \"boolean\""],
        );
    }

    #[test]
    fn bounds_speak_the_servers_words() {
        check(
            json!({"type": "integer", "minimum": 1}),
            json!(0),
            &["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"],
        );
        check(
            json!({"type": "number", "maximum": 2.5, "exclusiveMaximum": true}),
            json!(2.5),
            &["spec.x: Invalid value: 2.5: spec.x in body should be less than 2.5"],
        );
        check(
            json!({"type": "string", "maxLength": 3}),
            json!("abcd"),
            &["spec.x: Too long: may not be more than 3 bytes"],
        );
        check(
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            &["spec.x: Invalid value: \"b\": spec.x in body should match '^a+$'"],
        );
        check(
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            &["spec.x: Unsupported value: \"c\": supported values: \"a\", \"b\""],
        );
        check(
            json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
            json!(["a", "b"]),
            &["spec.x: Too many: 2: must have at most 1 item"],
        );
    }

    #[test]
    fn all_errors_come_at_once() {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object",
            "required": ["image", "port"], "properties": {"image": {"type": "string"}, "port": {"type": "integer"},
            "replicas": {"type": "integer", "minimum": 1}}}}});
        assert_eq!(causes(&schema, json!({}), None), ["spec: Required value"]);
        assert_eq!(
            causes(&schema, json!({"spec": {"replicas": 0, "port": "http"}}), None),
            [
                "spec.image: Required value",
                "spec.port: Invalid value: \"string\": spec.port in body must be of type integer: \"string\"",
                "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1",
            ]
        );
    }

    #[test]
    fn junctors_judge_values() {
        let any = json!({"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "z$"}]});
        check(any.clone(), json!("az"), &[]);
        assert_eq!(
            causes(&spec(json!({"x": any})), json!({"spec": {"x": "m"}}), None)[0],
            "<nil>: Invalid value: \"\": \"spec.x\" must validate at least one schema (anyOf)"
        );
        let one = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
        check(one.clone(), json!({"a": ""}), &[]);
        check(
            one,
            json!({"a": "", "b": ""}),
            &[
                "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            ],
        );
        check(
            json!({"type": "string", "not": {"enum": ["bad"]}}),
            json!("bad"),
            &["<nil>: Invalid value: \"\": \"spec.x\" must not validate the schema (not)"],
        );
    }

    #[test]
    fn sets_and_maps_refuse_duplicates() {
        check(
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            json!(["a", "b", "a", "a"]),
            &["spec.x[2]: Duplicate value: \"a\""],
        );
        let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}}});
        check(
            map,
            json!([{"name": "a", "v": 1}, {"name": "a", "v": 2}]),
            &["spec.x[1]: Duplicate value: {\"name\":\"a\"}"],
        );
    }

    #[test]
    fn an_unchanged_invalid_value_is_tolerated_on_update() {
        let schema = spec(json!({"image": {"type": "string", "pattern": "^v"}, "n": {"type": "integer"},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"},
                    "v": {"type": "integer", "minimum": 5}}}}}));
        let old = json!({"spec": {"image": "bad", "n": 1, "list": [{"name": "a", "v": 1}, {"name": "b", "v": 7}]}});
        let mut new = old.clone();
        new["spec"]["n"] = json!(2);
        assert_eq!(causes(&schema, new.clone(), Some(old.clone())), Vec::<String>::new());
        assert_eq!(causes(&schema, new.clone(), None).len(), 2);
        new["spec"]["list"][1]["v"] = json!(2);
        assert_eq!(
            causes(&schema, new.clone(), Some(old.clone())),
            ["spec.list[1].v: Invalid value: 2: spec.list[1].v in body should be greater than or equal to 5"]
        );
        new["spec"]["image"] = json!("worse");
        assert_eq!(causes(&schema, new, Some(old)).len(), 2);
    }

    #[test]
    fn a_thousand_causes_are_enough() {
        let schema = spec(json!({"x": {"type": "array", "items": {"type": "integer"}}}));
        let many = vec![json!("wrong"); 5_000];
        assert_eq!(causes(&schema, json!({"spec": {"x": many}}), None).len(), MAX_CAUSES);
    }

    #[test]
    fn an_embedded_object_names_its_kind() {
        let schema = json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true});
        check(schema.clone(), json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}), &[]);
        check(schema.clone(), json!({}), &["spec.x.apiVersion: Required value", "spec.x.kind: Required value"]);
        check(
            schema,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}),
            &["spec.x.metadata.labels: Invalid value: {\"a\":1}: must be a map of strings"],
        );
    }
}
