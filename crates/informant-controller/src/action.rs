//! What a reconcile is asked, and what it answers.

use std::time::Duration;

use informant_cache::ObjectKey;

/// What is to be reconciled: a key, never an object.
///
/// The object is read from a lister, so that the reconcile sees the latest state and not the one of some event. It may be gone:
/// a deletion leads to a reconcile as any other change does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Request {
    /// Key of the controller's primary object.
    pub key: ObjectKey,
    /// How many times in a row this key has failed before: 0 at first and after each success.
    pub attempt: u32,
}

impl Request {
    /// A first attempt for this key, as for a test of a reconcile function.
    #[must_use]
    pub fn new(key: ObjectKey) -> Self {
        Self { key, attempt: 0 }
    }
}

/// What happens to a key after a reconcile without an error.
///
/// Deliberately exhaustive: a new way to go on is a decision for every caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an action has to be returned from the reconcile"]
pub enum Action {
    /// Nothing until the next event. The key's failures are forgotten.
    Done,
    /// Once more after this time, or at the next event if that's earlier. The key's failures are forgotten.
    RequeueAfter(Duration),
    /// Once more after the key's backoff, which grows as it does for errors: not done, and not an error either.
    Requeue,
}

impl Action {
    /// [`Action::Done`].
    pub fn done() -> Self {
        Self::Done
    }

    /// [`Action::RequeueAfter`]; with a zero time the key is reconciled again at once.
    pub fn requeue_after(delay: Duration) -> Self {
        Self::RequeueAfter(delay)
    }

    /// [`Action::Requeue`].
    pub fn requeue() -> Self {
        Self::Requeue
    }
}
