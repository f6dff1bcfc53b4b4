//! One object as a server sent it.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use crate::error::DecodeError;

/// One object as a server sent it: its JSON, or its protobuf bytes together with what they mean.
///
/// A [`Representation`](crate::Representation) makes the form to keep of it. Nothing is decoded before it's asked for.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    bytes: &'a [u8],
}

impl<'a> Document<'a> {
    /// The JSON text of a whole object.
    #[must_use]
    pub fn json(text: &'a [u8]) -> Self {
        Self { bytes: text }
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
