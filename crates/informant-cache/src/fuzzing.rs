//! What the programs below `fuzz/` run on any bytes. It's there in builds with `--cfg fuzzing` and in tests only, is no
//! part of what the crate offers, and panics where an answer is wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "it's a test")]

use bytes::Bytes;
use serde_json::Value;

use crate::frame::{Frame, ListDecoder};
use crate::head::Head;
use crate::json::{self, Form};
use crate::protobuf::table;

/// Splits a list, reads a head, cuts managedFields and checks, each held against `serde_json`.
pub fn json_scan(data: &[u8]) {
    split(data);
    split(&[b"{\"items\":[", data, b"]}"].concat());
    head(data);
    if json::check(data, Form::Any).is_ok() {
        let value: Result<Value, _> = serde_json::from_slice(data);
        assert!(value.is_ok(), "{value:?}: {}", data.escape_ascii());
    }
    if json::check(data, Form::Dynamic).is_ok() {
        let object: Result<kube::api::DynamicObject, _> = serde_json::from_slice(data);
        assert!(object.is_ok(), "{object:?}: {}", data.escape_ascii());
    }
}

/// Whether it's sure that a text decodes as an object of that kind. Of an unknown kind nothing is.
#[must_use]
pub fn is_sure(api_version: &str, kind: &str, text: &[u8]) -> bool {
    table().kind(api_version, kind).is_some_and(|message| json::check(text, Form::Kind(message)).is_ok())
}

/// However a list is cut, its items are the same, and those that a parser finds.
fn split(data: &[u8]) {
    let whole = items(data, data.len().max(1));
    let sizes: &[usize] = if data.len() < 500 { &[1, 7, 64, 100] } else { &[64, 1000] };
    for &size in sizes {
        assert_eq!(items(data, size), whole, "{} in pieces of {size}", data.escape_ascii());
    }
    let (Some(found), Ok(list)) = (whole, serde_json::from_slice::<Value>(data)) else { return };
    if is_plain(data, b"items") && list["items"].is_array() {
        let parse = |item: &Bytes| serde_json::from_slice::<Value>(item).expect("an item of JSON is JSON");
        assert_eq!(found.iter().map(parse).collect::<Value>(), list["items"], "{}", data.escape_ascii());
    }
}

fn items(data: &[u8], size: usize) -> Option<Vec<Bytes>> {
    let mut decoder = ListDecoder::new(1 << 20);
    let mut items = Vec::new();
    for chunk in data.chunks(size) {
        decoder.push(Bytes::copy_from_slice(chunk));
        while let Some(frame) = decoder.next().ok()? {
            match frame {
                Frame::Document(item) | Frame::TooLarge(item) => items.push(item),
            }
        }
    }
    decoder.finish().ok().map(|_| items)
}

/// A head is what a parser reads, and without managedFields the rest is as it was.
fn head(data: &[u8]) {
    let value: Result<Value, _> = serde_json::from_slice(data);
    for types in [false, true] {
        let Some(head) = json::head(data, types) else { continue };
        let Ok(value) = &value else { continue };
        let managed_fields = head.managed_fields.clone();
        match Head::parse_slowly(data, types) {
            Ok(slow) => assert_eq!(format!("{:?}", Head::from(head)), format!("{slow:?}"), "{}", data.escape_ascii()),
            // What's derived from a struct doesn't take a field twice; the last counts.
            Err(error) => assert!(error.to_string().contains("duplicate field"), "{error}: {}", data.escape_ascii()),
        }
        let Some(range) = managed_fields.filter(|_| is_plain(data, b"metadata")) else { continue };
        let cut: Value = serde_json::from_slice(&json::without(data, range)).expect("what's left is JSON");
        let mut expected = value.clone();
        expected["metadata"].as_object_mut().expect("it has metadata").remove("managedFields");
        assert_eq!(cut, expected, "{}", data.escape_ascii());
    }
}

/// Whether a name is there once at most, and can't be spelled otherwise.
fn is_plain(data: &[u8], name: &[u8]) -> bool {
    let (text, name) = (String::from_utf8_lossy(data), String::from_utf8_lossy(name));
    text.matches(&*name).count() <= 1 && !text.contains("\\u")
}
