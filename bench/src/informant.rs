//! An informer of ours, in each of its forms.

use std::collections::BTreeMap;
use std::sync::Arc;

use informant_cache::{Cluster, InformerBuilder, InformerFactory, Metadata, Projection, SharedInformer};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::Problem;
use crate::client::{ClientArgs, Seen, phases, prepare, widgets};
use crate::measure::{Span, peak, processor, resident, settle};
use crate::wire::Wire;

/// What a controller that places and routes needs of a Pod.
#[derive(Projection)]
#[projection(api_version = "v1", kind = "Pod")]
#[allow(dead_code, reason = "it's kept, not read")]
struct SlimPod {
    #[projection(path = "metadata.name")]
    name: String,
    #[projection(path = "metadata.namespace")]
    namespace: Arc<str>,
    #[projection(path = "metadata.uid")]
    uid: String,
    #[projection(path = "metadata.resourceVersion")]
    resource_version: String,
    #[projection(path = "metadata.labels")]
    labels: BTreeMap<Arc<str>, Arc<str>>,
    #[projection(path = "metadata.ownerReferences")]
    owners: Vec<OwnerReference>,
    #[projection(path = "spec.nodeName")]
    node: Option<Arc<str>>,
    #[projection(path = "spec.serviceAccountName")]
    service_account: Option<Arc<str>>,
    #[projection(path = "spec.containers[*].image")]
    images: Vec<Arc<str>>,
    #[projection(path = "status.phase")]
    phase: Option<Arc<str>>,
    #[projection(path = "status.podIP")]
    ip: Option<String>,
    #[projection(path = "status.conditions[type=Ready].status")]
    ready: Option<Arc<str>>,
}

/// What the index by node reads.
#[derive(Projection)]
#[projection(api_version = "v1", kind = "Pod")]
struct OnNode {
    #[projection(path = "spec.nodeName")]
    node: Option<Arc<str>>,
}

/// Measures it.
///
/// # Errors
/// If it can't be made, doesn't sync or the server can't be reached.
pub async fn run(args: ClientArgs) -> Result<Value, Problem> {
    let cluster = Cluster::from_config(args.config().await?)?;
    let factory = InformerFactory::builder(&cluster).watch_list(args.watch_list).build();
    let wire = Wire::new(&cluster, args.wire == "json");
    let mut found = of_kind(&args, &factory, &wire).await?;
    let answered = wire.answered();
    if args.wire == "protobuf" && !answered.contains("protobuf") {
        return Err(format!("{} {} was answered in {answered}", args.form, args.kind).into());
    }
    found["answered"] = answered.into();
    Ok(found)
}

async fn of_kind(args: &ClientArgs, factory: &InformerFactory, wire: &Wire) -> Result<Value, Problem> {
    match args.kind.as_str() {
        "pods" => pods(args, factory, wire).await,
        "nodes" => typed::<Node>(args, factory, wire).await,
        "endpointslices" => typed::<EndpointSlice>(args, factory, wire).await,
        "events" => typed::<Event>(args, factory, wire).await,
        "widgets" => {
            let resource = widgets();
            if args.form == "metadata" {
                return measure(args, factory, factory.metadata_for(resource).from(wire.clone()).full()).await;
            }
            let informer = kept(args, factory.dynamic(resource).from(wire.clone()))?;
            measure(args, factory, informer).await
        }
        other => Err(format!("no kind is called {other}").into()),
    }
}

async fn pods(args: &ClientArgs, factory: &InformerFactory, wire: &Wire) -> Result<Value, Problem> {
    if args.form == "metadata" {
        return typed::<Pod>(args, factory, wire).await;
    }
    if args.form == "projected" {
        return measure(args, factory, factory.projection::<SlimPod>().from(wire.clone()).projected()).await;
    }
    let informer = kept(args, factory.informer::<Pod>().from(wire.clone()))?;
    let index = args.index.then(|| informer.index_on("node", |pod: &OnNode| pod.node.clone()));
    let found = measure(args, factory, informer).await;
    drop(index);
    found
}

async fn typed<K>(args: &ClientArgs, factory: &InformerFactory, wire: &Wire) -> Result<Value, Problem>
where
    K: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    if args.form == "metadata" {
        return measure(args, factory, factory.metadata::<K>().from(wire.clone()).full()).await;
    }
    let informer = kept(args, factory.informer::<K>().from(wire.clone()))?;
    measure(args, factory, informer).await
}

/// The informer of the form that's asked for.
fn kept<K>(args: &ClientArgs, builder: InformerBuilder<K>) -> Result<SharedInformer<K>, Problem>
where
    K: kube::Resource + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    match args.form.as_str() {
        "full" => Ok(builder.full()),
        "packed" => Ok(builder.packed()),
        "raw" => Ok(builder.raw()),
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
    let (resident, status, held) = (resident(), informer.status(), informer.memory().total());
    let phases =
        phases(args, &seen, |version| informer.status().resource_version.parse().is_ok_and(|at: u64| at >= version))
            .await?;
    settle().await;
    let resident_after = crate::measure::resident();
    let counters = informer.status().counters;
    cancel.cancel();
    factory.shutdown().await;
    let (user, system) = processor();
    Ok(json!({
        "client": "informant",
        "objects": status.objects,
        "sync": sync,
        "resident_bytes": resident,
        "resident_after_bytes": resident_after,
        "held_bytes": held,
        "watch": phases["watch"],
        "relist": phases["relist"],
        "peak_bytes": peak(),
        "user_cpu_seconds": user,
        "system_cpu_seconds": system,
        "counters": counters,
    }))
}
