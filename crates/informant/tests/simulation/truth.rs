//! What really happened to each object, from the server's answers to the writes; and what an informer's handler may have
//! been told of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) content: Content,
}

/// What writes change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) value: String,
    pub(crate) app: String,
    pub(crate) phase: String,
}

/// What a selector or a namespace lets an informer see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sight {
    pub(crate) namespaces: Option<BTreeSet<String>>,
    /// Whether the namespaces change in the course of the history.
    pub(crate) shifts: bool,
    pub(crate) app: Option<String>,
    pub(crate) phase: Option<String>,
    pub(crate) name: Option<String>,
}

/// One thing that a handler was told, with what the lister showed at that moment.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) key: String,
    pub(crate) what: What,
    pub(crate) state: State,
    /// Uid and version of the lister's object.
    pub(crate) listed: Option<(String, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Added,
    Updated {
        old: (String, u64),
    },
    Deleted,
    /// Deleted, and the end wasn't seen.
    Vanished,
    /// Its namespace isn't one of the informer's any more.
    LeftScope,
}

/// All states of all objects: per key, by rising version, `None` for its absence.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    keys: BTreeMap<String, Vec<(u64, Option<State>)>>,
    /// Whether a server in trouble may have made an informer believe that its kind is gone: then objects may vanish and
    /// come back unchanged.
    pub(crate) kind_denied: bool,
}

/// What an informer could see of one key: visible states and absences.
struct Timeline<'a> {
    moments: Vec<(u64, Option<&'a State>)>,
}

// === impl State ===

impl State {
    /// Of an object as the server writes it.
    pub(crate) fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
        let content = Content {
            value: text("/metadata/annotations/value"),
            app: text("/metadata/labels/app"),
            phase: text("/status/phase"),
        };
        let version = text("/metadata/resourceVersion").parse().expect("a version is a number");
        Self { uid: text("/metadata/uid"), version, content }
    }
}

// === impl Sight ===

impl Sight {
    fn sees_now(&self, key: &str, state: &State) -> bool {
        let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
        self.namespaces.as_ref().is_none_or(|namespaces| namespaces.contains(namespace)) && self.selects(key, state)
    }

    /// Whether it saw or could have seen it at some time.
    fn sees_ever(&self, key: &str, state: &State) -> bool {
        if self.shifts { self.selects(key, state) } else { self.sees_now(key, state) }
    }

    fn selects(&self, key: &str, state: &State) -> bool {
        let name = key.split_once('/').map_or(key, |(_, name)| name);
        self.app.as_ref().is_none_or(|app| *app == state.content.app)
            && self.phase.as_ref().is_none_or(|phase| *phase == state.content.phase)
            && self.name.as_ref().is_none_or(|wanted| wanted == name)
    }
}

// === impl Truth ===

impl Truth {
    pub(crate) fn wrote(&mut self, key: &str, state: State) {
        self.keys.entry(key.to_owned()).or_default().push((state.version, Some(state)));
    }

    pub(crate) fn deleted(&mut self, key: &str, version: u64) {
        self.keys.entry(key.to_owned()).or_default().push((version, None));
    }

    pub(crate) fn now(&self, key: &str) -> Option<&State> {
        self.keys.get(key)?.last()?.1.as_ref()
    }

    /// Key and version of everything that's in sight now.
    pub(crate) fn present(&self, sight: &Sight) -> BTreeMap<String, u64> {
        let present = self.keys.keys().filter_map(|key| {
            let state = self.now(key).filter(|state| sight.sees_now(key, state))?;
            Some((key.clone(), state.version))
        });
        present.collect()
    }

    /// Holds what a handler was told against the truth; returns what it should know at the end.
    pub(crate) fn check(&self, sight: &Sight, told: &[Told]) -> Result<BTreeMap<String, u64>, String> {
        let mut by_key: BTreeMap<&str, Vec<&Told>> = BTreeMap::new();
        for one in told {
            by_key.entry(&one.key).or_default().push(one);
        }
        let mut known = BTreeMap::new();
        for (key, told) in by_key {
            let timeline = self.timeline(sight, key);
            if let Some(version) = self.check_key(sight, &timeline, &told)? {
                known.insert(key.to_owned(), version);
            }
        }
        Ok(known)
    }

    fn timeline<'a>(&'a self, sight: &Sight, key: &str) -> Timeline<'a> {
        let states = self.keys.get(key).map_or(&[][..], Vec::as_slice);
        let seen = states.iter().map(|(version, state)| {
            let visible = state.as_ref().filter(|state| sight.sees_ever(key, state));
            (*version, visible)
        });
        Timeline { moments: seen.collect() }
    }

    /// Walks along what was told of one key; returns the version that's known at the end.
    fn check_key(&self, sight: &Sight, timeline: &Timeline<'_>, told: &[&Told]) -> Result<Option<u64>, String> {
        // It may have vanished with its kind or its namespace, and come back as it was.
        let returns = self.kind_denied || sight.shifts;
        // What the handler knows, and the version that the next state must be above.
        let (mut known, mut floor): (Option<(String, u64)>, u64) = (None, 0);
        for told in told {
            let (known_now, floor_now) = (known.clone(), floor);
            let wrong = |why: &str| {
                format!(
                    "{why}: {told:?}; known was {known_now:?}, last version {floor_now}, the truth is {:?}",
                    timeline.moments
                )
            };
            let (uid, version) = (&told.state.uid, told.state.version);
            match &told.what {
                What::Added | What::Updated { .. } => {
                    if !timeline.has(&told.state) {
                        return Err(wrong("a state that never was"));
                    }
                    if version <= floor {
                        return Err(wrong("a state that isn't newer"));
                    }
                    match (&told.what, &known) {
                        (What::Added, None) => {}
                        (What::Updated { old }, Some(known)) if old == known && old.0 == *uid => {}
                        _ => return Err(wrong("the event doesn't follow from what was told before")),
                    }
                    let fits = match &told.listed {
                        Some((_, listed)) => *listed >= version,
                        None => returns || timeline.absence_after(version).is_some(),
                    };
                    if !fits {
                        return Err(wrong("the lister was behind the event"));
                    }
                    known = Some((uid.clone(), version));
                    floor = version;
                }
                What::Deleted | What::Vanished | What::LeftScope => {
                    let Some((known_uid, known_version)) = &known else {
                        return Err(wrong("a deletion of what wasn't there"));
                    };
                    if known_uid != uid {
                        return Err(wrong("a deletion of another object"));
                    }
                    let end = if told.what == What::Deleted {
                        let end = timeline.ends(&told.state).filter(|end| end > known_version);
                        Some(end.ok_or_else(|| wrong("an end that never was"))?)
                    } else {
                        if version < *known_version || !timeline.has(&told.state) {
                            return Err(wrong("a last state that never was"));
                        }
                        timeline.absence_after(version)
                    };
                    floor = match end {
                        _ if told.what == What::LeftScope && !sight.shifts => {
                            return Err(wrong("its namespace was never left out"));
                        }
                        _ if returns && told.what != What::Deleted => version - 1,
                        Some(end) => end,
                        None => return Err(wrong("a deletion of what is still there")),
                    };
                    if told.listed.as_ref().is_some_and(|(_, listed)| *listed <= floor) {
                        return Err(wrong("the lister was behind the deletion"));
                    }
                    known = None;
                }
            }
        }
        Ok(known.map(|(_, version)| version))
    }
}

// === impl Timeline ===

impl Timeline<'_> {
    fn has(&self, state: &State) -> bool {
        self.moments.iter().any(|(_, moment)| *moment == Some(state))
    }

    /// The first time after a version at which it wasn't there.
    fn absence_after(&self, version: u64) -> Option<u64> {
        self.moments.iter().find(|(at, state)| *at > version && state.is_none()).map(|(at, _)| *at)
    }

    /// The version at which this state, carrying it, was the last one.
    fn ends(&self, last: &State) -> Option<u64> {
        let end = self.moments.iter().position(|(at, state)| *at == last.version && state.is_none())?;
        let (_, before) = self.moments.get(end.checked_sub(1)?)?;
        before.filter(|before| before.uid == last.uid && before.content == last.content).map(|_| last.version)
    }
}
