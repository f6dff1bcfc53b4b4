//! Where the cluster is: a kubeconfig, a URL, or what the surroundings say.

use std::path::Path;

use informant::prelude::Cluster;

use crate::output::{Error, chain};

/// Connects as the command line asks: `--kubeconfig FILE`, `--server URL`, else as [`Cluster::detect`] finds it.
///
/// # Errors
/// When there is no usable configuration; nothing is sent to the server yet.
pub async fn cluster(kubeconfig: Option<&Path>, server: Option<&str>) -> Result<Cluster, Error> {
    let made = match (kubeconfig, server) {
        (Some(file), _) => Cluster::from_kubeconfig_file(file).await,
        (None, Some(url)) => Cluster::from_url(url),
        (None, None) => Cluster::detect().await,
    };
    made.map_err(|error| chain(&error).into())
}
