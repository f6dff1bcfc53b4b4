//! kube-rs's `watcher` and `reflector`: as they come, or with `managedFields` dropped.

use std::cell::Cell;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event as KubeEvent;
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{self, reflector};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Problem;
use crate::client::{ClientArgs, Seen, phases, prepare, widgets};
use crate::measure::{Span, peak, processor, resident, settle};

/// Measures it.
///
/// # Errors
/// If it can't be made, doesn't sync or the server can't be reached.
pub async fn run(args: ClientArgs) -> Result<Value, Problem> {
    let client = Client::try_from(args.config().await?)?;
    match args.kind.as_str() {
        "pods" => measure::<Pod>(&args, Api::all(client), ()).await,
        "nodes" => measure::<Node>(&args, Api::all(client), ()).await,
        "endpointslices" => measure::<EndpointSlice>(&args, Api::all(client), ()).await,
        "events" => measure::<KubeEvent>(&args, Api::all(client), ()).await,
        "widgets" => {
            let resource = widgets();
            measure::<DynamicObject>(&args, Api::all_with(client, &resource), resource).await
        }
        other => Err(format!("no kind is called {other}").into()),
    }
}

async fn measure<K>(args: &ClientArgs, api: Api<K>, dynamic: K::DynamicType) -> Result<Value, Problem>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    let config = watcher::Config::default();
    let config = if args.watch_list { config.streaming_lists() } else { config };
    let tuned = args.form == "tuned";
    let writer = reflector::store::Writer::new(dynamic);
    let store = writer.as_reader();
    let (seen, lists) = (Arc::new(Seen::default()), Arc::new(AtomicU64::new(0)));
    prepare(args, &seen);
    let span = Span::begin();
    let stream = watcher(api, config).default_backoff().map(move |mut event| {
        if tuned && let Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) = &mut event {
            object.meta_mut().managed_fields = None;
        }
        event
    });
    let mut running = JoinSet::new();
    running.spawn({
        let (seen, lists) = (Arc::clone(&seen), Arc::clone(&lists));
        async move {
            let mut stream = std::pin::pin!(reflector(writer, stream));
            while let Some(event) = stream.next().await {
                match event {
                    Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) => {
                        seen.call(object.resource_version().as_deref().unwrap_or_default());
                    }
                    Ok(Event::InitDone) => drop(lists.fetch_add(1, Ordering::Release)),
                    Ok(Event::Init) => {}
                    Err(error) => eprintln!("kube-rs: {error}"),
                }
            }
        }
    });
    store.wait_until_ready().await?;
    let sync = span.end();
    settle().await;
    let (resident, objects, known) = (resident(), store.len(), Cell::new(lists.load(Ordering::Acquire)));
    // It doesn't tell the resource version of a list, only that one is done.
    let is_at = |_| {
        let now = lists.load(Ordering::Acquire);
        known.replace(now) != now
    };
    let phases = phases(args, &seen, is_at).await?;
    let (user, system) = processor();
    Ok(json!({
        "client": "kube-rs",
        "objects": objects,
        "sync": sync,
        "resident_bytes": resident,
        "held_bytes": null,
        "watch": phases["watch"],
        "relist": phases["relist"],
        "peak_bytes": peak(),
        "user_cpu_seconds": user,
        "system_cpu_seconds": system,
    }))
}
