//! An informer of ours, in each of its forms.

use std::sync::Arc;

use informant_cache::{Cluster, InformerBuilder, InformerFactory, Metadata, SharedInformer};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event;
use kube::api::ApiResource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::Problem;
use crate::client::{ClientArgs, Seen, phases, prepare};
use crate::measure::{Span, peak, processor, resident, settle};

/// Measures it.
///
/// # Errors
/// If it can't be made, doesn't sync or the server can't be reached.
pub async fn run(args: ClientArgs) -> Result<Value, Problem> {
    let cluster = Cluster::from_config(args.config()?)?;
    let factory = InformerFactory::builder(&cluster).watch_list(args.watch_list).build();
    match args.kind.as_str() {
        "pods" => pods(&args, &factory).await,
        "nodes" => typed::<Node>(&args, &factory).await,
        "endpointslices" => typed::<EndpointSlice>(&args, &factory).await,
        "events" => typed::<Event>(&args, &factory).await,
        "widgets" => {
            let resource = ApiResource {
                group: "bench.informant.test".to_owned(),
                version: "v1".to_owned(),
                api_version: "bench.informant.test/v1".to_owned(),
                kind: "Widget".to_owned(),
                plural: "widgets".to_owned(),
            };
            if args.form == "metadata" {
                return measure(&args, &factory, factory.metadata_for(resource).full()).await;
            }
            let informer = kept(&args, factory.dynamic(resource))?;
            measure(&args, &factory, informer).await
        }
        other => Err(format!("no kind is called {other}").into()),
    }
}

async fn pods(args: &ClientArgs, factory: &InformerFactory) -> Result<Value, Problem> {
    if args.form == "metadata" {
        return typed::<Pod>(args, factory).await;
    }
    let informer = kept(args, factory.informer::<Pod>())?;
    let index = args.index.then(|| informer.index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone()));
    let found = measure(args, factory, informer).await;
    drop(index);
    found
}

async fn typed<K>(args: &ClientArgs, factory: &InformerFactory) -> Result<Value, Problem>
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    if args.form == "metadata" {
        return measure(args, factory, factory.metadata::<K>().full()).await;
    }
    let informer = kept(args, factory.informer::<K>())?;
    measure(args, factory, informer).await
}

/// The informer of the form that's asked for.
fn kept<K>(args: &ClientArgs, builder: InformerBuilder<K>) -> Result<SharedInformer<K>, Problem>
where
    K: kube::Resource + DeserializeOwned + Send + Sync + 'static,
{
    match args.form.as_str() {
        "full" => Ok(builder.full()),
        other => Err(format!("there's no form {other} of {}", args.kind).into()),
    }
}

async fn measure<K>(args: &ClientArgs, factory: &InformerFactory, informer: SharedInformer<K>) -> Result<Value, Problem>
where
    K: Metadata + Send + Sync + 'static,
{
    let seen = Arc::new(Seen::default());
    prepare(args, &seen);
    let handlers: Vec<_> = (0..args.handlers)
        .map(|number| {
            let seen = (number == 0).then(|| Arc::clone(&seen));
            informer.on_change(move |event| {
                if let Some(seen) = &seen {
                    seen.call(event.cached().resource_version());
                }
            })
        })
        .collect();
    let cancel = CancellationToken::new();
    let span = Span::begin();
    factory.start(&cancel)?;
    factory.wait_for_cache_sync(&cancel).await?;
    for handler in &handlers {
        handler.wait_synced().await;
    }
    let sync = span.end();
    settle().await;
    let (resident, status) = (resident(), informer.status());
    let phases =
        phases(args, &seen, |version| informer.status().resource_version.parse().is_ok_and(|at: u64| at >= version))
            .await?;
    let counters = informer.status().counters;
    cancel.cancel();
    factory.shutdown().await;
    let (user, system) = processor();
    Ok(json!({
        "client": "informant",
        "objects": status.objects,
        "sync": sync,
        "resident_bytes": resident,
        "held_bytes": status.bytes,
        "watch": phases["watch"],
        "relist": phases["relist"],
        "peak_bytes": peak(),
        "user_cpu_seconds": user,
        "system_cpu_seconds": system,
        "counters": counters,
    }))
}
