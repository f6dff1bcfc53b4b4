//! The head of a document: what must be known of it before it's decoded, or without decoding it at all.
//!
//! An object's head is its key, uid and resource version. Parsing stops where the metadata ends, which is near the
//! beginning of everything that an API server sends; so for an object that's in the cache already the rest is never
//! looked at.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::error::DecodeError;
use crate::json;
use crate::key::ObjectKey;
use crate::protobuf::wire::Reader;
use crate::protobuf::{self, Envelope, MAGIC};

/// The head of an object.
#[derive(Debug, Default)]
pub(crate) struct Head<'a> {
    pub(crate) api_version: Option<Text<'a>>,
    pub(crate) kind: Option<Text<'a>>,
    metadata: Option<MetadataHead<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MetadataHead<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    uid: Option<Text<'a>>,
    #[serde(borrow)]
    resource_version: Option<Text<'a>>,
}

/// An object that came by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Opened<'a> {
    Json(&'a [u8]),
    Protobuf(Envelope<'a>),
}

/// A text that isn't copied unless it holds an escape.
#[derive(Debug, Clone)]
pub(crate) struct Text<'a>(Cow<'a, str>);

/// What a list says of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ListHead {
    pub(crate) api_version: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) metadata: Option<ListMetadata>,
    /// Whether there's such a field, whatever it holds.
    #[serde(deserialize_with = "is_there")]
    items: bool,
}

/// What an answer to a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListForm {
    List,
    /// A table for people instead of a list.
    Table,
    /// An error.
    Status,
    Other,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ListMetadata {
    pub(crate) resource_version: Option<String>,
    #[serde(rename = "continue")]
    pub(crate) continue_token: Option<String>,
}

/// A watch event, its object still in bytes: JSON, or protobuf in its envelope.
#[derive(Debug)]
pub(crate) struct WatchEvent<'a> {
    pub(crate) kind: Cow<'a, str>,
    pub(crate) object: Cow<'a, [u8]>,
}

/// What a bookmark says. The rest of its object may be anything.
#[derive(Debug, Default)]
pub(crate) struct Bookmark {
    pub(crate) resource_version: String,
    /// Whether everything that was there when the watch began has been sent.
    pub(crate) initial_events_end: bool,
}

// === impl Head ===

impl<'a> Head<'a> {
    /// Reads the head of an object that may be cut off after it. With `types`, also its kind, which items of a list
    /// needn't have.
    pub(crate) fn parse(document: &'a [u8], types: bool) -> Result<Self, DecodeError> {
        if let Some(head) = json::head(document, types) {
            return Ok(Self::from(head));
        }
        // It isn't as servers write it. That's for a parser to tell.
        Self::parse_slowly(document, types)
    }

    pub(crate) fn parse_slowly(document: &'a [u8], types: bool) -> Result<Self, DecodeError> {
        let mut head = Self::default();
        let seed = HeadSeed { head: &mut head, types };
        let parsed = seed.deserialize(&mut serde_json::Deserializer::from_slice(document));
        match (parsed, &head.metadata) {
            // Stopped on purpose, or at the end.
            (_, Some(_)) => Ok(head),
            (Ok(()), None) => Err(DecodeError::new("the object has no metadata")),
            (Err(error), None) => Err(DecodeError::from_json(error)),
        }
    }

    /// The head of an object whose metadata was read from protobuf, and its types if they're known.
    pub(crate) fn of_protobuf(metadata: &protobuf::Metadata<'a>, types: Option<(&'a str, &'a str)>) -> Self {
        let text = |text: &'a str| (!text.is_empty()).then_some(Text(Cow::Borrowed(text)));
        let metadata = MetadataHead {
            name: text(metadata.name),
            namespace: text(metadata.namespace),
            uid: text(metadata.uid),
            resource_version: text(metadata.resource_version),
        };
        let (api_version, kind) = types.unwrap_or_default();
        Self { api_version: text(api_version), kind: text(kind), metadata: Some(metadata) }
    }

    /// The head of an object that came by itself, as JSON or in protobuf's envelope, and the object.
    pub(crate) fn open(object: &'a [u8]) -> Result<(Self, Opened<'a>), DecodeError> {
        if !object.starts_with(MAGIC) {
            return Ok((Self::parse(object, true)?, Opened::Json(object)));
        }
        let envelope = Envelope::open(object)?;
        let metadata = protobuf::Metadata::read(envelope.raw)?;
        Ok((Self::of_protobuf(&metadata, Some((envelope.api_version, envelope.kind))), Opened::Protobuf(envelope)))
    }

    /// As [`open`](Self::open), of an object of which only the beginning is there.
    pub(crate) fn open_start(object: &'a [u8]) -> Result<Self, DecodeError> {
        if !object.starts_with(MAGIC) {
            return Self::parse(object, true);
        }
        let envelope = Envelope::open_start(object)?;
        let metadata = protobuf::Metadata::read_start(envelope.raw)?;
        Ok(Self::of_protobuf(&metadata, Some((envelope.api_version, envelope.kind))))
    }

    /// The object's key, if it has a name.
    pub(crate) fn key(&self) -> Result<ObjectKey, DecodeError> {
        let metadata = self.metadata.as_ref();
        let name = metadata.and_then(|metadata| metadata.name.as_ref()).map_or("", Text::as_str);
        if name.is_empty() {
            return Err(DecodeError::new("the object has no metadata.name"));
        }
        let namespace = metadata.and_then(|metadata| metadata.namespace.as_ref()).map(Text::as_str);
        Ok(ObjectKey::new(namespace, name))
    }

    pub(crate) fn uid(&self) -> &str {
        self.metadata.as_ref().and_then(|metadata| metadata.uid.as_ref()).map_or("", Text::as_str)
    }

    pub(crate) fn resource_version(&self) -> &str {
        self.metadata.as_ref().and_then(|metadata| metadata.resource_version.as_ref()).map_or("", Text::as_str)
    }

    fn is_complete(&self, types: bool) -> bool {
        self.metadata.is_some() && (!types || (self.kind.is_some() && self.api_version.is_some()))
    }
}

impl<'a> From<json::Head<'a>> for Head<'a> {
    fn from(head: json::Head<'a>) -> Self {
        let json::Head { api_version, kind, name, namespace, uid, resource_version, .. } = head;
        let metadata = MetadataHead {
            name: name.map(Text),
            namespace: namespace.map(Text),
            uid: uid.map(Text),
            resource_version: resource_version.map(Text),
        };
        Self { api_version: api_version.map(Text), kind: kind.map(Text), metadata: Some(metadata) }
    }
}

// === impl Opened ===

impl<'a> Opened<'a> {
    /// The object as a document, if its kind is one that can be read.
    pub(crate) fn document(&self) -> Result<Document<'a>, DecodeError> {
        Ok(match self {
            Self::Json(text) => Document::json(text),
            Self::Protobuf(envelope) => Document::protobuf(envelope.message()?, envelope.raw),
        })
    }
}

struct HeadSeed<'h, 'a> {
    head: &'h mut Head<'a>,
    types: bool,
}

impl<'de> DeserializeSeed<'de> for HeadSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeadSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of the API")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "apiVersion" => self.head.api_version = map.next_value()?,
                "kind" => self.head.kind = map.next_value()?,
                "metadata" => self.head.metadata = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            if self.head.is_complete(self.types) {
                // The only way to leave a map before its end.
                return Err(A::Error::custom("the head is complete"));
            }
        }
        Ok(())
    }
}

// === impl Text ===

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

// === impl ListHead ===

impl ListHead {
    /// Reads a list that its items were taken out of.
    pub(crate) fn parse(envelope: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(envelope).map_err(DecodeError::from_json)
    }

    pub(crate) fn form(&self) -> ListForm {
        let group = self.api_version.as_deref().unwrap_or("");
        match self.kind.as_deref().unwrap_or("") {
            "Table" if group.starts_with("meta.k8s.io/") => ListForm::Table,
            "Status" if group == "v1" => ListForm::Status,
            kind if self.items || self.metadata.is_some() || kind.ends_with("List") => ListForm::List,
            _ => ListForm::Other,
        }
    }
}

fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

// === impl ListMetadata ===

impl ListMetadata {
    /// Reads the metadata of a list; what isn't there is empty.
    pub(crate) fn from_protobuf(bytes: &[u8]) -> Result<Self, protobuf::Error> {
        let mut metadata = Self::default();
        let mut reader = Reader::new(bytes);
        while let Some((tag, wire)) = reader.field()? {
            let (place, name) = match tag {
                2 => (&mut metadata.resource_version, "resourceVersion"),
                3 => (&mut metadata.continue_token, "continue"),
                _ => continue,
            };
            let text = wire.text().map_err(|broken| protobuf::Error::from(broken).below(name))?;
            *place = Some(text.to_owned());
        }
        Ok(metadata)
    }
}

// === impl WatchEvent ===

impl<'a> WatchEvent<'a> {
    /// Reads an event in protobuf.
    pub(crate) fn from_protobuf(frame: &'a [u8]) -> Result<Self, DecodeError> {
        let protobuf::WatchEvent { kind, object } = protobuf::WatchEvent::read(frame)?;
        Ok(Self { kind: Cow::Borrowed(kind), object: Cow::Borrowed(object) })
    }

    /// Splits a watch event into its type and its object.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, DecodeError> {
        Self::split(line).map_or_else(|| Self::parse_slowly(line), Ok)
    }

    /// As every API server writes it: `{"type":"ADDED","object":{…}}`.
    fn split(line: &'a [u8]) -> Option<Self> {
        let (kind, object) = Self::split_start(line)?;
        let object = object.trim_ascii_end().strip_suffix(b"}")?;
        Some(Self { kind: Cow::Borrowed(kind), object: Cow::Borrowed(object) })
    }

    /// The type, and the object as far as it's there, of an event that may be cut off.
    pub(crate) fn split_start(line: &'a [u8]) -> Option<(&'a str, &'a [u8])> {
        let rest = line.trim_ascii_start().strip_prefix(b"{\"type\":\"")?;
        let end = rest.iter().position(|byte| !byte.is_ascii_alphabetic())?;
        let (kind, rest) = rest.split_at(end);
        Some((std::str::from_utf8(kind).ok()?, rest.strip_prefix(b"\",\"object\":")?))
    }

    fn parse_slowly(line: &[u8]) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Event {
            r#type: String,
            #[serde(default)]
            object: serde_json::Value,
        }
        let Event { r#type, object } = serde_json::from_slice(line).map_err(DecodeError::from_json)?;
        let object = serde_json::to_vec(&object).map_err(DecodeError::from_json)?;
        Ok(Self { kind: Cow::Owned(r#type), object: Cow::Owned(object) })
    }
}

// === impl Bookmark ===

impl Bookmark {
    pub(crate) fn parse(object: &[u8]) -> Result<Self, DecodeError> {
        const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
        if object.starts_with(MAGIC) {
            let metadata = protobuf::Metadata::read(Envelope::open(object)?.raw)?;
            let mut annotations = metadata.annotations();
            return Ok(Self {
                resource_version: metadata.resource_version.to_owned(),
                initial_events_end: annotations.any(|(key, value)| key == INITIAL_EVENTS_END && value == "true"),
            });
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Object {
            metadata: Metadata,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Metadata {
            resource_version: Option<String>,
            annotations: Option<Annotations>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Annotations {
            #[serde(rename = "k8s.io/initial-events-end")]
            initial_events_end: Option<String>,
        }
        let object: Object = serde_json::from_slice(object).map_err(DecodeError::from_json)?;
        let end = object.metadata.annotations.unwrap_or_default().initial_events_end;
        Ok(Self {
            resource_version: object.metadata.resource_version.unwrap_or_default(),
            initial_events_end: end.as_deref() == Some("true"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"web","uid":"u1","resourceVersion":"7",
        "labels":{"x":"y"}},"spec":"not looked at"#;

    #[test]
    fn a_head_is_read_without_what_follows_it() {
        let head = Head::parse(POD.as_bytes(), true).expect("a head");
        assert_eq!(head.key().expect("a key"), ObjectKey::namespaced("web", "a"));
        assert_eq!((head.uid(), head.resource_version()), ("u1", "7"));
        assert_eq!(head.kind.as_ref().map(Text::as_str), Some("Pod"));
    }

    #[test]
    fn a_head_is_the_same_however_it_is_read() {
        for text in [
            POD,
            r#"{"kind":"K","kind":null,"metadata":{"name":"a"},"metadata":{"uid":"\u0061"},"kind":"L","apiVersion":"v1"}"#,
        ] {
            for types in [false, true] {
                let slow = Head::parse_slowly(text.as_bytes(), types).expect("a head");
                let fast = Head::from(json::head(text.as_bytes(), types).expect("a head"));
                assert_eq!(format!("{fast:?}"), format!("{slow:?}"));
            }
        }
    }

    #[test]
    fn a_head_is_found_wherever_the_metadata_is() {
        let text = r#"{"spec":{"a":[1,{}]},"metadata":{"managedFields":[{"x":1}],"name":"n\u0061","namespace":null},"kind":"K"}"#;
        let head = Head::parse(text.as_bytes(), true).expect("a head");
        assert_eq!(head.key().expect("a key"), ObjectKey::cluster("na"));
        assert_eq!(head.kind.as_ref().map(Text::as_str), Some("K"));
    }

    #[test]
    fn an_object_without_a_readable_head_is_an_error_that_says_what_is_missing() {
        for (text, shown) in [
            ("{}", "no metadata"),
            (r#"{"metadata":{}}"#, "metadata.name"),
            (r#"{"metadata":{"name":5}}"#, "a text"),
            ("[]", "an object of the API"),
        ] {
            let error = Head::parse(text.as_bytes(), false).and_then(|head| head.key()).expect_err(text);
            assert!(error.to_string().contains(shown), "{error}");
        }
    }

    #[test]
    fn an_event_is_split_also_if_its_fields_come_in_another_order() {
        for line in [
            r#"{"type":"ADDED","object":{"a":1}}"#,
            r#" {"object":{"a":1},"type":"ADDED"} "#,
            "{ \"type\" : \"ADDED\", \"object\":{\"a\":1} }",
        ] {
            let event = WatchEvent::parse(line.as_bytes()).expect(line);
            assert_eq!((&*event.kind, &*event.object), ("ADDED", &b"{\"a\":1}"[..]));
        }
        assert!(WatchEvent::parse(b"{\"object\":{}}").is_err());
    }

    /// client-go fact 38, and bookmarks whose other fields are null or absent.
    #[test]
    fn a_bookmark_ends_the_initial_events_only_if_its_annotation_says_exactly_true() {
        let bookmark = |annotations: &str| {
            let text = format!(
                r#"{{"kind":"Job","metadata":{{"resourceVersion":"77","annotations":{annotations}}},"spec":{{"containers":null}}}}"#
            );
            Bookmark::parse(text.as_bytes()).expect("a bookmark")
        };
        assert!(bookmark(r#"{"k8s.io/initial-events-end":"true"}"#).initial_events_end);
        for annotations in
            ["null", "{}", r#"{"k8s.io/initial-events-end":"false"}"#, r#"{"k8s.io/initial-events-end":"True"}"#]
        {
            let bookmark = bookmark(annotations);
            assert!(!bookmark.initial_events_end);
            assert_eq!(bookmark.resource_version, "77");
        }
    }

    /// client-go fact 14.
    #[test]
    fn a_table_is_known_by_kind_and_group() {
        let table = |api_version: &str| {
            let list = format!(r#"{{"kind":"Table","apiVersion":"{api_version}","items":[]}}"#);
            ListHead::parse(list.as_bytes()).expect("a list").form()
        };
        assert_eq!((table("meta.k8s.io/v1"), table("meta.k8s.io/v1beta1")), (ListForm::Table, ListForm::Table));
        assert_eq!(table("furniture.example.com/v1"), ListForm::List);
    }
    #[test]
    fn an_answer_is_a_list_if_it_has_the_name_or_a_field_of_one() {
        let form = |text: &str| ListHead::parse(text.as_bytes()).expect("JSON").form();
        for list in [r#"{"items":null}"#, r#"{"metadata":{"resourceVersion":"3"}}"#, r#"{"kind":"PodList"}"#] {
            assert_eq!(form(list), ListForm::List, "{list}");
        }
        assert_eq!(form(r#"{"kind":"Status","apiVersion":"v1","metadata":{},"code":410}"#), ListForm::Status);
        for other in ["{}", r#"{"kind":"APIGroup","apiVersion":"v1","versions":[]}"#, r#"{"error":"sign in"}"#] {
            assert_eq!(form(other), ListForm::Other, "{other}");
        }
    }
}
