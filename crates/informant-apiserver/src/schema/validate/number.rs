//! Bounds of numbers, and when two JSON numbers are the same.

use serde_json::{Number, Value};

use crate::schema::Schema;
use crate::schema::path::FieldPath;
use crate::status::Cause;

/// Every bound that a number breaks.
pub(crate) fn validate(number: &Number, node: &Schema, path: &FieldPath<'_>) -> Vec<Cause> {
    let Some(value) = number.as_f64() else { return Vec::new() };
    let shown = Value::Number(number.clone());
    let mut causes: Vec<Cause> = range_of_format(number, &node.format, path).into_iter().collect();
    let mut say = |why: String| causes.push(Cause::invalid(path, &shown, format!("{path} in body {why}")));
    if let Some(step) = node.multiple_of.filter(|step| !is_multiple(value, *step)) {
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

/// `int32`, `int64` and `float` are ranges as well.
pub(crate) fn range_of_format(number: &Number, format: &str, path: &FieldPath<'_>) -> Option<Cause> {
    let (fits, type_name) = match format {
        "int32" => {
            (number.as_i64().is_some_and(|value| i32::try_from(value).is_ok()) || is_whole(number, 31), "integer")
        }
        "int64" => (number.is_i64() || is_whole(number, 53), "integer"),
        "float" => (number.as_f64().is_some_and(|value| value.abs() <= f64::from(f32::MAX)), "number"),
        _ => return None,
    };
    let why = format!("Invalid value: \"\": Checked value must be of type {type_name} with format {format} in {path}");
    (!fits).then(|| Cause::new("FieldValueInvalid", why, "<nil>"))
}

/// Whether a number that was written as a fraction is an integer within so many bits.
fn is_whole(number: &Number, bits: i32) -> bool {
    number.is_f64() && number.as_f64().is_some_and(|value| value.fract() == 0.0 && value.abs() < 2f64.powi(bits))
}

/// Whether a number is an integer that 64 bits hold, or a fraction such as `1.0` that is one exactly.
pub(crate) fn is_integer(number: &Number) -> bool {
    number.is_i64() || is_whole(number, 53)
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
