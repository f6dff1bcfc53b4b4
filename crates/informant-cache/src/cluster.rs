//! A cluster: where it is and how to speak to it.
//!
//! `kube` reads configuration, credentials and certificates; what's ours is that the client retries nothing by itself.
//! kube's default would retry 429, 503 and 504 up to fifteen times below us, and so hide from the informers what they
//! are to react to.

use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// A Kubernetes cluster to read from and write to. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
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
        let named = |source| ClusterError::Kubeconfig { path: path.to_owned(), source };
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
        let kubeconfig = Kubeconfig::from_yaml(text).map_err(ClusterError::KubeconfigText)?;
        let options = KubeConfigOptions::default();
        Self::from_config(
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(ClusterError::KubeconfigText)?,
        )
    }

    /// A server that wants no credentials, for example `http://127.0.0.1:8001` of `kubectl proxy`.
    ///
    /// # Errors
    /// [`ClusterError::Url`] when `url` has no scheme and host.
    pub fn from_url(url: &str) -> Result<Self, ClusterError> {
        match url.parse::<http::Uri>() {
            Ok(uri) if uri.scheme().is_some() && uri.host().is_some() => Self::from_config(Config::new(uri)),
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
        Ok(Self { client: Client::try_from(config).map_err(ClusterError::Client)? })
    }

    /// A cluster behind a client that exists already.
    ///
    /// When that client retries by itself (kube's default does), a 429, 503 or 504 reaches the informers only after up to
    /// fifteen tries, and their state says `listing` meanwhile.
    pub fn from_client(client: Client) -> Self {
        Self { client }
    }

    /// The client, for requests of your own. Cheap.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The namespace that the configuration names, else `default`.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the client: its configuration holds credentials.
        f.debug_struct("Cluster").field("default_namespace", &self.default_namespace()).finish_non_exhaustive()
    }
}

impl From<Client> for Cluster {
    fn from(client: Client) -> Self {
        Self::from_client(client)
    }
}
