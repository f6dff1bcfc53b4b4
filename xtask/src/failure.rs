//! How a command of xtask fails: one sentence for people, one exit code for scripts.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a command didn't do what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line makes no sense. Exit code 2.
    Usage(String),
    /// Something that the command needs isn't installed, so it couldn't even begin. Exit code 3, by which a script
    /// tells "skipped" from "failed".
    Missing(String),
    /// It was tried and went wrong. Exit code 1.
    Failed(String),
}

impl Failure {
    /// The exit code that stands for this failure.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Missing(_) => 3,
        }
    }

    /// A file operation that failed, with the file's name.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |error| Self::Failed(format!("{path}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Missing(text) | Self::Failed(text) => formatter.write_str(text),
        }
    }
}
