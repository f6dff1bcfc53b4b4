//! What built-in kinds refuse: the rules that people run into, in the words of the API.
//!
//! An object has its defaults when it comes here, so a missing text is an empty one. Not every rule of upstream is here;
//! what is here has been held against a real server. Names, labels and other metadata are checked elsewhere.

mod config;
mod network;
mod pod;
mod rights;
mod update;
mod workload;

use serde_json::{Value, json};

use super::quantity;
use crate::resource::Resource;
use crate::schema::path::FieldPath;
use crate::status::Cause;

/// Everything that is wrong with `new`; `old` is what it would replace.
pub(crate) fn validate(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let at = At { value: new, path: &FieldPath::ROOT };
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => at.with("spec", |spec| pod::spec(spec, &mut causes)),
        ("", "services") => at.with("spec", |spec| network::service(spec, &mut causes)),
        ("", "endpoints") => network::endpoints(at, &mut causes),
        ("", plural) => config::core(plural, at, &mut causes),
        ("apps" | "batch" | "policy" | "autoscaling", plural) => workload::check(plural, at, &mut causes),
        ("networking.k8s.io" | "discovery.k8s.io", plural) => network::check(plural, at, &mut causes),
        ("rbac.authorization.k8s.io", plural) => rights::check(plural, at, &mut causes),
        (_, plural) => config::other(plural, at, &mut causes),
    }
    if let Some(old) = old {
        update::check(resource, at, old, &mut causes);
    }
    causes
}

/// A value and its place. A value that isn't there reads as null.
#[derive(Debug, Clone, Copy)]
struct At<'a> {
    value: &'a Value,
    path: &'a FieldPath<'a>,
}

const NULL: Value = Value::Null;

// === impl At ===

impl<'a> At<'a> {
    /// Looks at a field.
    fn with(self, name: &str, look: impl FnOnce(At<'_>)) {
        let path = self.path.field(name);
        look(At { value: self.get(name), path: &path });
    }

    /// Looks at a field of a field.
    fn within(self, outer: &str, inner: &str, look: impl FnOnce(At<'_>)) {
        self.with(outer, |at| at.with(inner, look));
    }

    /// Looks at a field that is there.
    fn if_there(self, name: &str, look: impl FnOnce(At<'_>)) {
        if !self.get(name).is_null() {
            self.with(name, look);
        }
    }

    /// Looks at each item of a list, with its position.
    fn each(self, name: &str, mut look: impl FnMut(usize, At<'_>)) {
        let list = self.path.field(name);
        for (at, value) in self.get(name).as_array().into_iter().flatten().enumerate() {
            look(at, At { value, path: &list.index(at) });
        }
    }

    /// Looks at each entry of a map.
    fn entries(self, name: &str, mut look: impl FnMut(&str, At<'_>)) {
        let map = self.path.field(name);
        for (key, value) in self.get(name).as_object().into_iter().flatten() {
            look(key, At { value, path: &map.key(key) });
        }
    }

    fn get(self, name: &str) -> &'a Value {
        self.value.get(name).unwrap_or(const { &NULL })
    }

    fn text(self, name: &str) -> &'a str {
        self.get(name).as_str().unwrap_or("")
    }

    fn integer(self, name: &str) -> Option<i64> {
        self.get(name).as_i64()
    }

    fn is_true(self, name: &str) -> bool {
        self.get(name).as_bool().unwrap_or(false)
    }

    /// How many items or entries a field has.
    fn count(self, name: &str) -> usize {
        match self.get(name) {
            Value::Array(items) => items.len(),
            Value::Object(entries) => entries.len(),
            _ => 0,
        }
    }

    /// The path of a field, as causes name it.
    fn place(self, name: &str) -> String {
        self.path.field(name).to_string()
    }

    /// The path of this value.
    fn here(self) -> String {
        self.path.to_string()
    }

    fn required(self, name: &str, causes: &mut Vec<Cause>) -> bool {
        let there = match self.get(name) {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(_) | Value::Bool(_) | Value::Number(_) => true,
        };
        if !there {
            causes.push(Cause::required(self.place(name), ""));
        }
        there
    }

    /// An empty text is left to other rules.
    fn one_of(self, name: &str, supported: &[&str], causes: &mut Vec<Cause>) {
        let text = self.text(name);
        if !text.is_empty() && !supported.contains(&text) {
            causes.push(not_supported(self.place(name), text, supported));
        }
    }

    fn not_negative(self, names: &[&str], causes: &mut Vec<Cause>) {
        for name in names {
            if self.integer(name).is_some_and(|number| number < 0) {
                causes.push(Cause::invalid(self.place(name), self.get(name), NOT_NEGATIVE));
            }
        }
    }

    /// A number or, where that is allowed, a name of a port.
    fn port(self, name: &str, causes: &mut Vec<Cause>) {
        match self.get(name) {
            Value::String(text) => {
                causes.extend(port_name(text).map(|why| Cause::invalid(self.place(name), self.get(name), why)));
            }
            value if value.as_i64().is_none_or(|port| !(1..=65_535).contains(&port)) => {
                let value = if value.is_null() { &json!(0) } else { value };
                causes.push(Cause::invalid(self.place(name), value, "must be between 1 and 65535, inclusive"));
            }
            _ => {}
        }
    }

    /// A text that follows a rule of names, if it's there.
    fn named(self, name: &str, rule: fn(&str) -> Option<String>, causes: &mut Vec<Cause>) {
        let text = self.text(name);
        if !text.is_empty()
            && let Some(why) = rule(text)
        {
            causes.push(Cause::invalid(self.place(name), &json!(text), why));
        }
    }

    /// A quantity of at least zero.
    fn quantity(self, causes: &mut Vec<Cause>) {
        if quantity::parse(self.value).is_some_and(|amount| amount < 0.0) {
            causes.push(Cause::invalid(self.here(), self.value, NOT_NEGATIVE));
        }
    }
}

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
const IMMUTABLE: &str = "field is immutable";

fn not_supported(place: String, value: &str, supported: &[&str]) -> Cause {
    let supported: Vec<Value> = supported.iter().map(|text| json!(text)).collect();
    Cause::not_supported(place, &json!(value), &supported)
}

/// What is wrong with the name of a port.
fn port_name(name: &str) -> Option<String> {
    let mut wrong = Vec::new();
    if name.len() > 15 {
        wrong.push("must be no more than 15 characters");
    }
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    } else if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)");
    } else if name.contains("--") {
        wrong.push("must not contain consecutive hyphens");
    } else if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen");
    }
    if wrong.is_empty() { None } else { Some(wrong.join(",")) }
}

/// A number of at least zero, or a percentage.
fn int_or_percent(at: At<'_>, name: &str, causes: &mut Vec<Cause>) {
    match at.get(name) {
        Value::String(text) => {
            let digits = text.strip_suffix('%').unwrap_or("");
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                           '93%', regex used for validation is '[0-9]+%')";
                causes.push(Cause::invalid(at.place(name), at.get(name), why));
            }
        }
        _ => at.not_negative(&[name], causes),
    }
}

/// Keys and values of a map that selects by labels; all causes are at the map itself.
fn label_map(at: At<'_>, name: &str, causes: &mut Vec<Cause>) {
    for (key, value) in at.get(name).as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or("");
        let wrong =
            [(key.as_str(), crate::name_rules::qualified_name(key)), (value, crate::name_rules::label_value(value))];
        for (text, why) in wrong {
            causes.extend(why.map(|why| Cause::invalid(at.place(name), &json!(text), why)));
        }
    }
}

/// Checks the form of a label selector; tells whether it is one.
fn label_selector(at: At<'_>, name: &str, causes: &mut Vec<Cause>) -> bool {
    let before = causes.len();
    at.with(name, |selector| {
        label_map(selector, "matchLabels", causes);
        selector.each("matchExpressions", |_, expression| {
            let values = expression.count("values");
            let place = || expression.place("values");
            match expression.text("operator") {
                "In" | "NotIn" if values == 0 => {
                    causes.push(Cause::required(place(), "must be specified when `operator` is 'In' or 'NotIn'"));
                }
                "Exists" | "DoesNotExist" if values > 0 => {
                    causes.push(Cause::forbidden(
                        place(),
                        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                    ));
                }
                "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
                _ => {
                    let why = "not a valid selector operator";
                    causes.push(Cause::invalid(expression.place("operator"), expression.get("operator"), why));
                }
            }
            expression.named("key", crate::name_rules::qualified_name, causes);
        });
    });
    causes.len() == before
}

/// Whether a label selector selects an object with these labels.
fn selects(selector: &Value, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let matched = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    matched.into_iter().all(|(key, value)| label(key) == value.as_str())
        && expressions.into_iter().all(|expression| {
            let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or("");
            let value = label(text("key"));
            let listed = value.is_some_and(|value| {
                let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
                values.into_iter().any(|one| one.as_str() == Some(value))
            });
            match text("operator") {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}
