//! Bounds of numbers, and when two JSON numbers are the same.

use serde_json::{Number, Value};

use crate::schema::Schema;
use crate::schema::path::FieldPath;
use crate::status::Cause;

/// Every bound that a number breaks.
pub(crate) fn validate(number: &Number, node: &Schema, path: &FieldPath<'_>) -> Vec<Cause> {
    let Some(value) = number.as_f64() else { return Vec::new() };
    let shown = Value::Number(number.clone());
    let mut causes = Vec::new();
    let mut say = |why: String| causes.push(Cause::invalid(path, &shown, format!("{path} in body {why}")));
    if let Some(step) = node.multiple_of.filter(|step| *step > 0.0 && !is_multiple(value, *step)) {
        say(format!("should be a multiple of {step}"));
    }
    if let Some(limit) = node.maximum {
        if node.exclusive_maximum && value >= limit {
            say(format!("should be less than {limit}"));
        } else if value > limit {
            say(format!("should be less than or equal to {limit}"));
        }
    }
    if let Some(limit) = node.minimum {
        if node.exclusive_minimum && value <= limit {
            say(format!("should be greater than {limit}"));
        } else if value < limit {
            say(format!("should be greater than or equal to {limit}"));
        }
    }
    causes
}

/// Whether a number has no fraction: `1` and `1.0` do not.
pub(crate) fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
}

/// Equality of JSON values in which `1` and `1.0` are the same.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}

fn is_multiple(value: f64, step: f64) -> bool {
    let ratio = value / step;
    (ratio - ratio.round()).abs() < 1e-9
}
