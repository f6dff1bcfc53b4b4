//! The way between informers and server, and all that goes wrong on it.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyDataStream, StreamBody};
use informant_apiserver::{ApiServer, ApiService, scripted};
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::Instant;
use tower::{ServiceExt, service_fn};

use crate::Counts;
use crate::settings::WaySettings;
use crate::trace::Trace;

type Chunks = BoxStream<'static, io::Result<Bytes>>;
type Answer = Response<StreamBody<BoxStream<'static, io::Result<Frame<Bytes>>>>>;

/// Everything that goes wrong, by the names under which it's counted.
pub(crate) const FAULTS: &[&str] = &[
    "fault: refused",
    "fault: reset before the answer",
    "fault: never answered",
    "fault: late",
    "fault: 401",
    "fault: 403",
    "fault: 404",
    "fault: 410",
    "fault: 429",
    "fault: 500",
    "fault: 503",
    "fault: 504",
    "fault: cut by a reset",
    "fault: cut as if all were well",
    "fault: half open",
    "fault: a pause in the body",
    "fault: error event 410",
    "fault: error event 429",
    "fault: error event 500",
    "fault: error event 504",
    "fault: outage",
];

/// The way. Clones are the same.
#[derive(Clone)]
pub(crate) struct Way {
    shared: Arc<Shared>,
}

struct Shared {
    service: ApiService,
    settings: WaySettings,
    bad: AtomicBool,
    rng: Mutex<fastrand::Rng>,
    counts: Mutex<Counts>,
    requests: AtomicU64,
    /// Until when nothing gets through.
    down_until: Mutex<Option<Instant>>,
    /// How many outages there were. Whoever is under way when one begins is cut off.
    outages: watch::Sender<u64>,
    trace: Trace,
}

/// What becomes of a body.
enum Fate {
    Whole,
    /// After so many bytes.
    Cut(usize, Cut),
    /// After so many bytes.
    Pause(usize, Duration),
    /// Instead of a line of a watch.
    Error(usize, u16, &'static str),
}

#[derive(Clone, Copy)]
enum Cut {
    Reset,
    End,
    HalfOpen,
}

// === impl Way ===

impl Way {
    pub(crate) fn new(server: &ApiServer, settings: WaySettings, seed: u64, trace: &Trace) -> Self {
        let shared = Shared {
            service: server.service(),
            settings,
            bad: AtomicBool::new(true),
            rng: Mutex::new(fastrand::Rng::with_seed(seed)),
            counts: Mutex::default(),
            requests: AtomicU64::new(0),
            down_until: Mutex::new(None),
            outages: watch::Sender::new(0),
            trace: trace.clone(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn client(&self) -> kube::Client {
        let shared = Arc::clone(&self.shared);
        let service = service_fn(move |request: Request<Body>| Arc::clone(&shared).pass(request));
        kube::Client::new(service, "default")
    }

    /// From now on nothing new goes wrong.
    pub(crate) fn be_good(&self) {
        self.shared.bad.store(false, Ordering::SeqCst);
        *self.shared.down_until.lock().unwrap() = None;
    }

    /// Cuts everything off for a time.
    pub(crate) fn outage(&self, time: Duration) {
        self.shared.count("fault: outage");
        *self.shared.down_until.lock().unwrap() = Some(Instant::now() + time);
        self.shared.outages.send_modify(|outages| *outages += 1);
    }

    pub(crate) fn counts(&self) -> Counts {
        self.shared.counts.lock().unwrap().clone()
    }

    pub(crate) fn count_of(&self, what: &str) -> u64 {
        self.shared.counts.lock().unwrap().get(what).copied().unwrap_or(0)
    }
}

// === impl Shared ===

impl Shared {
    fn count(&self, what: &str) {
        *self.counts.lock().unwrap().entry(what.to_owned()).or_default() += 1;
    }

    async fn pass(self: Arc<Self>, request: Request<Body>) -> io::Result<Answer> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut rng = self.rng.lock().unwrap().fork();
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        self.say(number, || format!("GET {}", request.uri()));
        if self.down_until.lock().unwrap().is_some_and(|until| Instant::now() < until) {
            self.say(number, || "refused: the server is down".to_owned());
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
        }
        let outage = self.outages.subscribe();
        if let Some(answer) = self.before(number, &mut rng).await {
            return answer;
        }
        let answer = self.service.clone().oneshot(request).await.map_err(io::Error::other)?;
        let (parts, body) = answer.into_parts();
        self.say(number, || format!("answered {}", parts.status));
        let mut chunks = BodyDataStream::new(body).map_err(io::Error::other).boxed();
        if is_watch {
            chunks = lines(chunks);
            if self.settings.drops_bookmarks {
                chunks = without_bookmarks(chunks);
            }
        }
        let fate = self.fate(is_watch, number, &mut rng);
        if let Fate::Error(after, code, reason) = fate {
            chunks = with_error(chunks, after, code, reason);
        }
        if self.settings.splits {
            chunks = split(chunks, rng.fork());
        }
        chunks = match fate {
            Fate::Cut(after, how) => cut(chunks, after, how),
            Fate::Pause(after, time) => pause(chunks, after, time),
            Fate::Whole | Fate::Error(..) => chunks,
        };
        let chunks = until_outage(chunks, outage).map_ok(Frame::data).boxed();
        Ok(Response::from_parts(parts, StreamBody::new(chunks)))
    }

    /// What happens instead of the server's answer, or before it.
    async fn before(&self, number: u64, rng: &mut fastrand::Rng) -> Option<io::Result<Answer>> {
        if !self.bad.load(Ordering::SeqCst) || rng.f64() >= self.settings.refusals {
            return None;
        }
        let codes: &[(u16, &str)] = &[
            (401, "Unauthorized"),
            (403, "Forbidden"),
            (410, "Expired"),
            (429, "TooManyRequests"),
            (500, "InternalError"),
            (503, "ServiceUnavailable"),
            (504, "Timeout"),
            (404, "NotFound"),
        ];
        let name = match rng.u8(..16) {
            0..3 => "fault: refused",
            3..5 => "fault: reset before the answer",
            5 => "fault: never answered",
            6 => "fault: late",
            _ => {
                let known = if self.settings.denies_kinds { codes } else { &codes[..codes.len() - 1] };
                let (code, reason) = known[rng.usize(..known.len())];
                self.count(&format!("fault: {code}"));
                self.say(number, || format!("fault: {code} {reason}"));
                let retry_after = (code == 429 && rng.bool()).then(|| rng.u8(1..40));
                return Some(Ok(failure(code, reason, retry_after)));
            }
        };
        self.count(name);
        self.say(number, || name.to_owned());
        match name {
            "fault: refused" => Some(Err(io::Error::from(io::ErrorKind::ConnectionRefused))),
            "fault: reset before the answer" => Some(Err(io::Error::from(io::ErrorKind::ConnectionReset))),
            "fault: never answered" => std::future::pending().await,
            _ => {
                tokio::time::sleep(Duration::from_millis(rng.u64(..90_000))).await;
                None
            }
        }
    }

    fn fate(&self, is_watch: bool, number: u64, rng: &mut fastrand::Rng) -> Fate {
        if !self.bad.load(Ordering::SeqCst) || rng.f64() >= self.settings.breaks {
            return Fate::Whole;
        }
        // Bodies are a few hundred bytes long, watches grow.
        let longest = if rng.bool() { 400 } else { 4_000 };
        let after = rng.usize(..longest);
        let (name, fate) = match rng.u8(..if is_watch { 12 } else { 8 }) {
            0..3 => ("fault: cut by a reset", Fate::Cut(after, Cut::Reset)),
            3..5 => ("fault: cut as if all were well", Fate::Cut(after, Cut::End)),
            5..7 => ("fault: half open", Fate::Cut(after, Cut::HalfOpen)),
            7 => {
                let time = Duration::from_millis(rng.u64(..90_000));
                ("fault: a pause in the body", Fate::Pause(after, time))
            }
            8 | 9 => ("fault: error event 410", Fate::Error(after, 410, "Expired")),
            10 if rng.bool() => ("fault: error event 429", Fate::Error(after, 429, "TooManyRequests")),
            10 => ("fault: error event 500", Fate::Error(after, 500, "InternalError")),
            _ => ("fault: error event 504", Fate::Error(after, 504, "Timeout")),
        };
        self.count(name);
        self.say(number, || format!("{name} after {after} bytes"));
        fate
    }

    fn say(&self, number: u64, what: impl FnOnce() -> String) {
        self.trace.say("way", || format!("#{number} {}", what()));
    }
}

fn failure(code: u16, reason: &str, retry_after: Option<u8>) -> Answer {
    let body = Bytes::from(scripted::status(code, reason).to_string());
    let mut answer = Response::builder().status(StatusCode::from_u16(code).unwrap());
    if let Some(seconds) = retry_after {
        answer = answer.header("retry-after", seconds.to_string());
    }
    answer.body(StreamBody::new(stream::iter([Ok(Frame::data(body))]).boxed())).unwrap()
}

/// Gives whole lines.
fn lines(chunks: Chunks) -> Chunks {
    let begun = Vec::<u8>::new();
    let lines = stream::unfold((chunks, begun), |(mut chunks, mut begun)| async move {
        loop {
            match chunks.next().await {
                Some(Ok(chunk)) => begun.extend_from_slice(&chunk),
                Some(Err(error)) => return Some((Err(error), (chunks, begun))),
                None if begun.is_empty() => return None,
                None => return Some((Ok(Bytes::from(std::mem::take(&mut begun))), (chunks, begun))),
            }
            if let Some(end) = begun.iter().rposition(|byte| *byte == b'\n') {
                let rest = begun.split_off(end + 1);
                return Some((Ok(Bytes::from(begun)), (chunks, rest)));
            }
        }
    });
    lines.boxed()
}

/// Whole lines without bookmarks.
fn without_bookmarks(lines: Chunks) -> Chunks {
    let kept = lines.map_ok(|lines| {
        let kept =
            lines.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"{\"type\":\"BOOKMARK\""));
        Bytes::from(kept.flatten().copied().collect::<Vec<u8>>())
    });
    kept.boxed()
}

/// Whole lines up to so many bytes, then an error event and the end.
fn with_error(lines: Chunks, after: usize, code: u16, reason: &'static str) -> Chunks {
    let ended = stream::unfold((lines, Some(after)), move |(mut lines, left)| async move {
        let left = left?;
        // The error may come before anything else.
        if left == 0 {
            let error = scripted::event("ERROR", &scripted::status(code, reason));
            return Some((Ok(Bytes::from(error)), (lines, None)));
        }
        let next = lines.next().await?;
        let length = next.as_ref().map_or(0, Bytes::len);
        Some((next, (lines, Some(left.saturating_sub(length)))))
    });
    ended.boxed()
}

/// Splits chunks anywhere.
fn split(chunks: Chunks, mut rng: fastrand::Rng) -> Chunks {
    let pieces = chunks.map_ok(move |mut chunk| {
        let mut pieces = VecDeque::new();
        while !chunk.is_empty() {
            let length = rng.usize(1..=chunk.len());
            pieces.push_back(Ok(chunk.split_to(length)));
        }
        stream::iter(pieces)
    });
    pieces.try_flatten().boxed()
}

/// Ends a body after some bytes: as it should end, as it shouldn't, or not at all.
fn cut(chunks: Chunks, after: usize, how: Cut) -> Chunks {
    let cut = stream::unfold((chunks, Some(after)), move |(mut chunks, left)| async move {
        let left = left?;
        if left == 0 {
            return match how {
                Cut::End => None,
                Cut::Reset => Some((Err(io::Error::from(io::ErrorKind::ConnectionReset)), (chunks, None))),
                Cut::HalfOpen => std::future::pending().await,
            };
        }
        let next = chunks.next().await?.map(|mut chunk| {
            chunk.truncate(left);
            chunk
        });
        let left = left - next.as_ref().map_or(0, Bytes::len);
        Some((next, (chunks, Some(left))))
    });
    cut.boxed()
}

/// Lets time pass after some bytes.
fn pause(chunks: Chunks, after: usize, time: Duration) -> Chunks {
    let paused = stream::unfold((chunks, Some(after)), move |(mut chunks, mut left)| async move {
        if left == Some(0) {
            tokio::time::sleep(time).await;
            left = None;
        }
        let next = chunks.next().await?;
        let length = next.as_ref().map_or(0, Bytes::len);
        Some((next, (chunks, left.map(|left| left.saturating_sub(length)))))
    });
    paused.boxed()
}

/// Breaks off when an outage begins.
fn until_outage(chunks: Chunks, outage: watch::Receiver<u64>) -> Chunks {
    let broken = stream::unfold(Some((chunks, outage)), |state| async move {
        let (mut chunks, mut outage) = state?;
        let next = tokio::select! {
            biased;
            _ = outage.changed() => None,
            next = chunks.next() => Some(next),
        };
        match next {
            None => Some((Err(io::Error::from(io::ErrorKind::ConnectionReset)), None)),
            Some(next) => next.map(|next| (next, Some((chunks, outage)))),
        }
    });
    broken.boxed()
}
