//! The head of an object: what says which one it is, and where in its metadata the labels and the managedFields are.

use std::borrow::Cow;
use std::ops::Range;

use super::cursor::{Cursor, Quoted};

/// What the head of an object says. A field that's null or absent is `None`; of fields that come twice the last counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub(crate) api_version: Option<Cow<'a, str>>,
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) namespace: Option<Cow<'a, str>>,
    pub(crate) uid: Option<Cow<'a, str>>,
    pub(crate) resource_version: Option<Cow<'a, str>>,
    /// Where the value of `metadata.labels` is, which may be null.
    pub(crate) labels: Option<Range<usize>>,
    /// What to leave out for an object without `metadata.managedFields`: the field, with the comma before or after it.
    pub(crate) managed_fields: Option<Range<usize>>,
}

/// Reads the head of an object, which may be cut off after it: to the end of the metadata or, with `types`, until
/// `apiVersion` and `kind` are there too.
///
/// `None` if it isn't as servers write it, or if it's no JSON; then a parser must tell. Nothing is allocated unless a
/// text holds an escape.
pub(crate) fn head(text: &[u8], types: bool) -> Option<Head<'_>> {
    let mut cursor = Cursor::new(text);
    let mut head = Head::default();
    let mut has_metadata = false;
    cursor.take(b'{')?;
    loop {
        match &*key(&mut cursor)? {
            b"metadata" => {
                metadata(&mut cursor, &mut head)?;
                has_metadata = true;
            }
            b"apiVersion" => head.api_version = optional_text(&mut cursor)?,
            b"kind" => head.kind = optional_text(&mut cursor)?,
            _ => cursor.skip()?,
        }
        let is_complete = has_metadata && (!types || (head.api_version.is_some() && head.kind.is_some()));
        if is_complete || !goes_on(&mut cursor)? {
            return has_metadata.then_some(head);
        }
    }
}

/// A text without a range of it.
pub(crate) fn without(text: &[u8], range: Range<usize>) -> Vec<u8> {
    let (before, after) = (text.get(..range.start).unwrap_or(text), text.get(range.end..).unwrap_or_default());
    [before, after].concat()
}

fn metadata<'a>(cursor: &mut Cursor<'a>, head: &mut Head<'a>) -> Option<()> {
    let Head { api_version, kind, .. } = std::mem::take(head);
    *head = Head { api_version, kind, ..Head::default() };
    cursor.take(b'{')?;
    if cursor.peek()? == b'}' {
        return cursor.take(b'}');
    }
    // The end of the last field that stays, and of the last of the managedFields that came since.
    let (mut kept, mut is_first) = (cursor.at, true);
    let mut left_out = None;
    loop {
        cursor.peek()?;
        let start = cursor.at;
        let key = key(cursor)?;
        if &*key == b"managedFields" {
            cursor.skip()?;
            left_out = Some(cursor.at);
        } else {
            if let Some(end) = left_out.take() {
                leave_out(head, if is_first { kept..start } else { kept..end })?;
            }
            match &*key {
                b"name" => head.name = optional_text(cursor)?,
                b"namespace" => head.namespace = optional_text(cursor)?,
                b"uid" => head.uid = optional_text(cursor)?,
                b"resourceVersion" => head.resource_version = optional_text(cursor)?,
                b"labels" => {
                    cursor.peek()?;
                    let start = cursor.at;
                    cursor.skip()?;
                    head.labels = Some(start..cursor.at);
                }
                _ => cursor.skip()?,
            }
            (kept, is_first) = (cursor.at, false);
        }
        if !goes_on(cursor)? {
            break;
        }
    }
    if let Some(end) = left_out {
        leave_out(head, kept..end)?;
    }
    Some(())
}

fn leave_out(head: &mut Head<'_>, range: Range<usize>) -> Option<()> {
    head.managed_fields.replace(range).is_none().then_some(())
}

/// Goes past what follows a field: whether there's another.
#[inline]
fn goes_on(cursor: &mut Cursor<'_>) -> Option<bool> {
    let byte = cursor.peek()?;
    cursor.at += 1;
    match byte {
        b',' => Some(true),
        b'}' => Some(false),
        _ => None,
    }
}

#[inline]
fn key<'a>(cursor: &mut Cursor<'a>) -> Option<Cow<'a, [u8]>> {
    let quoted = cursor.quoted()?;
    cursor.take(b':')?;
    if quoted.escaped { Some(Cow::Owned(unescape(quoted)?.into_bytes())) } else { Some(Cow::Borrowed(quoted.bytes)) }
}

#[inline]
fn optional_text<'a>(cursor: &mut Cursor<'a>) -> Option<Option<Cow<'a, str>>> {
    if cursor.peek()? == b'n' {
        return cursor.word(b"null").map(|()| None);
    }
    let quoted = cursor.quoted()?;
    if quoted.escaped {
        return unescape(quoted).map(|text| Some(Cow::Owned(text)));
    }
    std::str::from_utf8(quoted.bytes).ok().map(|text| Some(Cow::Borrowed(text)))
}

#[cold]
fn unescape(quoted: Quoted<'_>) -> Option<String> {
    serde_json::from_slice(&[b"\"", quoted.bytes, b"\""].concat()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// What a parser makes of the same text.
    fn parsed(text: &str) -> Head<'_> {
        let object: Value = serde_json::from_str(text).expect("JSON");
        let field = |value: &Value, name: &str| value[name].as_str().map(|text| Cow::Owned(text.to_owned()));
        let metadata = &object["metadata"];
        Head {
            api_version: field(&object, "apiVersion"),
            kind: field(&object, "kind"),
            name: field(metadata, "name"),
            namespace: field(metadata, "namespace"),
            uid: field(metadata, "uid"),
            resource_version: field(metadata, "resourceVersion"),
            labels: None,
            managed_fields: None,
        }
    }

    fn without(text: &str, range: Option<Range<usize>>) -> Value {
        let mut text = text.to_owned();
        if let Some(range) = range {
            text.replace_range(range, "");
        }
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn assert_read(text: &str) {
        let mut found = head(text.as_bytes(), true).expect(text);
        let mut expected: Value = serde_json::from_str(text).expect("JSON");
        let metadata = expected["metadata"].as_object_mut().expect("metadata");
        metadata.remove("managedFields");
        assert_eq!(without(text, found.managed_fields.take()), expected, "{text}");
        let labels = found.labels.take().map(|range| serde_json::from_str::<Value>(&text[range]).expect("labels"));
        assert_eq!(labels.as_ref(), expected["metadata"].get("labels"), "{text}");
        assert_eq!(found, parsed(text), "{text}");
    }

    #[test]
    fn a_head_is_what_a_parser_reads() {
        for metadata in [
            r#""name":"a","namespace":"web","uid":"u1","resourceVersion":"7","labels":{"x":"y"}"#,
            r#""name":"a","managedFields":[{"f":{"k:{\"a\":1}":{}}}],"uid":"u""#,
            r#""managedFields":[1],"name":"a""#,
            r#""name":"a" , "managedFields" : [1] "#,
            r#" "managedFields" : null"#,
            "",
            r#""name":"a","managedFields":[1],"managedFields":[2]"#,
            r#""managedFields":[1],"managedFields":[2] , "name":"a""#,
            r#""managedFields":[1],"managedFields":[2]"#,
            r#""name":"a","managedFi\u0065lds":[1],"uid":"u""#,
            r#""n\u0061me":"\u0061\"\\ü","name":"b\n","labels":null,"uid":null"#,
            r#""name":"a","name":null,"labels":{"a":"}"},"labels":{"b":"c"},"x":-1.5e3,"y":true"#,
        ] {
            let text = format!(
                r#" {{"spec":[{{"a":"]"}},5],"metadata": {{{metadata}}},"apiVersion":"v1","kind":"Pod","z":1}}"#
            );
            assert_read(&text);
            assert_read(&format!("\r\n\t{}", text.replace(',', " , ").replace(':', " : ").replace('}', " } ")));
        }
    }

    #[test]
    fn only_as_much_as_is_needed_is_looked_at() {
        let items = r#"{"metadata":{"name":"a"},"#;
        assert_eq!(head(items.as_bytes(), false).expect("a head").name.as_deref(), Some("a"));
        assert_eq!(head(items.as_bytes(), true), None);
        assert!(head(br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}"#, true).is_some());
    }

    #[test]
    fn what_is_not_as_servers_write_it_is_left_to_a_parser() {
        for text in [
            "",
            "[]",
            "{}",
            "{",
            r#"{"metadata":null}"#,
            r#"{"metadata":{"name":5}}"#,
            r#"{"metadata":{"name":"a"#,
            r#"{"metadata":{"managedFields":[],"name":"a","managedFields":[]}}"#,
            r#"{"metadata":{"name":"a",}}"#,
            "{\"metadata\":{\"name\":\"a\nb\"}}",
            r#"{"metadata":{"name":"\x"}}"#,
            r#"{"metadata":{"x":}}"#,
        ] {
            assert_eq!(head(text.as_bytes(), false), None, "{text}");
        }
        assert_eq!(head(b"{\"metadata\":{\"name\":\"\xff\"}}", false), None);
    }

    #[test]
    fn a_pod_s_managed_fields_are_cut() {
        for number in 0..8 {
            assert_read(
                &super::super::samples::pod(number)
                    .replace(r#"{"metadata""#, r#"{"kind":"Pod","apiVersion":"v1","metadata""#),
            );
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            r#"[a-zü"\\{}\[\]\n]{0,80}"#.prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_metadata_is_read_as_a_parser_does(
            fields in prop::collection::vec((prop::sample::select(vec!["name", "uid", "namespace", "resourceVersion"]),
                prop::option::of("[a-z\"\\\\é]{0,70}")), 0..6),
            others in prop::collection::vec((prop::sample::select(vec!["labels", "x", "y\"", "managedField", "managedFieldss"]), any_value()), 0..4),
            managed in prop::option::of(any_value()),
            at in 0..10_usize,
            after in any_value(),
        ) {
            let field = |(name, value): (&str, Value)| format!("{}:{value}", json!(name));
            let texts = fields.into_iter().map(|(name, text)| field((name, json!(text))));
            let mut members: Vec<String> = texts.chain(others.into_iter().map(field)).collect();
            if let Some(value) = managed {
                members.insert(at.min(members.len()), field(("managedFields", value)));
            }
            assert_read(&format!(r#"{{"x":{after},"metadata":{{{}}},"kind":"K","apiVersion":"v1","y":{after}}}"#, members.join(",")));
        }

        #[test]
        fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = head(&bytes, true);
            let _ = head(&[&br#"{"metadata":{"name":""#[..], &bytes].concat(), false);
        }
    }
}
