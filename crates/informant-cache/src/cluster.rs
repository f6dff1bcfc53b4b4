//! A cluster: where it is and how to speak to it.
//!
//! `kube` reads configuration, credentials and certificates; what's ours is that
//! - the client retries nothing by itself: kube's default would retry 429, 503 and 504 up to fifteen times below us, and
//!   so hide from the informers what they are to react to;
//! - its connections are kept alive by TCP, so that a peer that has silently gone is found;
//! - when the server says 401, the client is made anew from its configuration, once for all informers, so that a token
//!   that was rotated takes effect at once.

mod connect;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::time::Instant;

use crate::error::scrub;
use crate::lock::lock;

/// How long a renewed client is used before another 401 has it made anew again: a plugin that hands out tokens may be
/// slow, or ask a person.
const RENEWAL_FLOOR: Duration = Duration::from_secs(60);

/// A Kubernetes cluster to read from and write to. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

struct Inner {
    /// What the client was made of; `None` for a client of somebody else's making.
    config: Option<Config>,
    default_namespace: String,
    /// Lock rank 6.
    link: Mutex<Link>,
    /// Whoever makes the client anew holds it; the others wait for that one instead of doing it too.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Link {
    client: Client,
    /// How often the client was made anew.
    generation: u64,
    /// When that was last tried.
    renewed: Option<Instant>,
}

/// Why there is no cluster to speak to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// Neither a kubeconfig nor a pod's service account was found, or the one found is broken.
    #[error("no cluster was found: set KUBECONFIG, write ~/.kube/config, or run inside a cluster")]
    Detect(#[source] kube::config::InferConfigError),
    /// The kubeconfig can't be used.
    #[error("the kubeconfig {} can't be used", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: kube::config::KubeconfigError,
    },
    /// The kubeconfig's text can't be used.
    #[error("the kubeconfig can't be used")]
    KubeconfigText(#[source] kube::config::KubeconfigError),
    /// The URL is none.
    #[error("'{url}' is no URL of an API server: write for example http://127.0.0.1:8001")]
    Url {
        /// What was given.
        url: String,
    },
    /// A client can't be made of the configuration: a certificate can't be read, say.
    #[error("no client can be made of the cluster's configuration")]
    Client(#[source] kube::Error),
}

impl Cluster {
    /// The cluster that the surroundings name: `KUBECONFIG`, else `~/.kube/config`, else the pod's service account.
    ///
    /// Reads files; sends nothing to the server.
    ///
    /// # Errors
    /// [`ClusterError::Detect`] when there is none, [`ClusterError::Client`] when its certificates or keys are unusable.
    ///
    /// # Cancel safety
    /// Nothing is lost: files are only read.
    pub async fn detect() -> Result<Self, ClusterError> {
        Self::from_config(Config::infer().await.map_err(ClusterError::Detect)?)
    }

    /// The cluster of a kubeconfig file's current context.
    ///
    /// # Errors
    /// [`ClusterError::Kubeconfig`], which names the file, or [`ClusterError::Client`].
    ///
    /// # Cancel safety
    /// Nothing is lost: files are only read.
    pub async fn from_kubeconfig_file(path: impl AsRef<Path>) -> Result<Self, ClusterError> {
        let path = path.as_ref();
        let named = |source| ClusterError::Kubeconfig { path: path.to_owned(), source: scrub::kubeconfig(source) };
        let kubeconfig = Kubeconfig::read_from(path).map_err(named)?;
        Self::from_config(
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(named)?,
        )
    }

    /// The cluster of a kubeconfig's text, as the embedded server hands it out.
    ///
    /// # Errors
    /// [`ClusterError::KubeconfigText`] or [`ClusterError::Client`].
    ///
    /// # Cancel safety
    /// Nothing is lost: files are only read.
    pub async fn from_kubeconfig(text: &str) -> Result<Self, ClusterError> {
        let named = |source| ClusterError::KubeconfigText(scrub::kubeconfig(source));
        let kubeconfig = Kubeconfig::from_yaml(text).map_err(named)?;
        let options = KubeConfigOptions::default();
        Self::from_config(Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(named)?)
    }

    /// A server that wants no credentials, for example `http://127.0.0.1:8001` of `kubectl proxy`.
    ///
    /// # Errors
    /// [`ClusterError::Url`] when `url` isn't one of HTTP or HTTPS with a host.
    pub fn from_url(url: &str) -> Result<Self, ClusterError> {
        let speaks_http = |uri: &http::Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
        match url.parse::<http::Uri>() {
            Ok(uri) if speaks_http(&uri) => Self::from_config(Config::new(uri)),
            _ => Err(ClusterError::Url { url: url.to_owned() }),
        }
    }

    /// A cluster of kube's configuration. Its `default_retry` is switched off.
    ///
    /// # Errors
    /// [`ClusterError::Client`].
    ///
    /// # Panics
    /// Outside a tokio runtime, as any constructor of a `kube::Client` does.
    pub fn from_config(mut config: Config) -> Result<Self, ClusterError> {
        config.default_retry = false;
        let client = connect::client(config.clone()).map_err(|error| ClusterError::Client(scrub::kube(error)))?;
        Ok(Self::new(client, Some(config)))
    }

    /// A cluster behind a client that exists already.
    ///
    /// When that client retries by itself (kube's default does), a 429, 503 or 504 reaches the informers only after up to
    /// fifteen tries, and their state says `listing` meanwhile.
    ///
    /// It isn't made anew after a 401: what it was made of isn't known.
    pub fn from_client(client: Client) -> Self {
        Self::new(client, None)
    }

    fn new(client: Client, config: Option<Config>) -> Self {
        let default_namespace = client.default_namespace().to_owned();
        let link = Mutex::new(Link { client, generation: 0, renewed: None });
        Self { inner: Arc::new(Inner { config, default_namespace, link, renewing: tokio::sync::Mutex::default() }) }
    }

    /// The client, for requests of your own. Cheap. After a 401 another may take its place here, so ask for it anew
    /// rather than keeping it for long.
    pub fn client(&self) -> Client {
        self.link().client
    }

    /// The namespace that the configuration names, else `default`.
    pub fn default_namespace(&self) -> &str {
        &self.inner.default_namespace
    }

    /// Sends a request without a body. If the server doesn't know our credentials, they're read again, and the request is
    /// sent once more.
    ///
    /// Cancel safe: nothing is lost.
    pub(crate) async fn send(&self, request: Request<()>) -> Result<Response<Body>, kube::Error> {
        let link = self.link();
        let answer = link.client.send(request.clone().map(|()| Body::empty())).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        match self.renew(link.generation).await {
            Some(client) => client.send(request.map(|()| Body::empty())).await,
            None => Ok(answer),
        }
    }

    /// A client with fresh credentials, after the one of this generation was refused; `None` if there's no such.
    async fn renew(&self, refused: u64) -> Option<Client> {
        let config = self.inner.config.clone()?;
        let _alone = self.inner.renewing.lock().await;
        let link = self.link();
        if link.generation != refused {
            // Somebody else's 401 came first.
            return Some(link.client);
        }
        if link.renewed.is_some_and(|renewed| renewed.elapsed() < RENEWAL_FLOOR) {
            return None;
        }
        // Noted before, so that a request that's given up meanwhile doesn't have the next one do it again at once.
        lock(&self.inner.link).renewed = Some(Instant::now());
        // It reads files and may run a plugin, which can take its time.
        let made = tokio::task::spawn_blocking(|| connect::client(config)).await;
        let mut link = lock(&self.inner.link);
        link.renewed = Some(Instant::now());
        if let Ok(Ok(client)) = made {
            link.client = client;
            link.generation += 1;
            tracing::info!("the server didn't know the credentials; they were read again");
            return Some(link.client.clone());
        }
        tracing::warn!("the server doesn't know the credentials, and they can't be read again");
        None
    }

    fn link(&self) -> Link {
        lock(&self.inner.link).clone()
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the client: its configuration holds credentials.
        f.debug_struct("Cluster").field("default_namespace", &self.default_namespace()).finish_non_exhaustive()
    }
}

impl From<&Self> for Cluster {
    fn from(cluster: &Self) -> Self {
        cluster.clone()
    }
}

impl From<Client> for Cluster {
    fn from(client: Client) -> Self {
        Self::from_client(client)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use informant_apiserver::scripted::Script;

    use super::*;

    /// One renewal a minute, however many informers are refused and however often.
    #[tokio::test]
    async fn a_storm_of_refusals_makes_the_client_anew_once_a_minute() {
        let mut script = Script::of("v1", "ConfigMap");
        let listening = script.listen().await.unwrap();
        let cluster = Cluster::from_url(&listening.url()).unwrap();
        let refusing = async {
            loop {
                script.request().await.fail(401, "Unauthorized");
            }
        };
        let storm = || async {
            for _ in 0..3 {
                let requests = (0..50).map(|_| cluster.send(Request::get("/api/v1/pods").body(()).unwrap()));
                for answer in futures::future::join_all(requests).await {
                    assert_eq!(answer.unwrap().status(), StatusCode::UNAUTHORIZED);
                }
            }
            cluster.link().generation
        };
        let storms = async {
            assert_eq!(storm().await, 1);
            // The sockets are real, so only this minute is skipped.
            tokio::time::pause();
            tokio::time::advance(RENEWAL_FLOOR).await;
            tokio::time::resume();
            assert_eq!(storm().await, 2);
        };
        tokio::select! {
            () = refusing => {}
            () = storms => {}
        }
    }

    #[tokio::test]
    async fn only_urls_of_http_are_taken() {
        for url in ["http://127.0.0.1:8001", "https://example.org"] {
            assert!(Cluster::from_url(url).is_ok(), "{url}");
        }
        for url in ["ftp://127.0.0.1", "file:///etc/hosts", "127.0.0.1:8001", "localhost", "/", "", "http://"] {
            assert!(matches!(Cluster::from_url(url), Err(ClusterError::Url { .. })), "{url}");
        }
    }
}
