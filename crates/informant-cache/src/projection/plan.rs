//! The paths of a projection as a tree, so that one walk over an object serves them all.

use std::fmt::Write as _;

use super::found::{Found, Hits};
use super::{Field, Kind, Projection, Step, Strings, json, protobuf};
use crate::document::{Document, Encoding};
use crate::error::DecodeError;
use crate::protobuf::Object;

/// What a [`Projection`] asks of an object. The derive makes it once per type.
#[derive(Debug)]
pub struct Plan {
    fields: &'static [Field],
    root: Node,
    /// The same of the fields alone whose size isn't known, if there are any.
    opaque: Option<Node>,
}

/// A place in the object that paths lead to or through.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The path to here.
    pub(super) path: String,
    /// The fields that take the whole value, by position.
    pub(super) leaves: Vec<usize>,
    /// Ways on if it's an object.
    pub(super) keys: Vec<(&'static str, Node)>,
    /// Ways on if it's a list.
    pub(super) picks: Vec<(Pick, Node)>,
    /// The fields that need an object here.
    pub(super) keyed: Vec<usize>,
    /// The fields that need a list here.
    pub(super) picked: Vec<usize>,
}

/// Which elements of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    Each,
    At(usize),
    Where(&'static str, &'static str),
}

// === impl Plan ===

impl Plan {
    /// The plan of these fields.
    #[doc(hidden)]
    #[must_use]
    pub fn new(_kind: Kind, fields: &'static [Field]) -> Self {
        let all = || fields.iter().enumerate();
        let opaque = fields.iter().any(|field| field.opaque);
        let root = Node::tree(all());
        Self { fields, root, opaque: opaque.then(|| Node::tree(all().filter(|(_, field)| field.opaque))) }
    }

    pub(super) fn read<V: Projection>(
        &self,
        document: &Document<'_>,
        strings: Option<&Strings>,
    ) -> Result<V, DecodeError> {
        let hits = self.walk(&self.root, document)?;
        V::read(&Found::new(self.fields, hits, strings))
    }

    /// The length of the values whose size in memory isn't known, for want of something better.
    pub(super) fn opaque_bytes(&self, document: &Document<'_>) -> usize {
        let Some(root) = &self.opaque else { return 0 };
        // It was read before, so it can be now.
        self.walk(root, document).map_or(0, |hits| hits.len_in_bytes())
    }

    fn walk<'a>(&self, root: &'a Node, document: &Document<'a>) -> Result<Hits<'a>, DecodeError> {
        match document.encoding() {
            Encoding::Json => json::walk(root, document.bytes(), self.fields.len()),
            Encoding::Protobuf(message) => {
                protobuf::walk(root, &Object::new(message, document.bytes()), self.fields.len())
            }
        }
    }
}

// === impl Node ===

impl Node {
    pub(super) fn tree(fields: impl Iterator<Item = (usize, &'static Field)>) -> Self {
        let mut root = Self::default();
        for (position, field) in fields {
            root.add(field.steps, position);
        }
        root
    }

    fn add(&mut self, steps: &[Step], field: usize) {
        let Some((step, rest)) = steps.split_first() else { return self.leaves.push(field) };
        let pick = match *step {
            Step::Key(key) => {
                self.keyed.push(field);
                return self.key(key).add(rest, field);
            }
            Step::Each => Pick::Each,
            Step::At(position) => Pick::At(position),
            Step::Where(key, value) => Pick::Where(key, value),
        };
        self.picked.push(field);
        self.pick(pick).add(rest, field);
    }

    fn key(&mut self, key: &'static str) -> &mut Self {
        let position = self.keys.iter().position(|(known, _)| *known == key);
        let position = position.unwrap_or_else(|| {
            let plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
            let path = match (plain, self.path.is_empty()) {
                (true, true) => key.to_owned(),
                (true, false) => format!("{}.{key}", self.path),
                (false, _) => format!("{}[{key:?}]", self.path),
            };
            self.keys.push((key, Self { path, ..Self::default() }));
            self.keys.len() - 1
        });
        &mut self.keys[position].1
    }

    fn pick(&mut self, pick: Pick) -> &mut Self {
        let position = self.picks.iter().position(|(known, _)| *known == pick);
        let position = position.unwrap_or_else(|| {
            let mut path = self.path.clone();
            // Writing to a text can't fail.
            let _ = match pick {
                Pick::Each => write!(path, "[*]"),
                Pick::At(position) => write!(path, "[{position}]"),
                Pick::Where(key, value) => write!(path, "[{key}={value}]"),
            };
            self.picks.push((pick, Self { path, ..Self::default() }));
            self.picks.len() - 1
        });
        &mut self.picks[position].1
    }

    /// Whether a field's value is at or below it.
    pub(super) fn leads_to(&self, field: usize) -> bool {
        [&self.leaves, &self.keyed, &self.picked].iter().any(|fields| fields.contains(&field))
    }

    /// Whether any path goes on from here.
    pub(super) fn goes_on(&self) -> bool {
        !self.keys.is_empty() || !self.picks.is_empty()
    }

    /// The error of a value that isn't what the paths through here need.
    pub(super) fn mismatch(&self, found: &str) -> DecodeError {
        let is_list = found == "an object" || self.keys.is_empty();
        let wanted = if is_list { "a list" } else { "an object" };
        let place = if self.path.is_empty() { "the document" } else { self.path.as_str() };
        DecodeError::new(format!("{place}: found {found}, expected {wanted}"))
    }
}
