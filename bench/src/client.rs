//! What all clients in Rust have in common: the command line, and the phases after the sync.

use std::future::Future;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::api::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::Problem;
use crate::control::Connection;
use crate::corpus::template::CHANGED_VERSION;
use crate::measure::{Span, now, percentile};

/// How long a phase may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a client is to do.
#[derive(Debug, Clone, clap::Args)]
pub struct ClientArgs {
    /// URL of the server
    #[arg(long, default_value = "")]
    pub url: String,
    /// A real server instead, which takes no commands
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<std::path::PathBuf>,
    /// URL for commands, if the server's own speaks TLS
    #[arg(long)]
    pub control: Option<String>,
    /// What to follow
    #[arg(long, default_value = "pods")]
    pub kind: String,
    /// How many there are, for a client that doesn't read
    #[arg(long, default_value_t = 0)]
    pub objects: usize,
    /// How objects are kept: informant full, packed, raw, projected, metadata; kube-rs full, tuned
    #[arg(long, default_value = "full")]
    pub form: String,
    /// JSON or protobuf
    #[arg(long, default_value = "json")]
    pub wire: String,
    /// Ask for a stream of initial events instead of lists
    #[arg(long)]
    pub watch_list: bool,
    /// Handlers to attach
    #[arg(long, default_value_t = 1)]
    pub handlers: usize,
    /// Index Pods by node
    #[arg(long)]
    pub index: bool,
    /// After the sync: COUNT@RATE events, a rate of 0 being as fast as it goes; may be given again
    #[arg(long, value_parser = events)]
    pub events: Vec<(u64, u64)>,
    /// After that: a relist in which so many of a thousand objects have changed; may be given again
    #[arg(long)]
    pub relist: Vec<u64>,
}

/// The custom resource among the kinds.
pub(crate) fn widgets() -> ApiResource {
    let kind = GroupVersionKind::gvk("bench.informant.test", "v1", "Widget");
    ApiResource::from_gvk_with_plural(&kind, "widgets")
}

fn events(text: &str) -> Result<(u64, u64), String> {
    let parsed = text.split_once('@').and_then(|(count, rate)| Some((count.parse().ok()?, rate.parse().ok()?)));
    parsed.ok_or_else(|| "write COUNT@RATE".to_owned())
}

impl ClientArgs {
    /// The URL that takes commands.
    #[must_use]
    pub fn control(&self) -> &str {
        self.control.as_deref().unwrap_or(&self.url)
    }

    /// How to reach the server with kube's client.
    ///
    /// # Errors
    /// If the URL is none, or the kubeconfig can't be used.
    pub async fn config(&self) -> Result<kube::Config, Problem> {
        if let Some(file) = &self.kubeconfig {
            let options = kube::config::KubeConfigOptions::default();
            return Ok(
                kube::Config::from_custom_kubeconfig(kube::config::Kubeconfig::read_from(file)?, &options).await?
            );
        }
        let mut config = kube::Config::new(self.url.parse()?);
        // The certificate is of the server's own making.
        config.accept_invalid_certs = true;
        Ok(config)
    }
}

/// Runs a client on one thread and prints what it found.
///
/// # Errors
/// The client's.
pub fn run<F: Future<Output = Result<Value, Problem>>>(client: impl FnOnce() -> F) -> Result<(), Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("{}", runtime.block_on(client())?);
    Ok(())
}

/// What a client's handler was told.
#[derive(Default)]
pub struct Seen {
    calls: AtomicU64,
    last: AtomicU64,
    /// When the handler was called for each change.
    handled: Mutex<Vec<u64>>,
}

impl Seen {
    /// The handler is called for an object in the state that this resource version names.
    pub fn call(&self, resource_version: &str) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let change = resource_version.parse::<u64>().unwrap_or(0).saturating_sub(CHANGED_VERSION);
        if change == 0 {
            return;
        }
        let mut handled = self.handled.lock().unwrap_or_else(PoisonError::into_inner);
        let place = usize::try_from(change).unwrap_or(0);
        if handled.len() <= place {
            handled.resize(place + 1, 0);
        }
        handled[place] = now();
        self.last.fetch_max(change, Ordering::Release);
    }

    /// How often the handler was called.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn reserve(&self, changes: u64) {
        let place = usize::try_from(changes).unwrap_or(0);
        self.handled.lock().unwrap_or_else(PoisonError::into_inner).resize(place + 1, 0);
    }
}

/// Does what comes after the sync. `is_at` tells whether the client has taken in a new list of this resource version.
///
/// # Errors
/// If the server can't be reached, or a phase takes for ever.
pub async fn phases(args: &ClientArgs, seen: &Seen, is_at: impl Fn(u64) -> bool) -> Result<Value, Problem> {
    if args.kubeconfig.is_some() {
        return Ok(json!({"watch": [], "relist": []}));
    }
    let mut control = Connection::open(args.control()).await?;
    let mut all = Vec::new();
    for &(count, rate) in &args.events {
        all.push(watch(&mut control, seen, count, rate).await?);
    }
    let mut relists = Vec::new();
    for &permille in &args.relist {
        crate::measure::settle().await;
        let (calls, span) = (seen.calls(), Span::begin());
        let version = control.expire(permille).await?;
        until(|| is_at(version)).await?;
        let done = now();
        let mut found = span.end_after(done.saturating_sub(control.listed().await?) as f64 / 1e9);
        // Of a handler that comes after the store.
        crate::measure::settle().await;
        found["changed_permille"] = permille.into();
        found["calls"] = (seen.calls() - calls).into();
        relists.push(found);
    }
    Ok(json!({"watch": all, "relist": relists}))
}

async fn watch(control: &mut Connection, seen: &Seen, count: u64, rate: u64) -> Result<Value, Problem> {
    let span = Span::begin();
    let version = control.events(count, rate).await?;
    let last = version.saturating_sub(CHANGED_VERSION);
    let first = last + 1 - count;
    until(|| seen.last.load(Ordering::Acquire) >= last).await?;
    let sent = control.sent(first, count).await?;
    let handled = seen.handled.lock().unwrap_or_else(PoisonError::into_inner);
    let handled = &handled[usize::try_from(first)?..=usize::try_from(last)?];
    let mut latencies: Vec<u64> = std::iter::zip(handled, &sent)
        .filter(|(handled, _)| **handled > 0)
        .map(|(handled, sent)| handled.saturating_sub(*sent))
        .collect();
    latencies.sort_unstable();
    let end = handled.iter().max().copied().unwrap_or(0);
    let seconds = end.saturating_sub(sent.first().copied().unwrap_or(0)) as f64 / 1e9;
    let mut found = span.end_after(seconds);
    let micros = |part: f64| percentile(&latencies, part) as f64 / 1e3;
    found["rate"] = rate.into();
    found["events"] = count.into();
    found["handled"] = latencies.len().into();
    found["events_per_second"] = (count as f64 / seconds).into();
    found["p50_us"] = micros(0.5).into();
    found["p99_us"] = micros(0.99).into();
    found["p999_us"] = micros(0.999).into();
    Ok(found)
}

/// Makes room for what the handler will note, so that it isn't counted as the client's memory later.
pub fn prepare(args: &ClientArgs, seen: &Seen) {
    seen.reserve(args.events.iter().map(|(count, _)| count).sum());
}

async fn until(done: impl Fn() -> bool) -> Result<(), Problem> {
    tokio::time::timeout(PATIENCE, async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .map_err(|_| format!("a phase isn't done after {} s", PATIENCE.as_secs()).into())
}
