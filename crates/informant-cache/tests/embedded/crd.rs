//! A kind that comes, goes and returns.

use std::time::Duration;

use informant_cache::{AvailabilityCheck, InformerState, MissingCause, RelistReason};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{builder, client, server, widget, widgets};

pub(crate) fn definition() -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}},
            }],
        },
    }))
    .unwrap()
}

/// Creates an object as soon as its kind is served.
pub(crate) async fn create(api: &Api<DynamicObject>, name: &str) {
    for _ in 0..100 {
        if api.create(&PostParams::default(), &widget(name)).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("widgets are never served");
}

#[tokio::test(start_paused = true)]
async fn an_informer_starts_when_its_kind_appears_empties_when_it_goes_and_starts_again() {
    let (server, cancel) = (server(), CancellationToken::new());
    let definitions = Api::<CustomResourceDefinition>::all(client(&server));
    let api = Api::<DynamicObject>::namespaced_with(client(&server), "default", &widgets());
    let factory = builder(&server).build();
    let informer = factory.dynamic(widgets()).full();
    let mut events = informer.subscribe();
    factory.start(&cancel).unwrap();
    let state = informer.wait_state(|state| matches!(state, InformerState::Missing { .. })).await;
    assert!(state.to_string().starts_with("no such kind since "), "{state}");
    assert!(state.is_absent());
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!informer.has_synced());

    for round in 0..2 {
        definitions.create(&PostParams::default(), &definition()).await.unwrap();
        create(&api, "a").await;
        let event = events.next().await.unwrap();
        assert_eq!((event.kind().to_string().as_str(), event.key().as_str()), ("added", "default/a"), "round {round}");
        assert!(informer.has_synced());

        definitions.delete("widgets.example.com", &DeleteParams::default()).await.unwrap();
        let event = events.next().await.unwrap();
        assert_eq!(
            (event.kind().to_string().as_str(), event.key().as_str()),
            ("deleted", "default/a"),
            "round {round}"
        );
        let deleted = |state: &InformerState| {
            matches!(
                state,
                InformerState::Missing { cause: MissingCause::Deleted, checked_by: AvailabilityCheck::CrdWatch, .. }
            )
        };
        informer.wait_state(deleted).await;
        assert!(informer.lister().is_empty());
    }
    assert_eq!(informer.status().counters.relists.get(&RelistReason::Returned), Some(&1));
    factory.shutdown().await;
}
