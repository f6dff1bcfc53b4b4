//! Watches: what they bring, how they die, and where they go on.

use std::io::Write;
use std::time::Duration;

use informant_cache::{Cluster, InformerFactory, InformerState, RelistReason, RequestErrorKind};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, line, next, object, object_with};

/// Public report C-002 (kubernetes/kubernetes#27004).
#[tokio::test(start_paused = true)]
async fn an_add_and_its_delete_in_one_chunk_are_both_told() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("1", &[]).await;
    watch.bytes(line("ADDED", &object("a", 2)) + &line("DELETED", &object("a", 3)));
    assert_eq!([next(&mut events).await, next(&mut events).await], ["+web/a@2", "-web/a@3"]);
    assert!(informer.lister().is_empty());
    factory.shutdown().await;
}

/// Public reports C-007 (kubernetes-client/python#819), C-028 (argoproj/argo-cd#1161) and C-029 (kube-rs/kube#219).
#[tokio::test(start_paused = true)]
async fn a_watch_starts_at_the_list_s_resource_version_so_a_delete_right_after_the_list_is_told() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    server.request().await.list("900", &[object("a", 880), object("z", 12)]);
    // Deleted before the watch is there.
    let request = server.request().await;
    assert_eq!(request.what(), "WATCH 900");
    let watch = request.open();
    watch.event("DELETED", &object("a", 901));
    assert_eq!(events.wait_initial().await.unwrap().len(), 2);
    assert_eq!(next(&mut events).await, "-web/a@901");
    assert_eq!(informer.lister().len(), 1);
    factory.shutdown().await;
}

/// Public reports C-009 (linkerd/linkerd#1649), C-008 (kubernetes-client/python-base#199) and C-030 (kube-rs/kube#1615):
/// who listens learns of it by what changed, not by an error.
#[tokio::test(start_paused = true)]
async fn too_old_is_known_by_reason_or_code_in_an_event_in_a_bare_status_and_at_the_opening() {
    let gone = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Gone","message":"too old resource version: 5 (900)","code":200}"#;
    let expired = r#"{"kind":"Status","code":410,"reason":"Expired","metadata":{}}"#;
    for how in 0..4 {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        let mut events = informer.subscribe();
        factory.start(&cancel).unwrap();
        let watch = server.sync("5", &[object("a", 1)]).await;
        events.wait_initial().await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        match how {
            0 => watch.bytes(format!("{{\"type\":\"ERROR\",\"object\":{gone}}}\n")),
            1 => watch.bytes(format!("{{\"type\":\"ERROR\",\"object\":{expired}}}\n")),
            2 => watch.bytes(format!("{expired}\n")),
            _ => {
                watch.end();
                server.request().await.answer(410, expired);
            }
        }
        let request = server.request().await;
        assert_eq!(request.what(), "LIST", "case {how}");
        request.list("900", &[object("a", 880)]);
        assert_eq!(next(&mut events).await, "web/a@1>880");
        assert_eq!(informer.status().counters.relists, [(RelistReason::Expired, 1)].into());
        factory.shutdown().await;
    }
}

/// Public report C-018 (kubernetes-client/csharp#828).
#[tokio::test(start_paused = true)]
async fn a_watch_without_an_event_or_of_blank_lines_is_a_normal_end() {
    for body in ["", "\n", "\r\n", "\n\r\n\n"] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let factory = server.factory();
        let informer = factory.informer::<ConfigMap>().kept();
        factory.start(&cancel).unwrap();
        let watch = server.sync("10", &[object("a", 1)]).await;
        watch.bytes(body);
        tokio::time::sleep(Duration::from_secs(300)).await;
        watch.end();
        assert_eq!(server.request().await.what(), "WATCH 10");
        assert_eq!(informer.status().counters.failures, 0);
        factory.shutdown().await;
    }
}

/// Public report C-019 (kubernetes-client/python#1404).
#[tokio::test(start_paused = true)]
async fn a_bookmark_with_null_fields_and_an_hour_of_nothing_else_is_a_healthy_watch() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<Job>().kept();
    factory.start(&cancel).unwrap();
    server.request().await.of("batch/v1", "Job").list("10", &[]);
    let mut watch = server.request().await.open();
    let bookmark = |version: u64| {
        json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"resourceVersion": version.to_string()},
            "spec": {"template": {"metadata": {}, "spec": {"containers": null}}}, "status": {}})
    };
    for number in 0..60 {
        watch.event("BOOKMARK", &bookmark(77 + number));
        if let Some(request) = server.request_within(Duration::from_secs(60)).await {
            // The server was asked to end it after a while, and didn't.
            assert_eq!(request.what(), format!("WATCH {}", 77 + number));
            watch = request.open();
        }
    }
    let status = informer.status();
    assert_eq!((status.state, status.counters.lists, status.counters.undecodable), (InformerState::Synced, 1, 0));
    assert_eq!(status.resource_version, "136");
    factory.shutdown().await;
}

/// Public report C-022 (gravitational/teleport#35197).
#[tokio::test(start_paused = true)]
async fn an_event_is_decoded_once_wherever_it_is_split() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("10", &[]).await;
    let mut text = object("a", 1000);
    text["data"]["text"] = json!("é \u{1F980}");
    let whole = line("MODIFIED", &text).replace("é", "é\\u00e9");
    for cut in 0..whole.len() {
        let whole = whole.replace("1000", &(1000 + cut).to_string());
        watch.bytes(&whole.as_bytes()[..cut]);
        tokio::task::yield_now().await;
        watch.bytes(&whole.as_bytes()[cut..]);
        let told = next(&mut events).await;
        assert!(told.ends_with(&(1000 + cut).to_string()), "{told}, cut at {cut}");
    }
    let held = informer.lister().get(&"web/a".parse().unwrap()).unwrap();
    assert_eq!(held.data.as_ref().unwrap()["text"], "éé \u{1F980}");
    factory.shutdown().await;
}

/// Public report C-027 (kubernetes-client/python#2228).
#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_a_selector_is_deleted_by_its_key_whatever_labels_it_then_has() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let watch = server.sync("1", &[]).await;
    let labelled = |version: u64, value: &str| object_with("a", version, &json!({"app": value}));
    watch.event("ADDED", &labelled(2, "x"));
    watch.event("DELETED", &labelled(3, "y"));
    watch.event("ADDED", &labelled(4, "x"));
    watch.event("DELETED", &labelled(5, "x"));
    for told in ["+web/a@2", "-web/a@3", "+web/a@4", "-web/a@5"] {
        assert_eq!(next(&mut events).await, told);
    }
    factory.shutdown().await;
}

/// Public report C-015 (kubernetes/kubernetes#121793): one number says after how long a dead connection is known, whatever
/// else times out.
#[tokio::test(start_paused = true)]
async fn once_bookmarks_came_a_silence_of_the_idle_timeout_ends_the_watch() {
    for seconds in [40, 150] {
        let (mut server, cancel) = (Server::new(), CancellationToken::new());
        let builder = server.builder().watch_list(false);
        let builder = if seconds == 150 { builder } else { builder.idle_timeout(Duration::from_secs(seconds)) };
        let factory = builder.build();
        let informer = factory.informer::<ConfigMap>().kept();
        let mut events = informer.subscribe();
        factory.start(&cancel).unwrap();
        let watch = server.sync("10", &[object("a", 1)]).await;
        events.wait_initial().await.unwrap();
        watch.bookmark("11");
        tokio::time::sleep(Duration::from_secs(30)).await;
        // Anything that comes is a sign of life.
        watch.event("MODIFIED", &object("a", 12));
        next(&mut events).await;
        let silent = Instant::now();
        let request = server.request().await;
        assert_eq!((request.what().as_str(), silent.elapsed()), ("WATCH 12", Duration::from_secs(seconds)));
        let error = informer.status().last_error.unwrap();
        assert!(error.message.contains(&format!("silent for {seconds} s")), "{}", error.message);
        request.open().event("ADDED", &object("b", 13));
        assert_eq!(next(&mut events).await, "+web/b@13");
        assert_eq!(informer.status().counters.lists, 1);
        factory.shutdown().await;
    }
}

/// Public report C-031 (emberstack/kubernetes-reflector#246): a server that neither sends nor ends.
#[tokio::test(start_paused = true)]
async fn a_watch_has_a_longest_life_that_can_be_set_and_repeats_nothing_after_it() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.builder().watch_list(false).watch_timeout_min(Duration::from_secs(600)).build();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    server.request().await.list("10", &[object("a", 1)]);
    let (mut asked, mut open) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let request = server.request().await;
        assert_eq!(request.what(), "WATCH 10");
        asked.push(request.query["timeoutSeconds"].parse::<u64>().unwrap());
        open.push(request.open());
    }
    assert!(asked.iter().all(|seconds| (600..=1200).contains(seconds)) && asked[0] != asked[1], "{asked:?}");
    assert_eq!(events.wait_initial().await.unwrap().len(), 1);
    assert_eq!(informer.status().counters.events, 1);
    factory.shutdown().await;
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_gzip_answer_is_read_as_it_comes_also_one_member_per_event() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let factory = server.factory();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let list = gzip(&crate::scripted::list("10", None, &[object("a", 1)]));
    server.request().await.with_header("content-encoding", "gzip").answer(200, list);
    let request = server.request().await;
    assert_eq!(request.header("accept-encoding"), "identity");
    let watch = request.with_header("content-encoding", "gzip").open();
    events.wait_initial().await.unwrap();
    for version in 11..14 {
        watch.in_chunks(gzip(&line("MODIFIED", &object("a", version))), 7);
        assert!(next(&mut events).await.ends_with(&version.to_string()));
    }
    watch.bytes("this is no gzip");
    assert_eq!(server.request().await.what(), "WATCH 13");
    assert_eq!(informer.status().last_error.unwrap().kind, RequestErrorKind::Malformed);
    factory.shutdown().await;
}

/// A token that was rotated while the client still had the old one in memory.
#[tokio::test]
async fn a_401_has_the_credentials_read_again_once_and_the_watch_goes_on() {
    let mut script = informant_apiserver::scripted::Script::of("v1", "ConfigMap");
    let (listening, cancel) = (script.listen().await.unwrap(), CancellationToken::new());
    let file = std::env::temp_dir().join(format!("informant-token-{}", std::process::id()));
    std::fs::write(&file, "old").unwrap();
    let mut config = kube::Config::new(listening.url().parse().unwrap());
    config.auth_info.token_file = Some(file.display().to_string());
    let cluster = Cluster::from_config(config).unwrap();
    let factory = InformerFactory::builder(&cluster).watch_list(false).seed(1).build();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let request = script.request().await;
    assert_eq!(request.header("authorization"), "Bearer old");
    request.list("10", &[object("a", 1)]);
    let request = script.request().await;
    std::fs::write(&file, "new").unwrap();
    request.fail(401, "Unauthorized");
    let request = script.request().await;
    assert_eq!((request.what().as_str(), request.header("authorization")), ("WATCH 10", "Bearer new"));
    let watch = request.open();
    watch.event("MODIFIED", &object("a", 11));
    for told in ["+!web/a@1", "web/a@1>11"] {
        assert_eq!(next(&mut events).await, told);
    }
    assert_eq!(informer.status().counters.failures, 0);

    // If that doesn't help, it's a failure like others: no list, and no plugin that's run again and again.
    watch.error(401, "Unauthorized");
    let request = script.request().await;
    assert_eq!(request.what(), "WATCH 11");
    request.fail(401, "Unauthorized");
    let state = informer.wait_state(|state| matches!(state, InformerState::Retrying { .. })).await;
    assert!(state.to_string().contains("unauthorized"), "{state}");
    assert_eq!(script.request().await.what(), "WATCH 11");
    assert_eq!(informer.status().counters.lists, 1);
    factory.shutdown().await;
    listening.shutdown().await;
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn a_broken_kubeconfig_is_complained_of_without_its_secrets() {
    for text in ["users:\n- name: a\n  user: {token: hunter2, hunter2\n", "users: hunter2", "kind: [hunter2"] {
        let error = Cluster::from_kubeconfig(text).await.unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let shown = format!("{error} {source:?} {error:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
