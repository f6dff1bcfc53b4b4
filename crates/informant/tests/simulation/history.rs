//! One history: what happens, and what must be so at the end.

use std::collections::BTreeMap;
use std::time::Duration;

use informant_cache::{
    Cached, Index, InformerFactory, InformerState, NamespaceSelector, NamespaceSet, Scope, SharedInformer,
};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Counts;
use crate::observer::{Observer, identity, is_ours, value};
use crate::settings::{Kind, NAMESPACES, Settings, Shift};
use crate::trace::Trace;
use crate::truth::{Sight, What};
use crate::way::Way;
use crate::world::{SELECTED, World};

/// How long it may take until everybody knows everything once nothing goes wrong any more. The longest that an informer
/// waits is for a watch that's overdue, ten minutes and a half, and there may be several in a row.
const QUIET_MAX: Duration = Duration::from_secs(3_000);
/// How often it's looked.
const LOOK: Duration = Duration::from_secs(15);

/// What is to happen in a run of many histories, besides faults.
pub(crate) const HAPPENINGS: &[&str] = &[
    "handler added early",
    "handler added late",
    "handler removed",
    "index added",
    "compaction",
    "relist: expired",
    "conflated events",
    "deletion unseen",
    "namespace added to a set",
    "namespace removed from a set",
    "namespace selected",
    "namespace deselected",
    "object left the scope",
];

struct Informer {
    name: String,
    sight: Sight,
    shift: Shift,
    /// Its namespaces, if they are a set.
    set: NamespaceSet,
    informer: SharedInformer<DynamicObject>,
    observers: Vec<Observer>,
    by_app: Option<Index<DynamicObject, String>>,
}

struct History {
    world: World,
    way: Way,
    informers: Vec<Informer>,
    rng: fastrand::Rng,
    polls: JoinSet<()>,
    counts: Counts,
    trace: Trace,
}

/// Runs the history of a seed; tells what happened how often, or what's wrong.
pub(crate) fn run(seed: u64, trace: &Trace) -> Result<Counts, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let mut rng = fastrand::Rng::with_seed(seed);
        let settings = Settings::draw(&mut rng);
        trace.say("seed", || format!("{seed}: {settings:#?}"));
        let mut counts = History::run(&settings, seed, rng, trace).await?;
        *counts.entry("history".to_owned()).or_default() += 1;
        Ok(counts)
    })
}

impl History {
    async fn run(settings: &Settings, seed: u64, mut rng: fastrand::Rng, trace: &Trace) -> Result<Counts, String> {
        let world = World::new(settings, seed, trace).await;
        let way = Way::new(&world.server, settings.way, seed, trace);
        let factory = InformerFactory::builder(way.client())
            .seed(seed)
            .start_time("2026-01-01T00:00:00Z".parse().unwrap())
            .watch_list(settings.watch_list)
            .page_size(settings.page_size)
            .build();
        let informers = informers(&factory, settings);
        let mut history = Self {
            world,
            way,
            informers,
            rng: rng.fork(),
            polls: JoinSet::new(),
            counts: Counts::new(),
            trace: trace.clone(),
        };
        for number in 0..history.informers.len() {
            history.observe(number, "handler added early");
        }
        // Some of the objects are older than the informers.
        for _ in 0..rng.u32(..6) {
            history.world.write().await;
        }
        let cancel = CancellationToken::new();
        factory.start(&cancel).map_err(|error| error.to_string())?;
        for _ in 0..settings.operations {
            history.operate(settings).await;
        }
        history.quiet().await?;
        let verdict = history.verify().await;
        factory.shutdown().await;
        history.polls.abort_all();
        verdict?;
        if history.world.server.watchers() > 0 {
            return Err("a watch was left open".to_owned());
        }
        history.counts.append(&mut history.way.counts());
        Ok(history.counts)
    }

    fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    // --- what happens ---

    async fn operate(&mut self, settings: &Settings) {
        match self.rng.u8(..24) {
            0 => {
                let number = self.rng.usize(..self.informers.len());
                self.observe(number, "handler added late");
            }
            1 => self.remove_observer().await,
            2 => self.add_index(),
            6 | 7 if self.informers.iter().any(|informer| informer.sight.shifts) => self.shift().await,
            3 | 4 if settings.compacts => {
                self.count("compaction");
                let version = self.world.server.resource_version();
                self.trace.say("server", || format!("compacted up to {version}"));
                self.world.server.compact(version);
            }
            5 if settings.outages => {
                let time = Duration::from_millis(self.rng.u64(..120_000));
                self.trace.say("way", || format!("is cut off for {time:?}"));
                self.way.outage(time);
            }
            _ => self.world.write().await,
        }
        let pause = match self.rng.u8(..16) {
            0..7 => 0,
            7..10 => self.rng.u64(..50),
            10..14 => self.rng.u64(..6_000),
            14 => self.rng.u64(..60_000),
            _ => self.rng.u64(..700_000),
        };
        if pause > 0 {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    fn observe(&mut self, number: usize, what: &str) {
        self.count(what);
        let bound = if self.rng.bool() { 1_000 } else { self.rng.usize(1..4) };
        let Some(informer) = self.informers.get_mut(number) else { return };
        let name = format!("{}.{}", informer.name, informer.observers.len());
        self.trace.say(&name, || format!("{what}, with a bound of {bound}"));
        let observer = if self.rng.u8(..3) == 0 {
            let pace = Duration::from_millis(self.rng.u64(1..3_000));
            Observer::polling(&informer.informer, name, bound, pace, &mut self.polls, &self.trace)
        } else {
            Observer::called(&informer.informer, name, bound, &self.trace)
        };
        informer.observers.push(observer);
    }

    async fn remove_observer(&mut self) {
        let number = self.rng.usize(..self.informers.len());
        let Some(observer) = self.informers.get_mut(number).and_then(|informer| informer.observers.last_mut()) else {
            return;
        };
        if observer.remove().await {
            self.trace.say(&observer.name.clone(), || "removed".to_owned());
            self.count("handler removed");
        }
    }

    fn add_index(&mut self) {
        let number = self.rng.usize(..self.informers.len());
        let Some(informer) = self.informers.get_mut(number).filter(|informer| informer.by_app.is_none()) else {
            return;
        };
        informer.by_app = Some(informer.informer.index("app", app));
        self.count("index added");
    }

    /// Other namespaces come into the scopes that change, and some leave them.
    async fn shift(&mut self) {
        let namespace = NAMESPACES[self.rng.usize(..NAMESPACES.len())];
        if self.informers.iter().any(|informer| informer.shift == Shift::Selector) {
            let selected = !self.world.selected().contains(namespace);
            self.world.select_namespace(namespace, selected).await;
            self.count(if selected { "namespace selected" } else { "namespace deselected" });
        }
        let mut counted = Vec::new();
        for informer in &mut self.informers {
            match informer.shift {
                Shift::No => {}
                Shift::Selector => informer.sight.namespaces = Some(self.world.selected().clone()),
                Shift::Set => {
                    let added = informer.set.insert(namespace);
                    if !added {
                        informer.set.remove(namespace);
                    }
                    informer.sight.namespaces = Some(informer.set.names());
                    self.trace.say(&informer.name, || format!("its set is {:?}", informer.set.names()));
                    counted.push(if added { "namespace added to a set" } else { "namespace removed from a set" });
                }
            }
        }
        counted.into_iter().for_each(|what| self.count(what));
    }

    /// Nothing goes wrong any more, and in the end everybody knows everything.
    async fn quiet(&mut self) -> Result<(), String> {
        self.way.be_good();
        self.trace.say("way", || "is good from now on".to_owned());
        self.world.truth.kind_denied = self.way.count_of("fault: 404") > 1;
        self.world.touch_all().await;
        let mut behind = self.behind();
        let mut waited = Duration::ZERO;
        while !behind.is_empty() {
            if waited > QUIET_MAX {
                return Err(format!("still behind after {waited:?} of quiet: {}", behind.join("; ")));
            }
            tokio::time::sleep(LOOK).await;
            waited += LOOK;
            behind = self.behind();
        }
        Ok(())
    }

    /// Who doesn't know everything.
    fn behind(&self) -> Vec<String> {
        let mut behind = Vec::new();
        for Informer { name, sight, informer, observers, .. } in &self.informers {
            let present = self.world.truth.present(sight);
            let held: BTreeMap<_, _> =
                ours(informer).map(|object| (object.key().to_string(), identity(&object).1)).collect();
            if held != present || informer.state() != InformerState::Synced {
                behind.push(format!("{name} ({}): it has {held:?}, not {present:?}", informer.state()));
            }
            for observer in observers.iter().filter(|observer| observer.removed_at().is_none()) {
                let mut known = BTreeMap::new();
                for told in observer.told() {
                    match told.what {
                        What::Added | What::Updated { .. } => known.insert(told.key, told.state.version),
                        What::Deleted | What::Vanished | What::LeftScope => known.remove(&told.key),
                    };
                }
                if known != present {
                    behind.push(format!("{}: it was told of {known:?}, not {present:?}", observer.name));
                }
            }
        }
        behind
    }

    // --- what must be so ---

    async fn verify(&mut self) -> Result<(), String> {
        let mut counts = Counts::new();
        for informer in &self.informers {
            let wrong = |why: String| format!("{}, {:?}: {why}", informer.name, informer.sight);
            self.verify_store(informer).await.map_err(wrong)?;
            verify_index(informer).map_err(wrong)?;
            let present = self.world.truth.present(&informer.sight);
            for observer in &informer.observers {
                let told = observer.told();
                let wrong = |why: String| format!("{}, {:?}: {why}", observer.name, informer.sight);
                if observer.panics() > 0 {
                    return Err(wrong("it panicked".to_owned()));
                }
                let known = self.world.truth.check(&informer.sight, &told).map_err(wrong)?;
                match observer.removed_at() {
                    Some(removed_at) if removed_at < told.len() => {
                        return Err(wrong(format!("it was told {:?} after its removal", &told[removed_at..])));
                    }
                    None if known != present => {
                        return Err(wrong(format!("it was told of {known:?}, and there is {present:?}")));
                    }
                    Some(_) | None => {}
                }
                let left = told.iter().filter(|told| told.what == What::LeftScope).count();
                if left > 0 {
                    *counts.entry("object left the scope".to_owned()).or_default() += left as u64;
                }
                let unseen = told.iter().filter(|told| told.what == What::Vanished).count();
                *counts.entry("event".to_owned()).or_default() += told.len() as u64;
                if unseen > 0 {
                    *counts.entry("deletion unseen".to_owned()).or_default() += unseen as u64;
                }
            }
            let status = informer.informer.status().counters;
            let wrongs = (status.undecodable, status.restarts, status.index_panics);
            if wrongs != (0, 0, 0) {
                return Err(wrong(format!("undecodable, restarts, panics of indexes: {wrongs:?}")));
            }
            for (reason, relists) in &status.relists {
                let reason = serde_json::to_value(reason).unwrap();
                *counts.entry(format!("relist: {}", reason.as_str().unwrap_or(""))).or_default() += relists;
            }
            if status.conflated > 0 {
                *counts.entry("conflated events".to_owned()).or_default() += status.conflated;
            }
            *counts.entry("request failed".to_owned()).or_default() += status.failures;
        }
        for (what, count) in counts {
            *self.counts.entry(what).or_default() += count;
        }
        Ok(())
    }

    /// The store has what the server lists, field by field.
    async fn verify_store(&self, informer: &Informer) -> Result<(), String> {
        let listed = self.world.list(&informer.sight).await;
        let held: BTreeMap<_, _> =
            ours(&informer.informer).map(|object| (object.key().to_string(), bare(value(&object)))).collect();
        let listed: BTreeMap<_, _> = listed.into_iter().map(|(key, object)| (key, bare(object))).collect();
        let truth = self.world.truth.present(&informer.sight);
        if held == listed && held.keys().eq(truth.keys()) {
            return Ok(());
        }
        Err(format!("it holds {}, the server {}, the truth is {truth:?}", json!(held), json!(listed)))
    }
}

fn informers(factory: &InformerFactory, settings: &Settings) -> Vec<Informer> {
    let (kind, plural) = match settings.kind {
        Kind::ConfigMap => ("ConfigMap", "configmaps"),
        Kind::Pod => ("Pod", "pods"),
    };
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", kind), plural);
    let informers = settings.informers.iter().enumerate().map(|(number, (sight, shift))| {
        let name = format!("informer{number}");
        let set = NamespaceSet::new(&name, [""; 0]);
        let scope = match shift {
            Shift::No => match sight.namespaces.as_ref().and_then(|namespaces| namespaces.first()) {
                Some(namespace) => Scope::namespaced(namespace),
                None => Scope::all(),
            },
            Shift::Set => Scope::namespaces(&set),
            Shift::Selector => {
                let selector = NamespaceSelector::new(&name, &format!("{SELECTED}=yes")).expect("a selector");
                Scope::selected_namespaces(&selector)
            }
        };
        // Each is one of its own, also if two see alike.
        let informer = factory.dynamic(resource.clone()).scope(sight.select(scope)).named(&name).full();
        let (sight, shift) = (sight.clone(), *shift);
        Informer { name, sight, shift, set, informer, observers: Vec::new(), by_app: None }
    });
    informers.collect()
}

fn ours(informer: &SharedInformer<DynamicObject>) -> impl Iterator<Item = Cached<DynamicObject>> {
    informer.lister().list_cached().into_iter().filter(is_ours)
}

fn app(object: &DynamicObject) -> Option<String> {
    object.metadata.labels.as_ref()?.get("app").cloned()
}

/// The index finds each object under what it has now, and nothing else.
fn verify_index(informer: &Informer) -> Result<(), String> {
    let Some(by_app) = &informer.by_app else { return Ok(()) };
    let mut indexed: Vec<_> = by_app.values().iter().flat_map(|app| by_app.keys(app)).collect();
    indexed.sort();
    let objects = informer.informer.lister().list();
    let mut keys: Vec<_> = objects.iter().filter(|object| app(object).is_some()).map(|object| key(object)).collect();
    keys.sort();
    let names: Vec<_> = indexed.iter().map(ToString::to_string).collect();
    if names == keys { Ok(()) } else { Err(format!("the index has {names:?}, the store {keys:?}")) }
}

fn key(object: &DynamicObject) -> String {
    let metadata = &object.metadata;
    format!("{}/{}", metadata.namespace.as_deref().unwrap_or(""), metadata.name.as_deref().unwrap_or(""))
}

/// An object without what differs between a list's items and the store's objects.
fn bare(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
