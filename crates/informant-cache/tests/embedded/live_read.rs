//! Reading one object from the server, past the cache.

use informant_cache::{LiveReadError, Lookup, ObjectKey, Scope};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use tokio_util::sync::CancellationToken;

use crate::{builder, client, config_map, server};

/// Public report C-095 (Azure/azure-service-operator#4926).
#[tokio::test(start_paused = true)]
async fn a_live_read_sees_what_the_cache_does_not_hold_or_not_yet() {
    let (server, cancel) = (server(), CancellationToken::new());
    let api = Api::<ConfigMap>::namespaced(client(&server), "default");
    api.create(&PostParams::default(), &config_map("unlabelled", "1")).await.unwrap();
    let factory = builder(&server).build();
    let informer = factory.informer::<ConfigMap>().scope(Scope::namespaced("default").with_labels("x=true")).full();
    let names = factory.informer::<Namespace>().full();
    factory.start(&cancel).unwrap();
    factory.wait_for_cache_sync(&cancel).await.unwrap();

    let key = ObjectKey::namespaced("default", "unlabelled");
    assert!(matches!(informer.lister().lookup(&key), Lookup::OutOfScope));
    let read = informer.get_live(&key).await.unwrap();
    assert_eq!(read.data.as_ref().unwrap()["value"], "1");
    assert!(informer.lister().is_empty(), "the cache is as it was");
    assert!(names.get_or_live(&ObjectKey::cluster("default")).await.is_ok());

    api.delete("unlabelled", &DeleteParams::default()).await.unwrap();
    let gone = informer.get_live(&key).await.unwrap_err();
    assert!(matches!(&gone, LiveReadError::NotFound { .. }), "{gone}");
    let elsewhere = informer.get_live(&ObjectKey::namespaced("kube-system", "unlabelled")).await.unwrap_err();
    assert!(matches!(&elsewhere, LiveReadError::OutOfScope { .. }), "{elsewhere}");
    factory.shutdown().await;
}
