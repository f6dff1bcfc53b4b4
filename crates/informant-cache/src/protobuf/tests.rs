//! What's made of bodies: real ones of every kind, and broken ones.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::*;

/// One random object of every kind, by Go: base64 of the body, a tab, Go's own JSON.
const CASES: &[u8] = include_bytes!("../../../informant-apiserver/data/protobuf-cases.zst");

pub(crate) fn cases() -> Vec<(Vec<u8>, Value)> {
    let text = match std::env::var_os("INFORMANT_PROTOBUF_CASES") {
        Some(file) => std::fs::read(file).expect("the cases"),
        None => zstd::decode_all(CASES).expect("the cases"),
    };
    let text = String::from_utf8(text).expect("text");
    let case = |line: &str| {
        let (body, json) = line.split_once('\t').expect("two columns");
        (BASE64.decode(body).expect("base64"), serde_json::from_str(json).expect("JSON"))
    };
    text.lines().map(case).collect()
}

/// Whole numbers of Go's `2.0` and ours compare by value.
pub(crate) fn same(ours: &Value, go: &Value) -> bool {
    match (ours, go) {
        (Value::Number(ours), Value::Number(go)) => ours == go || ours.as_f64() == go.as_f64(),
        (Value::Array(ours), Value::Array(go)) => {
            ours.len() == go.len() && ours.iter().zip(go).all(|(ours, go)| same(ours, go))
        }
        (Value::Object(ours), Value::Object(go)) => {
            ours.len() == go.len() && ours.iter().all(|(key, ours)| go.get(key).is_some_and(|go| same(ours, go)))
        }
        _ => ours == go,
    }
}

fn object(body: &[u8]) -> Result<Object<'_>, Error> {
    let envelope = Envelope::open(body)?;
    Ok(Object::new(envelope.message()?, envelope.raw).with_types(envelope.api_version, envelope.kind))
}

#[test]
fn objects_of_every_kind_equal_gos_own_json() {
    let cases = cases();
    assert!(cases.len() > 200, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for (body, go) in &cases {
        let object = object(body).expect("a known kind");
        match object.decode::<Value>() {
            Ok(ours) if same(&ours, go) => {}
            Ok(ours) => wrong.push(format!("ours {ours}\n  go {go}")),
            Err(error) => wrong.push(format!("{error}\n  go {go}")),
        }
        let json = to_json(object).expect("JSON");
        let ours = serde_json::from_slice(&json).expect("JSON");
        if !same(&ours, go) {
            wrong.push(format!("JSON {ours}\n  go {go}"));
        }
        let envelope = Envelope::open(body).expect("an envelope");
        check(envelope.message().expect("a kind"), envelope.raw).expect("sound");
    }
    assert!(wrong.is_empty(), "{} differ; the first:\n{}", wrong.len(), wrong[0]);
}
