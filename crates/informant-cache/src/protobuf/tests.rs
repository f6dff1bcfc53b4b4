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
        // A map's value of the zero time is null, which types of Rust have no room for.
        let checked = check(envelope.message().expect("a kind"), envelope.raw).map_err(|error| error.to_string());
        assert!(checked.as_ref().err().is_none_or(|error| error.ends_with("it isn't set")), "{checked:?}");
    }
    assert!(wrong.is_empty(), "{} differ; the first:\n{}", wrong.len(), wrong[0]);
}

/// Decodes the cases of one kind as its type, from protobuf and from Go's JSON.
fn assert_typed<K>(cases: &[(Vec<u8>, Value)])
where
    K: k8s_openapi::Resource + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let of_kind = |go: &Value| go["apiVersion"] == K::API_VERSION && go["kind"] == K::KIND;
    let (body, go) = cases.iter().find(|(_, go)| of_kind(go)).expect(K::KIND);
    let ours = object(body).expect("a known kind").decode::<K>();
    match serde_json::from_value::<K>(go.clone()) {
        Ok(theirs) => assert_eq!(ours.expect(K::KIND), theirs),
        Err(error) => assert!(ours.is_err(), "{} isn't read from JSON: {error}", K::KIND),
    }
}

#[test]
fn types_are_decoded_as_from_gos_own_json() {
    use k8s_openapi::api::{
        admissionregistration::v1 as admission, apps::v1 as apps, autoscaling::v2 as autoscaling, batch::v1 as batch,
        certificates::v1 as certificates, coordination::v1 as coordination, core::v1 as core,
        discovery::v1 as discovery, events::v1 as events, networking::v1 as networking, policy::v1 as policy,
        rbac::v1 as rbac, scheduling::v1 as scheduling, storage::v1 as storage,
    };
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    macro_rules! typed {
        ($cases:expr, $($kind:ty),+ $(,)?) => { $(assert_typed::<$kind>($cases);)+ };
    }
    let cases = cases();
    typed!(
        &cases,
        core::Pod,
        core::Node,
        core::ConfigMap,
        core::Secret,
        core::Service,
        core::ServiceAccount,
        core::Namespace,
        core::Event,
        core::PersistentVolume,
        core::PersistentVolumeClaim,
        core::ReplicationController,
        core::ResourceQuota,
        core::LimitRange,
        core::PodTemplate,
        apps::Deployment,
        apps::ReplicaSet,
        apps::StatefulSet,
        apps::DaemonSet,
        apps::ControllerRevision,
        batch::Job,
        batch::CronJob,
        autoscaling::HorizontalPodAutoscaler,
        networking::Ingress,
        networking::NetworkPolicy,
        policy::PodDisruptionBudget,
        rbac::ClusterRole,
        rbac::RoleBinding,
        storage::StorageClass,
        storage::CSINode,
        coordination::Lease,
        discovery::EndpointSlice,
        events::Event,
        scheduling::PriorityClass,
        certificates::CertificateSigningRequest,
        admission::ValidatingWebhookConfiguration,
        CustomResourceDefinition,
    );
}

#[test]
fn an_object_without_its_managed_fields_is_the_same_but_for_them() {
    for (body, go) in cases() {
        let (object, envelope) = (object(&body).expect("a kind"), Envelope::open(&body).expect("an envelope"));
        let Some(true) = go.get("metadata").map(|metadata| metadata.get("uid").is_some()) else { continue };
        let mut expected = go.clone();
        expected["metadata"].as_object_mut().expect("metadata").remove("managedFields");
        let skipped: Value = object.without_managed_fields().decode().expect("an object");
        assert!(same(&skipped, &expected), "{skipped}\n{expected}");
        let mut cut = Vec::new();
        without_managed_fields(envelope.raw, &mut cut).expect("an object");
        let cut: Value = Object::new(envelope.message().expect("a kind"), &cut).decode().expect("an object");
        assert!(same(&cut, &expected), "{cut}\n{expected}");
        let head = Metadata::read(envelope.raw).expect("a head");
        let text = |name: &str| go["metadata"].get(name).and_then(Value::as_str).unwrap_or_default();
        assert_eq!((head.name, head.namespace), (text("name"), text("namespace")));
        assert_eq!((head.uid, head.resource_version), (text("uid"), text("resourceVersion")));
        for (key, value) in head.labels() {
            assert_eq!(go["metadata"]["labels"][key], value);
        }
    }
}

#[test]
fn an_error_names_the_field_and_not_its_value() {
    fn field(tag: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        wire::put_bytes(tag, content, &mut bytes);
        bytes
    }
    let secret = table().kind("v1", "Secret").expect("a kind");
    let pod = table().kind("v1", "Pod").expect("a kind");
    let container = field(2, &field(2, &[field(1, b"c"), field(3, b"\xff")].concat()));
    let managed = field(1, &field(17, &field(7, &field(1, b"{\"hunter2\":"))));
    let ports = field(2, &field(2, &field(6, &[0x10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01])));
    let cases = [
        (pod, vec![0x0a, 0x05, 1], "it ends too early"),
        (pod, container, "spec.containers[0].command[0]: it isn't UTF-8"),
        (pod, field(1, &[0x08, 1]), "metadata.name: a number stands where text or a message is expected"),
        (pod, ports, "spec.containers[0].ports[0].hostPort: the number has more than 32 bits"),
        (pod, [field(1, b""), field(1, b"")].concat(), "metadata: it's there twice"),
        (
            secret,
            field(1, &field(8, &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])),
            "metadata.creationTimestamp: it's a time out of range",
        ),
        (secret, managed, "metadata.managedFields[0].fieldsV1: EOF while parsing"),
        (secret, field(2, &field(1, b"\xff")), "data: it isn't UTF-8"),
    ];
    for (message, bytes, shown) in cases {
        let error = Object::new(message, &bytes).decode::<Value>().expect_err(shown).to_string();
        assert!(error.starts_with(shown) && !error.contains("hunter2"), "{error}");
        let checked = check(message, &bytes).expect_err(shown).to_string();
        assert_eq!(checked, error);
    }
    let named: Result<k8s_openapi::api::core::v1::Node, _> = Object::new(pod, &[]).decode();
    assert_eq!(named.expect_err("another kind").to_string(), "invalid value: string, expected Node");
}

#[test]
fn nesting_is_bounded() {
    let definition = table().kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").expect("a kind");
    let follow = |message: &'static Message, name: &str| {
        let field = message.field(name).expect(name);
        match field.kind {
            table::Kind::Message(number) => (field.tag, table().message(number).expect(name)),
            other => panic!("{name} is {other:?}"),
        }
    };
    let (_, version) = follow(follow(definition, "spec").1, "versions");
    let (not, props) = follow(follow(follow(version, "schema").1, "openAPIV3Schema").1, "not");
    let mut schema = Vec::new();
    for _ in 0..200 {
        let mut outer = Vec::new();
        wire::put_bytes(not, &schema, &mut outer);
        schema = outer;
    }
    for result in [
        Object::new(props, &schema).decode::<Value>().map(drop).map_err(|error| error.to_string()),
        to_json(Object::new(props, &schema)).map(drop).map_err(|error| error.to_string()),
        check(props, &schema).map_err(|error| error.to_string()),
    ] {
        assert!(result.expect_err("too deep").contains("nests deeper"));
    }
    // JSON within counts too.
    let raw = format!("{}{}", "[".repeat(125), "]".repeat(125));
    let mut managed = Vec::new();
    wire::put_bytes(1, raw.as_bytes(), &mut managed);
    for tag in [7, 17, 1] {
        let mut outer = Vec::new();
        wire::put_bytes(tag, &managed, &mut outer);
        managed = outer;
    }
    assert!(check(table().kind("v1", "Pod").expect("a kind"), &managed).is_err());
}

/// Fields in an order that no server writes, and apart, mean the same.
#[test]
fn fields_that_are_apart_are_found() {
    let pod = table().kind("v1", "Pod").expect("a kind");
    let text = |tag: u32, content: &[u8]| {
        let mut bytes = Vec::new();
        wire::put_bytes(tag, content, &mut bytes);
        bytes
    };
    let label = |key: &str| text(11, &[text(1, key.as_bytes()), text(2, b"x")].concat());
    let metadata =
        [label("a"), text(14, b"one"), text(1, b"old"), label("b"), text(14, b"two"), text(1, b"new")].concat();
    let volume = [text(2, &text(2, &text(1, b"disk"))), text(1, b"v")].concat();
    let object = [text(2, &[text(1, &volume), text(10, b"n")].concat()), text(99, b"?"), text(1, &metadata)].concat();
    let value: Value = Object::new(pod, &object).decode().expect("a Pod");
    assert_eq!(value["metadata"]["name"], "new");
    assert_eq!(value["metadata"]["labels"], serde_json::json!({"a": "x", "b": "x"}));
    assert_eq!(value["metadata"]["finalizers"], serde_json::json!(["one", "two"]));
    assert_eq!(value["spec"]["volumes"][0]["name"], "v");
    check(pod, &object).expect("sound");
    assert_eq!(Metadata::read(&object).expect("a head").labels().count(), 2);
}

/// Whatever becomes of real bodies on their way: an error at most, and what was checked can be decoded.
#[test]
fn damaged_bodies_are_errors_at_most_and_what_was_checked_is_decoded() {
    let mut rng = fastrand::Rng::with_seed(7);
    let cases = cases();
    let (mut sound, mut broken) = (0, 0);
    for round in 0..10_000 {
        let Some((body, _)) = cases.get(round % cases.len()) else { continue };
        let envelope = Envelope::open(body).expect("an envelope");
        let message = envelope.message().expect("a kind");
        let mut raw = envelope.raw.to_vec();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..raw.len().max(1));
            match (rng.u8(..5), raw.get_mut(at)) {
                (0, Some(byte)) => *byte = rng.u8(..),
                (1, Some(byte)) => *byte ^= 1 << rng.u8(..8),
                (2, Some(_)) => raw.truncate(at),
                (3, Some(_)) => {
                    raw.remove(at);
                }
                _ => raw.insert(at.min(raw.len()), rng.u8(..)),
            }
        }
        let object = Object::new(message, &raw);
        let decoded = object.decode::<Value>();
        if check(message, &raw).is_err() {
            broken += 1;
            let _ = (to_json(object).is_ok(), Metadata::read(&raw).is_ok(), Metadata::read_start(&raw).is_ok());
            continue;
        }
        sound += 1;
        let decoded = decoded.expect("checked");
        let json = to_json(object).expect("checked");
        assert_eq!(serde_json::from_slice::<Value>(&json).expect("JSON"), decoded);
        let trimmed: Value = object.without_managed_fields().decode().expect("checked");
        let mut cut = Vec::new();
        if message.field("metadata").is_some_and(|field| field.tag == 1) {
            without_managed_fields(&raw, &mut cut).expect("checked");
            assert_eq!(Object::new(message, &cut).decode::<Value>().expect("checked"), trimmed);
        }
        match (envelope.api_version, envelope.kind) {
            ("v1", "Pod") => drop(object.decode::<k8s_openapi::api::core::v1::Pod>().expect("checked")),
            ("v1", "Node") => drop(object.decode::<k8s_openapi::api::core::v1::Node>().expect("checked")),
            ("apps/v1", "Deployment") => {
                drop(object.decode::<k8s_openapi::api::apps::v1::Deployment>().expect("checked"));
            }
            _ => {}
        }
    }
    assert!(sound > 500 && broken > 500, "{sound} sound, {broken} broken");
}
