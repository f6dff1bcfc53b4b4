//! Values that JSON shows in a form of their own: times, durations, quantities, and what's a number or a text.

use std::fmt::{self, Write as _};

use super::error::Error;
use super::wire::{Reader, Wire};

/// A short text that's made on the way, without an allocation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short {
    bytes: [u8; 48],
    length: usize,
}

/// A value that's a number or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Either<'b> {
    Number(i32),
    Text(&'b str),
}

/// The first second of the year 0, and the last that `jiff` knows, on the last day but one of the year 9999.
const FIRST_SECOND: i64 = -62_167_219_200;
const LAST_SECOND: i64 = 253_402_207_200;

/// `Timestamp`: seconds and nanoseconds since 1970; no bytes at all mean the zero time, which is null.
pub(super) fn time(bytes: &[u8], with_micros: bool) -> Result<Option<Short>, Error> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((tag, wire)) = reader.field()? {
        match tag {
            1 => seconds = wire.varint()?.cast_signed(),
            2 => nanos = wire.varint()?.cast_signed(),
            _ => {}
        }
    }
    if !(FIRST_SECOND..=LAST_SECOND).contains(&seconds) {
        return Err(Error::new("it's a time out of range"));
    }
    let micros = if with_micros { Some(micros(nanos)?) } else { None };
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let mut text = Short::default();
    text.digits(year, 4);
    text.push(b"-");
    text.digits(month, 2);
    text.push(b"-");
    text.digits(day, 2);
    text.push(b"T");
    text.digits(second / 3600, 2);
    text.push(b":");
    text.digits(second / 60 % 60, 2);
    text.push(b":");
    text.digits(second % 60, 2);
    if let Some(micros) = micros {
        text.push(b".");
        text.digits(micros, 6);
    }
    text.push(b"Z");
    Ok(Some(text))
}

fn micros(nanos: i64) -> Result<i64, Error> {
    if (0..1_000_000_000).contains(&nanos) {
        Ok(nanos / 1000)
    } else {
        Err(Error::new("its nanoseconds are out of range"))
    }
}

/// Year, month and day of the day that's so many days after 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    // In years that begin in March the leap day is the last; 400 of them always have the same number of days.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

/// Nanoseconds, written as Go writes durations: `1h30m0s`, `1.5s`, `20ms`.
pub(super) fn duration(bytes: &[u8]) -> Result<Short, Error> {
    let nanos = match Reader::new(bytes).last(1)? {
        Some(wire) => wire.varint()?.cast_signed(),
        None => 0,
    };
    let mut text = Short::default();
    // It can't be longer than what has room.
    let _ = write_duration(nanos, &mut text);
    Ok(text)
}

fn write_duration(nanos: i64, text: &mut Short) -> fmt::Result {
    if nanos < 0 {
        text.write_char('-')?;
    }
    let rest = nanos.unsigned_abs();
    let (unit, name, digits) = match rest {
        0 => return text.write_str("0s"),
        1..1_000 => (1, "ns", 0),
        1_000..1_000_000 => (1_000, "µs", 3),
        1_000_000..1_000_000_000 => (1_000_000, "ms", 6),
        _ => (1_000_000_000, "s", 9),
    };
    let (whole, mut fraction) = (rest / unit, rest % unit);
    match (name, whole / 3600, whole / 60 % 60) {
        ("s", 0, 0) => write!(text, "{whole}")?,
        ("s", 0, minutes) => write!(text, "{minutes}m{}", whole % 60)?,
        ("s", hours, minutes) => write!(text, "{hours}h{minutes}m{}", whole % 60)?,
        _ => write!(text, "{whole}")?,
    }
    if fraction > 0 {
        let mut width = digits;
        while fraction % 10 == 0 {
            fraction /= 10;
            width -= 1;
        }
        write!(text, ".{fraction:0width$}")?;
    }
    text.write_str(name)
}

/// A quantity travels as its text.
pub(super) fn quantity(bytes: &[u8]) -> Result<&str, Error> {
    match Reader::new(bytes).last(1)? {
        Some(wire) => Ok(wire.text()?),
        None => Ok("0"),
    }
}

pub(super) fn int_or_string(bytes: &[u8]) -> Result<Either<'_>, Error> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    let mut reader = Reader::new(bytes);
    while let Some((tag, wire)) = reader.field()? {
        match tag {
            1 => is_text = wire.varint()? == 1,
            2 => number = int32(wire)?,
            3 => text = wire.text()?,
            _ => {}
        }
    }
    Ok(if is_text { Either::Text(text) } else { Either::Number(number) })
}

pub(super) fn int32(wire: Wire<'_>) -> Result<i32, Error> {
    i32::try_from(wire.varint()?.cast_signed()).map_err(|_| Error::new("the number has more than 32 bits"))
}

/// A finite number: JSON has no others.
pub(super) fn double(wire: Wire<'_>) -> Result<f64, Error> {
    let number = wire.double()?;
    if number.is_finite() { Ok(number) } else { Err(Error::new("it isn't a finite number")) }
}

/// The JSON text, or envelope, of an object of any kind.
pub(super) fn raw(bytes: &[u8]) -> Result<&[u8], Error> {
    match Reader::new(bytes).last(1)? {
        Some(wire) => Ok(wire.bytes()?),
        None => Ok(&[]),
    }
}

// === impl Short ===

impl Default for Short {
    fn default() -> Self {
        Self { bytes: [0; 48], length: 0 }
    }
}

impl Short {
    pub(super) fn as_str(&self) -> &str {
        let text = self.bytes.get(..self.length).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }

    fn push(&mut self, text: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.length..self.length + text.len()) {
            room.copy_from_slice(text);
            self.length += text.len();
        }
    }

    /// A number of at most as many digits, with zeros in front.
    fn digits(&mut self, mut number: i64, count: usize) {
        if let Some(room) = self.bytes.get_mut(self.length..self.length + count) {
            for digit in room.iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
            self.length += count;
        }
    }
}

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::wire::put_varint;

    fn numbers(numbers: &[i64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (tag, number) in (1_u64..).zip(numbers) {
            put_varint(tag << 3, &mut bytes);
            put_varint(number.cast_unsigned(), &mut bytes);
        }
        bytes
    }

    #[test]
    fn times_are_shown_as_another_calendar_shows_them() {
        for seconds in (FIRST_SECOND..=LAST_SECOND).step_by(1_234_567_891).chain([-1, 0, 951_782_400, LAST_SECOND]) {
            let shown = time(&numbers(&[seconds, 1]), false).expect("a time").expect("not null");
            assert_eq!(shown.as_str(), jiff::Timestamp::new(seconds, 0).expect("in range").to_string());
        }
        let shown = time(&numbers(&[1_700_000_000, 12_345_678]), true).expect("a time").expect("not null");
        assert_eq!(shown.as_str(), "2023-11-14T22:13:20.012345Z");
        assert!(time(&[], false).expect("the zero time").is_none());
        assert!(time(&numbers(&[LAST_SECOND + 1]), false).is_err() && time(&numbers(&[0, -1]), true).is_err());
    }

    #[test]
    fn durations_are_shown_as_go_shows_them() {
        for (nanos, shown) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (20_000_000, "20ms"),
            (1_500_000_000, "1.5s"),
            (60_000_000_000, "1m0s"),
            (5_400_000_000_000, "1h30m0s"),
            (-3_600_050_000_000, "-1h0m0.05s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(duration(&numbers(&[nanos])).expect("a duration").as_str(), shown);
        }
    }

    #[test]
    fn a_number_or_a_text_is_what_it_says_it_is() {
        assert_eq!(int_or_string(&numbers(&[0, -7])).expect("a number"), Either::Number(-7));
        assert_eq!(int_or_string(&[0x08, 1, 0x10, 5, 0x1a, 1, b'x']).expect("a text"), Either::Text("x"));
        assert_eq!(int_or_string(&[]).expect("zero"), Either::Number(0));
        assert!(int_or_string(&numbers(&[0, 1 << 40])).is_err());
    }
}
