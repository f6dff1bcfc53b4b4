//! Starting a server and a client, each on a processor of its own, and reading what the client found.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::failure::Failure;

/// Where the server runs, and where the clients do.
const SERVER_CORE: &str = "0";
const CLIENT_CORE: &str = "1";

/// The built programs.
pub(super) struct Programs {
    pub(super) rust: PathBuf,
    pub(super) go: Option<PathBuf>,
}

/// Which program a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Rust,
    /// The same on all processors.
    Unpinned,
    /// The same with jemalloc.
    Jemalloc,
    Go,
}

/// A server that's ended on drop.
struct Server {
    child: Child,
    urls: Vec<String>,
}

impl Server {
    fn start(programs: &Programs, arguments: &[String]) -> Result<Self, Failure> {
        let mut child = pinned(SERVER_CORE, &programs.rust)
            .arg("serve")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Failure::file(&programs.rust))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            // An empty line says it as well.
            let _ = BufReader::new(out).read_line(&mut line);
        }
        let urls: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let server = Self { child, urls };
        if server.urls.is_empty() { Err(Failure::Failed("the server doesn't start".to_owned())) } else { Ok(server) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a client on a fresh server. `None` if its program isn't there.
pub(super) fn measure(
    programs: &Programs,
    server: &[String],
    program: Program,
    client: &[String],
) -> Result<Option<Value>, Failure> {
    let server = Server::start(programs, server)?;
    let mut arguments = client.to_vec();
    for (name, url) in ["--url", "--control"].into_iter().zip(&server.urls) {
        arguments.extend([name.to_owned(), url.clone()]);
    }
    client_of(programs, program, false, &arguments)
}

/// Runs a client and reads what it found; with `shared` it isn't held on one processor. `None` if its program isn't there.
pub(super) fn client_of(
    programs: &Programs,
    program: Program,
    shared: bool,
    arguments: &[String],
) -> Result<Option<Value>, Failure> {
    let path = match program {
        Program::Rust | Program::Unpinned => programs.rust.clone(),
        Program::Jemalloc => programs.rust.with_file_name("informant-bench-jemalloc"),
        Program::Go => match &programs.go {
            Some(path) => path.clone(),
            None => return Ok(None),
        },
    };
    let anywhere = shared || program == Program::Unpinned;
    let mut command = if anywhere { Command::new(&path) } else { pinned(CLIENT_CORE, &path) };
    command.args(arguments).env("GOMAXPROCS", "1").stderr(Stdio::inherit());
    let output = command.output().map_err(Failure::file(&path))?;
    let named = |what: &str| Failure::Failed(format!("{} {}: {what}", path.display(), arguments.join(" ")));
    if !output.status.success() {
        return Err(named(&output.status.to_string()));
    }
    serde_json::from_slice(&output.stdout).map(Some).map_err(|error| named(&error.to_string()))
}

/// The program on one processor, where `taskset` is there to hold it.
fn pinned(core: &str, program: &PathBuf) -> Command {
    let mut command = Command::new("taskset");
    if command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        let mut command = Command::new("taskset");
        command.args(["-c", core]).arg(program);
        return command;
    }
    Command::new(program)
}
