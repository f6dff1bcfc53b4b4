//! Lists and objects as bytes.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::state::State;
use crate::corpus::Kind;
use crate::corpus::template::{self, Object, Template};

/// About how much is handed to the connection at a time.
const CHUNK: usize = 128 << 10;

/// In which form an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    /// `PartialObjectMetadata` in JSON.
    Metadata,
    Protobuf,
}

impl Form {
    /// What to answer to an `Accept` header: the first form in it that the kind has.
    pub(super) fn of(accept: &str, kind: &Kind) -> Self {
        for wanted in accept.split(',') {
            if wanted.contains("application/vnd.kubernetes.protobuf") && kind.protobuf && !wanted.contains("as=") {
                return Self::Protobuf;
            }
            if wanted.contains("application/json") {
                return if wanted.contains("as=PartialObjectMetadata") { Self::Metadata } else { Self::Json };
            }
        }
        Self::Json
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
            Self::Json | Self::Metadata => "application/json",
        }
    }

    pub(super) fn stream_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            Self::Json | Self::Metadata => "application/json;stream=watch",
        }
    }

    pub(super) fn of_template(self) -> template::Form {
        match self {
            Self::Json => template::Form::Json,
            Self::Metadata => template::Form::Metadata,
            Self::Protobuf => template::Form::Protobuf,
        }
    }

    /// The type of objects and the kind of lists.
    pub(super) fn types(self, kind: &Kind) -> (String, String) {
        match self {
            Self::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata".to_owned()),
            Self::Json | Self::Protobuf => (kind.api_version.to_owned(), kind.kind.to_owned()),
        }
    }
}

/// A page of a list, in chunks.
pub(super) struct Page {
    state: Arc<State>,
    form: Form,
    next: usize,
    end: usize,
    part: Part,
    pool: Pool,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Head,
    Items,
    End,
}

impl Page {
    pub(super) fn new(state: &Arc<State>, form: Form, start: usize, limit: usize) -> Self {
        let count = state.corpus.len();
        let next = start.min(count);
        let end = next.saturating_add(limit).min(count);
        Self { state: Arc::clone(state), form, next, end, part: Part::Head, pool: Pool::default() }
    }

    fn head(&self, out: &mut Vec<u8>) {
        let (version, left) = (self.state.version().to_string(), self.state.corpus.len() - self.end);
        let (api_version, kind) = self.form.types(self.state.corpus.kind);
        if self.form == Form::Protobuf {
            let mut metadata = Vec::new();
            put(1, b"", &mut metadata);
            put(2, version.as_bytes(), &mut metadata);
            let token = if left > 0 { self.end.to_string() } else { String::new() };
            put(3, token.as_bytes(), &mut metadata);
            if left > 0 {
                metadata.push(4 << 3);
                put_varint(left as u64, &mut metadata);
            }
            let mut list = Vec::new();
            put(1, &metadata, &mut list);
            let items: usize = (self.next..self.end).map(|index| field_len(self.state.corpus.object(index, 0).0)).sum();
            envelope(&api_version, &format!("{kind}List"), list.len() + items, out);
            out.extend_from_slice(&list);
            return;
        }
        let more =
            if left > 0 { format!(r#","continue":"{}","remainingItemCount":{left}"#, self.end) } else { String::new() };
        let head = format!(
            r#"{{"kind":"{kind}List","apiVersion":"{api_version}","metadata":{{"resourceVersion":"{version}"{more}}},"items":["#
        );
        out.extend_from_slice(head.as_bytes());
    }

    fn item(&self, index: usize, first: bool, out: &mut Vec<u8>) {
        let (template, object) = self.state.corpus.object(index, self.state.change_of(index));
        match self.form {
            Form::Protobuf => {
                out.push(2 << 3 | 2);
                put_varint(template.len(template::Form::Protobuf) as u64, out);
            }
            Form::Json | Form::Metadata if !first => out.push(b','),
            Form::Json | Form::Metadata => {}
        }
        template.render(self.form.of_template(), object, out);
    }
}

impl Iterator for Page {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut out = self.pool.take();
        if self.part == Part::Head {
            self.head(&mut out);
            self.part = Part::Items;
            // Alone, as an answer of this kind begins: with what's known before the first item is made.
            if self.next < self.end {
                let first = self.next;
                self.next += 1;
                self.item(first, true, &mut out);
            }
        }
        while self.next < self.end && out.len() < CHUNK {
            let index = self.next;
            self.next += 1;
            self.item(index, false, &mut out);
        }
        if self.next == self.end && self.part == Part::Items {
            match self.form {
                // What follows the message in its envelope: no encoding, no type.
                Form::Protobuf => out.extend_from_slice(&[0x1a, 0, 0x22, 0]),
                Form::Json | Form::Metadata => out.extend_from_slice(b"]}\n"),
            }
            self.part = Part::End;
            return Some(self.pool.lend(out));
        }
        (!out.is_empty()).then(|| self.pool.lend(out))
    }
}

/// An event of a watch.
pub(super) fn event(form: Form, kind: &Kind, what: &str, template: &Template, object: Object, out: &mut Vec<u8>) {
    let (api_version, name) = form.types(kind);
    let size = template.len(form.of_template());
    match form {
        Form::Protobuf => {
            let mut head = Vec::new();
            envelope(&api_version, &name, size, &mut head);
            frame(what, head.len() + size + 4, out);
            out.extend_from_slice(&head);
            template.render(template::Form::Protobuf, object, out);
            out.extend_from_slice(&[0x1a, 0, 0x22, 0]);
        }
        Form::Json | Form::Metadata => {
            let types = if kind.protobuf || form == Form::Metadata {
                format!(r#"{{"kind":"{name}","apiVersion":"{api_version}","#)
            } else {
                String::new()
            };
            out.extend_from_slice(format!(r#"{{"type":"{what}","object":{types}"#).as_bytes());
            let start = out.len();
            template.render(form.of_template(), object, out);
            if !types.is_empty() {
                out.remove(start);
            }
            out.extend_from_slice(b"}\n");
        }
    }
}

/// A bookmark; with `initial` the one that ends the initial events.
pub(super) fn bookmark(form: Form, kind: &Kind, version: u64, out: &mut Vec<u8>) {
    let (api_version, name) = form.types(kind);
    let object = serde_json::json!({"kind": name, "apiVersion": api_version, "metadata": {"resourceVersion": version.to_string(),
        "creationTimestamp": null, "annotations": {"k8s.io/initial-events-end": "true"}}});
    special(form, "BOOKMARK", &object, out);
}

/// The error of a watch whose resource version is too old.
pub(super) fn expired(form: Form, out: &mut Vec<u8>) {
    let object = serde_json::json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410});
    special(form, "ERROR", &object, out);
}

fn special(form: Form, what: &str, object: &serde_json::Value, out: &mut Vec<u8>) {
    if form == Form::Protobuf {
        let whole = informant_apiserver::to_protobuf(object).unwrap_or_default();
        frame(what, whole.len(), out);
        out.extend_from_slice(&whole);
    } else {
        out.extend_from_slice(format!("{{\"type\":\"{what}\",\"object\":{object}}}\n").as_bytes());
    }
}

/// The beginning of a frame of a watch, before an object of this length: `metav1.WatchEvent` behind its length.
fn frame(what: &str, object: usize, out: &mut Vec<u8>) {
    let mut event = Vec::new();
    put(1, what.as_bytes(), &mut event);
    event.push(2 << 3 | 2);
    let mut extension = vec![1 << 3 | 2];
    put_varint(object as u64, &mut extension);
    put_varint((extension.len() + object) as u64, &mut event);
    event.extend_from_slice(&extension);
    out.extend_from_slice(&((event.len() + object) as u32).to_be_bytes());
    out.extend_from_slice(&event);
}

/// The beginning of `runtime.Unknown`, before a message of this length.
fn envelope(api_version: &str, kind: &str, message: usize, out: &mut Vec<u8>) {
    let mut types = Vec::new();
    put(1, api_version.as_bytes(), &mut types);
    put(2, kind.as_bytes(), &mut types);
    out.extend_from_slice(b"k8s\0");
    put(1, &types, out);
    out.push(2 << 3 | 2);
    put_varint(message as u64, out);
}

fn field_len(template: &Template) -> usize {
    let size = template.len(template::Form::Protobuf);
    let mut length = Vec::new();
    put_varint(size as u64, &mut length);
    1 + length.len() + size
}

fn put(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag << 3 | 2);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Buffers that are used again and again: memory that was never touched before is slow to write to.
#[derive(Clone, Default)]
pub(super) struct Pool(Arc<Mutex<Vec<Vec<u8>>>>);

impl Pool {
    pub(super) fn take(&self) -> Vec<u8> {
        let used = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        used.unwrap_or_else(|| Vec::with_capacity(CHUNK + (32 << 10)))
    }

    pub(super) fn lend(&self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Lent { bytes, pool: self.clone() })
    }
}

struct Lent {
    bytes: Vec<u8>,
    pool: Pool,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        self.pool.0.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}
