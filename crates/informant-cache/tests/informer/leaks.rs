//! Nothing is left of what has ended.

use std::sync::Arc;
use std::time::Duration;

use informant_cache::{InformerState, NamespaceSet, Scope};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio_util::sync::CancellationToken;

use crate::scripted::{InForm as _, Server, object};

/// A thousand times an informer with handlers, an index and a subscription is made, started and stopped, in each of the
/// ways to stop; the tasks, the memory and the connections are then where they were.
#[tokio::test(start_paused = true)]
async fn a_thousand_starts_and_stops_leave_nothing() {
    let (mut server, cancel) = (Server::new(), CancellationToken::new());
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let factory = server.factory();
    factory.start(&cancel).unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let (before, held) = (alive(), Arc::new(()));
    for cycle in 0..1_000 {
        let own = server.factory();
        let informer = {
            let factory = if cycle % 4 == 0 { &factory } else { &own };
            let (handler, transform, index) = (Arc::clone(&held), Arc::clone(&held), Arc::clone(&held));
            let set = NamespaceSet::new("one", ["web"]);
            let builder = factory.informer::<ConfigMap>();
            let builder = if cycle % 2 == 0 { builder } else { builder.scope(Scope::namespaces(&set)) };
            let informer = builder
                .transform(move |object| {
                    let _held = &transform;
                    Ok(object)
                })
                .kept();
            informer
                .on_change(move |_| {
                    let _held = &handler;
                })
                .detach();
            let _index = informer.index("held", move |_: &ConfigMap| {
                let _held = &index;
                [0]
            });
            informer
        };
        let mut events = informer.subscribe();
        let stop = cancel.child_token();
        if cycle % 4 != 0 {
            own.start(&stop).unwrap();
        }
        // Some are stopped while their list is unanswered.
        let (watch, unanswered) = if cycle % 5 == 0 {
            (None, Some(server.request().await))
        } else {
            let watch = server.sync("10", &[object("a", 1)]).await;
            assert_eq!(events.wait_initial().await.unwrap().len(), 1);
            (Some(watch), None)
        };
        match cycle % 4 {
            0 => informer.stop().await,
            1 => own.shutdown().await,
            2 => stop.cancel(),
            _ => drop(own),
        }
        informer.wait_state(|state| *state == InformerState::Stopped).await;
        if let Some(watch) = watch {
            tokio::time::timeout(Duration::from_secs(1), watch.closed()).await.expect("its connection is closed");
        }
        drop(unanswered);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(alive(), before, "tasks");
    assert_eq!(Arc::strong_count(&held), 1, "memory: no handler, transform or index function is left");
    assert!(factory.registered().is_empty());
    factory.shutdown().await;
    assert_eq!(alive(), before - 1, "the factory's own task");
}

/// Public report C-072 (kubernetes-sigs/controller-runtime#649), as far as informers go.
#[tokio::test(start_paused = true)]
async fn what_is_made_and_never_started_runs_nothing_and_leaves_nothing() {
    let mut server = Server::new();
    tokio::task::yield_now().await;
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let held = Arc::new(());
    for _ in 0..100 {
        let factory = server.factory();
        let hold = Arc::clone(&held);
        factory
            .informer::<ConfigMap>()
            .kept()
            .on_change(move |_| {
                let _held = &hold;
            })
            .detach();
    }
    tokio::task::yield_now().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(server.is_quiet_for(Duration::from_secs(60)).await);
}
