//! What the server knows beside its objects: how often each has changed, who watches, and when what was sent.

use std::sync::Mutex;

use tokio::sync::mpsc;

use crate::corpus::Corpus;
use crate::corpus::template::CHANGED_VERSION;
use crate::measure::now;

/// A prime: successive events are of objects that are far from each other.
const STRIDE: u64 = 7_919;

/// See the module. There's one thread, so the lock is never waited for.
pub(super) struct State {
    pub(super) corpus: Corpus,
    inner: Mutex<Inner>,
}

struct Inner {
    /// The number of each object's last change.
    changes: Vec<u32>,
    /// The number of the last change of all.
    last: u64,
    /// Since the last `expire`: when somebody first asked for the present state.
    listed: Option<u64>,
    watchers: Vec<mpsc::UnboundedSender<News>>,
    /// When each change was sent.
    sent: Vec<u64>,
}

/// What a watch is told.
#[derive(Clone, Copy)]
pub(super) enum News {
    /// Changes to send, after number `after` up to `last`, `rate` a second or as fast as it goes if that's 0.
    Events { after: u64, last: u64, rate: u64 },
    /// Its resource version is too old.
    Expired,
}

impl State {
    pub(super) fn new(corpus: Corpus) -> Self {
        let changes = vec![0; corpus.len()];
        let inner = Inner { changes, last: 0, listed: None, watchers: Vec::new(), sent: vec![0] };
        Self { corpus, inner: Mutex::new(inner) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// The object of a change.
    pub(super) fn changed_object(&self, change: u64) -> usize {
        (change * STRIDE % self.corpus.len().max(1) as u64) as usize
    }

    pub(super) fn change_of(&self, index: usize) -> u64 {
        self.with(|inner| inner.changes.get(index).map_or(0, |change| u64::from(*change)))
    }

    /// The resource version of lists.
    pub(super) fn version(&self) -> u64 {
        CHANGED_VERSION + self.with(|inner| inner.last)
    }

    pub(super) fn watch(&self) -> mpsc::UnboundedReceiver<News> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.with(|inner| inner.watchers.push(sender));
        receiver
    }

    /// Has `count` changes sent to those who watch. Returns the resource version of the last.
    pub(super) fn events(&self, count: u64, rate: u64) -> u64 {
        let (after, last) = self.with(|inner| {
            let after = inner.last;
            inner.last += count;
            inner.sent.resize(inner.last as usize + 1, 0);
            (after, inner.last)
        });
        for change in after + 1..=last {
            let index = self.changed_object(change);
            self.with(|inner| inner.changes[index] = change as u32);
        }
        self.tell(News::Events { after, last, rate });
        CHANGED_VERSION + last
    }

    /// Changes so many of a thousand objects, and lets all watches expire. Returns the resource version of the lists after.
    pub(super) fn expire(&self, permille: u64) -> u64 {
        self.with(|inner| {
            for index in 0..inner.changes.len() {
                if (index as u64 * 7 % 1000) < permille {
                    inner.last += 1;
                    inner.changes[index] = inner.last as u32;
                }
            }
            // So that the new state can be told from the old, also if nothing changed.
            inner.last += 1;
            inner.sent.resize(inner.last as usize + 1, 0);
            inner.listed = None;
        });
        self.tell(News::Expired);
        self.version()
    }

    fn tell(&self, news: News) {
        self.with(|inner| inner.watchers.retain(|watcher| watcher.send(news).is_ok()));
    }

    /// Somebody asks for the present state.
    pub(super) fn listed(&self) {
        self.with(|inner| {
            inner.listed.get_or_insert_with(now);
        });
    }

    pub(super) fn listed_at(&self) -> u64 {
        self.with(|inner| inner.listed.unwrap_or(0))
    }

    /// A change is being sent.
    pub(super) fn send(&self, change: u64) {
        self.with(|inner| inner.sent[change as usize] = now());
    }

    /// When changes were sent, in nanoseconds of the monotonic clock, eight bytes each.
    pub(super) fn sent(&self, from: u64, count: u64) -> Vec<u8> {
        self.with(|inner| {
            let times = inner.sent.iter().skip(from as usize).take(count as usize);
            times.flat_map(|time| time.to_le_bytes()).collect()
        })
    }
}
