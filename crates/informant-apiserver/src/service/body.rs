//! Request bodies: read up to a limit, then decoded from JSON, YAML or protobuf into one value, with the duplicate
//! fields that a strict client wants to hear of.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::protobuf;
use crate::service::negotiate::media_type;
use crate::status::{Reason, Status};

/// What the aliases of a YAML body may stand for together, in parser events: a few lines may stand for millions.
const MOST_REPLAYED: usize = 10_000;
/// A body up to so many times the limit is read to its end before it's refused.
const MOST_DROPPED: u64 = 4;
/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(60);
/// What is reported at most of duplicate fields.
const MAX_DUPLICATES: usize = 100;

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    /// The value.
    pub(crate) value: Value,
    /// Dotted paths of the fields that stood there more than once; the last one won.
    pub(crate) duplicates: Vec<String>,
}

/// Reads a body of at most `limit` bytes.
///
/// # Errors
/// 413 when it is longer, 400 when the connection broke while it was read, 504 when it takes more than a minute.
pub(crate) async fn read<B>(body: B, limit: usize) -> Result<Bytes, Status>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large =
        || Status::new(Reason::RequestEntityTooLarge, format!("Request entity too large: limit is {limit}"));
    let declared = body.size_hint().lower();
    let limit_bytes = u64::try_from(limit).unwrap_or(u64::MAX);
    if declared > limit_bytes {
        // Who is still sending loses the answer with the connection, so a little too much is read and dropped first. Of
        // much too much nothing is read.
        if declared <= limit_bytes.saturating_mul(MOST_DROPPED) {
            // However the body ends, the answer is the same.
            drop(tokio::time::timeout(PATIENCE, discard(body)).await);
        }
        return Err(too_large());
    }
    let read = tokio::time::timeout(PATIENCE, Limited::new(body, limit).collect());
    let Ok(read) = read.await else {
        return Err(Status::new(Reason::Timeout, "the request's body didn't arrive within a minute"));
    };
    match read {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => Err(Status::bad_request(format!("the request's body broke off: {error}"))),
    }
}

async fn discard<B: Body>(body: B) {
    let mut body = std::pin::pin!(body);
    while let Some(Ok(_)) = body.frame().await {}
}

/// Decodes an object by its content type; no content type means JSON.
///
/// # Errors
/// 415 for another content type, 400 for a body that isn't what its content type says.
pub(crate) fn decode(content_type: &str, body: &[u8]) -> Result<Document, Status> {
    match media_type(content_type).as_str() {
        "" | "application/json" | "*/*" => decode_json(body),
        "application/yaml" | "application/x-yaml" | "text/yaml" => decode_yaml(body),
        "application/vnd.kubernetes.protobuf" => {
            protobuf::decode(body).map(|value| Document { value, duplicates: Vec::new() })
        }
        _ => Err(Status::unsupported_media_type(&[
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
        ])),
    }
}

/// Decodes JSON.
///
/// # Errors
/// 400 with the place of the first mistake.
pub(crate) fn decode_json(body: &[u8]) -> Result<Document, Status> {
    let text = utf8(body)?;
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let node = Node { path: &mut String::new(), duplicates: &mut duplicates };
    let value = node
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| Status::bad_request(format!("the body of the request isn't valid JSON: {error}")))?;
    Ok(Document { value, duplicates })
}

/// Decodes YAML, of which JSON is a part.
///
/// # Errors
/// 400 with the place of the first mistake, also when aliases would expand beyond bounds.
pub(crate) fn decode_yaml(body: &[u8]) -> Result<Document, Status> {
    let text = utf8(body)?;
    // What looks like JSON is read as such: it's quicker, and its errors are clearer.
    if text.trim_start().starts_with('{')
        && let Ok(document) = decode_json(body)
    {
        return Ok(document);
    }
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        with_snippet: false,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MOST_REPLAYED },
    };
    let reported: Reported = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| Status::bad_request(format!("the body of the request isn't valid YAML: {error}")))?;
    Ok(Document { value: reported.value, duplicates: reported.duplicates })
}

fn utf8(body: &[u8]) -> Result<&str, Status> {
    std::str::from_utf8(body).map_err(|error| {
        Status::bad_request(format!(
            "the body of the request isn't valid UTF-8: the byte at offset {} doesn't fit",
            error.valid_up_to()
        ))
    })
}

/// A value that deserializes itself together with its duplicates, for parsers that want a type.
struct Reported {
    value: Value,
    duplicates: Vec<String>,
}

impl<'de> de::Deserialize<'de> for Reported {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut duplicates = Vec::new();
        let node = Node { path: &mut String::new(), duplicates: &mut duplicates };
        let value = node.deserialize(deserializer)?;
        Ok(Self { value, duplicates })
    }
}

/// Reads one value at a path and notes duplicate fields below it.
struct Node<'a> {
    path: &'a mut String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let Node { path, duplicates } = self;
        let length = path.len();
        let mut items = Vec::new();
        loop {
            path.push_str(&format!("[{}]", items.len()));
            let item = sequence.next_element_seed(Node { path, duplicates })?;
            path.truncate(length);
            match item {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let Node { path, duplicates } = self;
        let length = path.len();
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if length > 0 {
                path.push('.');
            }
            path.push_str(&key);
            if fields.contains_key(&key) && duplicates.len() < MAX_DUPLICATES {
                duplicates.push(path.clone());
            }
            let value = map.next_value_seed(Node { path, duplicates })?;
            path.truncate(length);
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use serde_json::json;

    #[test]
    fn duplicate_fields_are_named_by_path_and_the_last_wins() {
        let document = decode_json(br#"{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}],"a":3}"#).unwrap();
        assert_eq!(document.value, json!({"a": 3, "c": [{"d": 1}]}));
        assert_eq!(document.duplicates, ["a.b", "c[0].d", "a"]);
        let document = decode_yaml(b"a:\n  b: 1\n  b: 2\n").unwrap();
        assert_eq!((document.value, document.duplicates), (json!({"a": {"b": 2}}), vec!["a.b".to_owned()]));
    }

    #[test]
    fn yaml_scalars_become_json_scalars() {
        let document = decode_yaml(b"s: text\nn: 5\nf: 1.5\nt: true\nz: null\nq: \"7\"\nl: [a, b]\n").unwrap();
        assert_eq!(
            document.value,
            json!({"s": "text", "n": 5, "f": 1.5, "t": true, "z": null, "q": "7", "l": ["a", "b"]})
        );
    }

    #[test]
    fn bad_bodies_are_refused_with_400() {
        for (content_type, body) in [
            ("application/json", &b"{\"a\":"[..]),
            ("application/json", b"{} trailing"),
            ("application/json", b"{\"a\":\"\xff\"}"),
            ("application/yaml", b"a: [1, 2\nb: }"),
            ("application/yaml", b"\xc3\x28: 1"),
        ] {
            let refused = decode(content_type, body).map_err(|status| status.code);
            assert_eq!(refused, Err(400), "{content_type} {body:?}");
        }
        assert_eq!(decode("text/plain", b"{}").map_err(|status| status.code), Err(415));
    }

    #[test]
    fn deep_nesting_is_refused_instead_of_overflowing_the_stack() {
        let deep = "[".repeat(100_000);
        assert_eq!(decode_json(deep.as_bytes()).map_err(|status| status.code), Err(400));
        assert_eq!(decode_yaml(deep.as_bytes()).map_err(|status| status.code), Err(400));
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused_with_413() {
        let body = Full::new(Bytes::from_static(b"12345"));
        assert_eq!(read(body.clone(), 5).await, Ok(Bytes::from_static(b"12345")));
        assert_eq!(read(body, 4).await.map_err(|status| status.code), Err(413));
    }
}
