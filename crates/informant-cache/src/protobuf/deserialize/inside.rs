//! Into a value, for those who look for a few fields: what's passed by is never looked into.

use super::super::envelope::MAGIC;
use super::super::error::Error;
use super::super::scalar;
use super::super::table::Kind;
use super::super::wire::{Reader, Wire};
use super::fields::Fields;
use super::list::Items;
use super::map::Entries;
use super::{Node, Object, Run, Value, deeper};

/// What a value is, as far as there's something in it.
pub(crate) enum Inside<'de> {
    Null,
    Fields(Box<Fields<'de>>),
    Map(Entries<'de>),
    List(Items<'de>),
    /// An object of any kind, as JSON text.
    Json(&'de [u8]),
    /// Nothing to go into: what it is instead.
    Plain(&'static str),
}

impl<'de> Object<'de> {
    /// What the object has.
    pub(crate) fn inside(&self) -> Result<Inside<'de>, Error> {
        boxed(self.fields()?)
    }
}

impl<'de> Value<'de> {
    /// What the value has.
    pub(crate) fn inside(&self) -> Result<Inside<'de>, Error> {
        if self.is_null()? {
            return Ok(Inside::Null);
        }
        let (kind, wire) = match self.node {
            Node::Null => return Ok(Inside::Null),
            Node::Text(_) => return Ok(Inside::Plain("a text")),
            Node::List(kind, run) => return self.items(kind, run),
            Node::Map(kind, run) => return Ok(Inside::Map(Entries::new(kind, run, deeper(self.depth)?))),
            Node::Zero(kind) if kind.is_scalar() => (kind, Wire::Varint(0)),
            Node::Zero(kind) => (kind, Wire::Bytes(&[])),
            Node::One(kind, wire) => (kind, wire),
        };
        match kind {
            Kind::Message(number) => self.message_inside(number, wire.bytes()?),
            Kind::Strings => self.items(Kind::String, Run::new(wire.bytes()?, 1)),
            Kind::Raw => match scalar::raw(wire.bytes()?)? {
                raw if raw.starts_with(MAGIC) => self.nested(raw)?.inside(),
                raw => Ok(Inside::Json(raw)),
            },
            Kind::SchemaOrArray(number) | Kind::SchemaOrBool(number) | Kind::SchemaOrStrings(number) => {
                let bytes = wire.bytes()?;
                let (one, two) = (Reader::new(bytes).last(1)?, Reader::new(bytes).last(2)?);
                match (kind, one, two) {
                    (Kind::SchemaOrArray(_), _, Some(_)) => self.items(Kind::Message(number), Run::new(bytes, 2)),
                    (Kind::SchemaOrStrings(_), _, Some(_)) => self.items(Kind::String, Run::new(bytes, 2)),
                    (Kind::SchemaOrBool(_), _, Some(schema)) => self.message_inside(number, schema.bytes()?),
                    (Kind::SchemaOrBool(_), _, None) => Ok(Inside::Plain("a boolean")),
                    (_, Some(schema), None) => self.message_inside(number, schema.bytes()?),
                    (_, None, None) => Ok(Inside::Null),
                    (_, _, Some(_)) => Ok(Inside::Plain("a value")),
                }
            }
            Kind::Bool => Ok(Inside::Plain("a boolean")),
            Kind::Int32 | Kind::Int64 | Kind::Double => Ok(Inside::Plain("a number")),
            Kind::String
            | Kind::Bytes
            | Kind::Time
            | Kind::MicroTime
            | Kind::Duration
            | Kind::Quantity
            | Kind::IntOrString => Ok(Inside::Plain("a text")),
        }
    }

    /// How many bytes it is.
    pub(crate) fn len(&self) -> usize {
        match self.node {
            Node::One(_, Wire::Bytes(bytes)) => bytes.len(),
            Node::Text(text) => text.len(),
            Node::List(_, run) | Node::Map(_, run) => run.reader.rest().len(),
            Node::One(..) | Node::Zero(_) | Node::Null => 0,
        }
    }

    fn items(&self, kind: Kind, run: Run<'de>) -> Result<Inside<'de>, Error> {
        Ok(Inside::List(Items::new(kind, run, deeper(self.depth)?)))
    }

    fn message_inside(&self, number: u32, bytes: &'de [u8]) -> Result<Inside<'de>, Error> {
        boxed(self.fields(number, bytes)?)
    }
}

fn boxed(fields: Fields<'_>) -> Result<Inside<'_>, Error> {
    let mut fields = Box::new(fields);
    fields.find()?;
    Ok(Inside::Fields(fields))
}
