//! A map's entries, each a message of its own, as a JSON object.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, MapAccess};

use super::super::error::Error;
use super::super::table::Kind;
use super::super::wire::{Broken, Reader, Wire};
use super::{Node, Part, Run, Value};

pub(crate) struct Entries<'de> {
    run: Run<'de>,
    kind: Kind,
    depth: u8,
    entry: Option<(&'de str, Value<'de>)>,
}

impl<'de> Entries<'de> {
    pub(super) fn new(kind: Kind, run: Run<'de>, depth: u8) -> Self {
        Self { run, kind, depth, entry: None }
    }

    /// The next key and its value. If a key is there twice, so it's shown twice.
    pub(crate) fn next_entry(&mut self) -> Result<Option<(&'de str, Value<'de>)>, Error> {
        let Some(wire) = self.run.next()? else { return Ok(None) };
        let (key, value) = entry(wire.bytes()?)?;
        let node = match (value, self.kind) {
            (Some(wire), kind) => Node::One(kind, wire),
            (None, Kind::Bytes) => Node::Text(""),
            (None, kind) => Node::Zero(kind),
        };
        Ok(Some((key, Value { node, depth: self.depth, part: Part::Any })))
    }
}

/// Key and value of an entry.
pub(in super::super) fn entry(bytes: &[u8]) -> Result<(&str, Option<Wire<'_>>), Broken> {
    let (mut key, mut value) = ("", None);
    let mut reader = Reader::new(bytes);
    while let Some((tag, wire)) = reader.field()? {
        match tag {
            1 => key = wire.text()?,
            2 => value = Some(wire),
            _ => {}
        }
    }
    Ok((key, value))
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((key, value)) = self.next_entry()? else { return Ok(None) };
        self.entry = Some((key, value));
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (key, value) = self.entry.take().ok_or_else(|| Error::new("a value was asked for before its key"))?;
        seed.deserialize(value).map_err(|error| error.below(key))
    }

    fn size_hint(&self) -> Option<usize> {
        self.run.count()
    }
}
