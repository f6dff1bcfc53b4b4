//! A message as a JSON object.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, MapAccess};

use super::super::error::Error;
use super::super::table::{FIELDS_MAX, Field, Kind, Message, Shape, Target};
use super::super::wire::{Broken, Reader, Wire};
use super::{Node, Part, Run, Value};

pub(crate) struct Fields<'de> {
    message: &'static Message,
    bytes: &'de [u8],
    /// Where each field is: of a list or map from the first to the last, of others the last.
    spans: [Span; FIELDS_MAX],
    /// Which fields are there, a bit for each.
    present: u64,
    /// Which are still to be shown.
    todo: u64,
    kind: Option<&'de str>,
    api_version: Option<&'de str>,
    /// The value of the name that was shown.
    next: Option<(&'static str, Value<'de>)>,
    depth: u8,
    part: Part,
}

#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    end: u32,
}

impl<'de> Fields<'de> {
    /// The fields of a message, to be [found](Self::find) first.
    #[inline]
    pub(super) fn new(
        message: &'static Message,
        bytes: &'de [u8],
        depth: u8,
        part: Part,
        types: Option<(&'de str, &'de str)>,
    ) -> Self {
        Self {
            message,
            bytes,
            spans: [Span::default(); FIELDS_MAX],
            present: 0,
            todo: 0,
            kind: types.map(|(_, kind)| kind),
            api_version: types.map(|(api_version, _)| api_version),
            next: None,
            depth,
            part,
        }
    }

    /// Finds the fields. It's apart from [`new`](Self::new) so that what's large isn't moved.
    pub(super) fn find(&mut self) -> Result<&mut Self, Error> {
        if u32::try_from(self.bytes.len()).is_err() {
            return Err(Error::new("it's larger than four gigabytes"));
        }
        let mut embedded = 1;
        self.find_in(0, self.bytes, 0, &mut embedded)?;
        self.todo = self.present | self.message.shown();
        if self.part == Part::TrimmedMetadata
            && let Some(position) = self.message.fields().iter().position(|field| field.name == "managedFields")
        {
            self.todo &= !(1 << position);
        }
        Ok(self)
    }

    /// Finds the fields of the message, or of an embedded one that begins at `base`.
    fn find_in(&mut self, tags: u8, bytes: &'de [u8], base: u32, embedded: &mut u64) -> Result<(), Error> {
        let mut reader = Reader::new(bytes);
        let mut start = base;
        while let Some((tag, wire)) = reader.field()? {
            // That all of it has a length of 32 bits was looked at in the beginning.
            let end = base + (bytes.len() - reader.rest().len()) as u32;
            match self.message.target(tags, tag) {
                Target::Field(position) => self.found(position, Span { start, end })?,
                Target::Embedded(inner) => {
                    let bit = 1 << (inner & 63);
                    if *embedded & bit != 0 {
                        return Err(Error::new(format!("the message of tag {tag} is there twice")));
                    }
                    *embedded |= bit;
                    let bytes = wire.bytes()?;
                    self.find_in(inner, bytes, end - bytes.len() as u32, embedded)?;
                }
                Target::Unknown => {}
            }
            start = end;
        }
        Ok(())
    }

    #[inline]
    fn found(&mut self, position: u8, span: Span) -> Result<(), Error> {
        let bit = 1 << (position & 63);
        let Some(place) = self.spans.get_mut(usize::from(position)) else { return Ok(()) };
        if self.present & bit == 0 {
            self.present |= bit;
            *place = span;
            return Ok(());
        }
        let Some(field) = self.message.fields().get(usize::from(position)) else { return Ok(()) };
        match (field.shape, field.kind) {
            (Shape::List | Shape::Map, _) => place.end = span.end,
            (Shape::One | Shape::Pointer, Kind::Message(_)) => {
                return Err(Error::new("it's there twice").below(field.name));
            }
            (Shape::One | Shape::Pointer, _) => *place = span,
        }
        Ok(())
    }

    /// The next name that's shown, and its value.
    pub(crate) fn next_field(&mut self) -> Result<Option<(&'static str, Value<'de>)>, Error> {
        let text = |text| Value { node: Node::Text(text), depth: self.depth, part: Part::Any };
        let shown = if let Some(kind) = self.kind.take() {
            ("kind", text(kind))
        } else if let Some(api_version) = self.api_version.take() {
            ("apiVersion", text(api_version))
        } else {
            loop {
                if self.todo == 0 {
                    return Ok(None);
                }
                let position = self.todo.trailing_zeros();
                self.todo &= self.todo - 1;
                let Some(field) = self.message.fields().get(position as usize) else { continue };
                if let Some(node) = self.node(field, position).map_err(|error| error.below(field.name))? {
                    let part = match self.part {
                        Part::Trimmed if field.name == "metadata" => Part::TrimmedMetadata,
                        Part::Any | Part::Trimmed | Part::TrimmedMetadata => Part::Any,
                    };
                    break (field.name, Value { node, depth: self.depth, part });
                }
            }
        };
        Ok(Some(shown))
    }

    /// What's shown of a field; `None` if it isn't.
    fn node(&self, field: &Field, position: u32) -> Result<Option<Node<'de>>, Error> {
        if self.present & 1 << position == 0 {
            // It's among those that are always shown.
            return Ok(Some(if field.shape == Shape::One { Node::Zero(field.kind) } else { Node::Null }));
        }
        let span = self.spans.get(position as usize).copied().unwrap_or_default();
        let bytes = self.bytes.get(span.start as usize..span.end as usize).unwrap_or_default();
        match field.shape {
            Shape::List => Ok(Some(Node::List(field.kind, Run::new(bytes, field.tag)))),
            Shape::Map => Ok(Some(Node::Map(field.kind, Run::new(bytes, field.tag)))),
            Shape::One | Shape::Pointer => {
                let (_, wire) = Reader::new(bytes).field()?.ok_or(Broken::Cut)?;
                let shown = field.shape == Shape::Pointer || is_shown(field, wire)?;
                Ok(shown.then_some(Node::One(field.kind, wire)))
            }
        }
    }
}

/// Whether a plain field with this value is shown.
#[inline]
fn is_shown(field: &Field, wire: Wire<'_>) -> Result<bool, Broken> {
    if field.omit_zero && matches!(field.kind, Kind::Time | Kind::MicroTime) {
        return Ok(!wire.bytes()?.is_empty());
    }
    if !field.omit_empty {
        return Ok(true);
    }
    Ok(match field.kind {
        Kind::String | Kind::Bytes => !wire.bytes()?.is_empty(),
        Kind::Bool | Kind::Int32 | Kind::Int64 => wire.varint()? != 0,
        Kind::Double => wire.double()? != 0.0,
        Kind::Strings => Reader::new(wire.bytes()?).last(1)?.is_some(),
        // A struct isn't empty to Go, whatever it holds.
        Kind::Message(_)
        | Kind::Time
        | Kind::MicroTime
        | Kind::Duration
        | Kind::Quantity
        | Kind::IntOrString
        | Kind::Raw
        | Kind::SchemaOrArray(_)
        | Kind::SchemaOrBool(_)
        | Kind::SchemaOrStrings(_) => true,
    })
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((name, value)) = self.next_field()? else { return Ok(None) };
        self.next = Some((name, value));
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (name, value) = self.next.take().ok_or_else(|| Error::new("a value was asked for before its name"))?;
        seed.deserialize(value).map_err(|error| error.below(name))
    }
}
