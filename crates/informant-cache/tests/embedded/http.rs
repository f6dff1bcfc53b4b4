//! Over real HTTP, on loopback.

use informant_apiserver::ListenOptions;
use informant_cache::InformerFactory;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use tokio_util::sync::CancellationToken;

use crate::{assert_holds_what_the_server_has, config_map, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_informer_follows_a_server_over_tls_and_survives_its_connections_being_cut() {
    let (server, cancel) = (server(), CancellationToken::new());
    let listening = server.listen(ListenOptions::default()).await.unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&listening.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.default_retry = false;
    let client = kube::Client::try_from(config).unwrap();
    let api = Api::<ConfigMap>::namespaced(client.clone(), "default");

    let factory = InformerFactory::builder(client.clone()).seed(1).build();
    let informer = factory.informer::<ConfigMap>();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();
    for number in 0..20 {
        api.create(&PostParams::default(), &config_map(&format!("c{number}"), "1")).await.unwrap();
    }
    for number in 0..10 {
        api.delete(&format!("c{number}"), &DeleteParams::default()).await.unwrap();
    }
    assert_holds_what_the_server_has(&informer, &client).await;
    factory.shutdown().await;
    listening.shutdown().await;
}
