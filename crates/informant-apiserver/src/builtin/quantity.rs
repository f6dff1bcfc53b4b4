//! Quantities: `100m`, `1Gi`, `2e3`, `0.5`.

use serde_json::Value;

/// The amount, if it is one.
///
/// A float is exact enough to compare what people write: whole numbers up to 2^53, and thousandths of small ones.
pub(super) fn parse(quantity: &Value) -> Option<f64> {
    match quantity {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => parse_text(text),
        _ => None,
    }
}

fn parse_text(text: &str) -> Option<f64> {
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || matches!(letter, '.' | '+' | '-')));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let digits = number.trim_start_matches(['+', '-']);
    if digits.is_empty() || digits == "." || !digits.chars().all(|letter| letter.is_ascii_digit() || letter == '.') {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    let factor = match suffix {
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        "Ei" => 1024f64.powi(6),
        exponent => 10f64.powi(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn suffixes_and_exponents_scale_the_number() {
        let cases =
            [("1", 1.0), ("100m", 0.1), ("1Gi", 1_073_741_824.0), ("2e3", 2000.0), ("-0.5k", -500.0), ("1E", 1e18)];
        for (text, amount) in cases {
            assert_eq!(parse(&json!(text)), Some(amount), "{text}");
        }
        assert_eq!(parse(&json!(3)), Some(3.0));
    }

    #[test]
    fn other_texts_are_no_quantities() {
        for text in ["", "x", "1x", "1 Gi", ".", "--1", "1.2.3", "m", "1ee3"] {
            assert_eq!(parse(&json!(text)), None, "{text}");
        }
    }
}
