//! `cargo xtask bench`: Informant beside its peers, all in one run on one machine.
//!
//! Each client is a process of its own, on a processor of its own, with a server of its own on another one; nothing else
//! should run meanwhile. The programs are in `bench/` and `peers/client-go/bench`.

mod cluster;
mod machine;
mod plan;
mod process;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use process::Programs;

const HELP: &str = "\
cargo xtask bench [--quick]         20,000 objects beside all peers; prints the tables (under five minutes, without builds)
cargo xtask bench --full            also 100,000 and 1,000,000 objects, other kinds, worst cases, reads, fan-out, churn; writes
                                    bench/RESULTS.md (an hour)
cargo xtask bench --only SECTION    the named sections alone; --list names them. With --full in their full size

Without Go 1.26, client-go's rows are left out.";

/// Runs `cargo xtask bench ARGUMENTS`.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let (mut full, mut only) = (false, Vec::new());
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--quick" => full = false,
            "--full" => full = true,
            "--only" => only.extend(words.next().map(str::to_owned)),
            "--list" => {
                plan::sections(true).iter().for_each(|section| println!("{:<10} {}", section.name, section.title));
                return Ok(());
            }
            "--help" | "-h" | "help" => {
                println!("{HELP}");
                return Ok(());
            }
            other => return Err(Failure::Usage(format!("bench doesn't know '{other}'\n\n{HELP}"))),
        }
    }
    let sections = plan::sections(full);
    if let Some(unknown) = only.iter().find(|name| sections.iter().all(|section| section.name != **name)) {
        return Err(Failure::Usage(format!("there's no section '{unknown}': --list names them")));
    }
    let programs = build()?;
    let mut text = String::new();
    for section in sections.iter().filter(|section| only.is_empty() || only.iter().any(|name| name == section.name)) {
        eprintln!("=== {}", section.title);
        let table = match section.run(&programs) {
            Ok(found) => report::section(section, &found),
            // The real server isn't everywhere.
            Err(failure @ Failure::Missing(_)) => format!("\n## {}\n\nNot measured: {failure}\n", section.title),
            Err(failure) => return Err(failure),
        };
        println!("{table}");
        text.push_str(&table);
    }
    if full && only.is_empty() {
        let path = root().join("bench/RESULTS.md");
        let whole = format!("{}\n{}\n{text}", report::HEAD, machine::describe(&programs));
        fs::write(&path, whole).map_err(Failure::file(&path))?;
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Builds the programs, as a user's would be: in release, without anything for this machine in particular.
fn build() -> Result<Programs, Failure> {
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let words = "build --locked --release --package informant-bench --features jemalloc";
    eprintln!("=== building (minutes, the first time)");
    let status = Command::new(&cargo).args(words.split(' ')).current_dir(root()).status();
    if !status.map_err(Failure::file(&cargo))?.success() {
        return Err(Failure::Failed("the benchmarks can't be built".to_owned()));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let target = std::path::absolute(&target).map_err(Failure::file(&target))?;
    Ok(Programs { rust: target.join("release/informant-bench"), go: build_go(&target) })
}

/// client-go's program; `None` without Go.
fn build_go(target: &Path) -> Option<PathBuf> {
    let program = target.join("peers/client-go-bench");
    let status = Command::new("go")
        .args(["build", "-mod=readonly", "-o"])
        .arg(&program)
        .arg("./bench")
        .current_dir(root().join("peers/client-go"))
        .env("GOWORK", "off")
        .status();
    let built = status.is_ok_and(|status| status.success());
    if !built {
        eprintln!("client-go's program can't be built: its rows are left out");
    }
    built.then_some(program)
}
