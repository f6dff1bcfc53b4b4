//! One value as JSON shows it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{Deserializer, Error as _, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::super::envelope::{Envelope, MAGIC};
use super::super::error::Error;
use super::super::scalar::{self, Either};
use super::super::table::Kind;
use super::super::wire::{Reader, Wire};
use super::fields::Fields;
use super::list::Items;
use super::map::Entries;
use super::{Node, Object, RAW, Run, Value, deeper, message};
use crate::error::DecodeError;

impl<'de> Value<'de> {
    pub(super) fn is_null(&self) -> Result<bool, Error> {
        Ok(match self.node {
            Node::Null => true,
            Node::Text(_) | Node::List(..) | Node::Map(..) => false,
            Node::Zero(kind) => matches!(
                kind,
                Kind::Bytes
                    | Kind::Strings
                    | Kind::Time
                    | Kind::MicroTime
                    | Kind::Raw
                    | Kind::SchemaOrArray(_)
                    | Kind::SchemaOrStrings(_)
            ),
            Node::One(kind, wire) => match kind {
                Kind::Time | Kind::MicroTime => wire.bytes()?.is_empty(),
                Kind::Raw => matches!(scalar::raw(wire.bytes()?)?.trim_ascii(), b"" | b"null"),
                Kind::SchemaOrArray(_) | Kind::SchemaOrStrings(_) => {
                    let bytes = wire.bytes()?;
                    Reader::new(bytes).last(1)?.is_none() && Reader::new(bytes).last(2)?.is_none()
                }
                _ => false,
            },
        })
    }

    /// The text that the value is, if it's a plain one.
    fn text(&self) -> Result<Option<&'de str>, Error> {
        Ok(match self.node {
            Node::Text(text) => Some(text),
            Node::One(Kind::String, wire) => Some(wire.text()?),
            Node::One(Kind::Quantity, wire) => Some(scalar::quantity(wire.bytes()?)?),
            Node::One(Kind::IntOrString, wire) => match scalar::int_or_string(wire.bytes()?)? {
                Either::Text(text) => Some(text),
                Either::Number(_) => None,
            },
            Node::Zero(Kind::String) => Some(""),
            _ => None,
        })
    }

    pub(super) fn fields(&self, number: u32, bytes: &'de [u8]) -> Result<Fields<'de>, Error> {
        Ok(Fields::new(message(number)?, bytes, deeper(self.depth)?, self.part, None))
    }

    fn list<V: Visitor<'de>>(&self, kind: Kind, run: Run<'de>, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Items::new(kind, run, deeper(self.depth)?))
    }

    fn message<V: Visitor<'de>>(&self, number: u32, bytes: &'de [u8], visitor: V) -> Result<V::Value, Error> {
        let mut fields = Fields::new(message(number)?, bytes, deeper(self.depth)?, self.part, None);
        visitor.visit_map(fields.find()?)
    }

    fn zero<V: Visitor<'de>>(self, kind: Kind, visitor: V) -> Result<V::Value, Error> {
        match kind {
            Kind::String => visitor.visit_borrowed_str(""),
            Kind::Bool => visitor.visit_bool(false),
            Kind::Int32 | Kind::Int64 | Kind::Double => visitor.visit_u64(0),
            Kind::Bytes | Kind::Strings => visitor.visit_unit(),
            other => self.one(other, Wire::Bytes(&[]), visitor),
        }
    }

    fn one<V: Visitor<'de>>(self, kind: Kind, wire: Wire<'de>, visitor: V) -> Result<V::Value, Error> {
        match kind {
            Kind::String => visitor.visit_borrowed_str(wire.text()?),
            Kind::Message(number) => self.message(number, wire.bytes()?, visitor),
            Kind::Bool => visitor.visit_bool(wire.varint()? != 0),
            Kind::Int32 => integer(i64::from(scalar::int32(wire)?), visitor),
            Kind::Int64 => integer(wire.varint()?.cast_signed(), visitor),
            Kind::Double => double(scalar::double(wire)?, visitor),
            Kind::Bytes => visitor.visit_string(BASE64.encode(wire.bytes()?)),
            Kind::Strings => self.list(Kind::String, Run::new(wire.bytes()?, 1), visitor),
            Kind::Time | Kind::MicroTime => match scalar::time(wire.bytes()?, kind == Kind::MicroTime)? {
                Some(text) => visitor.visit_str(text.as_str()),
                None => visitor.visit_unit(),
            },
            Kind::Duration => visitor.visit_str(scalar::duration(wire.bytes()?)?.as_str()),
            Kind::Quantity => visitor.visit_borrowed_str(scalar::quantity(wire.bytes()?)?),
            Kind::IntOrString => match scalar::int_or_string(wire.bytes()?)? {
                Either::Text(text) => visitor.visit_borrowed_str(text),
                Either::Number(number) => integer(i64::from(number), visitor),
            },
            Kind::Raw => self.raw(scalar::raw(wire.bytes()?)?, visitor),
            Kind::SchemaOrArray(number) => {
                let bytes = wire.bytes()?;
                match (Reader::new(bytes).last(2)?, Reader::new(bytes).last(1)?) {
                    (Some(_), _) => self.list(Kind::Message(number), Run::new(bytes, 2), visitor),
                    (None, Some(one)) => self.message(number, one.bytes()?, visitor),
                    (None, None) => visitor.visit_unit(),
                }
            }
            Kind::SchemaOrBool(number) => {
                let bytes = wire.bytes()?;
                match (Reader::new(bytes).last(2)?, Reader::new(bytes).last(1)?) {
                    (Some(schema), _) => self.message(number, schema.bytes()?, visitor),
                    (None, Some(allows)) => visitor.visit_bool(allows.varint()? != 0),
                    (None, None) => visitor.visit_bool(false),
                }
            }
            Kind::SchemaOrStrings(number) => {
                let bytes = wire.bytes()?;
                match (Reader::new(bytes).last(2)?, Reader::new(bytes).last(1)?) {
                    (Some(_), _) => self.list(Kind::String, Run::new(bytes, 2), visitor),
                    (None, Some(schema)) => self.message(number, schema.bytes()?, visitor),
                    (None, None) => visitor.visit_unit(),
                }
            }
        }
    }

    fn raw<V: Visitor<'de>>(self, raw: &'de [u8], visitor: V) -> Result<V::Value, Error> {
        if raw.is_empty() {
            return visitor.visit_unit();
        }
        if raw.starts_with(MAGIC) {
            return self.nested(raw)?.deserialize_any(visitor);
        }
        let mut json = serde_json::Deserializer::from_slice(raw);
        json.deserialize_any(visitor).and_then(|value| json.end().map(|()| value)).map_err(json_error)
    }

    /// The object in an envelope of its own.
    pub(super) fn nested(&self, raw: &'de [u8]) -> Result<Object<'de>, Error> {
        let envelope = Envelope::open(raw)?;
        let object = Object::new(envelope.message()?, envelope.raw).with_types(envelope.api_version, envelope.kind);
        Ok(Object { depth: self.depth, ..object })
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it's used as a function that maps an error")]
fn json_error(error: serde_json::Error) -> Error {
    Error::new(DecodeError::from_json(error).to_string())
}

/// As a JSON parser shows it.
fn integer<'de, V: Visitor<'de>>(number: i64, visitor: V) -> Result<V::Value, Error> {
    match u64::try_from(number) {
        Ok(number) => visitor.visit_u64(number),
        Err(_) => visitor.visit_i64(number),
    }
}

/// A whole number stays one, as in Go's JSON.
fn double<'de, V: Visitor<'de>>(number: f64, visitor: V) -> Result<V::Value, Error> {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        integer(number as i64, visitor)
    } else {
        visitor.visit_f64(number)
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node {
            Node::One(kind, wire) => self.one(kind, wire, visitor),
            Node::Text(text) => visitor.visit_borrowed_str(text),
            Node::Null => visitor.visit_unit(),
            Node::Zero(kind) => self.zero(kind, visitor),
            Node::List(kind, run) => self.list(kind, run, visitor),
            Node::Map(kind, run) => visitor.visit_map(Entries::new(kind, run, deeper(self.depth)?)),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_null()? { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        match self.node {
            Node::One(Kind::Raw, wire) if name == RAW => {
                let raw = scalar::raw(wire.bytes()?)?;
                if raw.is_empty() || raw.starts_with(MAGIC) {
                    self.deserialize_any(visitor)
                } else {
                    super::super::check::json(raw, self.depth)?;
                    visitor.visit_borrowed_bytes(raw)
                }
            }
            _ if name == RAW => self.deserialize_any(visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Some(text) = self.text()? {
            return BorrowedStrDeserializer::new(text).deserialize_enum(name, variants, visitor);
        }
        match self.node {
            Node::One(Kind::Message(number), wire) => {
                let mut fields = self.fields(number, wire.bytes()?)?;
                MapAccessDeserializer::new(fields.find()?).deserialize_enum(name, variants, visitor)
            }
            Node::Map(kind, run) => {
                let entries = Entries::new(kind, run, deeper(self.depth)?);
                MapAccessDeserializer::new(entries).deserialize_enum(name, variants, visitor)
            }
            Node::One(Kind::Raw, wire) => {
                let raw = scalar::raw(wire.bytes()?)?;
                if raw.starts_with(MAGIC) {
                    return self.nested(raw)?.deserialize_enum(name, variants, visitor);
                }
                let mut json = serde_json::Deserializer::from_slice(raw);
                let value = json.deserialize_enum(name, variants, visitor);
                value.and_then(|value| json.end().map(|()| value)).map_err(json_error)
            }
            _ => Err(Error::invalid_type(Unexpected::Other("another value"), &"a text or a map")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}
