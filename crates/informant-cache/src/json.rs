//! JSON text, looked at without decoding it.

mod block;
mod check;
mod cursor;
mod head;
mod nesting;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod stress;

pub(crate) use self::check::{Form, check};
pub(crate) use self::head::{Head, head, without};
pub(crate) use self::nesting::Nesting;

/// The position after the value that begins at `start` (white space before it allowed); `None` if it isn't whole.
///
/// Only brackets, texts and separators are looked at: what passes here needn't be JSON.
pub(crate) fn end_of_value(text: &[u8], start: usize) -> Option<usize> {
    let at = start + text.get(start..)?.iter().position(|byte| !byte.is_ascii_whitespace())?;
    match text.get(at)? {
        b'"' => end_of_text(text, at),
        b'{' | b'[' => Nesting::default().close(text.get(at..)?).map(|length| at + length),
        b'}' | b']' | b',' | b':' => None,
        _ => {
            let rest = text.get(at..)?;
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':') || byte.is_ascii_whitespace();
            Some(at + rest.iter().position(ends).unwrap_or(rest.len()))
        }
    }
}

/// The position after the text whose opening quote is at `start`.
pub(crate) fn end_of_text(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_value_is_found_whatever_it_is() {
        for value in ["{}", "[1,{\"a\":\"]\\\"\"}]", "\"a\\\\\"", "-1.5e3", "true", "null", "{\"a\":{\"b\":[[]]}}"] {
            let text = format!(" {value} , 1}}");
            assert_eq!(end_of_value(text.as_bytes(), 0), Some(value.len() + 1), "{value}");
        }
        for text in ["{\"a\":1", "", " ", ",1", "}"] {
            assert_eq!(end_of_value(text.as_bytes(), 0), None, "{text}");
        }
    }
}
