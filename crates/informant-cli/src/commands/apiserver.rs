//! `informant apiserver`: the embedded server alone.

use std::path::PathBuf;

use informant::apiserver::{ApiServer, ListenOptions};

use crate::args::ApiserverArgs;
use crate::output::{Error, line};
use crate::{clock, descriptions};

/// Serves until SIGINT or SIGTERM; prints one line when ready.
pub async fn run(args: ApiserverArgs) -> Result<(), Error> {
    let stop = crate::commands::stop_signal()?;
    let server = server();
    let options = ListenOptions::default().port(args.port);
    let options = if args.plain_http { options.plain_http() } else { options };
    let listening = server.listen(options).await?;
    let file = write_kubeconfig(args.kubeconfig_out, &listening.kubeconfig())?;
    line(&format!("informant apiserver ready at {} (kubeconfig: {})", listening.url(), file.path.display()))?;
    stop.await;
    listening.shutdown().await;
    Ok(())
}

/// An API server that may follow an earlier one under the same address: its uids differ from that one's, and its resource
/// versions lie above, so that a client that comes back notices and lists anew.
pub fn server() -> ApiServer {
    let (seconds, nanoseconds) = clock::since_epoch();
    ApiServer::builder()
        .seed(nanoseconds ^ (u64::from(std::process::id()) << 32))
        .first_resource_version(seconds.saturating_mul(1000))
        .descriptions(descriptions::of_built_in_kinds())
        .build()
}

/// A kubeconfig on disk; a temporary one is removed on drop.
pub struct KubeconfigFile {
    /// Where it is.
    pub path: PathBuf,
    temporary: bool,
}

/// Writes the kubeconfig, readable by its owner alone, to `path` or to a fresh file in the system's temporary folder.
pub fn write_kubeconfig(path: Option<PathBuf>, text: &str) -> Result<KubeconfigFile, Error> {
    let temporary = path.is_none();
    let path =
        path.unwrap_or_else(|| std::env::temp_dir().join(format!("informant-{}.kubeconfig", std::process::id())));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
        .map_err(|error| format!("the kubeconfig can't be written to {}: {error}", path.display()))?;
    Ok(KubeconfigFile { path, temporary })
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        if self.temporary {
            // Nothing can be done about a file that has gone already.
            drop(std::fs::remove_file(&self.path));
        }
    }
}
