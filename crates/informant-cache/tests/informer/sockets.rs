//! What only a socket can show.

use std::time::Duration;

use informant_apiserver::scripted::Script;
use informant_cache::InformerFactory;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, object, show};

/// The peer is gone without a word (a NAT entry that expired, a machine that lost power): the client's own machine goes on
/// thinking that the connection is there.
#[tokio::test]
async fn a_half_open_connection_is_given_up_and_the_watch_goes_on_over_another() {
    let (mut script, cancel) = (Script::of("v1", "ConfigMap"), CancellationToken::new());
    let listening = script.listen().await.unwrap();
    let mut config = kube::Config::new(listening.url().parse().unwrap());
    config.read_timeout = None;
    let client = kube::Client::try_from(config).unwrap();
    let factory = InformerFactory::builder(client).watch_list(false).seed(1).build();
    let informer = factory.informer::<ConfigMap>().kept();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    script.request().await.list("10", &[object("a", 1)]);
    let watch = script.request().await.open();
    watch.event("MODIFIED", &object("a", 11));
    for told in ["+!web/a@1", "web/a@1>11"] {
        assert_eq!(show(&events.next().await.unwrap()), told);
    }
    watch.half_open();

    // The time after which a watch is overdue passes at once; the sockets are real.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(700)).await;
    tokio::time::resume();
    let request = script.request().await;
    assert_eq!(request.what(), "WATCH 11");
    request.open().event("DELETED", &object("a", 12));
    assert_eq!(show(&events.next().await.unwrap()), "-web/a@12");
    factory.shutdown().await;
    listening.shutdown().await;
}
