//! Reading one's own writes: waiting until the cache has followed the server to a resource version.

use std::cmp::Ordering;

use crate::shared_informer::SharedInformer;
use crate::status::InformerState;

/// Why the cache won't reach a resource version, or can't be compared with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitUntilError {
    /// One of the two isn't a number, so there's no telling which is later.
    #[error("resource version {wanted:?} can't be compared with {reached:?}: one of them isn't a number")]
    NotComparable {
        /// What was waited for.
        wanted: String,
        /// Where the cache is.
        reached: String,
    },
    /// The informer isn't started, or ended.
    #[error("informer {informer} {state}: its cache doesn't get any further")]
    NotRunning {
        /// The informer's name.
        informer: String,
        /// What it's doing.
        state: InformerState,
    },
}

impl<K: Send + Sync + 'static> SharedInformer<K> {
    /// The resource version up to which the cache shows everything; empty before it's complete.
    ///
    /// It only grows, but for a server that was set back. With a cache of several namespaces it's that of the one that's
    /// furthest behind.
    #[must_use]
    pub fn last_store_resource_version(&self) -> String {
        self.lister().resource_version()
    }

    /// Waits until the cache shows everything up to a resource version: that of an object that was just written, say.
    /// After it, the lister finds that write or what came of it since, if the object is in the informer's scope.
    ///
    /// Versions are compared as numbers, which Kubernetes promises within one resource. A quiet resource gets there with
    /// the next bookmark of its watch, about a minute at most; so a version of this very resource comes quickly, and one
    /// of another resource may not.
    ///
    /// # Errors
    /// If the versions aren't numbers, or the informer isn't started, has failed or stopped and its cache isn't there yet.
    /// A lost connection is no error: put a timeout around this.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn wait_until(&self, resource_version: &str) -> Result<(), WaitUntilError> {
        let (store, mut state) = (self.store(), self.watch_state());
        let mut progress = store.watch_progress();
        loop {
            // Seen before it's looked at, so that nothing is missed.
            progress.borrow_and_update();
            let reached = store.resource_version();
            if !reached.is_empty() {
                match compare(&reached, resource_version) {
                    Some(Ordering::Less) => {}
                    Some(Ordering::Equal | Ordering::Greater) => return Ok(()),
                    None => {
                        return Err(WaitUntilError::NotComparable { wanted: resource_version.to_owned(), reached });
                    }
                }
            } else if compare(resource_version, resource_version).is_none() {
                return Err(WaitUntilError::NotComparable { wanted: resource_version.to_owned(), reached });
            }
            let ended = |state: &InformerState| {
                use InformerState as State;
                matches!(state, State::NotStarted | State::Failed { .. } | State::Stopped)
            };
            tokio::select! {
                biased;
                _ = progress.changed() => {}
                _ = state.wait_for(ended) => {
                    return Err(WaitUntilError::NotRunning { informer: self.name().to_owned(), state: self.state() });
                }
            }
        }
    }
}

/// Compares resource versions: decimal numbers of any length, without leading zeros.
fn compare(one: &str, other: &str) -> Option<Ordering> {
    let is_number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits && (text == "0" || !text.starts_with('0'))
    };
    (is_number(one) && is_number(other)).then(|| one.len().cmp(&other.len()).then_with(|| one.cmp(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers_or_not_at_all() {
        assert_eq!(compare("9", "10"), Some(Ordering::Less));
        assert_eq!(compare("340282366920938463463374607431768211456", "7"), Some(Ordering::Greater));
        assert_eq!(compare("7", "7"), Some(Ordering::Equal));
        for text in ["", "x", "07", "-1", "1.5"] {
            assert_eq!(compare(text, "7"), None, "{text}");
            assert_eq!(compare("7", text), None, "{text}");
        }
    }
}
