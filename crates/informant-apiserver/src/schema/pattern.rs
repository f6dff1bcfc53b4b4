//! `pattern`: a regular expression in RE2 syntax, compiled when it is first needed and kept with its schema node.
//!
//! RE2's and the regex crate's languages are nearly one. What differs is rewritten: in RE2 `\d`, `\w`, `\s` and `\b` know
//! ASCII only, a bracket inside a class is a literal, a brace that begins no repetition is a literal, and `\Q…\E` quotes.
//! The cache is bounded by the schema itself: one expression for each node, each under a size limit.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that one compiled expression may take; an expression past it counts as wrong.
const SIZE_LIMIT: usize = 4 << 20;

/// A regular expression as a schema holds it. Equality is that of the text.
#[derive(Debug, Clone, Default)]
pub struct Pattern {
    text: String,
    compiled: OnceLock<Result<Regex, String>>,
}

// === impl Pattern ===

impl Pattern {
    /// A pattern that isn't compiled yet.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), compiled: OnceLock::new() }
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Why the expression is wrong, if it is.
    pub fn error(&self) -> Option<&str> {
        self.regex().as_ref().err().map(String::as_str)
    }

    /// Whether the expression is found anywhere in `text`; a wrong expression is found nowhere.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex().as_ref().is_ok_and(|regex| regex.is_match(text))
    }

    fn regex(&self) -> &Result<Regex, String> {
        self.compiled.get_or_init(|| {
            RegexBuilder::new(&translate(&self.text)).size_limit(SIZE_LIMIT).build().map_err(|error| one_line(&error))
        })
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// The last line of a regex error: the ones before it draw the place.
fn one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().map_or_else(String::new, |line| line.trim_start_matches("error: ").to_owned())
}

/// An RE2 expression as one of the regex crate.
fn translate(re2: &str) -> String {
    let mut out = String::with_capacity(re2.len() + 16);
    let mut rest = re2;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '\\' => escape_outside_class(rest, &mut out),
            '[' => class(rest, &mut out),
            '{' if !starts_repetition(rest) => {
                out.push_str("\\{");
                &rest[1..]
            }
            other => {
                out.push(other);
                &rest[other.len_utf8()..]
            }
        };
    }
    out
}

/// Translates the escape at the start of `text` and returns what follows it.
fn escape_outside_class<'a>(text: &'a str, out: &mut String) -> &'a str {
    let after = &text[1..];
    let Some(letter) = after.chars().next() else {
        out.push('\\');
        return after;
    };
    let rest = &after[letter.len_utf8()..];
    match letter {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => out.push_str("[\\t\\n\\x0C\\r ]"),
        'S' => out.push_str("[^\\t\\n\\x0C\\r ]"),
        'b' => out.push_str("(?-u:\\b)"),
        'Q' => {
            let (quoted, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
            out.push_str(&regex::escape(quoted));
            return rest;
        }
        other => push_escape(other, out),
    }
    rest
}

/// An escape that means the same on both sides; `\<` and `\>` are plain signs in RE2.
fn push_escape(letter: char, out: &mut String) {
    if !matches!(letter, '<' | '>') {
        out.push('\\');
    }
    out.push(letter);
}

/// Translates the bracket expression at the start of `text` and returns what follows it.
fn class<'a>(text: &'a str, out: &mut String) -> &'a str {
    out.push('[');
    let mut rest = &text[1..];
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    // A bracket that closes nothing yet is a literal.
    if let Some(after) = rest.strip_prefix(']') {
        out.push_str("\\]");
        rest = after;
    }
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        match first {
            ']' => {
                out.push(']');
                return after;
            }
            '[' if rest.starts_with("[:") => {
                let end = rest.find(":]").map_or(1, |at| at + 2);
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            '[' | '&' | '~' => {
                out.push('\\');
                out.push(first);
                rest = after;
            }
            '\\' => rest = escape_in_class(after, out),
            other => {
                out.push(other);
                rest = after;
            }
        }
    }
    rest
}

/// Translates an escape inside a class; `after` is what follows the backslash.
fn escape_in_class<'a>(after: &'a str, out: &mut String) -> &'a str {
    let Some(letter) = after.chars().next() else {
        out.push('\\');
        return after;
    };
    match letter {
        'd' => out.push_str("0-9"),
        'D' => out.push_str("[^0-9]"),
        'w' => out.push_str("0-9A-Za-z_"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => out.push_str("\\t\\n\\x0C\\r "),
        'S' => out.push_str("[^\\t\\n\\x0C\\r ]"),
        other => push_escape(other, out),
    }
    &after[letter.len_utf8()..]
}

/// Whether a text that begins with a brace begins with `{n}`, `{n,}` or `{n,m}`.
fn starts_repetition(text: &str) -> bool {
    let Some((inside, _)) = text[1..].split_once('}') else { return false };
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        let pattern = Pattern::new(pattern);
        assert_eq!(pattern.error(), None, "{}", pattern.as_str());
        pattern.is_match(text)
    }

    #[test]
    fn a_pattern_is_searched_for_not_matched_whole() {
        assert!(matches("b+", "abbc"));
        assert!(!matches("^b+$", "abbc"));
    }

    #[test]
    fn classes_know_ascii_only() {
        assert!(matches(r"^\d$", "7"));
        assert!(!matches(r"^\d$", "٧"));
        assert!(!matches(r"^[\w-]+$", "é"));
        assert!(matches(r"^[\w.-]+$", "a-b.c_1"));
        assert!(matches(r"\bfoo\b", "a foo b"));
    }

    #[test]
    fn re2_literals_are_literals() {
        assert!(matches(r"^[[]$", "["));
        assert!(matches(r"^[]a]$", "]"));
        assert!(matches(r"^\${[a-z]+}$", "${name}"));
        assert!(matches(r"^a{2,3}$", "aaa"));
        assert!(matches(r"^[a&&b]+$", "a&b"));
        assert!(matches(r"^\Qa.b\E+$", "a.b"));
        assert!(!matches(r"^\Qa.b\E$", "axb"));
        assert!(matches(r"^[[:alpha:]]+\/x$", "abc/x"));
        assert!(matches(r"^\<a\>$", "<a>"));
    }

    #[test]
    fn a_wrong_expression_says_why_and_matches_nothing() {
        let pattern = Pattern::new("a(");
        assert!(pattern.error().is_some_and(|error| error.contains("group")), "{:?}", pattern.error());
        assert!(!pattern.is_match("a("));
        assert!(Pattern::new("(a{1000}){1000}").error().is_some());
    }
}
