//! The string formats that a schema may ask for. A format that isn't known holds for every string, as it does upstream.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::name_rules;

/// Formats that mean something, checked or not.
const KNOWN: [&str; 29] = [
    "binary",
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "double",
    "duration",
    "email",
    "float",
    "hexcolor",
    "hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
];

/// Whether a format is one that the API knows; a CRD with another one is stored with a warning.
pub(crate) fn is_known(format: &str) -> bool {
    KNOWN.contains(&format) || matches!(format, "uuid3" | "uuid4" | "uuid5")
}

/// Whether `text` has the format.
pub(crate) fn is_valid(format: &str, text: &str) -> bool {
    match format {
        "date" => is_date(text),
        "date-time" | "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "ipv4" => is_ipv4(text),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "byte" => !text.is_empty() && STANDARD.decode(text).is_ok(),
        "uri" => is_uri(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "hexcolor" => is_hex_color(text),
        "bsonobjectid" => text.len() == 24 && all_hex(text),
        "k8s-short-name" => name_rules::dns1123_label(text).is_none(),
        "k8s-long-name" => name_rules::dns1123_subdomain(text).is_none(),
        _ => true,
    }
}

fn all_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let plain = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// `2006-01-02`.
fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339: a date, `T`, a time with an optional fraction, and `Z` or an offset.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let Some(zone_at) = time.find(['Z', 'z', '+', '-']) else { return false };
    let (clock, zone) = time.split_at(zone_at);
    let (whole, fraction) = clock.split_once('.').map_or((clock, None), |(whole, fraction)| (whole, Some(fraction)));
    let fraction_fits =
        fraction.is_none_or(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    is_date(date) && is_clock(whole, &[23, 59, 59]) && fraction_fits && is_zone(zone)
}

fn is_zone(zone: &str) -> bool {
    matches!(zone, "Z" | "z") || zone.strip_prefix(['+', '-']).is_some_and(|offset| is_clock(offset, &[23, 59]))
}

/// Two-digit numbers with colons between, each within its limit.
fn is_clock(text: &str, limits: &[u32]) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == limits.len()
        && parts.iter().zip(limits).all(|(part, limit)| digits(part, 2).is_some_and(|number| number <= *limit))
}

/// Go's durations (`1h30m`, `-1.5s`, `0`) and the spelled-out ones (`3 days`).
fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_spelled_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(rest.len());
        let (amount, after) = rest.split_at(number);
        let has_digit = amount.bytes().any(|byte| byte.is_ascii_digit());
        if !has_digit || amount.matches('.').count() > 1 {
            return false;
        }
        let Some(unit) = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"].iter().find(|unit| {
            after.strip_prefix(**unit).is_some_and(|next| !next.starts_with(|sign: char| sign.is_alphabetic()))
        }) else {
            return false;
        };
        rest = &after[unit.len()..];
    }
    true
}

/// A number and a unit somewhere in the text.
fn is_spelled_duration(text: &str) -> bool {
    const UNITS: [&str; 27] = [
        "nano",
        "nanosec",
        "nanosecond",
        "ns",
        "us",
        "micro",
        "microsec",
        "microsecond",
        "milli",
        "millisec",
        "millisecond",
        "ms",
        "s",
        "sec",
        "second",
        "m",
        "min",
        "minute",
        "h",
        "hr",
        "hour",
        "d",
        "day",
        "w",
        "wk",
        "week",
        "µs",
    ];
    let mut rest = text;
    while let Some(start) = rest.find(|sign: char| sign.is_ascii_digit()) {
        let after = rest[start..].trim_start_matches(|sign: char| sign.is_ascii_digit()).trim_start();
        let end = after.find(|sign: char| !sign.is_alphabetic()).unwrap_or(after.len());
        let (unit, remainder) = after.split_at(end);
        let unit = unit.to_lowercase();
        let singular = unit.strip_suffix('s').unwrap_or(&unit);
        if UNITS.contains(&unit.as_str()) || UNITS.contains(&singular) {
            return true;
        }
        rest = remainder;
    }
    false
}

/// Four numbers up to 255; leading zeros are taken, as upstream takes them.
fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let fits = |part: &&str| {
        (1..=3).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u16>().is_ok_and(|number| number <= 255)
    };
    parts.len() == 4 && parts.iter().all(fits)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let limit = if address.parse::<Ipv4Addr>().is_ok() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    !bits.is_empty()
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|bits| bits <= limit)
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len()) && parts.iter().all(|part| part.len() == width && all_hex(part))
    };
    groups(':', 2, &[6, 8, 20]) || groups('-', 2, &[6, 8, 20]) || groups('.', 4, &[3, 4, 10])
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    const DASHES: [usize; 4] = [8, 12, 16, 20];
    let mut compact = String::with_capacity(32);
    for sign in text.chars() {
        // Each dash may be left out.
        if sign != '-' {
            compact.push(sign);
        } else if !DASHES.contains(&compact.len()) {
            return false;
        }
    }
    let dashes = text.len() - compact.len();
    compact.len() == 32
        && dashes <= DASHES.len()
        && all_hex(&compact)
        && version.is_none_or(|version| has_version(&compact, version))
}

/// The version is the 13th digit; from 4 on, the 17th says that the layout is the usual one.
fn has_version(digits: &str, version: char) -> bool {
    let digit = |index: usize| digits.chars().nth(index).map(|digit| digit.to_ascii_lowercase());
    digit(12) == Some(version) && (version == '3' || matches!(digit(16), Some('8' | '9' | 'a' | 'b')))
}

fn is_uri(text: &str) -> bool {
    let scheme_ok = text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
            && !rest.is_empty()
    });
    let signs_ok = !text.chars().any(|sign| sign.is_control() || sign == ' ');
    signs_ok && (scheme_ok || text.starts_with('/'))
}

fn is_email(text: &str) -> bool {
    // `Name <address>` is an address as well.
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(at), Some(inner)) => inner.get(at + 1..).unwrap_or(""),
        _ => text,
    };
    let local_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~.-".contains(&byte) || byte >= 128;
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        let local_fits = !local.is_empty()
            && local.bytes().all(local_sign)
            && !local.starts_with('.')
            && !local.ends_with('.')
            && !local.contains("..");
        local_fits && !domain.is_empty() && domain.split('.').all(|part| !part.is_empty() && !part.contains(' '))
    })
}

/// One word with single dashes, or labels with a last one of at least two letters.
fn is_hostname(text: &str) -> bool {
    let sign = |letter: char| letter.is_alphanumeric();
    let label = |part: &str| {
        (1..=63).contains(&part.len())
            && part.chars().all(|letter| sign(letter) || letter == '-')
            && part.starts_with(sign)
            && part.ends_with(sign)
    };
    let fits = match text.rsplit_once('.') {
        None => label(text) && !text.contains("--"),
        Some((front, last)) => {
            (2..=63).contains(&last.chars().count())
                && last.chars().all(char::is_alphabetic)
                && front.split('.').all(label)
        }
    };
    fits && text.len() <= 255
}

fn is_hex_color(text: &str) -> bool {
    let hex = text.strip_prefix('#').unwrap_or(text);
    matches!(hex.len(), 3 | 6) && all_hex(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_hold_for_good_values_and_not_for_bad_ones() {
        let table: [(&str, &[&str], &[&str]); 14] = [
            ("date", &["2024-02-29"], &["2023-02-29", "2024-1-01", "2024-13-01"]),
            (
                "date-time",
                &["2024-01-01T00:00:00Z", "2024-01-01T23:59:59.123456+02:00"],
                &["2024-01-01", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00", "2024-01-01 00:00:00Z"],
            ),
            (
                "duration",
                &["1h30m", "1.5s", "0", "-2m", "3 days", "1w", "1h 30m", "2weeks"],
                &["", "1", "h", "1x", "soon"],
            ),
            ("ipv4", &["10.0.0.1", "01.2.3.4"], &["10.0.0", "10.0.0.256", "::1"]),
            ("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "xyz"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33"]),
            ("mac", &["00:11:22:33:44:55", "0011.2233.4455"], &["00:11:22:33:44", "zz:11:22:33:44:55"]),
            (
                "uuid",
                &["123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"],
                &["123e4567", "123e4567-e89b-12d3-a456-42661417400g"],
            ),
            ("uuid4", &["9f8b1c2d-3e4f-4a5b-8c6d-7e8f9a0b1c2d"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("byte", &["aGVsbG8="], &["", "aGVsbG8", "%%%"]),
            ("uri", &["https://example.com/a?b=c"], &["example.com", "not a uri"]),
            ("email", &["a@example.com"], &["a", "@example.com", "a@"]),
            (
                "hostname",
                &["example.com", "host", "a1", "a-b", "xn--a.com", "1.co"],
                &["-a", "a_b", "a.b", "a--b", "host.", "a.c1", ""],
            ),
            ("k8s-short-name", &["abc-1"], &["a.b"]),
        ];
        for (format, good, bad) in table {
            for text in good {
                assert!(is_valid(format, text), "{format}: {text}");
            }
            for text in bad {
                assert!(!is_valid(format, text), "{format}: {text}");
            }
        }
        assert!(is_valid("something-else", "anything"));
    }
}
