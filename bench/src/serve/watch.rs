//! A watch's body: initial events if they're asked for, then what the benchmark has sent.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use hyper::body::Frame;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::render::{self, Form, Pool};
use super::state::{News, State};

struct Watch {
    state: Arc<State>,
    form: Form,
    news: mpsc::UnboundedReceiver<News>,
    doing: Doing,
    pool: Pool,
}

enum Doing {
    Initial { next: usize, version: u64 },
    Waiting,
    Sending { first: u64, next: u64, last: u64, rate: u64, began: Instant },
    Done,
}

/// The body of a watch.
pub(super) fn body(
    state: &Arc<State>,
    form: Form,
    initial: bool,
) -> BoxStream<'static, Result<Frame<Bytes>, Infallible>> {
    let doing = if initial { Doing::Initial { next: 0, version: state.version() } } else { Doing::Waiting };
    let watch = Watch { state: Arc::clone(state), form, news: state.watch(), doing, pool: Pool::default() };
    stream::unfold(watch, |mut watch| async {
        let chunk = watch.next().await?;
        Some((Ok(Frame::data(chunk)), watch))
    })
    .boxed()
}

impl Watch {
    /// The next event, or the next 128 KB of initial ones; `None` when the watch ends.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.doing {
                Doing::Initial { next, version } => {
                    let mut out = self.pool.take();
                    let mut next = next;
                    while next < self.state.corpus.len() && out.len() < 128 << 10 {
                        self.event("ADDED", next, self.state.change_of(next), &mut out);
                        next += 1;
                    }
                    self.doing = Doing::Initial { next, version };
                    if next == self.state.corpus.len() {
                        render::bookmark(self.form, self.state.corpus.kind, version, &mut out);
                        self.doing = Doing::Waiting;
                    }
                    return Some(self.pool.lend(out));
                }
                Doing::Waiting => match self.news.recv().await? {
                    News::Events { after, last, rate } => {
                        let first = after + 1;
                        self.doing = Doing::Sending { first, next: first, last, rate, began: Instant::now() };
                    }
                    News::Expired => {
                        self.doing = Doing::Done;
                        let mut out = self.pool.take();
                        render::expired(self.form, &mut out);
                        return Some(self.pool.lend(out));
                    }
                },
                Doing::Sending { next, last, .. } if next > last => self.doing = Doing::Waiting,
                Doing::Sending { first, next, last, rate, began } => {
                    if let Some(after) = ((next - first) * 1_000_000).checked_div(rate) {
                        let due = began + Duration::from_micros(after);
                        // The timer's step is a millisecond: what's due within it goes at once.
                        if due > Instant::now() {
                            tokio::time::sleep_until(due).await;
                        }
                    }
                    self.doing = Doing::Sending { first, next: next + 1, last, rate, began };
                    let mut out = self.pool.take();
                    self.event("MODIFIED", self.state.changed_object(next), next, &mut out);
                    self.state.send(next);
                    return Some(self.pool.lend(out));
                }
                Doing::Done => return None,
            }
        }
    }

    fn event(&self, what: &str, index: usize, change: u64, out: &mut Vec<u8>) {
        let (template, object) = self.state.corpus.object(index, change);
        render::event(self.form, self.state.corpus.kind, what, template, object, out);
    }
}
