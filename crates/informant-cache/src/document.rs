//! One object as a server sent it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::error::DecodeError;
use crate::json;
use crate::protobuf::{self, Message, Metadata, Object};
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
    /// An object's message, without an envelope.
    Protobuf(&'static Message),
}

impl<'a> Document<'a> {
    /// The JSON text of a whole object.
    #[must_use]
    pub fn json(text: &'a [u8]) -> Self {
        Self::stored(Encoding::Json, text)
    }

    /// The message of a whole object, without an envelope.
    pub(crate) fn protobuf(message: &'static Message, bytes: &'a [u8]) -> Self {
        Self::stored(Encoding::Protobuf(message), bytes)
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
        if let Encoding::Protobuf(_) = self.encoding {
            let mut cut = Vec::with_capacity(self.bytes.len());
            let whole = protobuf::without_managed_fields(self.bytes, &mut cut);
            return whole.map_or(Cow::Borrowed(self.bytes), |()| Cow::Owned(cut));
        }
        let cut = match json::head(self.bytes, false) {
            Some(head) => head.managed_fields.map(|range| json::without(self.bytes, range)),
            None => self.without_managed_fields_slowly(),
        };
        cut.map_or(Cow::Borrowed(self.bytes), Cow::Owned)
    }

    fn without_managed_fields_slowly(&self) -> Option<Vec<u8>> {
        let mut object: serde_json::Value = serde_json::from_slice(self.bytes).ok()?;
        object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")?;
        serde_json::to_vec(&object).ok()
    }

    /// Finds out whether it can be decoded. Of the types that the table of messages is about that's found without making
    /// anything. `form` is that of a `T` in JSON, if it's known.
    pub(crate) fn check<T: DeserializeOwned>(&self, form: Option<json::Form>) -> Result<(), DecodeError> {
        match self.encoding {
            Encoding::Protobuf(message) if std::any::type_name::<T>().starts_with("k8s_openapi::") => {
                protobuf::check(message, self.bytes)
            }
            Encoding::Json if form.is_some_and(|form| json::check(self.bytes, form).is_ok()) => Ok(()),
            Encoding::Protobuf(_) | Encoding::Json => self.decode::<T>().map(drop),
        }
    }

    /// Whether the object's labels satisfy a selector. Cost: a look at the metadata.
    pub(crate) fn matches(&self, selector: &Selector) -> bool {
        if let Encoding::Protobuf(_) = self.encoding {
            let metadata = Metadata::read(self.bytes).unwrap_or_default();
            let value = |key: &str| metadata.labels().filter(|(label, _)| *label == key).last().map(|(_, value)| value);
            return selector.matches(value);
        }
        let labels = self.json_labels().unwrap_or_default();
        selector.matches(|key| labels.get(key).map(String::as_str))
    }

    /// The labels of an object in JSON.
    fn json_labels(&self) -> Option<BTreeMap<String, String>> {
        #[derive(serde::Deserialize)]
        struct Labelled {
            metadata: LabelledMetadata,
        }
        #[derive(serde::Deserialize)]
        struct LabelledMetadata {
            #[serde(default)]
            labels: Option<BTreeMap<String, String>>,
        }
        match json::head(self.bytes, false) {
            Some(head) => serde_json::from_slice::<Option<_>>(self.bytes.get(head.labels?)?).ok()?,
            None => self.decode::<Labelled>().ok()?.metadata.labels,
        }
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

    /// Decodes the object. What came as protobuf is shown to `T` as the JSON of it would be, without writing that.
    ///
    /// # Errors
    /// If it isn't a `T`; the error names the field.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        match self.encoding {
            Encoding::Json => serde_json::from_slice(self.bytes).map_err(|error| whereabouts::<T>(self.bytes, error)),
            Encoding::Protobuf(message) => Ok(Object::new(message, self.bytes).decode()?),
        }
    }

    /// As [`decode`](Self::decode), but `metadata.managedFields` isn't looked at where that's cheaper.
    pub(crate) fn decode_trimmed<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        match self.encoding {
            Encoding::Json => self.with_bytes(&self.without_managed_fields()).decode(),
            Encoding::Protobuf(message) => Ok(Object::new(message, self.bytes).without_managed_fields().decode()?),
        }
    }

    /// The object as JSON: the bytes as they are if the server sent that, else what it would have sent.
    ///
    /// # Errors
    /// If the bytes aren't what they say they are. JSON isn't checked.
    pub fn to_json(&self) -> Result<Cow<'a, [u8]>, DecodeError> {
        match self.encoding {
            Encoding::Json => Ok(Cow::Borrowed(self.bytes)),
            Encoding::Protobuf(message) => Ok(Cow::Owned(protobuf::to_json(Object::new(message, self.bytes))?)),
        }
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
