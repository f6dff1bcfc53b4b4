//! Protobuf of built-in kinds, by a checked-in table: request bodies are decoded here, answers are written by [`encode`].
//!
//! kubectl's generators, helm and every Go program send built-in kinds this way and don't fall back to JSON. The table is
//! made from Go's struct tags (`peers/protobuf-table`), since the `.proto` files say neither which fields are pointers nor
//! which are left out when empty: Go writes the zeros of all other fields, so without it `replicas: 0` and an unset
//! `minReadySeconds` look alike. The result is what Go's own JSON encoder would have written.
//!
//! Bodies are outside data: nothing here panics, recursion and the number of values are bounded, and an error names the
//! field at which the body broke.

pub(crate) mod encode;
mod table;
mod wire;
pub(crate) mod zeros;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use crate::status::Status;
use table::{Field, Kind, Message, Shape, Table};
use wire::{Reader, Wire};

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";
/// Messages within messages; custom resource schemas nest two for each level of theirs.
const DEPTH_LIMIT: usize = 100;
/// Values made from one body: an empty message of two bytes can stand for a dozen.
const VALUE_LIMIT: usize = 2_000_000;

/// Decodes a body in its envelope into an object with `apiVersion` and `kind`.
///
/// # Errors
/// 400 when the body isn't an envelope, its kind isn't known, or a field is malformed; the message names the field.
pub(crate) fn decode(body: &[u8]) -> Result<Value, Status> {
    let mut decoder = Decoder { table: table::table(), values: 0 };
    decoder.envelope(body, 0).map_err(|fault| Status::bad_request(fault.message()))
}

/// Why a body can't be read, and where.
#[derive(Debug)]
struct Fault {
    path: String,
    why: String,
}

struct Decoder<'t> {
    table: &'t Table,
    values: usize,
}

/// What was read of one field so far.
enum Read<'b> {
    Nothing,
    Value(Value),
    List(Vec<Value>),
    Map(Map<String, Value>),
    Embedded(&'b [u8]),
}

// === impl Fault ===

impl Fault {
    fn new(why: impl Into<String>) -> Self {
        Self { path: String::new(), why: why.into() }
    }

    /// The fault one level up: below the field `name`.
    fn below(mut self, name: &str) -> Self {
        let separator = if name.is_empty() || self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{separator}{}", self.path);
        self
    }

    fn message(&self) -> String {
        if self.path.is_empty() {
            format!("the protobuf body can't be read: {}", self.why)
        } else {
            format!("the protobuf body can't be read: {}: {}", self.path, self.why)
        }
    }
}

// === impl Decoder ===

impl Decoder<'_> {
    /// `runtime.Unknown` behind the magic bytes: type, raw message, content encoding, content type.
    fn envelope(&mut self, body: &[u8], depth: usize) -> Result<Value, Fault> {
        let rest = body.strip_prefix(MAGIC).ok_or_else(|| Fault::new("it doesn't begin with the bytes 'k8s\\0'"))?;
        let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
        let mut reader = Reader::new(rest);
        while let Some((tag, wire)) = reader.field()? {
            match tag {
                1 => (api_version, kind) = type_meta(wire.bytes()?)?,
                2 => raw = wire.bytes()?,
                3 if !wire.bytes()?.is_empty() => return Err(Fault::new("its content encoding isn't supported")),
                4 if !matches!(wire.bytes()?, b"" | b"application/vnd.kubernetes.protobuf") => {
                    return Err(Fault::new("the content of its envelope isn't protobuf"));
                }
                _ => {}
            }
        }
        let message = self.table.kind(&api_version, &kind).ok_or_else(|| {
            Fault::new(format!("no kind \"{kind}\" of version \"{api_version}\" is known in protobuf form; send JSON"))
        })?;
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), json!(api_version));
        object.insert("kind".to_owned(), json!(kind));
        self.message(message, raw, depth, &mut object)?;
        Ok(Value::Object(object))
    }

    /// Reads one message and adds its fields to `object`, the unset ones too when Go's JSON would show them.
    fn message(
        &mut self,
        message: &Message,
        bytes: &[u8],
        depth: usize,
        object: &mut Map<String, Value>,
    ) -> Result<(), Fault> {
        if depth > DEPTH_LIMIT {
            return Err(Fault::new(format!("it nests deeper than {DEPTH_LIMIT} messages")));
        }
        let mut read: Vec<Read<'_>> = message.fields.iter().map(|_| Read::Nothing).collect();
        let mut reader = Reader::new(bytes);
        while let Some((tag, wire)) = reader.field()? {
            let place = message.fields.iter().position(|field| field.tag == tag);
            if let Some((field, slot)) = place.and_then(|at| message.fields.get(at).zip(read.get_mut(at))) {
                self.field(field, wire, depth, slot).map_err(|fault| fault.below(&field.name))?;
            }
        }
        for (field, value) in message.fields.iter().zip(read) {
            self.finish(field, value, depth, object).map_err(|fault| fault.below(&field.name))?;
        }
        Ok(())
    }

    /// Adds one occurrence of a field to what was read of it.
    fn field<'b>(&mut self, field: &Field, wire: Wire<'b>, depth: usize, slot: &mut Read<'b>) -> Result<(), Fault> {
        match field.shape {
            Shape::Embedded => *slot = Read::Embedded(wire.bytes()?),
            Shape::One | Shape::Pointer => *slot = Read::Value(self.value(field.kind, wire, depth)?),
            Shape::List => {
                if !matches!(slot, Read::List(_)) {
                    *slot = Read::List(Vec::new());
                }
                let Read::List(list) = slot else { return Ok(()) };
                let at = list.len();
                match wire {
                    // Numbers may come packed: one run of bytes for all.
                    Wire::Bytes(run) if matches!(field.kind, Kind::Bool | Kind::Integer) => {
                        let mut reader = Reader::new(run);
                        while !reader.is_at_end() {
                            list.push(self.value(field.kind, Wire::Varint(reader.varint()?), depth)?);
                        }
                    }
                    wire => {
                        list.push(self.value(field.kind, wire, depth).map_err(|fault| fault.below(&format!("[{at}]")))?)
                    }
                }
            }
            Shape::Map => {
                if !matches!(slot, Read::Map(_)) {
                    *slot = Read::Map(Map::new());
                }
                let Read::Map(map) = slot else { return Ok(()) };
                let (key, value) = self.entry(field, wire.bytes()?, depth)?;
                map.insert(key, value);
            }
        }
        Ok(())
    }

    fn entry(&mut self, field: &Field, bytes: &[u8], depth: usize) -> Result<(String, Value), Fault> {
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader::new(bytes);
        while let Some((tag, wire)) = reader.field()? {
            match tag {
                1 => key = text(wire)?,
                2 => value = Some(wire),
                _ => {}
            }
        }
        let value = match value {
            Some(wire) => self.value(field.kind, wire, depth),
            None if matches!(field.kind, Kind::Bytes) => Ok(json!("")),
            None => self.zero(field.kind, depth),
        };
        match value {
            Ok(value) => Ok((key, value)),
            Err(fault) => Err(fault.below(&format!("[{key}]"))),
        }
    }

    /// One value as JSON.
    fn value(&mut self, kind: Kind, wire: Wire<'_>, depth: usize) -> Result<Value, Fault> {
        self.values += 1;
        if self.values > VALUE_LIMIT {
            return Err(Fault::new(format!("it holds more than {VALUE_LIMIT} values")));
        }
        Ok(match kind {
            Kind::String => Value::String(text(wire)?),
            Kind::Bool => Value::Bool(wire.varint()? != 0),
            Kind::Integer => json!(wire.varint()?.cast_signed()),
            Kind::Double => double(wire.double()?)?,
            Kind::Bytes => Value::String(BASE64.encode(wire.bytes()?)),
            Kind::Time => time(wire.bytes()?, false)?,
            Kind::MicroTime => time(wire.bytes()?, true)?,
            Kind::Duration => duration(wire.bytes()?)?,
            Kind::Quantity => quantity(wire.bytes()?)?,
            Kind::IntOrString => int_or_string(wire.bytes()?)?,
            Kind::Raw => self.raw(wire.bytes()?, depth)?,
            Kind::Strings => Value::Array(strings(wire.bytes()?, 1)?),
            Kind::Message(number) => {
                let mut object = Map::new();
                if let Some(message) = self.table.message(number) {
                    self.message(message, wire.bytes()?, depth + 1, &mut object)?;
                }
                Value::Object(object)
            }
            Kind::SchemaOrArray(number) => self.schema_or_array(number, wire.bytes()?, depth)?,
            Kind::SchemaOrBool(number) => self.schema_or_bool(number, wire.bytes()?, depth)?,
            Kind::SchemaOrStrings(number) => self.schema_or_strings(number, wire.bytes()?, depth)?,
        })
    }

    /// What Go's JSON shows for a value that was never set.
    fn zero(&mut self, kind: Kind, depth: usize) -> Result<Value, Fault> {
        match kind {
            Kind::String => Ok(json!("")),
            Kind::Bool => Ok(json!(false)),
            Kind::Integer | Kind::Double => Ok(json!(0)),
            Kind::Bytes | Kind::Strings => Ok(Value::Null),
            other => self.value(other, Wire::Bytes(&[]), depth),
        }
    }

    /// Puts a field that was read to its end, or never met, into the object.
    fn finish(
        &mut self,
        field: &Field,
        read: Read<'_>,
        depth: usize,
        object: &mut Map<String, Value>,
    ) -> Result<(), Fault> {
        let value = match (field.shape, read) {
            (Shape::Embedded, read) => {
                let bytes = if let Read::Embedded(bytes) = read { bytes } else { &[] };
                return match field.kind {
                    Kind::Message(number) => match self.table.message(number) {
                        Some(message) => self.message(message, bytes, depth + 1, object),
                        None => Ok(()),
                    },
                    _ => Ok(()),
                };
            }
            // A pointer to a zero value is there, also when the value shows as null.
            (Shape::Pointer, Read::Value(value)) => {
                object.insert(field.name.clone(), value);
                return Ok(());
            }
            (_, Read::Value(value)) => value,
            (_, Read::List(list)) if !list.is_empty() => Value::Array(list),
            (_, Read::Map(map)) if !map.is_empty() => Value::Object(map),
            (Shape::One, _) => self.zero(field.kind, depth)?,
            _ => Value::Null,
        };
        let empty = match field.shape {
            Shape::One => field.kind.is_scalar() && is_zero(&value),
            _ => value.is_null(),
        };
        if !((field.omit_empty && empty) || (field.omit_zero && value.is_null())) {
            object.insert(field.name.clone(), value);
        }
        Ok(())
    }

    /// An object of any kind as the JSON text in which it travels, or in an envelope of its own.
    fn raw(&mut self, bytes: &[u8], depth: usize) -> Result<Value, Fault> {
        let mut reader = Reader::new(bytes);
        let mut raw: &[u8] = &[];
        while let Some((tag, wire)) = reader.field()? {
            if tag == 1 {
                raw = wire.bytes()?;
            }
        }
        match raw {
            b"" => Ok(Value::Null),
            _ if raw.starts_with(MAGIC) && depth < DEPTH_LIMIT => self.envelope(raw, depth + 1),
            _ => serde_json::from_slice(raw).map_err(|error| Fault::new(format!("it isn't JSON: {error}"))),
        }
    }

    fn schema_or_array(&mut self, number: usize, bytes: &[u8], depth: usize) -> Result<Value, Fault> {
        let (mut one, mut many) = (Value::Null, Vec::new());
        let mut reader = Reader::new(bytes);
        while let Some((tag, wire)) = reader.field()? {
            match tag {
                1 => one = self.value(Kind::Message(number), wire, depth)?,
                2 => many.push(self.value(Kind::Message(number), wire, depth)?),
                _ => {}
            }
        }
        Ok(if many.is_empty() { one } else { Value::Array(many) })
    }

    fn schema_or_bool(&mut self, number: usize, bytes: &[u8], depth: usize) -> Result<Value, Fault> {
        let (mut allows, mut schema) = (false, None);
        let mut reader = Reader::new(bytes);
        while let Some((tag, wire)) = reader.field()? {
            match tag {
                1 => allows = wire.varint()? != 0,
                2 => schema = Some(self.value(Kind::Message(number), wire, depth)?),
                _ => {}
            }
        }
        Ok(schema.unwrap_or(Value::Bool(allows)))
    }

    fn schema_or_strings(&mut self, number: usize, bytes: &[u8], depth: usize) -> Result<Value, Fault> {
        let mut schema = Value::Null;
        let mut reader = Reader::new(bytes);
        while let Some((tag, wire)) = reader.field()? {
            if tag == 1 {
                schema = self.value(Kind::Message(number), wire, depth)?;
            }
        }
        let names = strings(bytes, 2)?;
        Ok(if names.is_empty() { schema } else { Value::Array(names) })
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

fn type_meta(bytes: &[u8]) -> Result<(String, String), Fault> {
    let (mut api_version, mut kind) = (String::new(), String::new());
    let mut reader = Reader::new(bytes);
    while let Some((tag, wire)) = reader.field()? {
        match tag {
            1 => api_version = text(wire)?,
            2 => kind = text(wire)?,
            _ => {}
        }
    }
    Ok((api_version, kind))
}

fn text(wire: Wire<'_>) -> Result<String, Fault> {
    match std::str::from_utf8(wire.bytes()?) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Fault::new("it isn't UTF-8")),
    }
}

/// A whole number stays one, as in Go's JSON.
fn double(number: f64) -> Result<Value, Fault> {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return Ok(json!(number as i64));
    }
    serde_json::Number::from_f64(number).map(Value::Number).ok_or_else(|| Fault::new("it isn't a finite number"))
}

/// `Timestamp`: seconds and nanoseconds since 1970; no bytes at all mean the zero time, which is null.
fn time(bytes: &[u8], with_micros: bool) -> Result<Value, Fault> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((tag, wire)) = reader.field()? {
        match tag {
            1 => seconds = wire.varint()?.cast_signed(),
            2 => nanos = wire.varint()?.cast_signed(),
            _ => {}
        }
    }
    let nanos = i32::try_from(nanos).map_err(|_| Fault::new("its nanoseconds are out of range"))?;
    let time = jiff::Timestamp::new(seconds, if with_micros { nanos / 1000 * 1000 } else { 0 })
        .map_err(|_| Fault::new("it's a time out of range"))?;
    let format = if with_micros { "%Y-%m-%dT%H:%M:%S%.6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(Value::String(time.strftime(format).to_string()))
}

/// Nanoseconds, written as Go writes durations: `1h30m0s`, `1.5s`, `20ms`.
fn duration(bytes: &[u8]) -> Result<Value, Fault> {
    let mut nanos = 0i64;
    let mut reader = Reader::new(bytes);
    while let Some((tag, wire)) = reader.field()? {
        if tag == 1 {
            nanos = wire.varint()?.cast_signed();
        }
    }
    let sign = if nanos < 0 { "-" } else { "" };
    let rest = nanos.unsigned_abs();
    let decimal = |whole: u64, fraction: u64, digits: usize| {
        let text = format!("{whole}.{fraction:0digits$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let text = match rest {
        0 => "0s".to_owned(),
        1..1_000 => format!("{rest}ns"),
        1_000..1_000_000 => decimal(rest / 1_000, rest % 1_000, 3) + "µs",
        1_000_000..1_000_000_000 => decimal(rest / 1_000_000, rest % 1_000_000, 6) + "ms",
        _ => {
            let (seconds, fraction) = (rest / 1_000_000_000, rest % 1_000_000_000);
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let head = match (hours, minutes) {
                (0, 0) => String::new(),
                (0, minutes) => format!("{minutes}m"),
                (hours, minutes) => format!("{hours}h{minutes}m"),
            };
            head + &decimal(seconds % 60, fraction, 9) + "s"
        }
    };
    Ok(Value::String(format!("{sign}{text}")))
}

/// A quantity travels as its text.
fn quantity(bytes: &[u8]) -> Result<Value, Fault> {
    let mut reader = Reader::new(bytes);
    let mut quantity = "0".to_owned();
    while let Some((tag, wire)) = reader.field()? {
        if tag == 1 {
            quantity = text(wire)?;
        }
    }
    Ok(Value::String(quantity))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, Fault> {
    let (mut is_text, mut number, mut string) = (false, 0i64, String::new());
    let mut reader = Reader::new(bytes);
    while let Some((tag, wire)) = reader.field()? {
        match tag {
            1 => is_text = wire.varint()? == 1,
            2 => number = wire.varint()?.cast_signed(),
            3 => string = text(wire)?,
            _ => {}
        }
    }
    Ok(if is_text { json!(string) } else { json!(number) })
}

/// A list of strings at `tag` of a message of its own.
fn strings(bytes: &[u8], tag: u32) -> Result<Vec<Value>, Fault> {
    let mut list = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some((found, wire)) = reader.field()? {
        if found == tag {
            list.push(Value::String(text(wire)?));
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests;
