//! Walks a whole message, so that decoding it later can't fail.
//!
//! It refuses what [`deserialize`](super::deserialize) would refuse for whatever type, and numbers that are larger than
//! the field's type.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::deserialize::map::entry;
use super::envelope::{Envelope, MAGIC};
use super::error::Error;
use super::scalar;
use super::table::{Field, Kind, Message, Shape, Target, table};
use super::wire::{Reader, Wire};
use crate::error::DecodeError;

/// Less than what's decoded: what isn't set may be shown as a message too.
const DEPTH_MAX: u8 = super::DEPTH_MAX - 8;

/// Checks an object.
///
/// # Errors
/// Where its bytes aren't what the table says; the error names the field.
pub(crate) fn check(message: &Message, bytes: &[u8]) -> Result<(), DecodeError> {
    Ok(check_message(message, bytes, 0)?)
}

fn deeper(depth: u8) -> Result<u8, Error> {
    if depth < DEPTH_MAX { Ok(depth + 1) } else { Err(Error::new(format!("it nests deeper than {DEPTH_MAX} levels"))) }
}

fn check_message(message: &Message, bytes: &[u8], depth: u8) -> Result<(), Error> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(Error::new("it's larger than four gigabytes"));
    }
    Walk { message, depth: deeper(depth)?, seen: 0, embedded: 1 }.fields(0, bytes)
}

struct Walk<'m> {
    message: &'m Message,
    depth: u8,
    /// The messages that may be there once and are, a bit for each.
    seen: u64,
    /// The embedded ones that are there.
    embedded: u64,
}

impl Walk<'_> {
    /// The fields of the message or of an embedded one.
    fn fields(&mut self, tags: u8, bytes: &[u8]) -> Result<(), Error> {
        let mut reader = Reader::new(bytes);
        while let Some((tag, wire)) = reader.field()? {
            match self.message.target(tags, tag) {
                Target::Field(position) => {
                    let Some(field) = self.message.fields().get(usize::from(position)) else { continue };
                    self.field(field, position, wire).map_err(|error| {
                        let read = bytes.len() - reader.rest().len();
                        let error = if field.shape == Shape::List { error.at(place(bytes, read, tag)) } else { error };
                        error.below(field.name)
                    })?;
                }
                Target::Embedded(inner) => {
                    let bit = 1 << (inner & 63);
                    if self.embedded & bit != 0 {
                        return Err(Error::new(format!("the message of tag {tag} is there twice")));
                    }
                    self.embedded |= bit;
                    self.fields(inner, wire.bytes()?)?;
                }
                Target::Unknown => {}
            }
        }
        Ok(())
    }

    #[inline]
    fn field(&mut self, field: &Field, position: u8, wire: Wire<'_>) -> Result<(), Error> {
        match (field.shape, field.kind) {
            (Shape::One | Shape::Pointer, Kind::Message(_)) => {
                let bit = 1 << (position & 63);
                if self.seen & bit != 0 {
                    return Err(Error::new("it's there twice"));
                }
                self.seen |= bit;
                check_value(field.kind, wire, self.depth)
            }
            (Shape::One | Shape::Pointer, kind) => check_value(kind, wire, self.depth),
            (Shape::List, Kind::Bool | Kind::Int32 | Kind::Int64) => {
                check_numbers(field.kind, wire, deeper(self.depth)?)
            }
            (Shape::List, kind) => check_item(kind, Some(wire), deeper(self.depth)?),
            (Shape::Map, kind) => {
                let (key, value) = entry(wire.bytes()?)?;
                check_item(kind, value, deeper(self.depth)?).map_err(|error| error.below(key))
            }
        }
    }
}

/// A value of a list or a map, where types of Rust have no room for what shows as null.
fn check_item(kind: Kind, wire: Option<Wire<'_>>, depth: u8) -> Result<(), Error> {
    let is_set = match (kind, wire) {
        (Kind::Strings, wire) => wire.is_some(),
        (Kind::Time | Kind::MicroTime | Kind::SchemaOrArray(_) | Kind::SchemaOrStrings(_), None) => false,
        (Kind::Time | Kind::MicroTime | Kind::SchemaOrArray(_) | Kind::SchemaOrStrings(_), Some(wire)) => {
            !wire.bytes()?.is_empty()
        }
        _ => true,
    };
    if !is_set {
        return Err(Error::new("it isn't set"));
    }
    wire.map_or(Ok(()), |wire| check_value(kind, wire, depth))
}

/// How many fields of this tag there are before the one that ends at `end`.
fn place(message: &[u8], end: usize, tag: u32) -> usize {
    let mut reader = Reader::new(message.get(..end).unwrap_or_default());
    std::iter::from_fn(|| reader.field().ok().flatten()).filter(|(found, _)| *found == tag).count().saturating_sub(1)
}

/// A number, or several in one run of bytes.
fn check_numbers(kind: Kind, wire: Wire<'_>, depth: u8) -> Result<(), Error> {
    let Wire::Bytes(packed) = wire else { return check_value(kind, wire, depth) };
    let mut reader = Reader::new(packed);
    while !reader.rest().is_empty() {
        check_value(kind, Wire::Varint(reader.varint()?), depth)?;
    }
    Ok(())
}

fn check_value(kind: Kind, wire: Wire<'_>, depth: u8) -> Result<(), Error> {
    match kind {
        Kind::String => wire.text().map(|_| ())?,
        Kind::Bool | Kind::Int64 => wire.varint().map(|_| ())?,
        Kind::Int32 => scalar::int32(wire).map(|_| ())?,
        Kind::Double => scalar::double(wire).map(|_| ())?,
        Kind::Bytes => wire.bytes().map(|_| ())?,
        Kind::Strings => check_strings(wire.bytes()?, 1, depth)?,
        Kind::Message(number) => check_message(message(number)?, wire.bytes()?, depth)?,
        Kind::Time | Kind::MicroTime => scalar::time(wire.bytes()?, kind == Kind::MicroTime).map(|_| ())?,
        Kind::Duration => scalar::duration(wire.bytes()?).map(|_| ())?,
        Kind::Quantity => scalar::quantity(wire.bytes()?).map(|_| ())?,
        Kind::IntOrString => scalar::int_or_string(wire.bytes()?).map(|_| ())?,
        Kind::Raw => check_raw(scalar::raw(wire.bytes()?)?, depth)?,
        Kind::SchemaOrArray(number) => check_union(wire.bytes()?, depth, |tag, wire| match tag {
            1 => check_message(message(number)?, wire.bytes()?, depth),
            2 => check_message(message(number)?, wire.bytes()?, deeper(depth)?),
            _ => Ok(()),
        })?,
        Kind::SchemaOrBool(number) => check_union(wire.bytes()?, depth, |tag, wire| match tag {
            1 => Ok(wire.varint().map(|_| ())?),
            2 => check_message(message(number)?, wire.bytes()?, depth),
            _ => Ok(()),
        })?,
        Kind::SchemaOrStrings(number) => {
            check_union(wire.bytes()?, depth, |tag, wire| match tag {
                1 => check_message(message(number)?, wire.bytes()?, depth),
                _ => Ok(()),
            })?;
            check_strings(wire.bytes()?, 2, depth)?;
        }
    }
    Ok(())
}

fn check_union(
    bytes: &[u8],
    depth: u8,
    mut check: impl FnMut(u32, Wire<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    deeper(depth)?;
    let mut reader = Reader::new(bytes);
    while let Some((tag, wire)) = reader.field()? {
        check(tag, wire)?;
    }
    Ok(())
}

fn check_strings(bytes: &[u8], tag: u32, depth: u8) -> Result<(), Error> {
    check_union(bytes, depth, |found, wire| if found == tag { Ok(wire.text().map(|_| ())?) } else { Ok(()) })
}

fn check_raw(raw: &[u8], depth: u8) -> Result<(), Error> {
    if raw.is_empty() {
        return Ok(());
    }
    if raw.starts_with(MAGIC) {
        let envelope = Envelope::open(raw)?;
        return check_message(envelope.message()?, envelope.raw, depth);
    }
    json(raw, depth)
}

/// Checks that a text is JSON that any JSON parser takes, and nests no deeper than what's around it allows.
pub(super) fn json(text: &[u8], depth: u8) -> Result<(), Error> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let checked = Anything { depth }.deserialize(&mut json).and_then(|()| json.end());
    checked.map_err(|error| Error::new(DecodeError::from_json(error).to_string()))
}

/// The message of that number; the table refers to no others.
fn message(number: u32) -> Result<&'static Message, Error> {
    table().message(number).ok_or_else(|| Error::new("its form isn't known"))
}

/// Takes any JSON, and keeps nothing of it.
#[derive(Clone, Copy)]
struct Anything {
    depth: u8,
}

impl Anything {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        deeper(self.depth).map(|depth| Self { depth }).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Anything {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Anything {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.inner()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inner = self.inner()?;
        while entries.next_key_seed(inner)?.is_some() {
            entries.next_value_seed(inner)?;
        }
        Ok(())
    }
}
