//! The protocol's facts, each as what the state machine says to what happened.

mod list;
mod missing;
mod stream;
mod watch;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A state machine with its clock, which remembers what it said.
struct Run {
    state: State,
    now: Duration,
    output: Output,
    sent: Vec<String>,
    waited: Vec<Duration>,
}

impl Run {
    fn start(policy: Policy) -> Self {
        let mut state = State::new(policy, 1, String::new());
        let output = state.step(Duration::ZERO, Input::Start);
        let mut run = Self { state, now: Duration::ZERO, output, sent: Vec::new(), waited: Vec::new() };
        run.note();
        run
    }

    fn lists() -> Self {
        Self::start(Policy { watch_list: false, ..policy() })
    }

    fn streams() -> Self {
        Self::start(policy())
    }

    /// With lists that ask for the newest state, as they do unless told otherwise.
    fn newest() -> Self {
        Self::start(Policy { read_from_cache: false, watch_list: false, ..policy() })
    }

    /// Lets a server answer each request with the same error until this much time has passed; returns how many requests
    /// that took.
    fn requests_within(&mut self, time: Duration, mut answer: impl FnMut(&mut Self)) -> usize {
        let (end, before) = (self.now + time, self.sent.len());
        let mut steps = 0;
        while self.now < end {
            steps += 1;
            assert!(steps < 10_000, "it's hot: {:?}", &self.sent[self.sent.len() - 10..]);
            if matches!(self.output.next, Next::Wait(_)) {
                self.after_wait();
            } else {
                answer(self);
            }
        }
        self.sent.len() - before
    }

    /// Synced by a list at this resource version, its watch opened.
    fn synced_at(resource_version: &str) -> Self {
        let mut run = Self::lists();
        run.page(resource_version, None);
        run.step(Input::Opened);
        run
    }

    /// Something happens; delays run to their end at once.
    fn step(&mut self, input: Input) -> &mut Self {
        self.output = self.state.step(self.now, input);
        self.note();
        self
    }

    fn note(&mut self) {
        match &self.output.next {
            Next::Send(request) => self.sent.push(show(request)),
            Next::Wait(delay) => self.waited.push(*delay),
            Next::Read | Next::Stop | Next::Check { .. } => {}
        }
    }

    /// Lets the delay run to its end.
    fn after_wait(&mut self) -> &mut Self {
        let Next::Wait(delay) = self.output.next else { panic!("no delay: {:?}", self.output) };
        self.now += delay;
        self.step(Input::WaitOver)
    }

    fn later(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    fn page(&mut self, resource_version: &str, continue_token: Option<&str>) -> &mut Self {
        let continue_token = continue_token.map(str::to_owned);
        self.step(Input::Page { resource_version: resource_version.to_owned(), continue_token })
    }

    fn fail(&mut self, kind: Kind) -> &mut Self {
        self.step(Input::Failed(error(kind)))
    }

    /// A 404, and what looking into it finds.
    fn refuse(&mut self, verdict: Verdict) -> &mut Self {
        self.fail(Kind::NotFound);
        assert_eq!(self.output.next, Next::Check { refused: true });
        self.step(Input::Checked(verdict))
    }

    /// The delay ends with another look, which finds this.
    fn look(&mut self, verdict: Verdict) -> &mut Self {
        self.after_wait();
        assert_eq!(self.output.next, Next::Check { refused: false });
        self.step(Input::Checked(verdict))
    }

    fn change(&mut self, kind: ChangeKind, resource_version: &str) -> &mut Self {
        self.step(Input::Changed { kind, resource_version: resource_version.to_owned() })
    }

    fn end_of_initial_events(&mut self, resource_version: &str) -> &mut Self {
        self.step(Input::Bookmark { resource_version: resource_version.to_owned(), initial_events_end: true })
    }

    fn bookmark(&mut self, resource_version: &str) -> &mut Self {
        self.step(Input::Bookmark { resource_version: resource_version.to_owned(), initial_events_end: false })
    }

    /// Brings it to the next list whatever delays are before it, and says which.
    fn lists_sent(&self) -> Vec<&str> {
        self.sent.iter().map(String::as_str).filter(|sent| sent.starts_with("LIST")).collect()
    }
}

/// As client-go's.
fn policy() -> Policy {
    Policy { page_size: None, read_from_cache: true, watch_list: true, watch_timeout_min: Duration::from_secs(300) }
}

fn error(kind: Kind) -> RequestError {
    RequestError::new(kind, kind.to_string())
}

fn show(request: &Request) -> String {
    match request {
        Request::List { resource_version, limit, continue_token: None } => format!("LIST {resource_version:?} {limit}"),
        Request::List { limit, continue_token: Some(token), .. } => format!("LIST continue {token} {limit}"),
        Request::WatchList { resource_version, .. } => format!("STREAM {resource_version:?}"),
        Request::Watch { resource_version, .. } => format!("WATCH {resource_version:?}"),
    }
}

/// Whatever happens in whatever order, it goes on: it never stops asking, and never asks twice without a delay for
/// what just failed.
#[test]
fn no_order_of_events_stops_it_or_makes_it_spin() {
    let kinds = [
        Kind::Expired,
        Kind::ResourceVersionTooLarge,
        Kind::TooManyRequests,
        Kind::ConnectionRefused,
        Kind::NotFound,
        Kind::Forbidden,
        Kind::Unauthorized,
        Kind::Invalid,
        Kind::Server,
        Kind::Connection,
        Kind::Malformed,
    ];
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut run = [Run::streams, Run::lists, Run::newest][usize::try_from(seed % 3).expect("small")]();
        let mut sent_since_wait = 0;
        for _ in 0..200 {
            match &run.output.next {
                Next::Wait(_) => {
                    sent_since_wait = 0;
                    run.after_wait();
                    continue;
                }
                Next::Send(_) => sent_since_wait += 1,
                Next::Check { .. } => {
                    let verdicts = [
                        missing::no_such_kind(),
                        Verdict::Served,
                        Verdict::Unknown(error(Kind::Server)),
                        Verdict::ServedAs("v2".into()),
                    ];
                    run.step(Input::Checked(verdicts[rng.usize(..verdicts.len())].clone()));
                    continue;
                }
                Next::Read | Next::Stop => {}
            }
            assert!(sent_since_wait < 12, "it spins (seed {seed}): {:?}", run.sent);
            let kind = kinds[rng.usize(..kinds.len())];
            let in_list = matches!(run.state.step, Step::Listing(_));
            match rng.u8(..8) {
                0 if in_list => run.page("5", (rng.bool()).then_some("t")),
                1 if in_list => run.page("6", None),
                0 | 1 => run.step(Input::Opened),
                2 if !in_list => run.change(ChangeKind::Modified, "7"),
                3 if !in_list => run.end_of_initial_events("8"),
                4 if !in_list => run.step(Input::Ended),
                5 if !in_list => run.step(Input::ErrorEvent(error(kind))),
                6 if !in_list => run.step(Input::Broken(error(kind))),
                _ => run.fail(kind),
            };
        }
    }
}
