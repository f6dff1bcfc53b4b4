//! The numbers of `/metrics`: what's counted, and that nothing is shown of what's gone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/pages.rs"]
mod pages;

use std::time::Duration;

use informant_apiserver::ApiServer;
use informant_cache::HandlerOptions;
use informant_controller::Manager;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::pages::{Running, get, until};

fn client(server: &ApiServer) -> kube::Client {
    kube::Client::new(server.service(), "default")
}

fn named(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..Default::default() }, ..Default::default() }
}

/// The value of one series; `None` if there's none.
fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

const CONFIG_MAPS: &str = r#"{name="configmaps/v1",group="",version="v1",resource="configmaps"}"#;

/// client-go's names and labels, and ours.
#[tokio::test]
async fn informers_and_their_handlers_are_counted_and_nothing_is_told_of_those_that_are_gone() {
    let server = ApiServer::builder().seed(1).build();
    let manager = Manager::new(client(&server)).serve("127.0.0.1:0");
    let config_maps = manager.factory().informer::<ConfigMap>().full();
    let secrets = manager.factory().informer::<Secret>().full();
    let quick = config_maps.on_change_with(HandlerOptions::named("quick"), |_| {});
    let idle = config_maps.subscribe_with(HandlerOptions::named("idle").with_bound(1));
    let running = Running::start(manager).await;
    let address = running.address;
    until(address, "/metrics", |page| value(page, "informer_synced{informer=\"secrets/v1\"}") == Some(1.0)).await;
    let before = get(address, "/metrics").await;

    let api = Api::<ConfigMap>::namespaced(client(&server), "default");
    api.create(&PostParams::default(), &named("a")).await.unwrap();
    for round in 0..3 {
        let change = Patch::Merge(json!({"data": {"round": round.to_string()}}));
        api.patch("a", &PatchParams::default(), &change).await.unwrap();
    }
    let lag = r#"informer_handler_lag_seconds_count{informer="configmaps/v1",handler="quick"}"#;
    let page = until(address, "/metrics", |page| value(page, lag) == Some(4.0)).await;
    let labelled = |name: &str| value(&page, &format!("{name}{CONFIG_MAPS}"));
    let more = |series: &str| value(&page, series).unwrap() - value(&before, series).unwrap();
    // What the idle one hasn't taken: all the changes are one.
    assert_eq!(more(&format!("informer_queued_items{CONFIG_MAPS}")), 1.0);
    assert_eq!(more(r#"informer_handler_queued_events{informer="configmaps/v1",handler="idle"}"#), 1.0);
    assert_eq!(more(r#"informer_handler_conflated_events_total{informer="configmaps/v1",handler="idle"}"#), 3.0);
    assert_eq!(more(r#"informer_conflated_events_total{informer="configmaps/v1"}"#), 3.0);
    assert_eq!(more(r#"informer_handler_events_total{informer="configmaps/v1",handler="quick"}"#), 4.0);
    assert!(labelled("informer_processing_latency_seconds_count").unwrap() >= 1.0);
    assert!(page.contains(r#"informer_processing_latency_seconds_bucket{name="configmaps/v1",group="",version="v1",resource="configmaps",le="0.001"}"#));
    assert!(page.contains(r#"resource="configmaps",le="10"}"#), "{page}");
    let version: f64 = api.get("a").await.unwrap().metadata.resource_version.unwrap().parse().unwrap();
    assert_eq!(labelled("informer_store_resource_version"), Some(version));
    let bytes = |page: &str| value(page, r#"informer_bytes{informer="configmaps/v1"}"#).unwrap();
    assert!(bytes(&page) > bytes(&before) + 200.0, "{} and {}", bytes(&before), bytes(&page));
    assert_eq!(value(&page, r#"informer_watch_restarts_total{informer="configmaps/v1",reason="idle"}"#), Some(0.0));
    assert_eq!(value(&page, r#"informer_undecodable_total{informer="configmaps/v1"}"#), Some(0.0));
    api.delete("a", &DeleteParams::default()).await.unwrap();
    // The tables and backlogs keep their room.
    let most = bytes(&page);
    let page = until(address, "/metrics", |page| bytes(page) + 200.0 < most).await;
    assert_eq!(
        value(&page, r#"informer_objects{informer="configmaps/v1"}"#),
        value(&before, r#"informer_objects{informer="configmaps/v1"}"#)
    );

    quick.remove().await;
    drop(idle);
    let page = get(address, "/metrics").await;
    assert!(!page.contains("handler=\"quick\"") && !page.contains("handler=\"idle\""), "{page}");
    assert!(page.contains("secrets"));
    secrets.stop().await;
    let page = get(address, "/metrics").await;
    assert!(!page.contains("secrets") && page.contains("configmaps"), "{page}");
    running.stop().await;
}

/// Public report C-145 (kubernetes-sigs/controller-runtime#484).
#[tokio::test]
async fn two_managers_in_one_process_start_and_stop_a_hundred_times_and_never_share_a_series() {
    let server = ApiServer::builder().seed(1).build();
    for round in 0..100 {
        let one = Manager::new(client(&server)).serve("127.0.0.1:0");
        let other = Manager::new(client(&server)).serve("127.0.0.1:0");
        let informer = one.factory().informer::<ConfigMap>().full();
        let _handler = informer.on_change(|_| {});
        let _secrets = other.factory().informer::<Secret>().full();
        let again = other.factory().informer::<ConfigMap>().full();
        let (one, other) = tokio::join!(Running::start(one), Running::start(other));
        informer.wait_synced().await.unwrap();
        again.wait_synced().await.unwrap();
        let (first, second) = tokio::join!(get(one.address, "/metrics"), get(other.address, "/metrics"));
        let objects = "informer_objects{informer=\"configmaps/v1\"}";
        assert!(value(&first, objects).is_some() && value(&first, objects) == value(&second, objects), "{first}");
        assert!(!first.contains("secrets"), "round {round}: {first}");
        assert!(second.contains("secrets") && !second.contains("informer_handler_synced{"), "round {round}: {second}");
        let mut series: Vec<&str> =
            first.lines().filter_map(|line| line.rsplit_once(' ')).map(|(name, _)| name).collect();
        let all = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(all, series.len(), "a series is there twice");
        let (first, second) = (one.stop(), other.stop());
        tokio::join!(first, second);
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(server.watchers(), 0);
}
