//! The state machine together with a server, every interleaving of them within bounds: what can be reached at all.
//!
//! The model is the machine itself, not a copy: a [`World`] holds a [`State`] and obeys its outputs as the driver does.
//! Around it stand a server (objects, a history with a beginning, a kind that may go and come back) and a wire on which
//! things go wrong, as often as the budget allows. Time is cut down to what the machine tells apart: a moment, or long.
//!
//! Checked in every state that can be reached: the machine never waits for nothing, the store never goes back to an older
//! state of an object and never invents one, and once nothing more goes wrong the store becomes what the server has, no
//! delete missed, within a bounded number of steps.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use stateright::{Checker, Model, Property};

use super::*;

/// Everything's age is one of these, when a step is taken.
const MOMENT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(60);
/// The time of every step, after the ages are written back.
const NOW: Duration = Duration::from_secs(1_000);
/// Steps without faults after which the store must be what the server has.
const CATCH_UP: usize = 40;

/// An object's state: the version of its last write, and that of its creation, which stands for its uid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Object {
    version: u64,
    uid: u64,
}

type Objects = BTreeMap<char, Object>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Change {
    version: u64,
    key: char,
    kind: &'static str,
    object: Object,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Server {
    version: u64,
    objects: Objects,
    changes: Vec<Change>,
    /// Changes up to here are forgotten.
    compacted: u64,
    served: bool,
}

/// What is under way between the two.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Wire {
    Waiting,
    Sent(Asked),
    /// A stream; the objects still to come before its end mark, and up to where it has told of changes.
    Stream {
        initial: Option<Vec<char>>,
        version: u64,
    },
}

/// A request, without what doesn't matter to the answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Asked {
    List { version: String, paged: bool, token: Option<String> },
    WatchList { version: String },
    Watch { version: String },
}

#[derive(Debug, Clone)]
struct World {
    machine: State,
    server: Server,
    store: Objects,
    /// The last state of each object that was ever published.
    seen: Objects,
    staged: BTreeMap<char, Option<Object>>,
    wire: Wire,
    budget: Budget,
    /// What should never happen, and did.
    wrong: Option<&'static str>,
}

/// How often what may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Budget {
    writes: u8,
    faults: u8,
    compactions: u8,
    drops: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Write(char),
    Delete(char),
    Compact,
    DropKind,
    ReturnKind,
    /// A long time passes.
    Pass,
    WaitOver,
    /// The server does what it was asked, or sends the next thing on the stream.
    Serve,
    /// The request is answered with an error.
    Refuse(Kind),
    /// The stream ends as it should, breaks off, or brings an error.
    End,
    Break,
    Error(Kind),
    /// The initial events go quiet.
    Overdue,
}

/// The model's bounds, and how the server is.
struct Bounds {
    budget: Budget,
    policy: Policy,
    refusals: Vec<Kind>,
}

impl World {
    fn new(bounds: &Bounds) -> Self {
        let a = Object { version: 2, uid: 2 };
        let server =
            Server { version: 2, objects: Objects::from([('a', a)]), changes: Vec::new(), compacted: 2, served: true };
        let mut world = Self {
            machine: State::new(bounds.policy, 0, String::new()),
            server,
            store: Objects::new(),
            seen: Objects::new(),
            staged: BTreeMap::new(),
            wire: Wire::Waiting,
            budget: bounds.budget,
            wrong: None,
        };
        world.input(Input::Start, &[]);
        world
    }

    /// A step of the machine, and what the driver does about it. `brought` is what a page or an event brought.
    fn input(&mut self, input: Input, brought: &[(char, Option<Object>)]) {
        let output = self.machine.step(NOW, input);
        match output.store {
            StoreAction::Nothing => {}
            StoreAction::Stage => self.staged.extend(brought.iter().copied()),
            StoreAction::Apply => {
                for (key, object) in brought {
                    self.publish(*key, *object);
                }
            }
            StoreAction::Commit => {
                let staged = std::mem::take(&mut self.staged);
                let gone: Vec<char> =
                    self.store.keys().filter(|key| !matches!(staged.get(key), Some(Some(_)))).copied().collect();
                gone.into_iter().for_each(|key| self.publish(key, None));
                for (key, object) in staged {
                    if let Some(object) = object {
                        self.publish(key, Some(object));
                    }
                }
            }
            StoreAction::Discard => self.staged.clear(),
            StoreAction::Clear => {
                self.staged.clear();
                self.store.clear();
            }
        }
        match output.next {
            Next::Read if matches!(self.wire, Wire::Stream { .. }) => {}
            Next::Read => self.wrong = Some("the machine reads where nothing can come"),
            Next::Wait(_) => self.wire = Wire::Waiting,
            Next::Send(request) => self.wire = Wire::Sent(Asked::from(request)),
            Next::Stop => self.wrong = Some("the machine ends"),
            Next::Check { .. } => {
                let verdict = if self.server.served { Verdict::Served } else { Verdict::Absent(Absence::unchecked()) };
                return self.input(Input::Checked(verdict), &[]);
            }
        }
        self.forget_time();
    }

    /// Publishes a state of an object; `None`: it's gone.
    fn publish(&mut self, key: char, object: Option<Object>) {
        let Some(object) = object else {
            self.store.remove(&key);
            return;
        };
        if self.seen.get(&key).is_some_and(|seen| seen.version > object.version) {
            self.wrong = Some("the store went back to an older state");
        }
        let written = self.server.changes.iter().any(|change| change.object == object) || object.version == 2;
        if !written {
            self.wrong = Some("the store holds a state that never was");
        }
        self.seen.insert(key, object);
        self.store.insert(key, object);
    }

    /// Makes two moments alike that the machine can't tell apart, so that there are finitely many.
    fn forget_time(&mut self) {
        self.machine.rng = fastrand::Rng::with_seed(0);
        self.machine.backoff = Backoff::new(FAILURE);
        self.machine.missing_backoff = Backoff::new(MISSING);
        // Past these the counts change nothing.
        self.machine.missing_answers = self.machine.missing_answers.min(2);
        let age = |then: Duration| if NOW.saturating_sub(then) >= LONG { LONG } else { MOMENT };
        self.machine.each_time(|then| *then = NOW.saturating_sub(age(*then)));
    }

    fn pass(&mut self) {
        self.machine.each_time(|then| *then = NOW.saturating_sub(LONG));
    }

    // --- the server ---

    fn write(&mut self, key: char) {
        self.server.version += 1;
        let version = self.server.version;
        let old = self.server.objects.get(&key);
        let (kind, uid) = old.map_or(("ADDED", version), |old| ("MODIFIED", old.uid));
        let object = Object { version, uid };
        self.server.objects.insert(key, object);
        self.server.changes.push(Change { version, key, kind, object });
    }

    fn delete(&mut self, key: char) {
        let Some(old) = self.server.objects.remove(&key) else { return };
        self.server.version += 1;
        let version = self.server.version;
        self.server.changes.push(Change { version, key, kind: "DELETED", object: Object { version, ..old } });
    }

    /// The state at a version, newer changes undone.
    fn objects_at(&self, version: u64) -> Objects {
        let mut objects = self.server.objects.clone();
        for (position, change) in self.server.changes.iter().enumerate().rev() {
            if change.version <= version {
                break;
            }
            let before = self.server.changes[..position].iter().rev().find(|one| one.key == change.key);
            match before {
                Some(before) if before.kind != "DELETED" => objects.insert(change.key, before.object),
                None if change.key == 'a' => objects.insert('a', Object { version: 2, uid: 2 }),
                _ => objects.remove(&change.key),
            };
        }
        objects
    }

    fn serve(&mut self) {
        match self.wire.clone() {
            Wire::Waiting => {}
            Wire::Sent(asked) if !self.server.served => {
                let _ = asked;
                self.input(Input::Failed(error(Kind::NotFound)), &[]);
            }
            Wire::Sent(Asked::List { version, paged, token }) => self.serve_list(&version, paged, token),
            Wire::Sent(Asked::WatchList { version }) => {
                let asked = number(&version);
                if asked > self.server.version {
                    return self.input(Input::Failed(error(Kind::ResourceVersionTooLarge)), &[]);
                }
                let initial = self.server.objects.keys().rev().copied().collect();
                self.wire = Wire::Stream { initial: Some(initial), version: self.server.version };
                self.input(Input::Opened, &[]);
            }
            Wire::Sent(Asked::Watch { version }) => {
                let version = number(&version);
                if version < self.server.compacted {
                    return self.input(Input::Failed(error(Kind::Expired)), &[]);
                }
                self.wire = Wire::Stream { initial: None, version };
                self.input(Input::Opened, &[]);
            }
            Wire::Stream { initial: Some(mut keys), version } => {
                // As of the moment when the stream was opened.
                let at = self.objects_at(version);
                let next = loop {
                    match keys.pop() {
                        Some(key) if at.contains_key(&key) => break Some(key),
                        Some(_) => {}
                        None => break None,
                    }
                };
                match next.and_then(|key| Some((key, *at.get(&key)?))) {
                    Some((key, object)) => {
                        self.wire = Wire::Stream { initial: Some(keys), version };
                        self.changed(ChangeKind::Added, key, object);
                    }
                    None => {
                        self.wire = Wire::Stream { initial: None, version };
                        let resource_version = version.to_string();
                        self.input(Input::Bookmark { resource_version, initial_events_end: true }, &[]);
                    }
                }
            }
            Wire::Stream { initial: None, version } => {
                let next = self.server.changes.iter().find(|change| change.version > version).cloned();
                match next {
                    Some(_) if version < self.server.compacted => {
                        self.input(Input::ErrorEvent(error(Kind::Expired)), &[]);
                    }
                    Some(change) => {
                        self.wire = Wire::Stream { initial: None, version: change.version };
                        let kind = match change.kind {
                            "ADDED" => ChangeKind::Added,
                            "MODIFIED" => ChangeKind::Modified,
                            _ => ChangeKind::Deleted,
                        };
                        self.changed(kind, change.key, change.object);
                    }
                    // A kind that's gone ends its watches once they've told of all deletions.
                    None if !self.server.served => self.input(Input::Ended, &[]),
                    None => {
                        let version = self.server.version;
                        self.wire = Wire::Stream { initial: None, version };
                        let resource_version = version.to_string();
                        self.input(Input::Bookmark { resource_version, initial_events_end: false }, &[]);
                    }
                }
            }
        }
    }

    fn changed(&mut self, kind: ChangeKind, key: char, object: Object) {
        let brought = if kind == ChangeKind::Deleted { None } else { Some(object) };
        let resource_version = object.version.to_string();
        self.input(Input::Changed { kind, resource_version }, &[(key, brought)]);
    }

    /// Pages of one object, the token being `version:last key`.
    fn serve_list(&mut self, asked: &str, paged: bool, token: Option<String>) {
        let (version, after) = match token.as_deref().and_then(|token| token.split_once(':')) {
            Some((version, after)) => (number(version), after.chars().next()),
            None => (self.server.version, None),
        };
        if after.is_some() && version < self.server.compacted {
            return self.input(Input::Failed(error(Kind::Expired)), &[]);
        }
        if number(asked) > self.server.version {
            return self.input(Input::Failed(error(Kind::ResourceVersionTooLarge)), &[]);
        }
        let objects = self.objects_at(version);
        let rest: Vec<(char, Object)> = objects.into_iter().filter(|(key, _)| Some(*key) > after).collect();
        let page = if paged { rest.get(..1).unwrap_or_default() } else { &rest[..] };
        for (key, object) in page {
            self.staged.insert(*key, Some(*object));
        }
        let more = page.len() < rest.len();
        let continue_token = page.last().filter(|_| more).map(|(last, _)| format!("{version}:{last}"));
        self.input(Input::Page { resource_version: version.to_string(), continue_token }, &[]);
    }

    // --- what is checked ---

    /// Nothing more goes wrong: does the store become what the server has?
    fn catches_up(&self) -> bool {
        let mut world = self.clone();
        world.server.served = true;
        for _ in 0..CATCH_UP {
            if world.is_up_to_date() {
                return true;
            }
            world.pass();
            match world.wire {
                Wire::Waiting => world.input(Input::WaitOver, &[]),
                Wire::Sent(_) | Wire::Stream { .. } => world.serve(),
            }
        }
        world.is_up_to_date()
    }

    fn is_up_to_date(&self) -> bool {
        let quiet = matches!(self.wire, Wire::Stream { initial: None, version } if version == self.server.version);
        quiet && self.store == self.server.objects && *self.machine.phase() == Phase::Synced
    }
}

impl State {
    /// Shows every moment that the machine remembers.
    fn each_time(&mut self, mut change: impl FnMut(&mut Duration)) {
        match &mut self.step {
            Step::Streaming { opened, .. } | Step::Watching { opened, .. } => change(opened),
            Step::Waiting(_) | Step::Listing(_) => {}
        }
        self.last_complete.iter_mut().for_each(change);
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        let machine = |world: &Self| format!("{:?}", world.machine);
        (&self.server, &self.store, &self.seen, &self.staged, &self.wire, self.budget, self.wrong)
            == (&other.server, &other.store, &other.seen, &other.staged, &other.wire, other.budget, other.wrong)
            && machine(self) == machine(other)
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        format!("{:?}", self.machine).hash(hasher);
        (&self.server, &self.store, &self.seen, &self.staged, &self.wire, self.budget, self.wrong).hash(hasher);
    }
}

impl From<Request> for Asked {
    fn from(request: Request) -> Self {
        match request {
            Request::List { resource_version, limit, continue_token, .. } => {
                Self::List { version: resource_version, paged: limit > 0, token: continue_token }
            }
            Request::WatchList { resource_version, .. } => Self::WatchList { version: resource_version },
            Request::Watch { resource_version, .. } => Self::Watch { version: resource_version },
        }
    }
}

impl Model for Bounds {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let Budget { writes, faults, compactions, drops } = world.budget;
        if writes > 0 && world.server.served {
            actions.extend([Action::Write('a'), Action::Write('b')]);
            actions.extend(world.server.objects.keys().map(|key| Action::Delete(*key)));
        }
        if compactions > 0 && world.server.compacted < world.server.version {
            actions.push(Action::Compact);
        }
        if drops > 0 && world.server.served {
            actions.push(Action::DropKind);
        }
        if !world.server.served {
            actions.push(Action::ReturnKind);
        }
        match &world.wire {
            Wire::Waiting => actions.push(Action::WaitOver),
            Wire::Sent(_) => {
                actions.push(Action::Serve);
                if faults > 0 {
                    actions.extend(self.refusals.iter().map(|kind| Action::Refuse(*kind)));
                }
            }
            Wire::Stream { initial, .. } => {
                actions.extend([Action::Serve, Action::Pass]);
                if faults > 0 {
                    actions.extend([Action::End, Action::Break]);
                    actions.extend([Kind::Expired, Kind::TooManyRequests, Kind::Server].map(Action::Error));
                    if initial.is_some() {
                        actions.push(Action::Overdue);
                    }
                }
            }
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        match action {
            Action::Write(key) => {
                world.budget.writes -= 1;
                world.write(key);
            }
            Action::Delete(key) => {
                world.budget.writes -= 1;
                world.delete(key);
            }
            Action::Compact => {
                world.budget.compactions -= 1;
                world.server.compacted = world.server.version;
            }
            Action::DropKind => {
                world.budget.drops -= 1;
                for key in ['a', 'b'] {
                    world.delete(key);
                }
                world.server.served = false;
            }
            Action::ReturnKind => world.server.served = true,
            Action::Pass => world.pass(),
            Action::WaitOver => world.input(Input::WaitOver, &[]),
            Action::Serve => world.serve(),
            Action::Refuse(kind) => world.fault(Input::Failed(error(kind))),
            Action::End => world.fault(Input::Ended),
            Action::Break => world.fault(Input::Broken(error(Kind::Connection))),
            Action::Error(kind) => world.fault(Input::ErrorEvent(error(kind))),
            Action::Overdue => world.fault(Input::InitialEventsOverdue),
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("nothing impossible happens", |_, world: &World| world.wrong.is_none()),
            Property::always(
                "once nothing goes wrong any more, the store becomes what the server has",
                |_, world: &World| world.catches_up(),
            ),
            Property::sometimes("it's synced and up to date after a write", |bounds: &Self, world: &World| {
                world.budget.writes < bounds.budget.writes && world.is_up_to_date()
            }),
            Property::sometimes("a delete was seen", |_, world: &World| {
                world.store.is_empty() && world.seen.contains_key(&'a')
            }),
        ];
        if self.budget.drops > 0 {
            properties.push(Property::sometimes("the kind is known to be missing", |_, world: &World| {
                matches!(world.machine.phase(), Phase::Missing(_))
            }));
        }
        properties
    }
}

impl World {
    fn fault(&mut self, input: Input) {
        self.budget.faults -= 1;
        self.input(input, &[]);
    }
}

fn error(kind: Kind) -> RequestError {
    RequestError::new(kind, "as the model wants it")
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

fn check(watch_list: bool, budget: Budget, refusals: &[Kind]) {
    // Both kinds of lists: those after a failed stream may come from the server's cache.
    let read_from_cache = watch_list;
    let policy =
        Policy { watch_list, read_from_cache, page_size: Some(1), watch_timeout_min: Duration::from_secs(300) };
    let bounds = Bounds { budget, policy, refusals: refusals.to_vec() };
    let checked = bounds.checker().threads(2).spawn_bfs().join();
    checked.assert_properties();
    assert!(checked.unique_state_count() > 1_000, "the model explores too little: {}", checked.unique_state_count());
}

const REFUSALS: &[Kind] = &[Kind::Connection, Kind::TooManyRequests, Kind::Forbidden, Kind::Server, Kind::Invalid];

#[test]
fn with_lists_it_never_gets_stuck_and_never_misses_a_delete() {
    check(false, Budget { writes: 2, faults: 2, compactions: 1, drops: 0 }, REFUSALS);
}

#[test]
fn with_streams_it_never_gets_stuck_and_never_misses_a_delete() {
    check(true, Budget { writes: 2, faults: 2, compactions: 1, drops: 0 }, REFUSALS);
}

/// Enough in a row for what counts failures: five watches, three streams.
#[test]
fn faults_in_a_row_never_leave_it_behind_for_ever() {
    check(true, Budget { writes: 1, faults: 5, compactions: 0, drops: 0 }, &[Kind::Server]);
}

#[test]
fn a_kind_that_goes_and_returns_is_emptied_and_filled_again() {
    check(true, Budget { writes: 1, faults: 1, compactions: 1, drops: 1 }, &[Kind::Connection]);
}
