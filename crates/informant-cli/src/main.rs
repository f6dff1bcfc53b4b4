//! The program `informant`: thin commands over the library.

#![allow(unreachable_pub, reason = "a program has no outside: pub says that another file uses it")]

mod args;
mod changes;
mod clock;
mod commands;
mod connect;
mod descriptions;
mod output;
mod resolve;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    // What the client logs of a failed request, and an informer of its state, the command says itself, and once.
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        "warn,informant_cache::reflector::shown=off,kube_client=off,rustls_platform_verifier=off".into()
    });
    let color = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(color).with_writer(std::io::stderr).init();
    let ended = match cli.command {
        Command::Demo(args) => commands::demo::run(args).await,
        Command::Apiserver(args) => commands::apiserver::run(args).await,
        Command::Watch(args) => commands::watch::run(args).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("informant: {error}");
            ExitCode::FAILURE
        }
    }
}
