//! `informant demo`: the MyApp operator at work, on the embedded server or on a cluster of yours.

#[path = "../../../../examples/myapp/api.rs"]
mod api;
mod kubelet;
mod narrator;
mod stage;
mod summary;
// The operator of the example, as it is: what the demo runs is what a newcomer reads.
#[path = "../../../../examples/myapp/operator.rs"]
mod operator;

use std::future::Future;
use std::time::Duration;

use informant::prelude::*;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use tokio::time::Instant;

use self::api::MyApp;
use self::narrator::{Narrator, tell};
use self::stage::Stage;
use self::summary::Summary;
use crate::args::DemoArgs;
use crate::output::{Error, line};

/// How often `--once` looks whether all samples are Ready; nothing waits for it but the end of the demo.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How long controllers may take to stop.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// Runs the demo to its end and leaves nothing behind, unless asked to.
pub async fn run(args: DemoArgs) -> Result<(), Error> {
    let stop = crate::commands::stop_signal()?;
    tokio::pin!(stop);
    let stage = tokio::select! {
        biased;
        () = &mut stop => return Ok(()),
        stage = Stage::open(&args) => stage?,
    };
    let ended = play(&args, &stage, stop).await;
    let closed = stage.close().await;
    let summary = ended?;
    closed?;
    if args.once {
        line(&serde_json::to_string(&summary)?)?;
    }
    Ok(())
}

/// Starts the operator, applies the samples, and waits for what ends the demo.
async fn play(args: &DemoArgs, stage: &Stage, stop: impl Future<Output = ()>) -> Result<Summary, Error> {
    let started = Instant::now();
    let (cluster, scope) = (stage.cluster(), stage.scope());
    let factory = InformerFactory::new(cluster);
    let apps = factory.informer::<MyApp>().scope(scope.clone()).full();
    let mut narrator = Narrator::default();
    narrator.listen("myapp", &apps);
    narrator.listen("deployment", &factory.informer::<Deployment>().scope(scope.clone()).full());
    narrator.listen("service", &factory.informer::<Service>().scope(scope.clone()).full());
    narrator.listen("pod", &factory.informer::<Pod>().scope(scope.clone()).full());

    let mut manager = Manager::with_factory(factory.clone())
        .application("informant demo", env!("CARGO_PKG_VERSION"))
        .serve(args.serve.to_string())
        .grace_period(GRACE_PERIOD)
        .controller(operator::controller(cluster.client(), &factory, &scope));
    if stage.plays_kubelet() {
        for controller in kubelet::controllers(cluster.client(), &factory, &scope) {
            manager = manager.controller(controller);
        }
    }
    let (handle, cancel) = (manager.handle(), CancellationToken::new());
    let running = manager.run(cancel.clone());
    tokio::pin!(running, stop);

    let main_job = async {
        if let Some(address) = handle.address().await {
            tell(&format!("see http://{address}/katalog, /metrics, /healthz and /readyz?verbose"));
        }
        let samples = stage.apply_samples().await?;
        if !args.once {
            tell("running until Ctrl-C");
            return std::future::pending().await;
        }
        all_ready(&samples, &apps.lister(), args.timeout).await
    };
    let ended = tokio::select! {
        biased;
        () = &mut stop => {
            tell("stopping");
            Ok(())
        }
        ended = &mut running => return Err(match ended {
            Err(error) => Box::new(error),
            Ok(()) => "the manager ended by itself".into(),
        }),
        ended = main_job => ended,
    };
    let status = handle.status();
    cancel.cancel();
    running.await?;
    ended?;
    Ok(Summary::new(status.as_ref(), narrator.events(), Instant::now().saturating_duration_since(started)))
}

/// Ends when every sample is Ready; after `timeout` with an error that says which isn't, and why.
async fn all_ready(samples: &[ObjectKey], apps: &Lister<MyApp>, timeout: Duration) -> Result<(), Error> {
    let deadline = Instant::now() + timeout;
    loop {
        let waiting: Vec<String> = samples
            .iter()
            .filter_map(|key| why_not_ready(apps.get(key).as_deref()).map(|why| format!("{key} ({why})")))
            .collect();
        if waiting.is_empty() {
            tell("all MyApps are Ready");
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(format!("not Ready after {} s: {}", timeout.as_secs_f64(), waiting.join("; ")).into());
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Why a MyApp isn't Ready; `None` when it is.
fn why_not_ready(app: Option<&MyApp>) -> Option<String> {
    let Some(app) = app else { return Some("it isn't in the operator's cache".to_owned()) };
    let Some(status) = &app.status else { return Some("the operator hasn't written its status".to_owned()) };
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
    match ready {
        Some(condition) if condition.status == "True" => None,
        Some(condition) => Some(condition.message.clone()),
        None => Some("its status has no Ready condition".to_owned()),
    }
}
