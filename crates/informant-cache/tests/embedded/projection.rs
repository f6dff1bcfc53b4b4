//! Projections of real objects: as JSON and as protobuf, from lists and watches.

use std::collections::BTreeMap;
use std::sync::Arc;

use informant_cache::Projection;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{builder, client, server};

#[derive(Debug, PartialEq, Projection)]
#[projection(api_version = "v1", kind = "Pod")]
struct PodView {
    #[projection(path = "metadata.name")]
    name: String,
    #[projection(path = "metadata.labels")]
    labels: BTreeMap<Arc<str>, Arc<str>>,
    #[projection(path = "spec.nodeName")]
    node: Option<Arc<str>>,
    #[projection(path = "spec.containers[*].image")]
    images: Vec<Arc<str>>,
    #[projection(path = "spec.containers[name=app].resources.limits.cpu")]
    cpu: Option<String>,
    #[projection(path = "status.phase")]
    phase: Option<String>,
}

#[tokio::test(start_paused = true)]
async fn a_projection_is_the_same_in_json_and_protobuf_listed_and_watched() {
    for json in [false, true] {
        let (server, cancel) = (server(), CancellationToken::new());
        let api = Api::<Pod>::namespaced(client(&server), "default");
        let pod = |name: &str| {
            let limits = json!({"limits": {"cpu": "500m"}});
            let containers =
                json!([{"name": "side", "image": "i:1"}, {"name": "app", "image": "i:2", "resources": limits}]);
            let metadata = json!({"name": name, "labels": {"app": "web"}});
            serde_json::from_value(json!({"metadata": metadata, "spec": {"nodeName": "n", "containers": containers}}))
                .unwrap()
        };
        api.create(&PostParams::default(), &pod("a")).await.unwrap();
        let factory = builder(&server).build();
        let set_up = factory.projection::<PodView>();
        let informer = if json { set_up.json().projected() } else { set_up.projected() };
        let mut events = informer.subscribe();
        factory.start(&cancel).unwrap();
        let initial = events.wait_initial().await.unwrap();
        let seen = initial[0].object();
        assert_eq!((seen.name.as_str(), seen.node.as_deref(), seen.cpu.as_deref()), ("a", Some("n"), Some("500m")));
        assert_eq!(seen.images.iter().map(|image| &**image).collect::<Vec<_>>(), ["i:1", "i:2"]);
        assert_eq!(informer.lister().select(&"app=web".parse().unwrap()).len(), 1);

        api.create(&PostParams::default(), &pod("b")).await.unwrap();
        assert_eq!(events.next().await.unwrap().object().name, "b");
        let patch = Patch::Merge(json!({"status": {"phase": "Running"}}));
        api.patch_status("b", &PatchParams::default(), &patch).await.unwrap();
        assert_eq!(events.next().await.unwrap().object().phase.as_deref(), Some("Running"));
        factory.shutdown().await;
    }
}
