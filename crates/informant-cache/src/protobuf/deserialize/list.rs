//! A repeated field as a JSON array.

use serde::de::{DeserializeSeed, SeqAccess};

use super::super::error::Error;
use super::super::table::Kind;
use super::super::wire::{Reader, Wire};
use super::{Node, Part, Run, Value};

pub(crate) struct Items<'de> {
    run: Run<'de>,
    /// Numbers may come packed, one run of bytes for all.
    packed: Reader<'de>,
    kind: Kind,
    position: usize,
    depth: u8,
}

impl<'de> Items<'de> {
    pub(super) fn new(kind: Kind, run: Run<'de>, depth: u8) -> Self {
        Self { run, packed: Reader::new(&[]), kind, position: 0, depth }
    }

    /// The next value.
    pub(crate) fn next_item(&mut self) -> Result<Option<Value<'de>>, Error> {
        let wire = self.next()?;
        Ok(wire.map(|wire| Value { node: Node::One(self.kind, wire), depth: self.depth, part: Part::Any }))
    }

    fn next(&mut self) -> Result<Option<Wire<'de>>, Error> {
        let numbers = matches!(self.kind, Kind::Bool | Kind::Int32 | Kind::Int64);
        loop {
            if !self.packed.rest().is_empty() {
                return Ok(Some(Wire::Varint(self.packed.varint()?)));
            }
            match self.run.next()? {
                Some(Wire::Bytes(packed)) if numbers => self.packed = Reader::new(packed),
                other => return Ok(other),
            }
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some(value) = self.next_item()? else { return Ok(None) };
        let position = self.position;
        self.position += 1;
        seed.deserialize(value).map(Some).map_err(|error| error.at(position))
    }

    fn size_hint(&self) -> Option<usize> {
        // So that a list takes no more memory than its items do.
        self.run.count()
    }
}
