//! Programs that go on running when xtask ends: each has `NAME.pid` and `NAME.log` in the control plane's directory,
//! which is also its working directory. By that a process id is known to be ours and not one that was given out anew.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::failure::Failure;
use crate::wait;

/// How long a program has to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_secs(15);

/// Starts `program` in `directory`, away from the terminal's signals, its output appended to `NAME.log`.
pub(crate) fn start<S: AsRef<OsStr>>(
    directory: &Path,
    name: &str,
    program: &Path,
    arguments: impl IntoIterator<Item = S>,
) -> Result<(), Failure> {
    let log_path = directory.join(format!("{name}.log"));
    let log = File::options().create(true).append(true).open(&log_path).map_err(Failure::file(&log_path))?;
    let errors = log.try_clone().map_err(Failure::file(&log_path))?;
    #[allow(clippy::zombie_processes, reason = "it outlives xtask, and `stop` ends it by its pid file")]
    let child = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(Failure::file(program))?;
    let pid_path = directory.join(format!("{name}.pid"));
    fs::write(&pid_path, child.id().to_string()).map_err(Failure::file(&pid_path))
}

/// Whether the program that was started under this name runs.
pub(crate) fn runs(directory: &Path, name: &str) -> bool {
    pid(directory, name).is_some()
}

/// Sends `signal`, waits until the program has ended, and kills it if it doesn't. Does nothing if it doesn't run.
pub(crate) fn end(directory: &Path, name: &str, signal: Signal) -> Result<(), Failure> {
    for (signal, limit) in [(signal, GRACE), (Signal::KILL, GRACE)] {
        let Some(pid) = pid(directory, name) else { break };
        // It may have ended just now, which is what is wanted.
        let _ = rustix::process::kill_process(pid, signal);
        wait::until(limit, || !runs(directory, name));
    }
    if runs(directory, name) {
        return Err(Failure::Failed(format!("{name} in {} doesn't end", directory.display())));
    }
    match fs::remove_file(directory.join(format!("{name}.pid"))) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::Failed(format!("{name}.pid can't be removed: {error}")))
        }
        _ => Ok(()),
    }
}

/// The last lines of a program's log, for an error message.
pub(crate) fn last_words(directory: &Path, name: &str) -> String {
    let text = fs::read(directory.join(format!("{name}.log"))).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(5)..).unwrap_or_default().join("\n")
}

fn pid(directory: &Path, name: &str) -> Option<Pid> {
    let text = fs::read_to_string(directory.join(format!("{name}.pid"))).ok()?;
    let pid = Pid::from_raw(text.trim().parse().ok()?)?;
    is_ours(directory, pid).then_some(pid)
}

/// A process that has ended but that nobody has waited for has no working directory either, so it counts as ended.
#[cfg(target_os = "linux")]
fn is_ours(directory: &Path, pid: Pid) -> bool {
    let theirs = fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero()));
    matches!((theirs, fs::canonicalize(directory)), (Ok(theirs), Ok(ours)) if theirs == ours)
}

#[cfg(not(target_os = "linux"))]
fn is_ours(_directory: &Path, pid: Pid) -> bool {
    rustix::process::test_kill_process(pid).is_ok()
}
