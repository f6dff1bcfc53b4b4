//! Objects, lists and watch events of built-in kinds as protobuf, by the same table that bodies are decoded with.
//!
//! The bytes are Go's: fields in the order of their tags, plain fields written also when they're zero, pointers when
//! they're set. Objects are stored data, so a value of another type than the table's is left out rather than refused.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use super::MAGIC;
use super::table::{Field, Kind, Message, Shape, Table, table};

/// Whether objects of this kind can be written.
pub(crate) fn knows(api_version: &str, kind: &str) -> bool {
    table().kind(api_version, kind).is_some()
}

/// Whether objects of some kind of this version can be written.
pub(crate) fn knows_version(api_version: &str) -> bool {
    table().knows_version(api_version)
}

/// An object with `apiVersion` and `kind` in its envelope; `None` if its kind isn't known in this form.
pub(crate) fn object(object: &Value) -> Option<Vec<u8>> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let fields = object.as_object()?;
    let mut raw = Vec::new();
    let encoder = Encoder { table: table() };
    match table().kind(api_version, kind) {
        Some(message) => encoder.message(message, fields, &mut raw),
        None => encoder.partial_metadata(kind, fields, &mut raw)?,
    }
    Some(envelope(api_version, kind, &raw))
}

/// One frame of a watch: its length in four bytes, then `metav1.WatchEvent` with the object in its envelope.
pub(crate) fn frame(kind: &str, object: &[u8], out: &mut impl bytes::BufMut) {
    let mut extension = Vec::with_capacity(object.len() + 6);
    put_bytes(1, object, &mut extension);
    let mut event = Vec::with_capacity(extension.len() + 20);
    put_bytes(1, kind.as_bytes(), &mut event);
    put_bytes(2, &extension, &mut event);
    // An object is far smaller than four gigabytes.
    out.put_u32(u32::try_from(event.len()).unwrap_or(u32::MAX));
    out.put_slice(&event);
}

/// `runtime.Unknown` behind the magic bytes.
fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut types = Vec::with_capacity(api_version.len() + kind.len() + 4);
    put_bytes(1, api_version.as_bytes(), &mut types);
    put_bytes(2, kind.as_bytes(), &mut types);
    let mut out = Vec::with_capacity(raw.len() + types.len() + 20);
    out.extend_from_slice(MAGIC);
    put_bytes(1, &types, &mut out);
    put_bytes(2, raw, &mut out);
    put_bytes(3, b"", &mut out);
    put_bytes(4, b"", &mut out);
    out
}

struct Encoder {
    table: &'static Table,
}

impl Encoder {
    /// `PartialObjectMetadata` and its list, which Go's scheme doesn't hold: `metadata` at 1, `items` at 2.
    fn partial_metadata(&self, kind: &str, object: &Map<String, Value>, out: &mut Vec<u8>) -> Option<()> {
        let metadata_of = |api_version: &str, kind: &str| {
            let fields = &self.table.kind(api_version, kind)?.fields;
            Some(fields.iter().find(|field| field.name == "metadata")?.kind)
        };
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        match kind {
            "PartialObjectMetadata" => self.value(metadata_of("v1", "Pod")?, 1, metadata, out),
            "PartialObjectMetadataList" => {
                self.value(metadata_of("v1", "PodList")?, 1, metadata, out);
                for item in object.get("items").and_then(Value::as_array).into_iter().flatten() {
                    let mut bytes = Vec::new();
                    self.partial_metadata("PartialObjectMetadata", item.as_object()?, &mut bytes)?;
                    put_bytes(2, &bytes, out);
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn message(&self, message: &Message, object: &Map<String, Value>, out: &mut Vec<u8>) {
        message.by_tag().for_each(|field| self.field(field, object, out));
    }

    fn field(&self, field: &Field, object: &Map<String, Value>, out: &mut Vec<u8>) {
        let value = object.get(&field.name).unwrap_or(&Value::Null);
        match field.shape {
            Shape::Embedded => {
                if let Kind::Message(number) = field.kind
                    && let Some(message) = self.table.message(number)
                {
                    let mut bytes = Vec::new();
                    self.message(message, object, &mut bytes);
                    put_bytes(field.tag, &bytes, out);
                }
            }
            // Nothing at all is what tells `nil` from empty.
            Shape::One if matches!(field.kind, Kind::Bytes | Kind::Strings) && value.is_null() => {}
            Shape::One => self.value(field.kind, field.tag, value, out),
            // A pointer to the zero time shows as null; no pointer doesn't show.
            Shape::Pointer if value.is_null() && !is_zero_time(field, object) => {}
            Shape::Pointer => self.value(field.kind, field.tag, value, out),
            Shape::List => {
                for item in value.as_array().into_iter().flatten() {
                    self.value(field.kind, field.tag, item, out);
                }
            }
            Shape::Map => {
                // Go sorts them; so does the map.
                for (key, item) in value.as_object().into_iter().flatten() {
                    let mut entry = Vec::new();
                    put_bytes(1, key.as_bytes(), &mut entry);
                    self.value(field.kind, 2, item, &mut entry);
                    put_bytes(field.tag, &entry, out);
                }
            }
        }
    }

    /// One value at a tag; what isn't of the kind is written as its zero.
    fn value(&self, kind: Kind, tag: u32, value: &Value, out: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        match kind {
            Kind::String => return put_bytes(tag, value.as_str().unwrap_or("").as_bytes(), out),
            Kind::Bool => return put_number(tag, u64::from(value.as_bool().unwrap_or(false)), out),
            Kind::Integer => return put_number(tag, integer(value), out),
            Kind::Double => {
                put_varint(u64::from(tag << 3 | 1), out);
                return out.extend_from_slice(&value.as_f64().unwrap_or(0.0).to_bits().to_le_bytes());
            }
            Kind::Bytes => bytes = BASE64.decode(value.as_str().unwrap_or("")).unwrap_or_default(),
            Kind::Strings => {
                for item in value.as_array().into_iter().flatten() {
                    put_bytes(1, item.as_str().unwrap_or("").as_bytes(), &mut bytes);
                }
            }
            Kind::Message(number) => self.nested(number, value, &mut bytes),
            Kind::Time | Kind::MicroTime => time(value, &mut bytes),
            Kind::Duration => put_number(1, duration(value.as_str().unwrap_or("")).cast_unsigned(), &mut bytes),
            Kind::Quantity => put_bytes(1, quantity(value).as_bytes(), &mut bytes),
            Kind::IntOrString => {
                put_number(1, u64::from(value.is_string()), &mut bytes);
                put_number(2, integer(value), &mut bytes);
                put_bytes(3, value.as_str().unwrap_or("").as_bytes(), &mut bytes);
            }
            Kind::Raw if value.is_null() => {}
            Kind::Raw => put_bytes(1, value.to_string().as_bytes(), &mut bytes),
            Kind::SchemaOrArray(number) => match value {
                Value::Array(schemas) => schemas.iter().for_each(|schema| {
                    let mut one = Vec::new();
                    self.nested(number, schema, &mut one);
                    put_bytes(2, &one, &mut bytes);
                }),
                schema => self.schema(number, schema, &mut bytes, 1),
            },
            Kind::SchemaOrBool(number) => {
                put_number(1, u64::from(value.as_bool().unwrap_or(value.is_object())), &mut bytes);
                self.schema(number, value, &mut bytes, 2);
            }
            Kind::SchemaOrStrings(number) => match value {
                Value::Array(names) => {
                    names.iter().for_each(|name| put_bytes(2, name.as_str().unwrap_or("").as_bytes(), &mut bytes))
                }
                schema => self.schema(number, schema, &mut bytes, 1),
            },
        }
        put_bytes(tag, &bytes, out);
    }

    fn nested(&self, number: usize, value: &Value, out: &mut Vec<u8>) {
        let nothing = Map::new();
        if let Some(message) = self.table.message(number) {
            self.message(message, value.as_object().unwrap_or(&nothing), out);
        }
    }

    fn schema(&self, number: usize, schema: &Value, out: &mut Vec<u8>, tag: u32) {
        if schema.is_object() {
            let mut bytes = Vec::new();
            self.nested(number, schema, &mut bytes);
            put_bytes(tag, &bytes, out);
        }
    }
}

fn is_zero_time(field: &Field, object: &Map<String, Value>) -> bool {
    matches!(field.kind, Kind::Time | Kind::MicroTime) && object.contains_key(&field.name)
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        // The low seven bits, and that more follow.
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_number(tag: u32, number: u64, out: &mut Vec<u8>) {
    put_varint(u64::from(tag << 3), out);
    put_varint(number, out);
}

fn put_bytes(tag: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(u64::from(tag << 3 | 2), out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// A number, also one that JSON shows as `2.0`; negative ones take ten bytes, as Go's do.
fn integer(value: &Value) -> u64 {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64)).unwrap_or(0).cast_unsigned()
}

fn quantity(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => "0".to_owned(),
    }
}

/// Seconds and nanoseconds since 1970; the zero time has no bytes.
fn time(value: &Value, out: &mut Vec<u8>) {
    let Some(time) = value.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok()) else { return };
    put_number(1, time.as_second().cast_unsigned(), out);
    put_number(2, i64::from(time.subsec_nanosecond()).cast_unsigned(), out);
}

/// A duration as Go writes it (`1h30m0s`, `1.5s`, `20ms`), in nanoseconds.
fn duration(text: &str) -> i64 {
    let (sign, mut rest) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let mut nanos = 0.0;
    while let Some(end) = rest.find(|char: char| !char.is_ascii_digit() && char != '.') {
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let scale = match unit {
            "h" => 3.6e12,
            "m" => 6e10,
            "s" => 1e9,
            "ms" => 1e6,
            "µs" | "us" => 1e3,
            _ => 1.0,
        };
        nanos += number.parse::<f64>().unwrap_or(0.0) * scale;
        rest = tail;
    }
    (sign * nanos) as i64
}
