//! Who hears of a commit. A reader that is after one name, one label or one namespace isn't woken by the others, so a write
//! costs what the readers that it concerns cost, however many there are.
//!
//! Being woken is a hint: a reader looks for itself. Being left asleep must not make it lose anything, though; so from time
//! to time everybody is woken, long before the history forgets what a sleeper hasn't passed yet.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::label_bits::LabelBits;
use super::{Change, Scope, StoreOptions};
use crate::object::label;
use crate::signal::{Listener, Signal};

/// After so many commits at the latest, everybody is woken.
const MOST_UNHEARD: usize = 1024;

/// What a reader wants to hear of. The narrowest that covers all it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Every commit of the kind.
    Everything,
    /// Commits in one namespace.
    Namespace(String),
    /// Commits of objects of one name.
    Name(String),
    /// Commits of objects that have, or had before, a label with this key and value.
    Label(String, String),
}

/// The readers of one kind, by interest, in an order that's always the same.
#[derive(Debug)]
pub(super) struct News {
    everything: Signal,
    namespaces: BTreeMap<String, Signal>,
    names: BTreeMap<String, Signal>,
    /// By key, then by value.
    labels: BTreeMap<String, BTreeMap<String, Signal>>,
    /// How many entries the maps may have before those without readers are swept out.
    sweep_at: usize,
    /// Commits since everybody was woken.
    unheard: usize,
    woken_at: Instant,
    /// The commit at which everybody was woken last.
    woken_for: u64,
    /// The one before: who was woken for it has had the time to look.
    heard_through: u64,
}

// === impl Interest ===

impl Interest {
    /// The interest of a reader of `scope` whose objects all have `label`, if one is given.
    pub(crate) fn of(scope: &Scope, label: Option<&(String, String)>) -> Self {
        match (&scope.name, label, &scope.namespace) {
            (Some(name), _, _) => Self::Name(name.clone()),
            (None, Some((key, value)), _) => Self::Label(key.clone(), value.clone()),
            (None, None, Some(namespace)) => Self::Namespace(namespace.clone()),
            (None, None, None) => Self::Everything,
        }
    }

    /// The label that a change must have before or after it to be of interest, in short.
    pub(super) fn label_bits(&self) -> LabelBits {
        match self {
            Self::Label(key, value) => LabelBits::of(key, value),
            Self::Everything | Self::Namespace(_) | Self::Name(_) => LabelBits::default(),
        }
    }
}

// === impl News ===

impl Default for News {
    fn default() -> Self {
        Self {
            everything: Signal::default(),
            namespaces: BTreeMap::new(),
            names: BTreeMap::new(),
            labels: BTreeMap::new(),
            sweep_at: 64,
            unheard: 0,
            woken_at: Instant::now(),
            woken_for: 0,
            heard_through: 0,
        }
    }
}

impl News {
    /// A new reader.
    pub(super) fn subscribe(&mut self, interest: Interest) -> Listener {
        self.sweep();
        match interest {
            Interest::Everything => self.everything.listen(),
            Interest::Namespace(namespace) => self.namespaces.entry(namespace).or_default().listen(),
            Interest::Name(name) => self.names.entry(name).or_default().listen(),
            Interest::Label(key, value) => self.labels.entry(key).or_default().entry(value).or_default().listen(),
        }
    }

    /// How many readers there are.
    pub(super) fn readers(&self) -> usize {
        self.signals().map(Signal::listeners).sum()
    }

    /// The signals of those whom a commit concerns, to be given once no lock is held.
    pub(super) fn concerned(&mut self, change: &Change, options: &StoreOptions) -> Vec<Signal> {
        self.unheard += 1;
        let most = MOST_UNHEARD.min(options.history_events / 4);
        let longest: Duration = options.history_age / 4;
        if self.unheard >= most || change.at().saturating_duration_since(self.woken_at) >= longest {
            self.unheard = 0;
            self.woken_at = change.at();
            self.heard_through = std::mem::replace(&mut self.woken_for, change.version());
            return self.everybody();
        }
        let mut concerned = Vec::with_capacity(2);
        concerned.push(&self.everything);
        let (namespace, name) = change.key().split_once('/').unwrap_or(("", change.key()));
        concerned.extend(self.namespaces.get(namespace));
        concerned.extend(self.names.get(name));
        for (key, values) in &self.labels {
            let had = change.old().and_then(|object| label(object, key));
            let has = change.new_object().and_then(|object| label(object, key));
            concerned.extend(had.and_then(|value| values.get(value)));
            concerned.extend(has.filter(|_| has != had).and_then(|value| values.get(value)));
        }
        concerned.into_iter().filter(|signal| signal.listeners() > 0).cloned().collect()
    }

    /// The version up to which no reader has slept through anything: later changes mustn't be forgotten for their age.
    pub(super) fn heard_through(&self) -> u64 {
        self.heard_through
    }

    /// The signals of all readers.
    pub(super) fn everybody(&self) -> Vec<Signal> {
        self.signals().filter(|signal| signal.listeners() > 0).cloned().collect()
    }

    fn signals(&self) -> impl Iterator<Item = &Signal> {
        let narrow = self.namespaces.values().chain(self.names.values());
        let labelled = self.labels.values().flat_map(BTreeMap::values);
        std::iter::once(&self.everything).chain(narrow).chain(labelled)
    }

    /// Drops the entries without readers, when there are twice as many entries as there were the last time.
    fn sweep(&mut self) {
        if self.signals().count() < self.sweep_at {
            return;
        }
        let read = |_: &String, signal: &mut Signal| signal.listeners() > 0;
        self.namespaces.retain(read);
        self.names.retain(read);
        self.labels.retain(|_, values| {
            values.retain(read);
            !values.is_empty()
        });
        self.sweep_at = (self.signals().count() * 2).max(64);
    }
}
