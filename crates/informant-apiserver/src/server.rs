//! The server as its user sees it: built, asked, watched over, shut down.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::controllers::{ControllerOptions, ControllerTask};
use crate::list::WatchListSupport;
use crate::listen::{ListenError, ListenOptions, Listening};
use crate::openapi::Descriptions;
use crate::registry::Registry;
use crate::service::user::{Tokens, User};
use crate::service::{ApiService, Shared};
use crate::store::{Store, StoreOptions};

/// An API server. Cheap to clone; clones are the same server.
///
/// ```
/// # tokio_test_block(async {
/// use informant_apiserver::{ApiServer, ListenOptions};
///
/// let server = ApiServer::builder().seed(7).build();
/// let listening = server.listen(ListenOptions::default()).await?;
/// println!("{}", listening.kubeconfig());
/// listening.shutdown().await;
/// # Ok::<(), informant_apiserver::ListenError>(())
/// # });
/// # fn tokio_test_block(future: impl Future<Output = Result<(), informant_apiserver::ListenError>>) {
/// #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future).unwrap();
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ApiServer {
    shared: Arc<Shared>,
    controllers: Arc<ControllerTask>,
}

/// Options of an [`ApiServer`]; every bound has a default.
#[derive(Debug, Clone)]
#[must_use]
pub struct ApiServerBuilder {
    store: StoreOptions,
    start: Option<Timestamp>,
    max_body_bytes: usize,
    max_object_bytes: usize,
    max_watches: usize,
    tokens: Tokens,
    descriptions: Descriptions,
    controllers: ControllerOptions,
    watch_list: WatchListSupport,
    minor: u32,
}

// === impl ApiServer ===

impl ApiServer {
    /// A builder with the defaults.
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder::default()
    }

    /// The server as a tower service: give it to `kube::Client::new`, or to anything else that sends HTTP requests.
    pub fn service(&self) -> ApiService {
        ApiService::new(Arc::clone(&self.shared), Arc::clone(&self.controllers))
    }

    /// Listens on a socket. Several listeners may serve the same server.
    ///
    /// # Errors
    /// When the address can't be listened on.
    pub async fn listen(&self, options: ListenOptions) -> Result<Listening, ListenError> {
        Listening::start(self.service(), self.shared.tokens.any().to_owned(), options).await
    }

    /// The resource version of the last write of any kind.
    pub fn resource_version(&self) -> u64 {
        self.shared.registry.store().current_rv()
    }

    /// Forgets the history up to a resource version: lists and watches from before are answered with 410 from now on.
    pub fn compact(&self, resource_version: u64) {
        self.shared.registry.store().compact(resource_version);
    }

    /// How many watches are open.
    pub fn watchers(&self) -> usize {
        let store = self.shared.registry.store();
        store.storages().iter().map(|storage| store.watcher_count(storage)).sum()
    }
}

// === impl ApiServerBuilder ===

impl Default for ApiServerBuilder {
    fn default() -> Self {
        Self {
            store: StoreOptions::default(),
            start: None,
            max_body_bytes: 3 * 1024 * 1024,
            max_object_bytes: 3 * 512 * 1024,
            max_watches: 10_000,
            tokens: Tokens::default(),
            descriptions: Descriptions::default(),
            controllers: ControllerOptions::default(),
            watch_list: WatchListSupport::Full,
            minor: 37,
        }
    }
}

impl ApiServerBuilder {
    /// What uids, generated names, addresses and jitter are drawn from. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.store.seed = seed;
        self
    }

    /// The resource version that the store begins with; default 1. A server that takes an earlier one's place under the same
    /// address begins above it: a client that comes back with an old version is then told that it's too old (410) and
    /// lists anew, instead of waiting for a version that lies in this server's future.
    pub fn first_resource_version(mut self, version: u64) -> Self {
        self.store.first_resource_version = version.max(1);
        self
    }

    /// What the server's clock shows when it's built; by default the wall clock's time. From there it follows tokio's
    /// time, which tests can pause.
    pub fn start_time(mut self, start: Timestamp) -> Self {
        self.start = Some(start);
        self
    }

    /// How far the history reaches back that watches and paged lists live on: so many changes of each kind, not older
    /// than this. Default 65,536 and five minutes.
    pub fn history(mut self, events: usize, age: Duration) -> Self {
        self.store.history_events = events;
        self.store.history_age = age;
        self
    }

    /// How far apart the bookmarks of a watch are, give or take a quarter. Default 60 s.
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.store.bookmark_interval = interval;
        self
    }

    /// Longest request body in bytes; longer ones are answered with 413. Default 3 MiB.
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = bytes;
        self
    }

    /// Largest object that is stored, in bytes of its JSON; larger ones are answered with 413. Default 1.5 MiB.
    pub fn max_object_bytes(mut self, bytes: usize) -> Self {
        self.max_object_bytes = bytes;
        self
    }

    /// Most watches at a time; more are answered with 429. Default 10,000.
    pub fn max_watches(mut self, watches: usize) -> Self {
        self.max_watches = watches;
        self
    }

    /// Lets requests in that bring this bearer token, as this user; all others are answered with 401 then. Without any
    /// token, every request is let in as the administrator.
    pub fn token(mut self, token: impl Into<String>, user: User) -> Self {
        self.tokens.add(token.into(), user);
        self
    }

    /// Texts for what `kubectl explain` says of built-in kinds; without them it tells fields and types only.
    pub fn descriptions(mut self, descriptions: Descriptions) -> Self {
        self.descriptions = descriptions;
        self
    }

    /// Which of the server's own controllers run. By default all of them do, from the first request on until the last
    /// handle of the server is dropped.
    pub fn controllers(mut self, controllers: ControllerOptions) -> Self {
        self.controllers = controllers;
        self
    }

    /// Answers as Kubernetes 1.`minor` does where clients can tell: `/version`, and whether the present state can be had as a
    /// stream (`sendInitialEvents`), which 1.33 refuses. From 33 to 37; others count as the nearest. Default 37. The kinds
    /// that are served are those of 1.37 in any case.
    pub fn kubernetes_minor(mut self, minor: u32) -> Self {
        self.minor = minor.clamp(33, 37);
        self.watch_list = if self.minor < 34 { WatchListSupport::Refused } else { WatchListSupport::Full };
        self
    }

    /// How watches are answered that ask for the present state as a stream. Default: in full.
    pub fn watch_list(mut self, support: WatchListSupport) -> Self {
        self.watch_list = support;
        self
    }

    /// The server, ready to be asked. It does no I/O and starts no task.
    pub fn build(self) -> ApiServer {
        let clock = self.start.map_or_else(Clock::system, Clock::starting_at);
        let seed = self.store.seed;
        let registry = Registry::new(Store::new(self.store), clock, seed, self.max_object_bytes);
        ApiServer {
            controllers: Arc::new(ControllerTask::new(self.controllers)),
            shared: Arc::new(Shared {
                registry,
                tokens: self.tokens,
                descriptions: self.descriptions,
                max_body_bytes: self.max_body_bytes,
                watch_permits: Arc::new(Semaphore::new(self.max_watches.min(Semaphore::MAX_PERMITS))),
                seed,
                watch_list: self.watch_list,
                minor: self.minor,
                requests: AtomicU64::new(0),
            }),
        }
    }
}
