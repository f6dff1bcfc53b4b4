//! Protobuf over the wire: asked for where it can be read, read answer by answer, and JSON where the server has no other.

use std::time::Duration;

use informant_apiserver::scripted::Exchange;
use informant_cache::{InformerState, LiveReadError, ObjectKey, RequestErrorKind, SharedInformer};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ApiResource;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm, Server, keys, next, object, show};

const BOTH: &str = "application/vnd.kubernetes.protobuf, application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// A field that holds text, bytes or a message.
fn field(tag: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut bytes = vec![tag << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    bytes.extend_from_slice(content);
    bytes
}

fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
    let types = [field(1, "v1"), field(2, kind)].concat();
    [b"k8s\0".to_vec(), field(1, types), field(2, raw), field(3, ""), field(4, "")].concat()
}

/// The message of what [`object`] makes JSON of.
fn config_map(name: &str, resource_version: u64) -> Vec<u8> {
    let version = resource_version.to_string();
    let uid = format!("uid-{name}");
    let metadata =
        [field(1, name), field(2, ""), field(3, "web"), field(4, ""), field(5, uid), field(6, &version), vec![0x38, 0]];
    let data = [field(1, "version"), field(2, &version)].concat();
    [field(1, metadata.concat()), field(2, data)].concat()
}

fn list(resource_version: &str, continue_token: &str, items: &[Vec<u8>]) -> Vec<u8> {
    let metadata = [field(1, ""), field(2, resource_version), field(3, continue_token)].concat();
    let items: Vec<u8> = items.iter().flat_map(|item| field(2, item)).collect();
    envelope("ConfigMapList", &[field(1, metadata), items].concat())
}

fn frame(kind: &str, object: &[u8]) -> Vec<u8> {
    let event = [field(1, kind), field(2, field(1, object))].concat();
    [u32::try_from(event.len()).unwrap().to_be_bytes().to_vec(), event].concat()
}

fn event(kind: &str, name: &str, resource_version: u64) -> Vec<u8> {
    frame(kind, &envelope("ConfigMap", &config_map(name, resource_version)))
}

fn bookmark(resource_version: &str, annotation: &str) -> Vec<u8> {
    let annotation = [field(1, annotation), field(2, "true")].concat();
    let metadata = [field(6, resource_version), field(12, annotation)].concat();
    frame("BOOKMARK", &envelope("ConfigMap", &field(1, metadata)))
}

fn status(code: u8, reason: &str) -> Vec<u8> {
    // 410 and 403 are three times 128 and something.
    let code = vec![0x30, code | 0x80, 0x03];
    envelope("Status", &[field(2, "Failure"), field(3, format!("{reason}!")), field(4, reason), code].concat())
}

/// The next request, which asks for protobuf and gets it.
async fn asked(server: &mut Server) -> Exchange {
    let request = server.request().await;
    assert_eq!(request.header("accept"), BOTH);
    let is_watch = request.query.contains_key("watch");
    request.with_header("content-type", if is_watch { STREAM } else { PROTOBUF })
}

async fn holds(informer: &SharedInformer<ConfigMap>, expected: &[&str]) {
    tokio::time::sleep(Duration::from_millis(50)).await;
    let show = |object: &ConfigMap| {
        let version = object.data.as_ref().and_then(|data| data.get("version")).cloned();
        assert_eq!(object.metadata.resource_version, version);
        format!("{}@{}", object.metadata.name.as_deref().unwrap_or_default(), version.unwrap_or_default())
    };
    let mut held: Vec<String> = informer.lister().list().iter().map(|object| show(object)).collect();
    held.sort();
    assert_eq!(held, expected);
}

#[tokio::test(start_paused = true)]
async fn lists_and_watches_come_as_protobuf_in_chunks_cut_anywhere() {
    for size in [1, 7, 10_000] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        let mut events = informer.subscribe();
        factory.start(&cancel).unwrap();
        let page = asked(&mut server).await.open();
        page.in_chunks(list("10", "more", &[config_map("a", 1), config_map("b", 2)]), size);
        page.end();
        let second = asked(&mut server).await;
        assert_eq!(second.query["continue"], "more");
        second.answer(200, list("10", "", &[config_map("c", 3)]));
        let watch = asked(&mut server).await;
        assert_eq!(watch.what(), "WATCH 10");
        let watch = watch.open();
        let initial: Vec<_> = events.wait_initial().await.unwrap().iter().map(show).collect();
        assert_eq!(initial, ["+!web/a@1", "+!web/b@2", "+!web/c@3"]);
        watch.in_chunks(
            [event("MODIFIED", "a", 11), event("DELETED", "b", 12), event("ADDED", "d", 13), bookmark("20", "x")]
                .concat(),
            size,
        );
        assert_eq!(next(&mut events).await, "web/a@1>11");
        assert_eq!(next(&mut events).await, "-web/b@12");
        assert_eq!(next(&mut events).await, "+web/d@13");
        holds(&informer, &["a@11", "c@3", "d@13"]).await;
        watch.end();
        assert_eq!(asked(&mut server).await.what(), "WATCH 20", "the bookmark counts");
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_their_bookmark_in_protobuf_too() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().build();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    let request = asked(&mut server).await;
    assert_eq!(request.what(), "STREAM");
    let stream = request.open();
    stream.bytes([event("ADDED", "a", 1), bookmark("5", "k8s.io/other"), event("ADDED", "b", 2)].concat());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(informer.lister().is_empty());
    stream.bytes(bookmark("9", "k8s.io/initial-events-end"));
    holds(&informer, &["a@1", "b@2"]).await;
    stream.end();
    assert_eq!(asked(&mut server).await.what(), "WATCH 9");
    factory.shutdown().await;
}

/// A proxy, or one of several servers, may write another form than the last did.
#[tokio::test(start_paused = true)]
async fn each_answer_is_read_by_what_it_says_of_itself() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    asked(&mut server).await.answer(200, list("10", "more", &[config_map("a", 1)]));
    let request = server.request().await;
    assert_eq!((request.query["continue"].as_str(), request.header("accept")), ("more", BOTH));
    request.list("10", &[object("b", 2)]);
    let request = server.request().await;
    assert_eq!(request.header("accept"), BOTH);
    let watch = request.open();
    watch.event("MODIFIED", &object("a", 11));
    holds(&informer, &["a@11", "b@2"]).await;
    watch.end();
    let watch = asked(&mut server).await.open();
    watch.bytes([event("MODIFIED", "b", 12), event("ADDED", "c", 13)].concat());
    holds(&informer, &["a@11", "b@12", "c@13"]).await;
    // What's unchanged isn't announced, whatever form it comes in.
    let mut events = informer.subscribe();
    events.wait_initial().await.unwrap();
    watch.bytes(frame("ERROR", &status(26, "Expired")));
    asked(&mut server).await.answer(200, list("30", "", &[config_map("a", 11), config_map("b", 21)]));
    assert_eq!(next(&mut events).await, "-?web/c@13");
    assert_eq!(next(&mut events).await, "web/b@12>21");
    holds(&informer, &["a@11", "b@21"]).await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_to_be_asked_is_asked_for_json_at_once_and_from_then_on() {
    for code in [406, 415] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        factory.start(&cancel).unwrap();
        asked(&mut server).await.fail(code, "NotAcceptable");
        let request = tokio::time::timeout(Duration::from_millis(1), server.request()).await.unwrap();
        assert_eq!((request.what().as_str(), request.header("accept")), ("LIST", "application/json"));
        request.list("10", &[object("a", 1)]);
        let request = server.request().await;
        assert_eq!((request.what().as_str(), request.header("accept")), ("WATCH 10", "application/json"));
        holds(&informer, &["a@1"]).await;
        // Refused once more, it's a failure as any other.
        request.fail(code, "NotAcceptable");
        assert!(server.is_quiet_for(Duration::from_millis(500)).await);
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn json_is_asked_for_by_those_who_cannot_read_protobuf_or_do_not_want_it() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let resource = ApiResource::erase::<ConfigMap>(&());
    let _dynamic = factory.dynamic(resource).full();
    let _metadata = factory.metadata::<ConfigMap>().full();
    let informer = factory.informer::<ConfigMap>().json().kept();
    factory.start(&cancel).unwrap();
    let mut accepted = Vec::new();
    for _ in 0..3 {
        let request = server.request().await;
        accepted.push(request.header("accept").to_owned());
        // Whoever answers in a form that nobody asked for is told so.
        request.with_header("content-type", PROTOBUF).answer(200, list("10", "", &[config_map("a", 1)]));
    }
    accepted.sort();
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    assert_eq!(accepted, ["application/json", "application/json", metadata]);
    let state = informer.wait_state(|state| matches!(state, InformerState::Retrying { .. })).await;
    assert!(state.to_string().contains("application/vnd.kubernetes.protobuf, which nobody asked for"), "{state}");
    assert!(informer.lister().is_empty());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_broken_is_told_and_asked_for_again() {
    let whole = list("10", "", &[config_map("a", 1)]);
    let pod = envelope("PodList", &[field(1, field(2, "10")), field(2, config_map("a", 1))].concat());
    let lists = [
        (whole[..40].to_vec(), "ends within a document"),
        (b"k9s\0".to_vec(), "doesn't begin with"),
        (whole[..whole.len() - 5].iter().map(|byte| if *byte == 0x12 { 0x13 } else { *byte }).collect(), "wire type"),
        (pod, "no list of them"),
        (envelope("ConfigMap", &config_map("a", 1)), "no list of them"),
        (status(19, "Forbidden"), "Forbidden! (403)"),
        (b"{}".to_vec(), "doesn't begin with"),
    ];
    for (body, shown) in lists {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        factory.start(&cancel).unwrap();
        asked(&mut server).await.answer(200, body);
        let again = asked(&mut server).await;
        let error = informer.status().last_error.unwrap();
        assert!(error.message.contains(shown), "{error:?}");
        again.answer(200, list("10", "", &[config_map("a", 2)]));
        holds(&informer, &["a@2"]).await;
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_broken_goes_on_where_it_was() {
    let mut broken = event("MODIFIED", "a", 12);
    broken.truncate(30);
    for (bytes, resumes) in
        [(broken, "WATCH 11"), (b"{\"type\":".to_vec(), "WATCH 11"), (vec![0, 0, 0, 1, 0xff], "LIST")]
    {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        factory.start(&cancel).unwrap();
        asked(&mut server).await.answer(200, list("10", "", &[config_map("a", 1)]));
        let watch = asked(&mut server).await.open();
        watch.bytes(event("MODIFIED", "a", 11));
        watch.bytes(bytes);
        watch.end();
        let again = asked(&mut server).await;
        assert_eq!(again.what(), resumes);
        holds(&informer, &["a@11"]).await;
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_taken_in_is_named_and_the_others_are_there() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().watch_list(false).document_bytes_max(20_000).build();
    let informer = factory.informer::<ConfigMap>().full();
    factory.start(&cancel).unwrap();
    let head = |name: &str| field(1, [field(1, name), field(3, "web"), field(6, "5")].concat());
    let broken = [head("broken"), field(2, [field(1, "key"), field(2, [0xff, 0xfe])].concat())].concat();
    let large = [head("large"), field(2, [field(1, "key"), field(2, "x".repeat(30_000))].concat())].concat();
    asked(&mut server).await.answer(200, list("10", "", &[broken.clone(), large.clone(), config_map("a", 1)]));
    let watch = asked(&mut server).await.open();
    holds(&informer, &["a@1"]).await;
    let why = |informer: &SharedInformer<ConfigMap>| -> Vec<String> {
        let named = informer.status().undecodable;
        named.iter().map(|(key, why)| format!("{key} {why}")).collect()
    };
    let large_why = "web/large the object is larger than 20000 bytes";
    assert_eq!(why(&informer), ["web/broken data.key: it isn't UTF-8", large_why]);
    watch.bytes(frame("MODIFIED", &envelope("ConfigMap", &[head("a"), field(2, "x".repeat(30_000))].concat())));
    watch.bytes(event("ADDED", "b", 12));
    holds(&informer, &["a@1", "b@12"]).await;
    assert_eq!(why(&informer).first().unwrap(), "web/a the object is larger than 20000 bytes");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_in_protobuf_is_understood() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    asked(&mut server).await.answer(403, status(19, "Forbidden"));
    let state = informer.wait_state(|state| matches!(state, InformerState::Forbidden { .. })).await;
    assert!(state.to_string().contains("Forbidden! (403)"), "{state}");
    let error = informer.status().last_error.unwrap();
    assert_eq!(error.kind, RequestErrorKind::Forbidden);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_live_read_takes_protobuf_too() {
    let mut server = Server::new();
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let key = ObjectKey::namespaced("web", "a");
    for (body, works) in
        [(envelope("ConfigMap", &config_map("a", 7)), true), (envelope("ConfigMap", &config_map("b", 7)), false)]
    {
        let (read, ()) = tokio::join!(informer.get_live(&key), async {
            asked(&mut server).await.answer(200, body);
        });
        match read {
            Ok(object) if works => assert_eq!(object.metadata.resource_version.as_deref(), Some("7")),
            Err(LiveReadError::Undecodable { reason, .. }) if !works => {
                assert!(reason.to_string().contains("another object"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn events_about_another_kind_are_no_news() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    factory.start(&cancel).unwrap();
    asked(&mut server).await.answer(200, list("10", "", &[config_map("a", 1)]));
    let watch = asked(&mut server).await.open();
    watch.bytes(frame("ADDED", &envelope("Secret", &config_map("b", 50))));
    watch.bytes(frame("WHATEVER", &envelope("ConfigMap", &config_map("b", 60))));
    watch.end();
    assert_eq!(asked(&mut server).await.what(), "WATCH 60");
    assert_eq!((keys(&informer), informer.status().counters.unexpected), (vec!["web/a".to_owned()], 2));
    factory.shutdown().await;
}

/// Of a list the next page is on its way while the one at hand is still coming, in either form.
#[tokio::test(start_paused = true)]
async fn the_next_page_is_asked_for_as_soon_as_its_token_is_seen() {
    for protobuf in [true, false] {
        let page = |token: &str, name: &str| {
            if protobuf {
                list("10", token, &[config_map(name, 1)])
            } else {
                // As API servers write it, the metadata first.
                let metadata = format!(r#"{{"resourceVersion":"10","continue":"{token}"}}"#);
                let item = object(name, 1);
                let list =
                    format!(r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{metadata},"items":[{item}]}}"#);
                list.into_bytes()
            }
        };
        let next = async |server: &mut Server| {
            let request = if protobuf { asked(server).await } else { server.request().await };
            (request.query.get("continue").cloned().unwrap_or_default(), request)
        };
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        factory.start(&cancel).unwrap();
        let body = page("second", "a");
        let (start, end) = body.split_at(body.len() - 2);
        let first = next(&mut server).await.1.open();
        first.bytes(start);
        let (token, second) = next(&mut server).await;
        assert_eq!(token, "second");
        second.answer(200, page("third", "b"));
        assert!(server.is_quiet_for(Duration::from_secs(10)).await, "one page ahead and no more");
        first.bytes(end);
        first.end();
        let (token, third) = next(&mut server).await;
        assert_eq!(token, "third");
        // A page that breaks off takes the one that was asked for after it along.
        let third = third.open();
        let body = page("fourth", "c");
        third.bytes(&body[..body.len() - 2]);
        let (token, fourth) = next(&mut server).await;
        assert_eq!(token, "fourth");
        fourth.answer(200, page("", "d"));
        third.cut();
        let (token, again) = next(&mut server).await;
        assert_eq!(token, "");
        assert!(informer.lister().is_empty());
        again.answer(200, page("", "e"));
        assert_eq!(next(&mut server).await.1.what(), "WATCH 10");
        holds(&informer, &["e@1"]).await;
        factory.shutdown().await;
    }
}
