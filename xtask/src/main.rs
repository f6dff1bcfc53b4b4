//! Commands for people who work on Informant. `cargo xtask` alone lists them.
//!
//! Nothing here is part of the product: it builds the real control plane that the embedded server is compared with,
//! and runs what must hold before a change lands.

mod bench;
mod ci;
mod failure;
mod http;
mod oracle;
mod protobuf;
mod schemas;
mod sim;
mod wait;

use std::process::ExitCode;

use failure::Failure;

const HELP: &str = "\
Commands for people who work on Informant

  cargo xtask bench [--full]    Informant beside kube-rs and client-go: time, memory, events per second; --help has the rest
  cargo xtask ci [STEP...]      everything that must hold before a change lands, or the named steps; --list names them
  cargo xtask oracle COMMAND    a real Kubernetes control plane on loopback; alone it lists its commands
  cargo xtask protobuf COMMAND  the table by which protobuf bodies are read: write it, or check it with Go's own types
  cargo xtask schemas FILE      write the tables of built-in kinds from the real server that the kubeconfig FILE names
  cargo xtask sim [OPTION...]   the simulation: random histories of informers with random faults; --help names the options";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    match arguments.split_first() {
        Some((command, rest)) => match command.as_str() {
            "bench" => bench::run(rest),
            "ci" => ci::run(rest),
            "oracle" => oracle::run(rest),
            "protobuf" => protobuf::run(rest),
            "schemas" => schemas::run(rest),
            "sim" => sim::run(rest),
            "help" | "--help" | "-h" => {
                println!("{HELP}");
                Ok(())
            }
            other => Err(Failure::Usage(format!("there is no command '{other}'\n\n{HELP}"))),
        },
        None => Err(Failure::Usage(format!("name a command\n\n{HELP}"))),
    }
}
