//! Walks over an object's JSON along the paths of a plan.
//!
//! It visits the objects and lists that paths lead through; any other value is skipped as a piece of text. Of a key that
//! occurs twice the last counts, as for every JSON parser that makes a map.

use std::borrow::Cow;

use super::found::{Hits, Raw};
use super::plan::{Node, Pick};
use crate::error::DecodeError;
use crate::json::{end_of_text, end_of_value};

/// What the paths below `root` lead to in the document.
pub(super) fn walk<'a>(root: &'a Node, text: &'a [u8], fields: usize) -> Result<Hits<'a>, DecodeError> {
    let mut hits = Hits::new(fields);
    walk_on(root, text, &mut hits)?;
    Ok(hits)
}

/// Adds what the paths that go on from `node` lead to in a value that's JSON.
pub(super) fn walk_on<'a>(node: &'a Node, text: &'a [u8], hits: &mut Hits<'a>) -> Result<(), DecodeError> {
    let mut walk = Walk { text, hits };
    let start = walk.space(0);
    walk.inside(node, start).map(drop)
}

/// Whether a value that's JSON is an object with this scalar under this key.
pub(super) fn has(text: &[u8], key: &str, wanted: &str) -> Result<bool, DecodeError> {
    let walk = Walk { text, hits: &mut Hits::new(0) };
    walk.has(walk.space(0), key, wanted)
}

/// A key, and where its value begins.
type Entry<'a> = (Cow<'a, [u8]>, usize);

struct Walk<'a, 'h> {
    text: &'a [u8],
    hits: &'h mut Hits<'a>,
}

impl<'a> Walk<'a, '_> {
    /// Visits the value that begins at `at` or after white space there; returns where it ends.
    fn value(&mut self, node: &'a Node, at: usize) -> Result<usize, DecodeError> {
        let start = self.space(at);
        if node.leaves.is_empty() {
            return self.inside(node, start);
        }
        let (raw, end) = self.whole(start)?;
        self.hits.push(&node.leaves, Raw::Json(raw));
        if node.goes_on() { self.inside(node, start) } else { Ok(end) }
    }

    /// Goes on from the value that begins at `start`; returns where it ends.
    fn inside(&mut self, node: &'a Node, start: usize) -> Result<usize, DecodeError> {
        let first = self.byte(start)?;
        if first != b'{' && first != b'n' {
            self.hits.push(&node.keyed, Raw::Wrong(node, describe(first)));
        }
        if first != b'[' && first != b'n' {
            self.hits.push(&node.picked, Raw::Wrong(node, describe(first)));
        }
        match first {
            b'{' if !node.keys.is_empty() => self.object(node, start),
            b'[' if !node.picks.is_empty() => self.list(node, start),
            _ => self.skip(start),
        }
    }

    fn object(&mut self, node: &'a Node, start: usize) -> Result<usize, DecodeError> {
        let before = self.hits.len();
        // Which of the first 64 ways on were there already; of others it's assumed.
        let mut seen = 0_u64;
        let mut entries = Entries::new(start);
        while let Some((key, value)) = self.next_entry(&mut entries)? {
            let child = node.keys.iter().enumerate().find(|(_, (name, _))| name.as_bytes() == &*key);
            entries.at = match child {
                None => self.skip(value)?,
                Some((position, (_, child))) => {
                    let bit = u32::try_from(position).ok().and_then(|position| 1_u64.checked_shl(position));
                    if bit.is_none_or(|bit| seen & bit != 0) {
                        self.hits.forget(before, child);
                    }
                    seen |= bit.unwrap_or_default();
                    self.value(child, value)?
                }
            };
        }
        Ok(entries.at)
    }

    fn list(&mut self, node: &'a Node, start: usize) -> Result<usize, DecodeError> {
        // Which of the first 64 picks by value have got their element. Of others the first hit counts, later ones are lost.
        let mut done = 0_u64;
        let mut elements = Entries::new(start);
        let mut position = 0;
        while let Some(element) = self.next_element(&mut elements)? {
            let mut end = None;
            for (number, (pick, child)) in node.picks.iter().enumerate() {
                let bit = u32::try_from(number).ok().and_then(|number| 1_u64.checked_shl(number)).unwrap_or_default();
                let picked = match pick {
                    Pick::Each => true,
                    Pick::At(wanted) => *wanted == position,
                    Pick::Where(key, value) => done & bit == 0 && self.has(element, key, value)?,
                };
                if picked {
                    done |= bit;
                    end = Some(self.value(child, element)?);
                }
            }
            elements.at = match end {
                Some(end) => end,
                None => self.skip(element)?,
            };
            position += 1;
        }
        Ok(elements.at)
    }

    /// Whether the value at `at` is an object with this scalar under this key.
    fn has(&self, at: usize, key: &str, wanted: &str) -> Result<bool, DecodeError> {
        let mut has = false;
        if self.byte(at)? != b'{' {
            return Ok(false);
        }
        let mut entries = Entries::new(at);
        while let Some((found, value)) = self.next_entry(&mut entries)? {
            let (raw, end) = self.whole(value)?;
            if *found == *key.as_bytes() {
                has = match raw.first() {
                    Some(b'"') => *self.text(value, end)? == *wanted.as_bytes(),
                    _ => raw == wanted.as_bytes(),
                };
            }
            entries.at = end;
        }
        Ok(has)
    }

    /// The next key of an object, and where its value begins. At the end, `entries` is after the object.
    fn next_entry(&self, entries: &mut Entries) -> Result<Option<Entry<'a>>, DecodeError> {
        let Some(at) = self.next(entries, b'}')? else { return Ok(None) };
        if self.byte(at)? != b'"' {
            return Err(broken());
        }
        let end = end_of_text(self.text, at).ok_or_else(broken)?;
        let colon = self.space(end);
        if self.byte(colon)? != b':' {
            return Err(broken());
        }
        Ok(Some((self.text(at, end)?, self.space(colon + 1))))
    }

    /// Where the next element of a list begins.
    fn next_element(&self, entries: &mut Entries) -> Result<Option<usize>, DecodeError> {
        self.next(entries, b']')
    }

    fn next(&self, entries: &mut Entries, close: u8) -> Result<Option<usize>, DecodeError> {
        let at = self.space(entries.at);
        match self.byte(at)? {
            byte if byte == close => {
                entries.at = at + 1;
                Ok(None)
            }
            b',' if !entries.first => Ok(Some(self.space(at + 1))),
            _ if entries.first => {
                entries.first = false;
                Ok(Some(at))
            }
            _ => Err(broken()),
        }
    }

    /// What the text between quotes at these positions says.
    fn text(&self, start: usize, end: usize) -> Result<Cow<'a, [u8]>, DecodeError> {
        let plain = self.text.get(start + 1..end - 1).unwrap_or_default();
        if !plain.contains(&b'\\') {
            return Ok(Cow::Borrowed(plain));
        }
        let quoted = self.text.get(start..end).unwrap_or_default();
        let text: String = serde_json::from_slice(quoted).map_err(DecodeError::from_json)?;
        Ok(Cow::Owned(text.into_bytes()))
    }

    /// The value that begins at `start`, and where it ends.
    fn whole(&self, start: usize) -> Result<(&'a [u8], usize), DecodeError> {
        let end = self.skip(start)?;
        Ok((self.text.get(start..end).unwrap_or_default(), end))
    }

    fn skip(&self, start: usize) -> Result<usize, DecodeError> {
        end_of_value(self.text, start).ok_or_else(broken)
    }

    fn space(&self, mut at: usize) -> usize {
        while self.text.get(at).is_some_and(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
            at += 1;
        }
        at
    }

    fn byte(&self, at: usize) -> Result<u8, DecodeError> {
        self.text.get(at).copied().ok_or_else(broken)
    }
}

/// How far the entries of an object or a list have been visited.
struct Entries {
    /// After the last one's value; the caller moves it there.
    at: usize,
    first: bool,
}

impl Entries {
    /// The entries of what's opened at `start`.
    fn new(start: usize) -> Self {
        Self { at: start + 1, first: true }
    }
}

fn broken() -> DecodeError {
    DecodeError::new("the document isn't JSON, or ends too early")
}

fn describe(first: u8) -> &'static str {
    match first {
        b'"' => "a text",
        b'{' => "an object",
        b'[' => "a list",
        b't' | b'f' => "a boolean",
        b'-' | b'0'..=b'9' => "a number",
        _ => "something that isn't JSON",
    }
}
