//! A real API server that's filled with Pods, for the one table that has a server as it is.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::failure::Failure;
use crate::{oracle, wait};

use super::process::{Program, Programs, client_of};

/// How many Pods.
const OBJECTS: &str = "20000";

/// Starts one, fills it, gives its kubeconfig to `measure`, and ends it.
pub(super) fn with<T>(programs: &Programs, measure: impl FnOnce(&Path) -> T) -> Result<T, Failure> {
    let directory = std::env::temp_dir().join(format!("informant-bench-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(Failure::file(&directory))?;
    let name = directory.display().to_string();
    let started = oracle::run(&["start", "--default-apis", &name].map(str::to_owned));
    let found = started.and_then(|()| {
        let kubeconfig = directory.join("kubeconfig");
        let words =
            ["fill", "--objects", OBJECTS, "--kubeconfig", &kubeconfig.display().to_string()].map(str::to_owned);
        client_of(programs, Program::Unpinned, false, &words)?;
        // What the writes left to do is done by then.
        wait::until(Duration::from_secs(5), || false);
        Ok(measure(&kubeconfig))
    });
    let stopped = oracle::run(&["stop".to_owned(), name]);
    fs::remove_dir_all(&directory).map_err(Failure::file(&directory))?;
    let found = found?;
    stopped.map(|()| found)
}
