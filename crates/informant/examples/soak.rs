//! Informers for `peers/soak/run.py`: they run on a cluster that's made to fail, and say as lines of JSON what their
//! handlers are told and what state they're in. `late` on standard input adds handlers, `dump` says what the informers
//! hold, `quit` ends.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::time::Duration;

use informant::cache::{HandlerHandle, HandlerOptions, InformerState, Metadata};
use informant::prelude::*;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;

/// How long the slow handler takes for an event: too long for the load, so that its backlog is merged.
const SLOW: Duration = Duration::from_millis(25);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kubeconfig, namespace, group, watch_list] = words.as_slice() else {
        return Err("usage: soak KUBECONFIG NAMESPACE GROUP-OF-THINGS on|off   (whether lists are streamed)".into());
    };
    let cluster = Cluster::from_kubeconfig_file(kubeconfig).await?;
    let stop = CancellationToken::new();
    let factory = InformerFactory::builder(cluster).watch_list(watch_list == "on").build();
    let scope = Scope::namespaced(namespace);
    let things = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", "Thing"), "things");
    let mut tasks = JoinSet::new();
    let mut soaked: Vec<Box<dyn Soaked>> = vec![
        Box::new(One::new("pods", factory.informer::<Pod>().scope(scope.clone()).full(), &mut tasks)),
        Box::new(One::new("configmaps", factory.informer::<ConfigMap>().scope(scope.clone()).full(), &mut tasks)),
        Box::new(One::new("things", factory.dynamic(things).scope(scope).full(), &mut tasks)),
    ];
    factory.start(&stop)?;
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Some(command) = commands.next_line().await? {
        match command.as_str() {
            "late" => soaked.iter_mut().for_each(|one| one.add_late_handler()),
            "dump" => soaked.iter().for_each(|one| one.dump()),
            _ => break,
        }
    }
    factory.shutdown().await;
    tasks.shutdown().await;
    Ok(())
}

/// An informer whose object type doesn't matter.
trait Soaked {
    fn add_late_handler(&mut self);
    fn dump(&self);
}

struct One<K: 'static> {
    resource: &'static str,
    informer: SharedInformer<K>,
    handlers: Vec<HandlerHandle>,
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<K: Metadata + Send + Sync + 'static> One<K> {
    fn new(resource: &'static str, informer: SharedInformer<K>, tasks: &mut JoinSet<()>) -> Self {
        let early = informer.on_change(move |event| tell(resource, "early", &event));
        let slow: Task = Box::pin(handle_slowly(resource, informer.clone()));
        tasks.spawn(slow);
        let states: Task = Box::pin(tell_states(resource, informer.clone()));
        tasks.spawn(states);
        Self { resource, informer, handlers: vec![early] }
    }
}

impl<K: Metadata + Send + Sync + 'static> Soaked for One<K> {
    fn add_late_handler(&mut self) {
        let resource = self.resource;
        self.handlers.push(self.informer.on_change(move |event| tell(resource, "late", &event)));
    }

    fn dump(&self) {
        let held: BTreeMap<_, _> = self
            .informer
            .lister()
            .list_cached()
            .iter()
            .map(|object| (object.key().to_string(), object.resource_version().to_owned()))
            .collect();
        say(&json!({"dump": self.resource, "held": held, "status": self.informer.status()}));
    }
}

async fn handle_slowly<K: Send + Sync + 'static>(resource: &'static str, informer: SharedInformer<K>) {
    let mut events = informer.subscribe_with(HandlerOptions::named("slow").with_bound(16));
    while let Some(event) = events.next().await {
        tell(resource, "slow", &event);
        tokio::time::sleep(SLOW).await;
    }
}

async fn tell_states<K: Send + Sync + 'static>(resource: &'static str, informer: SharedInformer<K>) {
    let mut shown = informer.state();
    while shown != InformerState::Stopped {
        shown = informer.wait_state(|state| *state != shown).await;
        say(&json!({"t": now(), "r": resource, "state": shown}));
    }
}

fn tell<K>(resource: &str, handler: &str, event: &Event<K>) {
    let object = event.cached();
    let mut line = json!({
        "t": now(), "h": handler, "r": resource, "e": event.kind(), "k": object.key(), "u": object.uid(),
        "v": object.resource_version(),
    });
    if let (Event::Deleted { final_state, .. }, Value::Object(fields)) = (event, &mut line) {
        fields.insert("final".to_owned(), json!(final_state));
    }
    say(&line);
}

fn say(line: &Value) {
    // Who reads it has gone away when this fails; there's nobody to tell.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Seconds since the epoch, to be compared with those of other programs on this machine.
#[expect(clippy::disallowed_methods, reason = "times of several programs are compared, so it's the machine's clock")]
fn now() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
