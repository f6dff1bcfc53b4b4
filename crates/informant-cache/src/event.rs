//! What handlers are told: an object was added, updated or deleted.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::key::ObjectKey;
use crate::object::Cached;

/// One change of the store, told after the store shows it.
///
/// For one key a handler sees `Added`, then any number of `Updated`, then `Deleted`, and so on: never an update of an
/// object that wasn't added, never two deletes in a row. An object that was deleted and created again under the same
/// name (its uid differs) is always a `Deleted` and an `Added`, also if the informer learned of both at once.
#[derive(Debug)]
pub enum Event<K> {
    /// The object is new to the handler.
    Added {
        /// The object.
        object: Cached<K>,
        /// Whether it was there before the handler could have seen it come: it's from the informer's first list, or
        /// from the store's content when a late handler was added.
        initial: bool,
    },
    /// The object changed. States between the two may have been missed (while disconnected, or when a slow handler's
    /// backlog was conflated).
    Updated {
        /// The state that this handler was told last.
        old: Cached<K>,
        /// The state now.
        new: Cached<K>,
    },
    /// The object is gone.
    Deleted {
        /// The object's final state, or the last one known: see `final_state`.
        object: Cached<K>,
        /// How much is known about the end.
        final_state: FinalState,
    },
}

/// How much is known about a deleted object's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FinalState {
    /// The server told of the deletion, and the object is its final state. Or the handler's own
    /// [filter](crate::HandlerBuilder::filter) doesn't let the object pass any more, and this is the last state that did.
    Known,
    /// The deletion itself was missed: the object was absent from a new list, or its kind vanished. The object is the
    /// last state known; it may have changed before it was deleted. client-go calls this a tombstone.
    Unknown,
    /// The object may well live on, but left what the informer covers: its namespace isn't chosen any more, or the
    /// informer's filter no longer lets it pass. The object is the last state that was covered.
    OutOfScope,
}

/// The kind of an [`Event`], for logs and predicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// [`Event::Added`].
    Added,
    /// [`Event::Updated`].
    Updated,
    /// [`Event::Deleted`].
    Deleted,
}

// === impl Event ===

impl<K> Event<K> {
    /// The key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        self.cached().key()
    }

    /// The object: the new state of an update, the last known state of a deletion.
    #[must_use]
    pub fn object(&self) -> Arc<K> {
        self.cached().object()
    }

    /// The object before an update. Decoded only when asked for, if the informer's representation decodes on reading.
    #[must_use]
    pub fn old(&self) -> Option<Arc<K>> {
        match self {
            Self::Updated { old, .. } => Some(old.object()),
            Self::Added { .. } | Self::Deleted { .. } => None,
        }
    }

    /// The object as the cache holds it, with its uid and resource version at hand.
    #[must_use]
    pub fn cached(&self) -> &Cached<K> {
        match self {
            Self::Added { object, .. } | Self::Updated { new: object, .. } | Self::Deleted { object, .. } => object,
        }
    }

    /// Whether this is an add from before the handler could have seen the object come.
    #[must_use]
    pub fn is_initial(&self) -> bool {
        matches!(self, Self::Added { initial: true, .. })
    }

    /// Whether nothing changed: it's an update to the very state that the handler was told before, because it asked to be
    /// told of everything [again](crate::HandlerOptions::resync).
    #[must_use]
    pub fn is_resync(&self) -> bool {
        matches!(self, Self::Updated { old, new } if old.is_same(new))
    }

    /// The kind of the event.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Added { .. } => EventKind::Added,
            Self::Updated { .. } => EventKind::Updated,
            Self::Deleted { .. } => EventKind::Deleted,
        }
    }
}

impl<K> Clone for Event<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, initial } => Self::Added { object: object.clone(), initial: *initial },
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Deleted { object, final_state } => {
                Self::Deleted { object: object.clone(), final_state: *final_state }
            }
        }
    }
}

// === impl EventKind ===

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        })
    }
}
