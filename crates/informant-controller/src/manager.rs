//! The manager: one program's informers, controllers and whatever else runs beside them, started in order and stopped in reverse.
//!
//! Building one does no I/O and spawns nothing; [`Manager::run`] does, and when it returns nothing of it is left running.

mod error;
mod handle;
mod run;

use std::{collections::BTreeMap, fmt, future::Future, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use informant_cache::{Cluster, InformerFactory, SharedInformer};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

pub use self::{error::ManagerError, handle::ManagerHandle};
use crate::{Controller, katalog::Check, task_set::BoxError};

/// What controller-runtime allows for a stop.
const GRACE_PERIOD: Duration = Duration::from_secs(30);

/// Runs controllers and what they need.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use informant_cache::Lister;
/// use informant_controller::{Action, Controller, Manager, ReconcileError, Request};
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
/// use tokio_util::sync::CancellationToken;
///
/// struct Context {
///     deployments: Lister<Deployment>,
/// }
///
/// async fn reconcile(context: Arc<Context>, request: Request) -> Result<Action, ReconcileError> {
///     let Some(deployment) = context.deployments.get(&request.key) else { return Ok(Action::done()) };
///     println!("{} is at generation {:?}", request.key, deployment.metadata.generation);
///     Ok(Action::done())
/// }
///
/// # async fn main_of_the_program(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let manager = Manager::new(client);
/// let context = Arc::new(Context { deployments: manager.informer::<Deployment>().lister() });
/// manager
///     .serve("127.0.0.1:8080")
///     .stop_on_signals()
///     .controller(Controller::of::<Deployment>("deployments").owns::<Pod>().workers(2).reconcile(context, reconcile))
///     .run(CancellationToken::new())
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Start: the pages of [`serve`](Manager::serve), the informers, the controllers and runnables. Each controller's workers start when its
/// own informers and handlers are synced, so one that waits for a missing CRD holds up no other; each runnable when all informers are.
/// Stop: controllers and runnables, the informers, the pages. A running reconcile is waited for; what is queued is given up, as the next
/// start lists everything anew.
#[must_use = "a manager does nothing until it's run"]
pub struct Manager {
    factory: InformerFactory,
    application: (String, String),
    address: Option<String>,
    controllers: Vec<Controller>,
    runnables: Vec<Runnable>,
    health_checks: BTreeMap<String, Check>,
    ready_checks: BTreeMap<String, Check>,
    /// `None`: as long as it takes.
    grace: Option<Duration>,
    signals: bool,
    handle: handle::Publisher,
}

/// Something else that runs while the manager does.
struct Runnable {
    name: String,
    start: Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, Result<(), BoxError>> + Send>,
}

impl Manager {
    /// A manager whose informers use this [`Cluster`] or [`kube::Client`], with a factory of its own in default settings.
    pub fn new(cluster: impl Into<Cluster>) -> Self {
        Self::with_factory(InformerFactory::new(cluster))
    }

    /// A manager that starts this factory, if nobody has, and stops it.
    pub fn with_factory(factory: InformerFactory) -> Self {
        Self {
            factory,
            application: ("informant".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            address: None,
            controllers: Vec::new(),
            runnables: Vec::new(),
            health_checks: BTreeMap::new(),
            ready_checks: BTreeMap::new(),
            grace: Some(GRACE_PERIOD),
            signals: false,
            handle: handle::Publisher::default(),
        }
    }

    /// The factory, for informers beside those of the controllers. They're started, waited for and stopped with the manager.
    #[must_use]
    pub fn factory(&self) -> &InformerFactory {
        &self.factory
    }

    /// The informer of a typed resource in all namespaces: the same one that a controller of that type uses.
    #[must_use]
    pub fn informer<K>(&self) -> SharedInformer<K>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.factory.informer().full()
    }

    /// Name and version of the program, for `/katalog`.
    pub fn application(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.application = (name.into(), version.into());
        self
    }

    /// Serves `/healthz`, `/readyz`, `/metrics` and `/katalog` at this address, as in `127.0.0.1:8080`. With port 0 the system chooses
    /// one, which [`ManagerHandle::address`] tells. Nothing is served by default. There's no authentication and no TLS.
    pub fn serve(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Adds a controller. The handlers are added to its informers when the manager starts to run.
    pub fn controller(mut self, controller: Controller) -> Self {
        self.controllers.push(controller);
        self
    }

    /// Adds a task that starts once all informers are synced and ends when its token is cancelled. If it returns `Ok` before that, the
    /// manager goes on without it; an error or a panic stops the manager.
    pub fn runnable<F, Fut, E>(mut self, name: impl Into<String>, start: F) -> Self
    where
        F: FnOnce(CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        let start = Box::new(move |stop| async move { start(stop).await.map_err(Into::into) }.boxed());
        self.runnables.push(Runnable { name: name.into(), start });
        self
    }

    /// Adds a check to `/healthz`, which says whether the program has to be restarted. `Err` is the reason why it fails. It's called for
    /// each request and mustn't block. Of one name the last counts.
    pub fn health_check(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.health_checks.insert(name.into(), Arc::new(check));
        self
    }

    /// Adds a check to `/readyz`, which says whether the program can serve, as [`health_check`](Self::health_check) does.
    pub fn ready_check(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.ready_checks.insert(name.into(), Arc::new(check));
        self
    }

    /// How long a stop may take. Default: 30 s. What still runs then is aborted and named in the error. With zero nothing is waited for,
    /// and that's no error.
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// A stop takes as long as it takes.
    pub fn without_grace_period(mut self) -> Self {
        self.grace = None;
        self
    }

    /// Stops on SIGINT and SIGTERM as well. A signal during a stop ends the waiting: what still runs is aborted, and [`Manager::run`]
    /// returns [`ManagerError::StopForced`].
    ///
    /// From the first such run on the process handles these signals itself: when the manager has returned, Ctrl-C no longer ends it.
    pub fn stop_on_signals(mut self) -> Self {
        self.signals = true;
        self
    }

    /// Tells of the manager from outside, before, while and after it runs.
    #[must_use]
    pub fn handle(&self) -> ManagerHandle {
        self.handle.handle()
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("controllers", &self.controllers).finish_non_exhaustive()
    }
}
