//! An object's bytes as a serde [`Deserializer`], which shows what its JSON would.
//!
//! A message is gone over once to learn where its fields are, without looking into them, and then shown in the order of
//! Go's JSON: what isn't set is left out or shown as Go would, what's embedded is shown in the place of the message that
//! holds it. Texts are borrowed from the bytes; nothing is allocated but what the target allocates for itself.

mod fields;
mod inside;
mod list;
pub(super) mod map;
mod value;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::forward_to_deserialize_any;

use self::fields::Fields;
pub(crate) use self::inside::Inside;
use super::DEPTH_MAX;
use super::error::Error;
use super::table::{Kind, Message, table};
use super::wire::{Broken, Reader, Wire};

/// The name of the newtype struct that asks for a [raw](Kind::Raw) value as the text that it is; others are shown as
/// they are.
pub(super) const RAW: &str = "$informant::Raw";

/// The bytes of an object, and what they mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Object<'de> {
    message: &'static Message,
    /// `apiVersion` and `kind`, which aren't in the bytes.
    types: Option<(&'de str, &'de str)>,
    bytes: &'de [u8],
    depth: u8,
    part: Part,
}

/// Which part of an object a message is, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Any,
    /// The object itself, of which `metadata.managedFields` isn't to be shown.
    Trimmed,
    /// The metadata of such an object.
    TrimmedMetadata,
}

/// A value of a field, or one of its values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'de> {
    node: Node<'de>,
    depth: u8,
    part: Part,
}

#[derive(Debug, Clone, Copy)]
enum Node<'de> {
    Null,
    Text(&'de str),
    One(Kind, Wire<'de>),
    /// What JSON shows for a value that was never set.
    Zero(Kind),
    List(Kind, Run<'de>),
    Map(Kind, Run<'de>),
}

/// The occurrences of one tag.
#[derive(Debug, Clone, Copy)]
struct Run<'de> {
    reader: Reader<'de>,
    tag: u32,
}

// === impl Object ===

impl<'de> Object<'de> {
    /// An object of the kind that the message is the form of.
    pub(crate) fn new(message: &'static Message, bytes: &'de [u8]) -> Self {
        Self { message, types: message.types(), bytes, depth: 0, part: Part::Any }
    }

    /// Shows `apiVersion` and `kind` as these.
    pub(crate) fn with_types(mut self, api_version: &'de str, kind: &'de str) -> Self {
        self.types = Some((api_version, kind));
        self
    }

    /// Leaves out `metadata.managedFields`.
    pub(crate) fn without_managed_fields(mut self) -> Self {
        self.part = Part::Trimmed;
        self
    }

    /// Decodes the object.
    pub(crate) fn decode<T: Deserialize<'de>>(self) -> Result<T, Error> {
        T::deserialize(self)
    }

    fn fields(&self) -> Result<Fields<'de>, Error> {
        Ok(Fields::new(self.message, self.bytes, deeper(self.depth)?, self.part, self.types))
    }
}

/// One level deeper, if that's allowed.
fn deeper(depth: u8) -> Result<u8, Error> {
    if depth < DEPTH_MAX { Ok(depth + 1) } else { Err(Error::new(format!("it nests deeper than {DEPTH_MAX} levels"))) }
}

impl<'de> Deserializer<'de> for Object<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut fields = self.fields()?;
        visitor.visit_map(fields.find()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut fields = self.fields()?;
        MapAccessDeserializer::new(fields.find()?).deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

// === impl Run ===

impl<'de> Run<'de> {
    fn new(bytes: &'de [u8], tag: u32) -> Self {
        Self { reader: Reader::new(bytes), tag }
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Wire<'de>>, Broken> {
        while let Some((tag, wire)) = self.reader.field()? {
            if tag == self.tag {
                return Ok(Some(wire));
            }
        }
        Ok(None)
    }

    /// How many there are; `None` if that can't be told.
    fn count(mut self) -> Option<usize> {
        let mut count = 0;
        while self.next().ok()?.is_some() {
            count += 1;
        }
        Some(count)
    }
}

/// The message of that number; the table refers to no others.
fn message(number: u32) -> Result<&'static Message, Error> {
    table().message(number).ok_or_else(|| Error::new("its form isn't known"))
}
