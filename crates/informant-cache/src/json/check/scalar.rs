//! Numbers, escapes, times and base64, as far as they're sure to decode.

use crate::json::cursor::Cursor;

/// A number longer than this may be out of range.
const NUMBER_LENGTH_MAX: usize = 100;
/// Digits of an integer that surely fits 64 bits.
const DIGITS_MAX: usize = 18;

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Integer(i64),
    /// Not an integer, or a very long one, or `-0`, which `serde_json` doesn't take for an integer.
    Other,
}

/// Goes past an integer.
#[inline]
pub(super) fn integer(cursor: &mut Cursor<'_>) -> Option<i64> {
    match number(cursor)? {
        Number::Integer(integer) => Some(integer),
        Number::Other => None,
    }
}

/// Goes past a number that's surely within the range of all that holds numbers.
#[inline]
pub(super) fn number(cursor: &mut Cursor<'_>) -> Option<Number> {
    let text = cursor.rest();
    let is_negative = text.first() == Some(&b'-');
    let start = usize::from(is_negative);
    let (mut at, mut value) = (start, 0_i64);
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    let digits = at - start;
    if digits == 0 || (digits > 1 && text.get(start) == Some(&b'0')) || digits > NUMBER_LENGTH_MAX {
        return None;
    }
    if matches!(text.get(at), Some(b'.' | b'e' | b'E')) {
        cursor.at += at + fraction(text.get(at..)?)?;
        return Some(Number::Other);
    }
    cursor.at += at;
    if digits > DIGITS_MAX || (is_negative && value == 0) {
        return Some(Number::Other);
    }
    Some(Number::Integer(if is_negative { -value } else { value }))
}

/// The length of what follows a number's integer.
#[cold]
fn fraction(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| Some(text.get(from..)?.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let mut at = 0;
    if text.first() == Some(&b'.') {
        let count = digits(1).filter(|count| (1..=NUMBER_LENGTH_MAX).contains(count))?;
        at = 1 + count;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(text.get(at), Some(b'-' | b'+')));
        // Three digits may be too many.
        at += digits(at).filter(|count| (1..=2).contains(count))?;
    }
    Some(at)
}

/// Goes past a backslash and what it escapes.
#[cold]
pub(super) fn escape(cursor: &mut Cursor<'_>) -> Option<()> {
    let text = cursor.rest();
    cursor.at += match text.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
        b'u' => match code_unit(text)? {
            // Half of a pair; the other half must follow.
            0xd800..=0xdbff => (0xdc00..=0xdfff).contains(&code_unit(text.get(6..)?)?).then_some(12)?,
            0xdc00..=0xdfff => return None,
            _ => 6,
        },
        _ => return None,
    };
    Some(())
}

/// The number in `\u12ab`.
fn code_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |number, digit| Some(number << 4 | char::from(*digit).to_digit(16)?))
}

/// Whether it's a time as a server writes it: `2026-03-01T10:00:51Z`, with a fraction or without, and one that there is.
pub(super) fn is_time(text: &[u8]) -> bool {
    let Some((time, rest)) = text.split_first_chunk::<19>() else { return false };
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2] = *time else {
        return false;
    };
    let two = |tens: u8, ones: u8| {
        let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
        (tens < 10 && ones < 10).then(|| u16::from(tens) * 10 + u16::from(ones))
    };
    let (Some(century), Some(year), Some(month), Some(day)) = (two(y1, y2), two(y3, y4), two(m1, m2), two(d1, d2))
    else {
        return false;
    };
    let (Some(hour), Some(minute), Some(second)) = (two(h1, h2), two(n1, n2), two(s1, s2)) else { return false };
    let year = century * 100 + year;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u16::from(is_leap),
        _ => return false,
    };
    let fraction = rest.strip_suffix(b"Z").map(|rest| rest.strip_prefix(b"."));
    let is_end = match fraction {
        Some(Some(digits)) => (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit),
        Some(None) => rest.len() == 1,
        None => false,
    };
    // The last days of the last year are beyond some offsets.
    (1..9999).contains(&year) && (1..=days).contains(&day) && hour < 24 && minute < 60 && second < 60 && is_end
}

/// Whether it's base64 with its padding, and without bits that mean nothing.
pub(super) fn is_base64(text: &[u8]) -> bool {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (digits, unused) = match text {
        [digits @ .., b'=', b'='] => (digits, 0b1111),
        [digits @ .., b'='] => (digits, 0b11),
        digits => (digits, 0),
    };
    let last = digits.last().and_then(|last| value(*last)).unwrap_or_default();
    text.len().is_multiple_of(4) && last & unused == 0 && digits.iter().all(|byte| value(*byte).is_some())
}
