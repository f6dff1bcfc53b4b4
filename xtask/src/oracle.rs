//! A real Kubernetes control plane on loopback, which answers what the embedded server's answers are compared with.
//!
//! etcd and kube-apiserver; on request kube-controller-manager and kube-scheduler; on request nodes simulated by kwok,
//! on which Pods become Running. The programs are built from Go modules (versions in `peers/kubernetes/`), once.
//!
//! A control plane lives in a directory of its own: one `NAME.log` and `NAME.pid` per program, `control-plane.json` with
//! its ports, and the kubeconfig. Nothing listens elsewhere than on 127.0.0.1.

mod build;
mod control_plane;
mod process;

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use control_plane::{ControlPlane, Options};

const HELP: &str = "\
A real Kubernetes 1.37 control plane on loopback, to compare with

  cargo xtask oracle build                 build its programs (Go 1.26; about ten minutes once, nothing when done)
  cargo xtask oracle start [OPTIONS] DIR   start one that keeps its state in DIR; prints the path of its kubeconfig, with
                                           the contexts admin, alice and bob (the last two may do nothing at first)
      --controllers                        with kube-controller-manager and kube-scheduler
      --nodes N                            and with N simulated nodes, on which Pods become Running
      --default-apis                       serve the APIs that are on by default only, not also alpha and beta ones
  cargo xtask oracle stop DIR              end what was started in DIR; its state stays and can be started again
  cargo xtask oracle kill-apiserver DIR    end the kube-apiserver as a crash would
  cargo xtask oracle start-apiserver DIR   start it again on the same port
  cargo xtask oracle compact DIR           compact etcd at its present revision: older resourceVersions are gone

The programs are kept in ~/.cache/informant-oracle/v1.37.2, or where ORACLE_BIN says. Without Go 1.26, build ends with
exit code 3.";

/// Runs `cargo xtask oracle ARGUMENTS`.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["build"] => build::build(&programs()?),
        ["start", rest @ ..] => {
            let (options, directory) = start_arguments(rest)?;
            let kubeconfig = control_plane::start(&programs()?, directory, options)?;
            println!("{}", kubeconfig.display());
            Ok(())
        }
        ["stop", directory] => ControlPlane::open(Path::new(directory))?.stop(),
        ["kill-apiserver", directory] => ControlPlane::open(Path::new(directory))?.kill_apiserver(),
        ["start-apiserver", directory] => ControlPlane::open(Path::new(directory))?.start_apiserver(&programs()?),
        ["compact", directory] => {
            let revision = ControlPlane::open(Path::new(directory))?.compact()?;
            println!("compacted at {revision}");
            Ok(())
        }
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(Failure::Usage(format!("'oracle {}' isn't one of its commands\n\n{HELP}", words.join(" ")))),
    }
}

/// Where the built programs are kept.
fn programs() -> Result<PathBuf, Failure> {
    if let Some(directory) = std::env::var_os("ORACLE_BIN").filter(|value| !value.is_empty()) {
        return std::path::absolute(&directory).map_err(Failure::file(Path::new(&directory)));
    }
    let home = std::env::var_os("HOME").filter(|value| !value.is_empty()).ok_or_else(|| {
        Failure::Usage("neither ORACLE_BIN nor HOME is set: set ORACLE_BIN to a directory for the programs".to_owned())
    })?;
    Ok(Path::new(&home).join(".cache/informant-oracle").join(format!("v{}", build::VERSION)))
}

fn start_arguments<'a>(mut rest: &[&'a str]) -> Result<(Options, &'a Path), Failure> {
    let mut options = Options::default();
    loop {
        rest = match rest {
            ["--controllers", rest @ ..] => {
                options.controllers = true;
                rest
            }
            ["--nodes", count, rest @ ..] => {
                options.controllers = true;
                options.nodes = count
                    .parse()
                    .map_err(|_| Failure::Usage(format!("--nodes takes a number of nodes, not '{count}'")))?;
                rest
            }
            ["--default-apis", rest @ ..] => {
                options.default_apis = true;
                rest
            }
            [directory] if !directory.starts_with('-') => return Ok((options, Path::new(*directory))),
            other => {
                return Err(Failure::Usage(format!("oracle start doesn't know '{}'\n\n{HELP}", other.join(" "))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_takes_options_before_the_directory() {
        let (options, directory) = start_arguments(&["--nodes", "3", "--default-apis", "d"]).unwrap();
        assert_eq!(options, Options { controllers: true, nodes: 3, default_apis: true });
        assert_eq!(directory, Path::new("d"));
    }

    #[test]
    fn start_refuses_what_it_does_not_know() {
        for wrong in [&["--nodes", "many", "d"][..], &["--node", "d"], &["a", "b"], &[]] {
            assert!(matches!(start_arguments(wrong), Err(Failure::Usage(_))), "{wrong:?}");
        }
    }
}
