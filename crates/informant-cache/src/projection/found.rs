//! What a walk over an object found, and how a projection's fields are made of it.

use serde::de::DeserializeSeed;

use super::plan::Node;
use super::seed::{Interned, Nullable};
use super::{Field, Strings};
use crate::error::DecodeError;
use crate::protobuf::Value;

/// What a walk over an object found for the fields of a projection. The code that the derive makes reads it.
#[derive(Debug)]
pub struct Found<'a> {
    fields: &'static [Field],
    hits: Hits<'a>,
    strings: Option<&'a Strings>,
}

/// Values by field.
#[derive(Debug)]
pub(super) struct Hits<'a> {
    hits: Vec<Hit<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Hit<'a> {
    field: usize,
    value: Raw<'a>,
}

/// A value that isn't decoded yet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Raw<'a> {
    Json(&'a [u8]),
    Protobuf(Value<'a>),
    /// On the way to it there's something else than an object or a list, as this says.
    Wrong(&'a Node, &'static str),
}

// === impl Hits ===

impl<'a> Hits<'a> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { hits: Vec::with_capacity(capacity) }
    }

    pub(super) fn len(&self) -> usize {
        self.hits.len()
    }

    pub(super) fn push(&mut self, fields: &[usize], value: Raw<'a>) {
        self.hits.extend(fields.iter().map(|field| Hit { field: *field, value }));
    }

    /// Forgets what was found at or below a node after the first so many hits.
    pub(super) fn forget(&mut self, since: usize, node: &Node) {
        let mut position = 0;
        self.hits.retain(|hit| {
            position += 1;
            position <= since || !node.leads_to(hit.field)
        });
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Raw<'a>)> {
        self.hits.iter().map(|hit| (hit.field, hit.value))
    }

    pub(super) fn len_in_bytes(&self) -> usize {
        self.hits.iter().map(|hit| hit.value.len()).sum()
    }
}

impl Raw<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Json(text) => text.len(),
            // Its JSON is about twice as long.
            Self::Protobuf(value) => 2 * value.len(),
            Self::Wrong(..) => 0,
        }
    }
}

// === impl Found ===

impl<'a> Found<'a> {
    pub(super) fn new(fields: &'static [Field], mut hits: Hits<'a>, strings: Option<&'a Strings>) -> Self {
        // Those of one field stay in the order of the document.
        hits.hits.sort_by_key(|hit| hit.field);
        Self { fields, hits, strings }
    }

    /// How a text is read that's shared.
    #[doc(hidden)]
    #[must_use]
    pub fn interned(&self) -> Interned<'a> {
        Interned::new(self.strings)
    }

    /// The field's value; `None` if it's absent or null.
    ///
    /// # Errors
    /// If it isn't of the type.
    #[doc(hidden)]
    pub fn optional<T, S>(&self, field: usize, seed: S) -> Result<Option<T>, DecodeError>
    where
        S: for<'de> DeserializeSeed<'de, Value = T> + Copy,
    {
        match self.of(field).first() {
            Some(hit) => self.decode(hit, seed),
            None => Ok(None),
        }
    }

    /// The field's value.
    ///
    /// # Errors
    /// If it's absent or null, or isn't of the type.
    #[doc(hidden)]
    pub fn required<T, S>(&self, field: usize, seed: S) -> Result<T, DecodeError>
    where
        S: for<'de> DeserializeSeed<'de, Value = T> + Copy,
    {
        self.optional(field, seed)?.ok_or_else(|| {
            let Field { name, path, .. } = self.field(field);
            DecodeError::new(format!("{path}: it's absent, and the field `{name}` can't do without"))
        })
    }

    /// The field's value; the default if it's absent or null.
    ///
    /// # Errors
    /// If it isn't of the type.
    #[doc(hidden)]
    pub fn or_default<T, S>(&self, field: usize, seed: S) -> Result<T, DecodeError>
    where
        T: Default,
        S: for<'de> DeserializeSeed<'de, Value = T> + Copy,
    {
        Ok(self.optional(field, seed)?.unwrap_or_default())
    }

    /// All values that the field's path leads to, in the order of the document, but for those that are absent or null.
    ///
    /// # Errors
    /// If one isn't of the type.
    #[doc(hidden)]
    pub fn each<T, S>(&self, field: usize, seed: S) -> Result<Vec<T>, DecodeError>
    where
        S: for<'de> DeserializeSeed<'de, Value = T> + Copy,
    {
        let hits = self.of(field);
        let mut values = Vec::with_capacity(hits.len());
        for hit in hits {
            values.extend(self.decode(hit, seed)?);
        }
        Ok(values)
    }

    fn of(&self, field: usize) -> &[Hit<'a>] {
        let hits = &self.hits.hits;
        let start = hits.partition_point(|hit| hit.field < field);
        let found = hits.get(start..).unwrap_or_default();
        let end = found.iter().position(|hit| hit.field != field).unwrap_or(found.len());
        found.get(..end).unwrap_or_default()
    }

    fn field(&self, position: usize) -> Field {
        const NONE: Field = Field { name: "", path: "", steps: &[], opaque: false };
        self.fields.get(position).copied().unwrap_or(NONE)
    }

    fn decode<T, S>(&self, hit: &Hit<'_>, seed: S) -> Result<Option<T>, DecodeError>
    where
        S: for<'de> DeserializeSeed<'de, Value = T> + Copy,
    {
        match hit.value {
            Raw::Wrong(node, found) => Err(node.mismatch(found)),
            Raw::Protobuf(value) => Nullable(seed)
                .deserialize(value)
                .map_err(|error| DecodeError::from(error.below(self.field(hit.field).path))),
            Raw::Json(text) => json(text, seed).map_err(|error| {
                let path = self.field(hit.field).path;
                match within(text, seed) {
                    Some((inner, error)) => DecodeError::at(&joined(path, &inner), &error),
                    None => DecodeError::at(path, &error),
                }
            }),
        }
    }
}

fn json<T, S>(text: &[u8], seed: S) -> Result<Option<T>, serde_json::Error>
where
    S: for<'de> DeserializeSeed<'de, Value = T>,
{
    let mut decoder = serde_json::Deserializer::from_slice(text);
    let value = Nullable(seed).deserialize(&mut decoder)?;
    decoder.end()?;
    Ok(value)
}

/// Decodes once more to learn where in the value the error is, which the fast way doesn't say.
fn within<T, S>(text: &[u8], seed: S) -> Option<(String, serde_json::Error)>
where
    S: for<'de> DeserializeSeed<'de, Value = T>,
{
    let mut track = serde_path_to_error::Track::new();
    let mut decoder = serde_json::Deserializer::from_slice(text);
    let error = seed.deserialize(serde_path_to_error::Deserializer::new(&mut decoder, &mut track)).err()?;
    Some((track.path().to_string(), error))
}

fn joined(path: &str, inner: &str) -> String {
    match inner {
        "." => path.to_owned(),
        inner if inner.starts_with('[') => format!("{path}{inner}"),
        inner => format!("{path}.{inner}"),
    }
}
