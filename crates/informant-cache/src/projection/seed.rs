//! How the values of fields are decoded: by serde, but that texts in `Arc<str>` are shared.
//!
//! The derive composes these by a field's type; of a type without an `Arc<str>` in it, [`Plain`] is all there is.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::Strings;

/// A value by its own `Deserialize`.
pub struct Plain<T>(PhantomData<fn() -> T>);

/// A text, shared if there's a table to share it by.
#[derive(Debug, Clone, Copy)]
pub struct Interned<'s> {
    strings: Option<&'s Strings>,
}

/// A value, or nothing if it's null.
#[derive(Debug, Clone, Copy)]
pub struct Nullable<S>(pub S);

/// A list of values.
#[derive(Debug, Clone, Copy)]
pub struct Listed<S>(pub S);

/// A map from values to values.
#[derive(Debug, Clone, Copy)]
pub struct Mapped<S, T>(pub S, pub T);

/// What has a text, for the metadata of a projection.
pub trait Text {
    /// The text, if there is one.
    fn text(&self) -> Option<&str>;
}

// === impl Plain ===

impl<T> Plain<T> {
    /// How a `T` is decoded.
    #[must_use]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Plain<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for Plain<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Plain<T> {}

impl<T> fmt::Debug for Plain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plain")
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Plain<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}

// === impl Interned ===

impl<'s> Interned<'s> {
    pub(super) fn new(strings: Option<&'s Strings>) -> Self {
        Self { strings }
    }
}

impl<'de> DeserializeSeed<'de> for Interned<'_> {
    type Value = Arc<str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Arc<str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Interned<'_> {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(self.strings.map_or_else(|| Arc::from(text), |strings| strings.intern(text)))
    }
}

// === impl Nullable ===

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Nullable<S> {
    type Value = Option<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Nullable<S> {
    type Value = Option<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        self.0.deserialize(deserializer).map(Some)
    }
}

// === impl Listed ===

/// As many elements as are made room for before they come, whatever somebody promises.
const ROOM: usize = 64;

impl<'de, S: DeserializeSeed<'de> + Copy> DeserializeSeed<'de> for Listed<S> {
    type Value = Vec<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for Listed<S> {
    type Value = Vec<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::with_capacity(list.size_hint().unwrap_or_default().min(ROOM));
        while let Some(value) = list.next_element_seed(self.0)? {
            values.push(value);
        }
        Ok(values)
    }
}

// === impl Mapped ===

impl<'de, S, T> DeserializeSeed<'de> for Mapped<S, T>
where
    S: DeserializeSeed<'de, Value: Ord> + Copy,
    T: DeserializeSeed<'de> + Copy,
{
    type Value = BTreeMap<S::Value, T::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, S, T> Visitor<'de> for Mapped<S, T>
where
    S: DeserializeSeed<'de, Value: Ord> + Copy,
    T: DeserializeSeed<'de> + Copy,
{
    type Value = BTreeMap<S::Value, T::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = BTreeMap::new();
        while let Some(key) = map.next_key_seed(self.0)? {
            values.insert(key, map.next_value_seed(self.1)?);
        }
        Ok(values)
    }
}

// === impl Text ===

impl Text for String {
    fn text(&self) -> Option<&str> {
        Some(self)
    }
}

impl Text for Box<str> {
    fn text(&self) -> Option<&str> {
        Some(self)
    }
}

impl Text for Arc<str> {
    fn text(&self) -> Option<&str> {
        Some(self)
    }
}

impl<T: Text> Text for Option<T> {
    fn text(&self) -> Option<&str> {
        self.as_ref()?.text()
    }
}
