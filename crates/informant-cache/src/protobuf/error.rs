//! Why bytes can't be read, and where.

use std::fmt;

use super::wire::Broken;
use crate::error::{DecodeError, complaint};

/// Why bytes can't be read, and at which field.
#[derive(Debug)]
pub(crate) struct Error(Box<Place>);

#[derive(Debug)]
struct Place {
    path: String,
    why: String,
}

impl Error {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(Box::new(Place { path: String::new(), why: why.into() }))
    }

    /// The error one level up: below the field `name`.
    pub(crate) fn below(mut self, name: &str) -> Self {
        let path = &mut self.0.path;
        if !path.is_empty() && !path.starts_with('[') {
            path.insert(0, '.');
        }
        path.insert_str(0, name);
        self
    }

    /// The error one level up: in the item at this position.
    pub(crate) fn at(self, position: usize) -> Self {
        self.below(&format!("[{position}]"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { path, why } = &*self.0;
        if path.is_empty() { f.write_str(why) } else { write!(f, "{path}: {why}") }
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        // The text is of the type that's decoded, and may quote the value.
        Self::new(complaint(&message.to_string()))
    }
}

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        Self::new(broken.to_string())
    }
}

impl From<Error> for DecodeError {
    fn from(error: Error) -> Self {
        Self::new(error.to_string())
    }
}
