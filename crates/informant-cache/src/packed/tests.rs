//! What's read of a packed object is what's read of one that's kept whole.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::json::samples;
use crate::protobuf::Envelope;
use crate::protobuf::tests::{cases, same};

fn full<K: kube::Resource>(api_version: &str, kind: &str) -> Full<K> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Full::new(&ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)))
}

/// What both forms make of a document; JSON of the object, or that it's refused.
fn both<K>(packed: &Packed<K>, full: &Full<K>, document: &Document<'_>) -> [Option<Value>; 2]
where
    K: kube::Resource + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    let read = |held: Result<Held<K>, DecodeError>| held.ok().map(|held| serde_json::to_value(&*held.read()).unwrap());
    [read(packed.hold(document)), read(full.hold(document))]
}

/// A dictionary that knows such objects.
async fn train<K>(packed: &Packed<K>, documents: impl Iterator<Item = String>) -> usize
where
    K: kube::Resource + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    for document in documents {
        packed.hold(&Document::json(document.as_bytes())).expect("it decodes");
        if let Some(settled) = packed.settle() {
            settled.await;
        }
    }
    lock(&packed.streams).streams.iter().filter(|stream| stream.packed.is_some()).count()
}

#[tokio::test]
async fn pods_are_compressed_and_read_back_whole() {
    let (packed, full) = (Packed::<Pod>::new(full("v1", "Pod"), true, false), full::<Pod>("v1", "Pod"));
    assert_eq!(train(&packed, (0..300).map(samples::pod)).await, 1);
    for number in 300..400 {
        let text = samples::pod(number);
        let document = Document::json(text.as_bytes());
        let [one, other] = both(&packed, &full, &document);
        assert!(one.is_some() && one == other, "{text}");
        let Held::Packed(held) = packed.hold(&document).expect("it decodes") else { panic!("it isn't packed") };
        assert!(held.held_bytes() * 4 < text.len(), "{} of {}", held.held_bytes(), text.len());
        let kept: Value = held.with_document(|document| serde_json::from_slice(document.bytes()).unwrap());
        let mut sent: Value = serde_json::from_str(&text).unwrap();
        sent["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(kept, sent);
    }
    assert!(packed.shared_bytes() > 50_000, "the dictionary counts");
}

/// Each kind that Go knows, as JSON and as protobuf.
#[tokio::test]
async fn objects_of_every_kind_read_alike_in_both_forms_and_encodings() {
    let mut kinds = 0;
    for (body, go) in cases() {
        let envelope = Envelope::open(&body).expect("an envelope");
        let message = envelope.message().expect("a known kind");
        if !go["metadata"].is_object() || envelope.kind.ends_with("List") {
            // No object: a list or a request.
            continue;
        }
        kinds += 1;
        let (api_version, kind) = (envelope.api_version, envelope.kind);
        let packed = Packed::<DynamicObject>::new(full(api_version, kind), true, false);
        let full = full::<DynamicObject>(api_version, kind);
        let text = go.to_string();
        let [one, other] = both(&packed, &full, &Document::json(text.as_bytes()));
        assert!(one.is_some() && one == other, "{api_version} {kind}: {text}");
        let [one, other] = both(&packed, &full, &Document::protobuf(message, envelope.raw));
        let mut sent = go;
        sent["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(one, other, "{api_version} {kind}");
        assert!(one.is_some_and(|one| same(&one["metadata"]["labels"], &sent["metadata"]["labels"])), "{sent}");
    }
    assert!(kinds > 60, "{kinds}");
}

/// JSON texts that one serialiser wouldn't write alike: escapes, numbers of all kinds, duplicate keys, nulls, depth.
fn any_text() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("JSON has no others", |number| number.is_finite())
            .prop_map(|number| format!("{number:e}")),
        Just("-0".to_owned()),
        Just("1e400".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("01".to_owned()),
    ];
    let text = prop_oneof![
        ".{0,40}".prop_map(|text| Value::from(text).to_string()),
        Just(r#""\u00e9\ud83d\ude00\/\b""#.to_owned()),
        Just(r#""\ud800""#.to_owned()),
        (1..3000_usize).prop_map(|length| format!("\"{}\"", "long ".repeat(length))),
    ];
    let leaf = prop_oneof![Just("null".to_owned()), Just("true".to_owned()), number, text];
    let key = || prop_oneof![Just("a".to_owned()), Just("b".to_owned()), Just("\\u0061".to_owned()), "[a-z]{1,3}"];
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(" ,"))),
            prop::collection::vec((key(), inner), 0..5).prop_map(|fields| {
                let fields: Vec<String> = fields.iter().map(|(key, value)| format!("\"{key}\" : {value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

proptest! {
    /// Whatever is sent: either both forms refuse it, or both read the same of it.
    #[test]
    fn whatever_is_sent_is_read_alike_or_refused_alike(
        data in any_text(),
        annotations in any_text(),
        name in any_text(),
        managed in any_text(),
        depth in 0..200_usize,
    ) {
        let nested = "[".repeat(depth) + &"]".repeat(depth);
        let names = [json!("web").to_string(), name];
        for name in names {
            let text = format!(
                r#"{{"kind":"Thing","metadata":{{"name":{name},"managedFields":{managed},"annotations":{annotations}}},"data":{data},"n":{nested}}}"#
            );
            let document = Document::json(text.as_bytes());
            let packed = Packed::<DynamicObject>::new(full("example.com/v1", "Thing"), true, false);
            let [one, other] = both(&packed, &full("example.com/v1", "Thing"), &document);
            // Of managed fields nothing is kept, so packed objects take what others can't decode.
            prop_assert!(one == other || other.is_none() && serde_json::from_str::<Vec<Value>>(&managed).is_err(), "{}", text);
            let packed = Packed::<ConfigMap>::new(full("v1", "ConfigMap"), true, false);
            let [one, other] = both(&packed, &full("v1", "ConfigMap"), &document);
            prop_assert!(one == other || other.is_none() && serde_json::from_str::<Vec<Value>>(&managed).is_err(), "{}", text);
        }
    }
}
