//! An object as JSON text.

use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::deserialize::{Object, RAW};
use super::error::Error;

/// Writes an object as Go's JSON of it. What it holds as JSON already is written as it stands.
pub(crate) fn to_json(object: Object<'_>) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    Writer { out: &mut out }.deserialize(object)?;
    Ok(out)
}

/// Writes what it's shown.
struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

impl Writer<'_> {
    fn inner(&mut self) -> Writer<'_> {
        Writer { out: self.out }
    }

    fn plain<E: serde::de::Error>(self, value: impl Serialize) -> Result<(), E> {
        serde_json::to_writer(self.out, &value).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_newtype_struct(RAW, self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what JSON can show")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.plain(value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.plain(value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.plain(value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.plain(value)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.plain(value)
    }

    /// JSON text, which was checked.
    fn visit_bytes<E>(self, text: &[u8]) -> Result<(), E> {
        self.out.extend_from_slice(text.trim_ascii());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.out.push(b'[');
        let start = self.out.len();
        loop {
            let before = self.out.len();
            if before > start {
                self.out.push(b',');
            }
            if items.next_element_seed(self.inner())?.is_none() {
                self.out.truncate(before);
                break;
            }
        }
        self.out.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.out.push(b'{');
        let start = self.out.len();
        loop {
            let before = self.out.len();
            if before > start {
                self.out.push(b',');
            }
            if entries.next_key_seed(self.inner())?.is_none() {
                self.out.truncate(before);
                break;
            }
            self.out.push(b':');
            entries.next_value_seed(self.inner())?;
        }
        self.out.push(b'}');
        Ok(())
    }
}
