//! `cargo xtask sim`: runs the simulation, many histories or one that's to be looked at.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

const HELP: &str = "\
cargo xtask sim [--histories N] [--from SEED]   run the histories of N seeds (default 10000, from 0) on all processors
cargo xtask sim --seed SEED                     run one history, and print all that happens in it";

/// How many histories are enough for a change to land.
const HISTORIES: u64 = 10_000;

/// What is to be run, as the simulation's environment says it.
type Environment = Vec<(&'static str, u64)>;

/// Runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let environment = environment(arguments)?;
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let command = "test --locked --profile sim --package informant --test simulation";
    let status = Command::new(&cargo)
        .args(command.split(' '))
        .args(["--", "--nocapture", "every_cache_ends"])
        .envs(environment.into_iter().map(|(name, value)| (name, value.to_string())))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .status()
        .map_err(|error| Failure::Failed(format!("'{}' can't be run: {error}", cargo.display())))?;
    if status.success() { Ok(()) } else { Err(Failure::Failed(format!("the simulation ended with {status}"))) }
}

fn environment(arguments: &[String]) -> Result<Environment, Failure> {
    let mut environment = vec![("INFORMANT_SIM_HISTORIES", HISTORIES), ("INFORMANT_SIM_FROM", 0)];
    for pair in arguments.chunks(2) {
        let [option, value] = pair else { return Err(Failure::Usage(HELP.to_owned())) };
        let name = match option.as_str() {
            "--seed" => "INFORMANT_SIM_SEED",
            "--histories" => "INFORMANT_SIM_HISTORIES",
            "--from" => "INFORMANT_SIM_FROM",
            _ => return Err(Failure::Usage(HELP.to_owned())),
        };
        let value = value.parse().map_err(|_| Failure::Usage(format!("{option} wants a number\n\n{HELP}")))?;
        environment.retain(|(known, _)| *known != name);
        environment.push((name, value));
    }
    Ok(environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_replace_the_defaults_and_what_is_none_is_refused() {
        let environment = environment(&words("--from 7 --histories 3")).unwrap();
        assert_eq!(environment, [("INFORMANT_SIM_FROM", 7), ("INFORMANT_SIM_HISTORIES", 3)]);
        for wrong in ["--seed", "--seed x", "--sed 1", "7"] {
            assert!(matches!(super::environment(&words(wrong)), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
