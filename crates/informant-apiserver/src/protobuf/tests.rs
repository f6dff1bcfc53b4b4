//! What the decoder makes of real, random and broken bodies.

use proptest::prelude::*;

use super::*;

/// One random object of every kind, by Go: base64 of the body, a tab, Go's own JSON.
const CASES: &[u8] = include_bytes!("../../data/protobuf-cases.zst");

fn cases() -> Vec<(Vec<u8>, Value)> {
    let text = match std::env::var_os("INFORMANT_PROTOBUF_CASES") {
        Some(file) => std::fs::read(file).unwrap(),
        None => zstd::decode_all(CASES).unwrap(),
    };
    let text = String::from_utf8(text).unwrap();
    text.lines()
        .map(|line| {
            let (body, json) = line.split_once('\t').unwrap();
            (BASE64.decode(body).unwrap(), serde_json::from_str(json).unwrap())
        })
        .collect()
}

fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag << 3 | 2, u8::try_from(content.len()).unwrap()][..], content].concat()
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let types = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC, &field(1, &types), &field(2, raw), &field(3, b""), &field(4, b"")].concat()
}

/// Whole numbers of Go's `2.0` and ours compare by value.
fn same(ours: &Value, go: &Value) -> bool {
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

#[test]
fn objects_of_every_kind_equal_gos_own_json() {
    let cases = cases();
    assert!(cases.len() > 200, "{} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(body, go)| match decode(body) {
            Ok(ours) if same(&ours, go) => None,
            Ok(ours) => Some(format!("ours {ours}\n  go {go}")),
            Err(status) => Some(format!("{status}\n  go {go}")),
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ; the first:\n{}", wrong.len(), cases.len(), wrong[0]);
}

/// What Go wrote is what we write, read back; where JSON tells all that the bytes do, byte for byte.
#[test]
fn objects_of_every_kind_are_written_as_go_writes_them() {
    let (cases, mut alike) = (cases(), 0);
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(body, go)| {
            let ours = encode::object(go)?;
            alike += usize::from(ours == *body);
            match decode(&ours) {
                Ok(back) if same(&back, go) => None,
                Ok(back) => Some(format!("back {back}\n  go {go}")),
                Err(status) => Some(format!("{status}\n  go {go}")),
            }
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ; the first:\n{}", wrong.len(), cases.len(), wrong[0]);
    assert!(alike * 10 > cases.len() * 5, "only {alike} of {} are the same bytes", cases.len());
}

#[test]
fn zeros_of_pointers_are_kept_and_zeros_of_plain_fields_are_left_out() {
    // replicas: 0 (tag 1, a pointer) and minReadySeconds: 0 (tag 5, not one)
    let spec = [0x08, 0x00, 0x28, 0x00];
    let object = decode(&envelope("apps/v1", "Deployment", &field(2, &spec))).unwrap();
    assert_eq!(object["spec"]["replicas"], json!(0));
    assert_eq!(object["spec"].get("minReadySeconds"), None);
    assert_eq!(object["kind"], json!("Deployment"));
}

#[test]
fn delete_options_are_decoded() {
    let object = decode(&envelope("v1", "DeleteOptions", &field(4, b"Background"))).unwrap();
    assert_eq!(object, json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}));
}

#[test]
fn a_broken_body_is_a_bad_request_that_names_the_field() {
    // metadata.name says five bytes and brings two
    let body = envelope("v1", "ConfigMap", &field(1, &[0x0a, 0x05, b'a', b'b']));
    let status = decode(&body).unwrap_err();
    assert_eq!(status.code, 400);
    assert_eq!(status.message, "the protobuf body can't be read: metadata: the body ends too early");
    let body = envelope("v1", "ConfigMap", &field(1, &field(1, &[0xff, 0xfe])));
    assert_eq!(decode(&body).unwrap_err().message, "the protobuf body can't be read: metadata.name: it isn't UTF-8");
}

#[test]
fn a_body_that_is_no_envelope_or_of_no_known_kind_is_a_bad_request() {
    assert!(decode(b"{}").unwrap_err().message.contains("doesn't begin with"));
    assert!(decode(b"").unwrap_err().message.contains("doesn't begin with"));
    let message = decode(&envelope("shop/v1", "Cart", b"")).unwrap_err().message;
    assert!(message.contains("no kind \"Cart\" of version \"shop/v1\""), "{message}");
}

#[test]
fn nesting_is_bounded() {
    fn follow(message: &'static Message, name: &str) -> (&'static Field, &'static Message) {
        let field = message.fields.iter().find(|field| field.name == name).unwrap();
        let Kind::Message(number) = field.kind else { panic!("{name} is no message") };
        (field, table::table().message(number).unwrap())
    }
    let (_, spec) = follow(table::table().kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap(), "spec");
    let (_, validation) = follow(follow(spec, "versions").1, "schema");
    let (_, props) = follow(validation, "openAPIV3Schema");
    let (not, _) = follow(props, "not");

    let varint = |mut number: usize| {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
            number >>= 7;
        }
        bytes.push(u8::try_from(number).unwrap());
        bytes
    };
    let mut schema = Vec::new();
    for _ in 0..400 {
        schema = [varint((not.tag << 3 | 2) as usize), varint(schema.len()), schema].concat();
    }
    let mut decoder = Decoder { table: table::table(), values: 0 };
    let fault = decoder.value(not.kind, Wire::Bytes(&schema), 0).unwrap_err();
    assert!(fault.why.contains("nests deeper"), "{}", fault.message());
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes);
        let _ = decode(&[MAGIC, &bytes].concat());
        let short = &bytes[..bytes.len().min(100)];
        let _ = decode(&envelope("v1", "Pod", short));
        let _ = decode(&envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", short));
    }

    #[test]
    fn damaged_bodies_never_panic(which in 0usize..200, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut cases = cases();
        let (mut body, _) = cases.swap_remove(which % cases.len());
        let place = at.index(body.len());
        body[place] = byte;
        if let Err(status) = decode(&body) {
            prop_assert_eq!(status.code, 400);
        }
    }
}
