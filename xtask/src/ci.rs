//! `cargo xtask ci`: everything that must hold before a change lands, as named steps, each a command line that can also be
//! typed by hand. A step that fails doesn't keep the later ones from running; the summary at the end names it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::failure::Failure;

/// One thing that is checked.
struct Step {
    name: &'static str,
    what: &'static str,
    /// The words of the command; `cargo` is the cargo that runs xtask, `python` the Python that is there.
    command: &'static [&'static str],
    /// Set for the command.
    environment: &'static [(&'static str, &'static str)],
}

/// In the order in which they find mistakes soonest.
const STEPS: &[Step] = &[
    Step { name: "format", what: "the formatting", command: &["cargo", "fmt", "--all", "--check"], environment: &[] },
    Step {
        name: "lint",
        what: "lints, all of them errors",
        command: &["cargo", "clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        environment: &[],
    },
    Step { name: "test", what: "the README's second command", command: &["cargo", "test"], environment: &[] },
    Step {
        name: "test-xtask",
        what: "the tests of xtask itself",
        command: &["cargo", "test", "--locked", "--package", "xtask"],
        environment: &[],
    },
    Step {
        name: "sim",
        what: "10,000 random histories of informers, with random faults",
        command: &["cargo", "xtask", "sim"],
        environment: &[],
    },
    Step {
        name: "doc",
        what: "the documentation, warnings being errors",
        command: &["cargo", "doc", "--workspace", "--no-deps", "--locked"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    Step {
        name: "demo",
        what: "the README's first command",
        command: &["cargo", "run", "--release", "--", "demo", "--once"],
        environment: &[],
    },
    Step {
        name: "kubectl",
        what: "kubectl on the embedded server",
        command: &["python", "peers/kubectl/run.py"],
        environment: &[],
    },
    Step {
        name: "python",
        what: "the Python client and a kopf operator on the embedded server",
        command: &["python", "peers/python/run.py"],
        environment: &[],
    },
    Step {
        name: "go",
        what: "a client-go informer on the embedded server",
        command: &["python", "peers/go/run.py"],
        environment: &[],
    },
    Step {
        name: "protobuf",
        what: "the decoder of protobuf bodies against Go's own JSON",
        command: &["cargo", "xtask", "protobuf", "check"],
        environment: &[],
    },
    Step {
        name: "compare",
        what: "the embedded server's answers beside a real Kubernetes's",
        command: &["python", "peers/compare/run.py"],
        environment: &[],
    },
    Step {
        name: "cluster",
        what: "the demo, `informant watch` and kubectl's checks on a real Kubernetes",
        command: &["python", "peers/cluster/run.py"],
        environment: &[],
    },
    Step {
        name: "soak",
        what: "informers beside client-go's on a real Kubernetes that is killed, compacted and closed to them",
        command: &["python", "peers/soak/run.py"],
        environment: &[],
    },
];

/// The exit code by which a step's command says that what it needs isn't installed.
const MISSING: i32 = 3;

enum Outcome {
    Passed,
    Skipped,
    Failed(String),
}

/// Runs `cargo xtask ci ARGUMENTS`.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if arguments.iter().any(|argument| argument == "--list") {
        STEPS.iter().for_each(|step| println!("{:<11} {}", step.name, step.what));
        return Ok(());
    }
    let steps = chosen(arguments)?;
    let mut failed = Vec::new();
    let mut summary = Vec::new();
    for step in steps {
        println!("\n=== {}: {}\n    $ {}", step.name, step.what, step.command.join(" "));
        let outcome = perform(step);
        let line = match &outcome {
            Outcome::Passed => format!("{:<11} passed", step.name),
            Outcome::Skipped => format!("{:<11} SKIPPED: what it needs isn't installed", step.name),
            Outcome::Failed(why) => format!("{:<11} FAILED: {why}", step.name),
        };
        println!("=== {line}");
        summary.push(line);
        if matches!(outcome, Outcome::Failed(_)) {
            failed.push(step.name);
        }
    }
    println!("\n{}", summary.join("\n"));
    if failed.is_empty() { Ok(()) } else { Err(Failure::Failed(format!("failed: {}", failed.join(", ")))) }
}

fn chosen(names: &[String]) -> Result<Vec<&'static Step>, Failure> {
    if names.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    let find = |name: &String| {
        STEPS.iter().find(|step| step.name == name).ok_or_else(|| {
            Failure::Usage(format!("there is no step '{name}': 'cargo xtask ci --list' names the steps there are"))
        })
    };
    names.iter().map(find).collect()
}

fn perform(step: &Step) -> Outcome {
    let Some((program, arguments)) = step.command.split_first() else { return Outcome::Passed };
    let program = match *program {
        "cargo" => std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from),
        "python" => PathBuf::from("python3"),
        other => PathBuf::from(other),
    };
    let status = Command::new(&program)
        .args(arguments)
        .envs(step.environment.iter().copied())
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .stdin(Stdio::null())
        .status();
    outcome(&program, status)
}

fn outcome(program: &Path, status: std::io::Result<ExitStatus>) -> Outcome {
    match status {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) if status.code() == Some(MISSING) => Outcome::Skipped,
        Ok(status) => Outcome::Failed(format!("it ended with {status}")),
        Err(error) => Outcome::Failed(format!("'{}' can't be run: {error}", program.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_chosen_by_name_and_all_run_by_default() {
        assert_eq!(chosen(&[]).unwrap().len(), STEPS.len());
        assert_eq!(chosen(&["doc".to_owned()]).unwrap().first().unwrap().name, "doc");
        assert!(matches!(chosen(&["dog".to_owned()]), Err(Failure::Usage(_))));
    }
}
