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

/// The digits and the power of ten of a quantity, and how its suffix counts.
struct Quantity {
    digits: i128,
    exponent: i32,
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `Ki`, `Mi`, …
    Binary,
    /// `m`, `k`, `M`, …
    Decimal,
    /// `e3`
    Exponent,
}

/// The form in which a server writes a quantity: the shortest whole number, with a suffix of the same sort (`1024Mi` is `1Gi`,
/// `0.5` is `500m`). `None` if it isn't a quantity, or one too large to be counted here.
pub(super) fn canonical(quantity: &Value) -> Option<String> {
    match quantity {
        Value::Number(number) => Quantity::parse(&number.to_string())?.canonical(),
        Value::String(text) => Quantity::parse(text)?.canonical(),
        _ => None,
    }
}

// === impl Quantity ===

impl Quantity {
    fn parse(text: &str) -> Option<Self> {
        let end = text.find(|letter: char| !(letter.is_ascii_digit() || matches!(letter, '.' | '+' | '-')));
        let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
        let (sign, number) = match number.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, number.strip_prefix('+').unwrap_or(number)),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let joined = format!("{whole}{fraction}");
        if joined.is_empty() || !joined.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = sign * joined.parse::<i128>().ok()?;
        let exponent = -i32::try_from(fraction.len()).ok()?;
        let decimal =
            |power: i32| Some(Self { digits, exponent: exponent.checked_add(power)?, format: Format::Decimal });
        let binary = |power: u32| {
            let digits = digits.checked_mul(1024i128.pow(power))?;
            Some(Self { digits, exponent, format: Format::Binary })
        };
        let quantity = match suffix {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => binary(1),
            "Mi" => binary(2),
            "Gi" => binary(3),
            "Ti" => binary(4),
            "Pi" => binary(5),
            "Ei" => binary(6),
            power => {
                let power: i32 = power.strip_prefix(['e', 'E'])?.parse().ok()?;
                decimal(power).map(|quantity| Self { format: Format::Exponent, ..quantity })
            }
        };
        quantity?.rounded()
    }

    /// Nothing finer than a billionth is kept; what's between is rounded away from zero.
    fn rounded(self) -> Option<Self> {
        let Self { digits, exponent, format } = self;
        if exponent >= -9 {
            return Some(self);
        }
        let unit = 10i128.checked_pow(u32::try_from(-9 - exponent).ok()?)?;
        let up = i128::from(digits % unit != 0) * digits.signum();
        Some(Self { digits: digits / unit + up, exponent: -9, format })
    }

    fn canonical(self) -> Option<String> {
        let Self { mut digits, mut exponent, format } = self;
        if digits == 0 {
            return Some("0".to_owned());
        }
        while digits % 10 == 0 {
            digits /= 10;
            exponent = exponent.checked_add(1)?;
        }
        if format == Format::Binary && exponent >= 0 {
            let mut whole = digits.checked_mul(10i128.checked_pow(u32::try_from(exponent).ok()?)?)?;
            if whole.abs() >= 1024 {
                let mut suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().peekable();
                while whole % 1024 == 0 && suffixes.len() > 1 {
                    whole /= 1024;
                    suffixes.next();
                }
                return Some(format!("{whole}{}", suffixes.next().unwrap_or(&"")));
            }
        }
        let spare = exponent.rem_euclid(3);
        let digits = digits.checked_mul(10i128.pow(u32::try_from(spare).ok()?))?;
        let suffix = match (exponent - spare, format) {
            (0, _) => "",
            (power, Format::Exponent) => return Some(format!("{digits}e{power}")),
            (-9, _) => "n",
            (-6, _) => "u",
            (-3, _) => "m",
            (3, _) => "k",
            (6, _) => "M",
            (9, _) => "G",
            (12, _) => "T",
            (15, _) => "P",
            (18, _) => "E",
            (power, _) => return Some(format!("{digits}e{power}")),
        };
        Some(format!("{digits}{suffix}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What a 1.37 server stores, and public report C-138 (kubernetes/kubernetes#140459).
    #[test]
    fn a_quantity_is_stored_in_its_shortest_form() {
        let cases = [
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1.441", "1441m"),
            ("12e6", "12e6"),
            ("1e3", "1e3"),
            ("1000", "1k"),
            ("1000k", "1M"),
            ("100Ki", "100Ki"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("1000Ki", "1000Ki"),
            ("0", "0"),
            ("0Gi", "0"),
            ("-1", "-1"),
            ("+1", "1"),
            (".5", "500m"),
            ("5.", "5"),
            ("0.0000000001", "1n"),
            ("-0.0000000001", "-1n"),
            ("1000E", "1e21"),
            ("0.1Gi", "107374182400m"),
            ("1.5Gi", "1536Mi"),
        ];
        for (text, stored) in cases {
            assert_eq!(canonical(&json!(text)).as_deref(), Some(stored), "{text}");
            assert_eq!(canonical(&json!(stored)).as_deref(), Some(stored), "{stored} is stored as it is");
        }
        assert_eq!(canonical(&json!(2)).as_deref(), Some("2"));
        assert_eq!(canonical(&json!(0.25)).as_deref(), Some("250m"));
    }

    #[test]
    fn what_is_no_quantity_or_too_large_to_count_is_left_alone() {
        for text in ["", "1 Gi", "1gi", "+-1", ".", "1e99999999999", "2E6024865272343"] {
            assert_eq!(canonical(&json!(text)), None, "{text}");
        }
    }

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
