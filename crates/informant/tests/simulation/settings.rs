//! What a history is like, drawn from its seed.

use std::collections::BTreeSet;
use std::time::Duration;

use informant_apiserver::WatchListSupport;
use informant_cache::Scope;

use crate::truth::Sight;

/// The namespaces that objects live in.
pub(crate) const NAMESPACES: [&str; 2] = ["blue", "red"];
pub(crate) const APPS: [&str; 2] = ["db", "web"];
pub(crate) const PHASES: [&str; 2] = ["Pending", "Running"];
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// Which kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ConfigMap,
    /// Has a field that changes and can be selected by.
    Pod,
}

/// How an informer's namespaces change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shift {
    No,
    /// They are a set that's changed.
    Set,
    /// They are selected by their labels, which change.
    Selector,
}

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) kind: Kind,
    pub(crate) operations: u32,
    pub(crate) server: ServerSettings,
    pub(crate) way: WaySettings,
    pub(crate) watch_list: bool,
    pub(crate) page_size: u32,
    /// Namespace, label and field that each informer selects, and how its namespaces change.
    pub(crate) informers: Vec<(Sight, Shift)>,
    pub(crate) compacts: bool,
    pub(crate) outages: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerSettings {
    pub(crate) history_events: usize,
    pub(crate) bookmark_interval: Duration,
    pub(crate) watch_list: WatchListSupport,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct WaySettings {
    /// How many requests of all get no proper answer.
    pub(crate) refusals: f64,
    /// How many bodies of all don't come whole.
    pub(crate) breaks: f64,
    pub(crate) splits: bool,
    pub(crate) drops_bookmarks: bool,
    pub(crate) denies_kinds: bool,
}

// === impl Settings ===

impl Settings {
    pub(crate) fn draw(rng: &mut fastrand::Rng) -> Self {
        let kind = if rng.u8(..3) == 0 { Kind::Pod } else { Kind::ConfigMap };
        let server = ServerSettings {
            history_events: if rng.u8(..4) == 0 { rng.usize(1..12) } else { 1_000 },
            bookmark_interval: Duration::from_secs(if rng.bool() { 60 } else { rng.u64(1..20) }),
            watch_list: match rng.u8(..8) {
                0 => WatchListSupport::Refused,
                1 => WatchListSupport::WithoutEndMark,
                _ => WatchListSupport::Full,
            },
        };
        let way = WaySettings {
            refusals: [0.0, 0.1, 0.3, 0.6][rng.usize(..4)],
            breaks: [0.0, 0.3, 0.6, 0.9][rng.usize(..4)],
            splits: rng.bool(),
            drops_bookmarks: rng.u8(..10) == 0,
            denies_kinds: rng.u8(..6) == 0,
        };
        Self {
            kind,
            operations: rng.u32(8..36),
            server,
            way,
            watch_list: rng.bool(),
            page_size: rng.u32(..4),
            informers: (0..rng.usize(1..4)).map(|_| sight(kind, rng)).collect(),
            compacts: rng.bool(),
            outages: rng.u8(..3) == 0,
        }
    }
}

fn sight(kind: Kind, rng: &mut fastrand::Rng) -> (Sight, Shift) {
    let one = |from: &[&str], rng: &mut fastrand::Rng| Some(from[rng.usize(..from.len())].to_owned());
    let mut sight = Sight::default();
    let shift = match rng.u8(..9) {
        0 => Shift::Set,
        1 => Shift::Selector,
        _ => Shift::No,
    };
    match shift {
        Shift::Set | Shift::Selector => (sight.namespaces, sight.shifts) = (Some(BTreeSet::new()), true),
        Shift::No if rng.u8(..3) == 0 => {
            sight.namespaces = Some(BTreeSet::from([NAMESPACES[rng.usize(..2)].to_owned()]));
        }
        Shift::No => {}
    }
    match rng.u8(..5) {
        0 | 1 => sight.app = one(&APPS, rng),
        2 if kind == Kind::Pod => sight.phase = one(&PHASES, rng),
        2 => sight.name = one(&NAMES, rng),
        _ => {}
    }
    (sight, shift)
}

// === impl Sight ===

impl Sight {
    /// The field selector, empty if there's none.
    pub(crate) fn fields(&self) -> String {
        let phase = self.phase.iter().map(|phase| format!("status.phase={phase}"));
        let name = self.name.iter().map(|name| format!("metadata.name={name}"));
        phase.chain(name).collect::<Vec<_>>().join(",")
    }

    /// The label selector, empty if there's none.
    pub(crate) fn labels(&self) -> String {
        self.app.as_ref().map_or_else(String::new, |app| format!("app={app}"))
    }

    /// The selectors of a scope.
    pub(crate) fn select(&self, scope: Scope) -> Scope {
        scope.with_labels(self.labels()).with_fields(self.fields())
    }
}
