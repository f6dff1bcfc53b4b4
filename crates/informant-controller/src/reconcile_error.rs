//! Why a reconcile failed, and whether trying again makes sense.

use std::{error::Error, fmt};

/// The error of a reconcile: any error, and whether it's terminal.
///
/// Every [`std::error::Error`] becomes one by `?` and is retried with the key's backoff. What no retry can mend is made with
/// [`ReconcileError::terminal`]: the key then rests until its next event.
///
/// ```
/// use informant_controller::ReconcileError;
///
/// fn port(text: &str) -> Result<u16, ReconcileError> {
///     text.parse().map_err(ReconcileError::terminal)
/// }
///
/// assert!(port("http").is_err_and(|error| error.is_terminal()));
/// ```
///
/// It isn't a `std::error::Error` itself, so that the conversion can cover all of those.
pub struct ReconcileError {
    source: Box<dyn Error + Send + Sync>,
    terminal: bool,
}

impl ReconcileError {
    /// An error that is retried with the key's backoff. Takes a text, too.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: error.into(), terminal: false }
    }

    /// An error that no retry can mend: it's counted and shown, and the key waits for its next event. Takes a text, too.
    pub fn terminal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: error.into(), terminal: true }
    }

    /// Whether it isn't retried.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The error itself.
    #[must_use]
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.source.as_ref()
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ReconcileError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Display for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&chain(self.source.as_ref()))
    }
}

impl fmt::Debug for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconcileError").field("source", &self.source).field("terminal", &self.terminal).finish()
    }
}

/// An error with its causes, each said once: many errors repeat their cause in their own text.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = said_by(error);
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = said_by(error);
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

/// What an error says itself. kube shows an API server's answer as a whole `Status`; its message says all that a person needs.
fn said_by(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => status.to_string(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("inner: {0}")]
    struct Inner(#[source] std::num::ParseIntError);

    #[test]
    fn an_error_is_shown_with_its_causes_and_none_of_them_twice() {
        let Err(cause) = "x".parse::<u8>() else { panic!("no number") };
        let error = ReconcileError::from(Outer(Inner(cause)));
        assert_eq!(error.to_string(), "outer: inner: invalid digit found in string");
        assert!(!error.is_terminal());
    }

    #[test]
    fn an_answer_of_the_server_is_shown_by_its_message_and_reason() {
        let status = kube::core::Status::failure("pods \"web\" not found", "NotFound").with_code(404);
        let error = ReconcileError::from(kube::Error::Api(Box::new(status)));
        assert_eq!(error.to_string(), "pods \"web\" not found: NotFound");
    }

    /// controller-runtime fact 41.
    #[test]
    fn a_terminal_error_keeps_the_error_that_it_was_made_of() {
        let error = ReconcileError::terminal(Outer(Inner("x".parse::<u8>().unwrap_err())));
        assert!(error.is_terminal());
        assert!(error.get_ref().downcast_ref::<Outer>().is_some());
        assert_eq!(ReconcileError::terminal("no such region").to_string(), "no such region");
    }
}
