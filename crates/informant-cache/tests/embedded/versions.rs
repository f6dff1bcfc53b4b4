//! Servers of Kubernetes 1.33 to 1.37: whatever an older one lacks, an informer syncs, follows and comes back.
//!
//! The embedded server plays them by switching off what clients can tell them by: streams of the present state (1.33),
//! the mark at their end (some proxies), and reads that go into pages.

use std::time::Duration;

use informant_apiserver::{ApiServer, WatchListSupport};
use informant_cache::InformerFactory;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use tokio_util::sync::CancellationToken;

use crate::{assert_holds_what_the_server_has, client, config_map};

/// Lives through a sync, changes, and a history that's forgotten while the informer is between two watches. Returns how
/// many times the present state was asked for until the first sync.
async fn live(server: &ApiServer, watch_list: bool) -> u64 {
    let cancel = CancellationToken::new();
    let api = Api::<ConfigMap>::namespaced(client(server), "default");
    for number in 0..1_200 {
        api.create(&PostParams::default(), &config_map(&format!("o{number}"), "1")).await.unwrap();
    }
    let factory = InformerFactory::builder(client(server)).seed(1).watch_list(watch_list).build();
    let informer = factory.informer::<ConfigMap>().full();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    let asked = informer.status().counters.lists;
    assert!(informer.lister().len() >= 1_200);

    api.create(&PostParams::default(), &config_map("late", "1")).await.unwrap();
    api.delete("o7", &DeleteParams::default()).await.unwrap();
    assert_holds_what_the_server_has(&informer, &client(server)).await;

    // Watches end and are opened again; the versions that they go on from come from bookmarks.
    tokio::time::sleep(Duration::from_secs(1_500)).await;
    server.compact(server.resource_version());
    api.delete("o8", &DeleteParams::default()).await.unwrap();
    assert_holds_what_the_server_has(&informer, &client(server)).await;
    factory.shutdown().await;
    asked
}

#[tokio::test(start_paused = true)]
async fn informers_live_on_servers_from_1_33_to_1_37() {
    for minor in 33..=37 {
        let server = ApiServer::builder().seed(1).kubernetes_minor(minor).build();
        let asked = live(&server, true).await;
        // 1.33 refuses the stream, and the list takes three pages; later ones send it at once.
        assert_eq!(asked, if minor == 33 { 4 } else { 1 }, "1.{minor}");
    }
}

#[tokio::test(start_paused = true)]
async fn informers_live_on_servers_that_never_mark_the_end_of_the_present_state() {
    let server = ApiServer::builder().seed(1).watch_list(WatchListSupport::WithoutEndMark).build();
    assert_eq!(live(&server, true).await, 4, "a stream, and three pages once it's given up");
}

#[tokio::test(start_paused = true)]
async fn informers_that_use_lists_only_ask_in_pages() {
    let server = ApiServer::builder().seed(1).build();
    assert_eq!(live(&server, false).await, 3);
}
