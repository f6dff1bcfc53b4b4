//! How much memory a decoded object takes, found out without asking an allocator.
//!
//! An object is decoded once more, by a deserializer that adds up what each text, list and map of it asks for. That
//! costs more than decoding, so it's done for a few objects of an informer ([`HeapSampler`]) and the others are estimated
//! by the lengths of their documents.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::de::{DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};
use serde_json::{Map, Value};

/// The first objects are all measured.
const FIRST: u64 = 16;
/// And of the others one in so many.
const STRIDE: u64 = 128;

/// The counters that an `Arc` has beside what it holds.
pub(crate) const ARC_COUNTERS: usize = 2 * size_of::<usize>();

/// Estimates what objects take by measuring some of them.
#[derive(Debug, Default)]
pub(crate) struct HeapSampler {
    seen: AtomicU64,
    measured: AtomicU64,
    documents: AtomicU64,
}

impl HeapSampler {
    /// What an object takes beside its own size, given the length of its document.
    pub(crate) fn estimate(&self, document: usize, measure: impl FnOnce() -> Option<usize>) -> usize {
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        if (seen < FIRST || seen.is_multiple_of(STRIDE))
            && let Some(measured) = measure()
        {
            self.measured.fetch_add(measured as u64, Ordering::Relaxed);
            self.documents.fetch_add(document as u64, Ordering::Relaxed);
            return measured;
        }
        let (measured, documents) = (self.measured.load(Ordering::Relaxed), self.documents.load(Ordering::Relaxed));
        // Before anything was measured the document is the best guess.
        let estimate = (document as u64 * measured).checked_div(documents).unwrap_or(document as u64);
        usize::try_from(estimate).unwrap_or(usize::MAX)
    }
}

/// What the heap parts of the `T` that a document decodes to take; `None` if it doesn't.
pub(crate) fn heap_size<T: DeserializeOwned>(document: &Value) -> Option<usize> {
    let bytes = Cell::new(0);
    T::deserialize(Measured { value: document, bytes: &bytes }).ok()?;
    Some(bytes.get())
}

/// The same of an object of which only the metadata is kept as a struct, and of the rest all fields as values, or none.
pub(crate) fn loose_size(document: &Value, data: bool) -> Option<usize> {
    let metadata = heap_size::<kube::core::ObjectMeta>(document.get("metadata")?)?;
    let texts = ["apiVersion", "kind"].iter().filter_map(|name| document.get(*name)?.as_str());
    let types: usize = texts.map(str::len).sum();
    let (mut count, mut content) = (0, 0);
    for (name, value) in document.as_object()? {
        if data && !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            count += 1;
            content += name.len() + value_size(value);
        }
    }
    Some(metadata + types + content + map_size(count, size_of::<Value>()))
}

fn value_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => list_size(items.len(), size_of::<Value>()) + items.iter().map(value_size).sum::<usize>(),
        Value::Object(fields) => {
            let content: usize = fields.iter().map(|(name, value)| name.len() + value_size(value)).sum();
            content + map_size(fields.len(), size_of::<Value>())
        }
    }
}

/// A `Vec` that grew one by one.
fn list_size(count: usize, element: usize) -> usize {
    let least = if element <= 1 {
        8
    } else if element <= 1024 {
        4
    } else {
        1
    };
    if count == 0 { 0 } else { count.next_power_of_two().max(least) * element }
}

/// A `BTreeMap` with texts as keys, filled in order: nodes of up to eleven entries, most of them half full.
fn map_size(count: usize, value: usize) -> usize {
    const CAPACITY: usize = 11;
    let leaf = CAPACITY * (size_of::<String>() + value) + 2 * size_of::<usize>();
    if count == 0 {
        0
    } else if count <= CAPACITY {
        leaf
    } else {
        let leaves = count.div_ceil(6);
        // One in six nodes has children.
        leaves * leaf + leaves.div_ceil(6) * (leaf + 12 * size_of::<usize>())
    }
}

/// A value that counts what's made of it.
#[derive(Clone, Copy)]
struct Measured<'a> {
    value: &'a Value,
    bytes: &'a Cell<usize>,
}

type Error = serde_json::Error;

impl<'a> Measured<'a> {
    fn add(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    fn of(&self, value: &'a Value) -> Self {
        Self { value, bytes: self.bytes }
    }

    /// A text counts if what's made of it is as large as one.
    fn text<'de, V: Visitor<'de>>(&self, text: &str, visitor: V) -> Result<V::Value, Error> {
        if size_of::<V::Value>() >= size_of::<String>() {
            self.add(text.len());
        }
        visitor.visit_str(text)
    }

    fn list<V: Visitor<'a>>(&self, items: &'a [Value], visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { at: *self, rest: items, count: items.len(), counted: false })
    }

    fn fields<V: Visitor<'a>>(
        &self,
        fields: &'a Map<String, Value>,
        is_struct: bool,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (at, count) = (*self, fields.len());
        visitor.visit_map(Fields { at, rest: fields.iter(), value: None, count, counted: is_struct, is_struct })
    }
}

struct Items<'a> {
    at: Measured<'a>,
    rest: &'a [Value],
    count: usize,
    counted: bool,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if !std::mem::replace(&mut self.counted, true) {
            self.at.add(list_size(self.count, size_of::<T::Value>()));
        }
        let Some((first, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        seed.deserialize(self.at.of(first)).map(Some)
    }
}

struct Fields<'a> {
    at: Measured<'a>,
    rest: serde_json::map::Iter<'a>,
    value: Option<&'a Value>,
    count: usize,
    counted: bool,
    is_struct: bool,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Error;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        if !self.is_struct {
            self.at.add(name.len());
        }
        seed.deserialize(name.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        if !std::mem::replace(&mut self.counted, true) {
            self.at.add(map_size(self.count, size_of::<T::Value>()));
        }
        seed.deserialize(self.at.of(self.value.take().unwrap_or(&Value::Null)))
    }
}

impl<'de> Deserializer<'de> for Measured<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => number.deserialize_any(visitor),
            Value::String(text) => self.text(text, visitor),
            Value::Array(items) => self.list(items, visitor),
            Value::Object(fields) => self.fields(fields, false, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Value::Object(fields) => self.fields(fields, true, visitor),
            _ => self.deserialize_any(visitor),
        }
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
        self.value.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct
        map identifier ignored_any
    }
}
