//! One object as a server sent it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::error::DecodeError;
use crate::selector::Selector;

/// One object as a server sent it: its JSON, or its protobuf bytes together with what they mean.
///
/// A [`Representation`](crate::Representation) makes the form to keep of it. Nothing is decoded before it's asked for.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    encoding: Encoding,
    bytes: &'a [u8],
}

/// The form of a document's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
}

impl<'a> Document<'a> {
    /// The JSON text of a whole object.
    #[must_use]
    pub fn json(text: &'a [u8]) -> Self {
        Self::stored(Encoding::Json, text)
    }

    /// A document that was taken apart with [`encoding`](Self::encoding) and [`bytes`](Self::bytes).
    pub(crate) fn stored(encoding: Encoding, bytes: &'a [u8]) -> Self {
        Self { encoding, bytes }
    }

    /// The same object, its bytes in the same form but others.
    pub(crate) fn with_bytes<'b>(&self, bytes: &'b [u8]) -> Document<'b> {
        Document::stored(self.encoding, bytes)
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes without `metadata.managedFields`.
    pub(crate) fn without_managed_fields(&self) -> Cow<'a, [u8]> {
        let cut = || -> Option<Vec<u8>> {
            let mut object: serde_json::Value = serde_json::from_slice(self.bytes).ok()?;
            object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")?;
            serde_json::to_vec(&object).ok()
        };
        cut().map_or(Cow::Borrowed(self.bytes), Cow::Owned)
    }

    /// Finds out whether it can be decoded.
    pub(crate) fn check<T: DeserializeOwned>(&self) -> Result<(), DecodeError> {
        self.decode::<T>().map(drop)
    }

    /// Whether the object's labels satisfy a selector. Cost: a look at the metadata.
    pub(crate) fn matches(&self, selector: &Selector) -> bool {
        #[derive(serde::Deserialize)]
        struct Object {
            metadata: Metadata,
        }
        #[derive(serde::Deserialize)]
        struct Metadata {
            #[serde(default)]
            labels: Option<BTreeMap<String, String>>,
        }
        let labels = self.decode::<Object>().ok().and_then(|object| object.metadata.labels).unwrap_or_default();
        selector.matches(|key| labels.get(key).map(String::as_str))
    }

    /// How many bytes the server sent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there's nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Decodes the object.
    ///
    /// # Errors
    /// If it isn't a `T`; the error names the field.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        serde_json::from_slice(self.bytes).map_err(|error| whereabouts::<T>(self.bytes, error))
    }

    /// The object as JSON: the bytes as they are if the server sent that.
    ///
    /// # Errors
    /// If the bytes aren't what they say they are. JSON isn't checked.
    pub fn to_json(&self) -> Result<Cow<'a, [u8]>, DecodeError> {
        Ok(Cow::Borrowed(self.bytes))
    }
}

/// Decodes a document once more to learn where the error is, which the fast way doesn't say.
fn whereabouts<T: DeserializeOwned>(document: &[u8], error: serde_json::Error) -> DecodeError {
    let slow = serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_slice(document));
    match slow {
        Err(slow) => DecodeError::at(&slow.path().to_string(), slow.inner()),
        Ok(_) => DecodeError::from_json(error),
    }
}
