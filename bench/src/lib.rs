//! What `cargo xtask bench` runs: a server that sends what a kube-apiserver would, and clients that are measured on it.
//!
//! Each client is a process of its own that prints one line of JSON. What isn't Rust is in `peers/client-go`.

pub mod client;
pub mod control;
pub mod corpus;
pub mod discard;
pub mod fill;
pub mod informant;
pub mod kube_rs;
pub mod measure;
pub mod reads;
pub mod serve;
mod wire;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Why a program of the benchmark ended.
pub type Problem = Box<dyn std::error::Error + Send + Sync>;

/// The programs of the benchmark.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    program: Program,
}

#[derive(Debug, Subcommand)]
enum Program {
    /// The server
    Serve(serve::ServeArgs),
    /// An informer of ours
    Informant(client::ClientArgs),
    /// kube-rs's watcher and reflector
    KubeRs(client::ClientArgs),
    /// A client that throws away what it gets
    Discard(client::ClientArgs),
    /// Writes the objects to a real server
    Fill(client::ClientArgs),
    /// Reads of a cache
    Reads(client::ClientArgs),
}

/// Runs the program that the command line names.
#[must_use]
pub fn main() -> ExitCode {
    let ended = match Cli::parse().program {
        Program::Serve(args) => serve::run(&args),
        Program::Informant(args) => client::run(|| informant::run(args)),
        Program::KubeRs(args) => client::run(|| kube_rs::run(args)),
        Program::Discard(args) => client::run(|| discard::run(args)),
        Program::Fill(args) => client::run(|| fill::run(args)),
        Program::Reads(args) => reads::run(&args),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("informant-bench: {problem}");
            ExitCode::FAILURE
        }
    }
}
