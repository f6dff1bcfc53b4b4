//! One command, one file.

pub mod apiserver;
pub mod demo;
pub mod watch;

use std::future::Future;

use crate::output::Error;

/// A future that ends at the first SIGINT or SIGTERM. The handlers are in place when this returns, so no signal is missed.
///
/// # Errors
/// When the handlers can't be installed.
pub fn stop_signal() -> Result<impl Future<Output = ()>, Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
