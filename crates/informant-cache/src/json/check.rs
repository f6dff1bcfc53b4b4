//! Whether a JSON text is sure to decode, found out without decoding it.

mod scalar;

use std::any::TypeId;

use kube::api::{DynamicObject, TypeMeta};

use super::cursor::{Cursor, Quoted};
use crate::protobuf::table::{Field, Kind, Message, Shape, Table, table};

/// Arrays and objects within each other that `serde_json` takes.
const DEPTH_MAX: usize = 127;

/// It isn't sure that a text decodes: it may well, but only decoding it tells, and says what's wrong if it doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsure;

/// What a text is to decode as.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// A `serde_json::Value`.
    #[cfg(any(test, fuzzing))]
    Any,
    /// `k8s_openapi`'s type of the kind that has this message, whatever its version.
    Kind(&'static Message),
    /// A `kube::api::DynamicObject`: what isn't metadata may be anything.
    Dynamic,
}

impl Form {
    /// The form of a type's objects, if it's known.
    pub(crate) fn of<T: 'static>(types: &TypeMeta) -> Option<Self> {
        if TypeId::of::<T>() == TypeId::of::<DynamicObject>() {
            return Some(Self::Dynamic);
        }
        // A type of somebody else's may have other fields.
        let is_generated = std::any::type_name::<T>().starts_with("k8s_openapi::");
        table().kind(&types.api_version, &types.kind).filter(|_| is_generated).map(Self::Kind)
    }
}

/// Checks that a text is JSON, its encoding included, and decodes.
///
/// It's far quicker than decoding, and takes nearly all that servers write. What it isn't sure of: numbers out of all
/// measure, times with an offset, fields of a kind that the table doesn't know, and all that's wrong.
///
/// # Errors
/// If it's not sure; then decode the text once.
pub(crate) fn check(text: &[u8], form: Form) -> Result<(), Unsure> {
    let mut check = Check { cursor: Cursor::new(text), table: table(), depth: 0 };
    let checked = match form {
        #[cfg(any(test, fuzzing))]
        Form::Any => check.any(),
        Form::Kind(message) => check.message(message),
        Form::Dynamic => check.dynamic(),
    };
    let is_json = checked.is_some() && check.cursor.is_at_end();
    let is_sure = is_json && (!check.cursor.foreign() || std::str::from_utf8(text).is_ok());
    if is_sure { Ok(()) } else { Err(Unsure) }
}

struct Check<'a> {
    cursor: Cursor<'a>,
    table: &'static Table,
    depth: usize,
}

impl<'a> Check<'a> {
    /// An object whose fields the message says.
    fn message(&mut self, message: &'static Message) -> Option<()> {
        // Servers write fields in the order of the message.
        let mut expected = 0;
        self.fields(|check, name| {
            if let Some((position, field)) = find(message.fields(), expected, name) {
                expected = position + 1;
                return check.field(field);
            }
            match (message.types(), name) {
                (Some((api_version, _)), b"apiVersion") => check.constant(api_version),
                (Some((_, kind)), b"kind") => check.constant(kind),
                // A type of an older or newer Kubernetes than the table's may know it.
                _ => None,
            }
        })
    }

    /// An object of which only the metadata's fields are known.
    fn dynamic(&mut self) -> Option<()> {
        let Kind::Message(metadata) = self.table.kind("v1", "Pod")?.field("metadata")?.kind else { return None };
        let metadata = self.table.message(metadata)?;
        let mut has_metadata = false;
        self.fields(|check, name| {
            if name != b"metadata" {
                // See `any_object`.
                return if name.starts_with(b"$") { None } else { check.any() };
            }
            // Of this type no field may come twice.
            let is_first = !std::mem::replace(&mut has_metadata, true);
            is_first.then(|| check.message(metadata))?
        })
    }

    #[inline]
    fn field(&mut self, field: &Field) -> Option<()> {
        let first = self.cursor.peek()?;
        if first == b'n' {
            return self.cursor.word(b"null");
        }
        match field.shape {
            Shape::One | Shape::Pointer => self.value(field.kind, first),
            Shape::List => self.list(|check| check.item(field.kind)),
            Shape::Map => self.map(|check| check.item(field.kind)),
        }
    }

    /// A value in a list or map. There null is a value, and not that there's none.
    #[inline]
    fn item(&mut self, kind: Kind) -> Option<()> {
        let first = self.cursor.peek()?;
        if first == b'n' && kind == Kind::Bytes {
            return self.cursor.word(b"null");
        }
        self.value(kind, first)
    }

    #[inline]
    fn value(&mut self, kind: Kind, first: u8) -> Option<()> {
        match kind {
            Kind::String => self.text().map(|_| ()),
            Kind::Bool => self.bool(first),
            Kind::Int32 => i32::try_from(scalar::integer(&mut self.cursor)?).ok().map(|_| ()),
            Kind::Int64 => scalar::integer(&mut self.cursor).map(|_| ()),
            Kind::Double => scalar::number(&mut self.cursor).map(|_| ()),
            Kind::Message(number) => self.message(self.table.message(number)?),
            Kind::Strings => self.strings(),
            Kind::Time | Kind::MicroTime => self.plain().filter(|text| scalar::is_time(text)).map(|_| ()),
            Kind::Bytes => self.plain().filter(|text| scalar::is_base64(text)).map(|_| ()),
            Kind::Quantity if first != b'"' => scalar::number(&mut self.cursor).map(|_| ()),
            Kind::IntOrString if first != b'"' => self.value(Kind::Int32, first),
            Kind::Quantity | Kind::IntOrString => self.text().map(|_| ()),
            Kind::Raw => self.any(),
            Kind::SchemaOrArray(_) if first == b'[' => self.list(|check| check.item(as_message(kind)?)),
            Kind::SchemaOrBool(_) if first != b'{' => self.bool(first),
            Kind::SchemaOrStrings(_) if first == b'[' => self.strings(),
            Kind::SchemaOrArray(_) | Kind::SchemaOrBool(_) | Kind::SchemaOrStrings(_) => {
                self.value(as_message(kind)?, first)
            }
            Kind::Duration => None,
        }
    }

    fn strings(&mut self) -> Option<()> {
        self.list(|check| check.text().map(|_| ()))
    }

    /// Any value at all.
    fn any(&mut self) -> Option<()> {
        match self.cursor.peek()? {
            b'"' => self.text().map(|_| ()),
            b'{' => self.any_object(),
            b'[' => self.list(Self::any),
            b'n' => self.cursor.word(b"null"),
            first @ (b't' | b'f') => self.bool(first),
            _ => scalar::number(&mut self.cursor).map(|_| ()),
        }
    }

    fn any_object(&mut self) -> Option<()> {
        self.members(|check, Quoted { bytes, escaped }| {
            // With some of its features on, serde_json takes names of its own for something else.
            match bytes.first() {
                Some(b'$') if escaped || bytes.starts_with(b"$serde_json") => None,
                Some(b'\\') if bytes.starts_with(br"\u0024") => None,
                _ => check.any(),
            }
        })
    }

    #[inline]
    fn list(&mut self, item: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        if !self.enter(b'[', b']')? {
            return Some(());
        }
        loop {
            item(self)?;
            if !self.goes_on(b']')? {
                return Some(());
            }
        }
    }

    #[inline]
    fn map(&mut self, item: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        self.members(|check, _| item(check))
    }

    /// An object whose fields are known by their names.
    #[inline(always)]
    fn fields(&mut self, mut value: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        self.members(|check, Quoted { bytes, escaped }| if escaped { None } else { value(check, bytes) })
    }

    #[inline(always)]
    fn members(&mut self, mut value: impl FnMut(&mut Self, Quoted<'a>) -> Option<()>) -> Option<()> {
        if !self.enter(b'{', b'}')? {
            return Some(());
        }
        loop {
            let name = self.text()?;
            self.cursor.take(b':')?;
            value(self, name)?;
            if !self.goes_on(b'}')? {
                return Some(());
            }
        }
    }

    /// Goes past an opening bracket, and past the closing one if there's nothing between: whether there is.
    #[inline(always)]
    fn enter(&mut self, open: u8, close: u8) -> Option<bool> {
        self.cursor.take(open)?;
        if self.cursor.peek()? == close {
            self.cursor.at += 1;
            // An empty one counts too.
            return (self.depth < DEPTH_MAX).then_some(false);
        }
        self.depth += 1;
        (self.depth <= DEPTH_MAX).then_some(true)
    }

    /// Goes past what follows a value: whether there's another before the closing bracket.
    #[inline(always)]
    fn goes_on(&mut self, close: u8) -> Option<bool> {
        let byte = self.cursor.peek()?;
        self.cursor.at += 1;
        if byte == b',' {
            return Some(true);
        }
        self.depth -= 1;
        (byte == close).then_some(false)
    }

    #[inline(always)]
    fn text(&mut self) -> Option<Quoted<'a>> {
        self.cursor.quoted_by(scalar::escape)
    }

    /// A text without escapes.
    #[inline]
    fn plain(&mut self) -> Option<&'a [u8]> {
        self.text().filter(|text| !text.escaped).map(|text| text.bytes)
    }

    fn constant(&mut self, expected: &str) -> Option<()> {
        self.plain().filter(|text| *text == expected.as_bytes()).map(|_| ())
    }

    #[inline]
    fn bool(&mut self, first: u8) -> Option<()> {
        self.cursor.word(if first == b't' { b"true" } else { b"false" })
    }
}

/// The message of a field that may also hold something else.
fn as_message(kind: Kind) -> Option<Kind> {
    match kind {
        Kind::SchemaOrArray(number) | Kind::SchemaOrBool(number) | Kind::SchemaOrStrings(number) => {
            Some(Kind::Message(number))
        }
        _ => None,
    }
}

/// A field by its name, looked for from a position on and then before it.
#[inline]
fn find<'f>(fields: &'f [Field], from: usize, name: &[u8]) -> Option<(usize, &'f Field)> {
    let is_it = |field: &Field| {
        // Most fields of that length already differ in the first byte.
        let field = field.name.as_bytes();
        field.len() == name.len() && field.first() == name.first() && field == name
    };
    let (before, after) = fields.split_at_checked(from)?;
    let position = match after.iter().position(is_it) {
        Some(position) => from + position,
        None => before.iter().position(is_it)?,
    };
    Some((position, fields.get(position)?))
}

#[cfg(test)]
mod tests;
