//! `informant watch`: an informer on any resource, and a line for each event.

mod stats;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use informant::cache::{EventKind, HandlerOptions, InformerState, Scope, Selector};
use informant::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use self::stats::Stats;
use crate::args::{Form, Output, WatchArgs};
use crate::changes::changed_paths;
use crate::output::{Error, chain, line, reader_is_gone};
use crate::resolve::{Resolved, resolve};
use crate::{clock, connect};

/// How often discovery is asked for a kind that isn't there, at first and at most.
const DISCOVERY_DELAY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// What helps against a refusal.
const GRANT: &str = "grant this user the verbs list and watch on it";
/// With `--once`: how long the first list may take before the command gives up.
const ONCE_TIMEOUT: Duration = Duration::from_secs(60);
/// How often the informer's state is looked at, to say on standard error when it is in trouble.
const STATE_INTERVAL: Duration = Duration::from_secs(1);

/// Follows the resource until SIGINT or SIGTERM; with `--once` until its state is printed.
pub async fn run(args: WatchArgs) -> Result<(), Error> {
    let stop = crate::commands::stop_signal()?;
    let cluster = connect::cluster(args.kubeconfig.as_deref(), args.server.as_deref()).await?;
    let shutdown = CancellationToken::new();
    tokio::pin!(stop);
    let resolved = tokio::select! {
        biased;
        () = &mut stop => return Ok(()),
        resolved = find(&args, &cluster) => resolved?,
    };
    let factory = InformerFactory::new(&cluster);
    let scope = scope(&args, &cluster, &resolved)?;
    let dynamic = || factory.dynamic(resolved.resource.clone()).scope(scope.clone());
    let ended = match args.representation {
        Form::Full => follow(&args, &factory, &dynamic().full(), &shutdown, stop).await,
        Form::Packed => follow(&args, &factory, &dynamic().packed(), &shutdown, stop).await,
        Form::Raw => follow(&args, &factory, &dynamic().raw(), &shutdown, stop).await,
        Form::Metadata => {
            let informer = factory.metadata_for(resolved.resource.clone()).scope(scope.clone()).full();
            follow(&args, &factory, &informer, &shutdown, stop).await
        }
    };
    shutdown.cancel();
    factory.shutdown().await;
    ended
}

async fn follow<K: Serialize + Send + Sync + 'static>(
    args: &WatchArgs,
    factory: &InformerFactory,
    informer: &SharedInformer<K>,
    shutdown: &CancellationToken,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Error> {
    let mut stats = Stats::start();
    let ended = if args.once {
        tokio::select! {
            biased;
            () = &mut stop => Ok(()),
            ended = print_once(args, factory, informer, shutdown, &mut stats) => ended,
        }
    } else {
        print_events(args, factory, informer, shutdown, stop, &mut stats).await
    };
    say_stats(args, &stats, informer);
    ended
}

fn say_stats<K: Send + Sync + 'static>(args: &WatchArgs, stats: &Stats, informer: &SharedInformer<K>) {
    if args.stats {
        eprintln!("{}", stats.line(&informer.status()));
    }
}

/// The resource, as soon as the server has it; with `--once` an error when it hasn't.
async fn find(args: &WatchArgs, cluster: &Cluster) -> Result<Resolved, Error> {
    let (mut delay, delay_max) = DISCOVERY_DELAY;
    let mut said = String::new();
    loop {
        let trouble = match resolve(&cluster.client(), &args.resource).await {
            Ok(Some(found)) if !found.watchable => {
                return Err(format!("'{}' can't be listed and watched: choose another resource", args.resource).into());
            }
            Ok(Some(found)) => return Ok(found),
            Ok(None) => format!("the server has no resource '{}'", args.resource),
            Err(error) => format!("the server can't be asked what it serves: {}", chain(&error)),
        };
        if args.once {
            return Err(format!("{trouble}; without --once this command waits for it").into());
        }
        if trouble != said {
            eprintln!("informant: {trouble}; waiting for it");
            said = trouble;
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(delay_max);
    }
}

fn scope(args: &WatchArgs, cluster: &Cluster, resolved: &Resolved) -> Result<Scope, Error> {
    let mut scope = if resolved.namespaced && !args.all_namespaces {
        Scope::namespaced(args.namespace.as_deref().unwrap_or(cluster.default_namespace()))
    } else {
        Scope::all()
    };
    if let Some(selector) = &args.selector {
        selector.parse::<Selector>().map_err(|error| format!("'{selector}' is no label selector: {error}"))?;
        scope = scope.with_labels(selector);
    }
    Ok(scope)
}

async fn print_once<K: Serialize + Send + Sync + 'static>(
    args: &WatchArgs,
    factory: &InformerFactory,
    informer: &SharedInformer<K>,
    shutdown: &CancellationToken,
    stats: &mut Stats,
) -> Result<(), Error> {
    factory.start(shutdown)?;
    let trouble = async {
        loop {
            tokio::time::sleep(STATE_INTERVAL / 10).await;
            let state = informer.status().state;
            if matches!(state, InformerState::Missing { .. } | InformerState::Forbidden { .. }) {
                return state;
            }
        }
    };
    tokio::select! {
        biased;
        synced = tokio::time::timeout(ONCE_TIMEOUT, factory.wait_for_cache_sync(shutdown)) => match synced {
            Ok(synced) => synced?,
            Err(_) => {
                let status = informer.status();
                return Err(format!("not synced after {} s: {} ({})", ONCE_TIMEOUT.as_secs(), status.informer, status.state).into());
            }
        },
        state = trouble => {
            let grant = matches!(state, InformerState::Forbidden { .. }).then(|| format!("; {GRANT}"));
            return Err(format!("'{}' can't be listed: {state}{}", args.resource, grant.unwrap_or_default()).into());
        }
    }
    stats.synced();
    say_stats(args, stats, informer);
    let mut objects = informer.lister().list_cached();
    objects.sort_by(|a, b| a.key().cmp(b.key()));
    for object in objects {
        print(args.output, &Event::Added { object, initial: true })?;
    }
    Ok(())
}

async fn print_events<K: Serialize + Send + Sync + 'static>(
    args: &WatchArgs,
    factory: &InformerFactory,
    informer: &SharedInformer<K>,
    shutdown: &CancellationToken,
    mut stop: Pin<&mut impl Future<Output = ()>>,
    stats: &mut Stats,
) -> Result<(), Error> {
    let mut events = informer.subscribe_with(HandlerOptions::named("watch"));
    factory.start(shutdown)?;
    let mut states = tokio::time::interval(STATE_INTERVAL);
    let mut said = Trouble::None;
    let mut synced = std::pin::pin!(informer.wait_synced());
    let mut waiting = true;
    loop {
        tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            ended = &mut synced, if waiting => {
                waiting = false;
                if ended.is_ok() {
                    stats.synced();
                    say_stats(args, stats, informer);
                }
            }
            event = events.next() => match event {
                Some(event) => {
                    if !event.is_initial() {
                        stats.event();
                    }
                    print(args.output, &event)?;
                }
                None => return Err(format!("the informer ended: {}", informer.state()).into()),
            },
            _ = states.tick() => {
                if reader_is_gone() {
                    return Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into());
                }
                said = say_trouble(&informer.status().state, said);
            }
        }
    }
}

/// What was said last on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    Missing,
    Forbidden,
    Retrying,
}

/// Says on standard error, once for each kind of trouble, that what is shown may be old, and once when that is over.
fn say_trouble(state: &InformerState, said: Trouble) -> Trouble {
    let trouble = match state {
        InformerState::Missing { .. } => Trouble::Missing,
        InformerState::Forbidden { .. } => Trouble::Forbidden,
        InformerState::Retrying { .. } => Trouble::Retrying,
        InformerState::Synced => Trouble::None,
        InformerState::NotStarted
        | InformerState::Waiting { .. }
        | InformerState::Starting
        | InformerState::Listing
        | InformerState::Failed { .. }
        | InformerState::Stopped => return said,
    };
    match (said, trouble) {
        (before, now) if before == now => {}
        (_, Trouble::None) => eprintln!("informant: synced again"),
        (_, Trouble::Missing) => eprintln!("informant: {state}; waiting for it"),
        (_, Trouble::Forbidden) => eprintln!("informant: {state}; {GRANT}; trying again"),
        (_, Trouble::Retrying) => eprintln!("informant: {state}; trying again"),
    }
    trouble
}

fn print<K: Serialize>(output: Output, event: &Event<K>) -> Result<(), Error> {
    let text = match output {
        Output::None => return Ok(()),
        Output::Name => event.key().to_string(),
        Output::Json => json_line(event, &clock::now())?.to_string(),
        Output::Table => {
            let changed = changed(event)?.join(" ");
            let initial = if event.is_initial() { "initial" } else { "" };
            format!("{}  {:<6}  {}  {changed}{initial}", clock::now(), verb(event.kind()), event.key())
                .trim_end()
                .to_owned()
        }
    };
    line(&text)
}

/// The event as one JSON object: `time`, `type`, `initial`, `key`, `object`, and for an update `changed`.
fn json_line<K: Serialize>(event: &Event<K>, now: &str) -> Result<Value, Error> {
    let mut value = json!({
        "time": now,
        "type": verb(event.kind()),
        "initial": event.is_initial(),
        "key": event.key().to_string(),
        "object": serde_json::to_value(&*event.object())?,
    });
    if event.kind() == EventKind::Updated {
        value["changed"] = changed(event)?.into();
    }
    Ok(value)
}

fn changed<K: Serialize>(event: &Event<K>) -> Result<Vec<String>, Error> {
    Ok(match event.old() {
        Some(old) => changed_paths(&serde_json::to_value(&*old)?, &serde_json::to_value(&*event.object())?),
        None => Vec::new(),
    })
}

fn verb(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Added => "add",
        EventKind::Updated => "update",
        EventKind::Deleted => "delete",
    }
}
