//! Which events lead to a reconcile.
//!
//! A predicate keeps keys out of the queue; it never keeps objects out of the cache. It's asked in the handler's task, after the
//! store shows the event.

use std::{fmt, sync::Arc};

use informant_cache::{Event, Metadata};

/// A test of an event. A clone shares the test.
///
/// The `…_changed` predicates look at updates only: an add or a delete passes always.
pub struct Predicate<K> {
    test: Test<K>,
}

type Test<K> = Arc<dyn Fn(&Event<K>) -> bool + Send + Sync>;

impl<K: 'static> Predicate<K> {
    /// Passes the events for which `test` is true. A panic in it is the handler's: caught, counted, and the event is skipped.
    pub fn new(test: impl Fn(&Event<K>) -> bool + Send + Sync + 'static) -> Self {
        Self { test: Arc::new(test) }
    }

    /// Passes the events whose object (the new one of an update, the last known one of a deletion) `test` accepts.
    pub fn object(test: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |event| test(&event.object()))
    }

    /// Whether the event passes.
    #[must_use]
    pub fn passes(&self, event: &Event<K>) -> bool {
        (self.test)(event)
    }

    /// Passes what both pass. The other isn't asked if this one refuses.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) && other.passes(event))
    }

    /// Passes what one of both passes. The other isn't asked if this one passes.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) || other.passes(event))
    }

    /// Passes what this one refuses.
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "it stands beside `and` and `or`, and `!` would hide it")]
    pub fn not(self) -> Self {
        Self::new(move |event| !self.passes(event))
    }

    /// Compares the states before and after an update.
    fn update(differs: impl Fn(&K, &K) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |event| match event {
            Event::Updated { old, new } => differs(&old.object(), &new.object()),
            Event::Added { .. } | Event::Deleted { .. } => true,
        })
    }
}

impl<K: Metadata + 'static> Predicate<K> {
    /// Passes updates that change `metadata.generation`: changes of the spec, not of status or metadata.
    ///
    /// A kind whose CRD has no status subresource changes its generation with its status, too; a Deployment also with
    /// annotations. For a kind without generations no update passes.
    #[must_use]
    pub fn generation_changed() -> Self {
        Self::update(|old, new| old.generation() != new.generation())
    }

    /// Passes updates that change `metadata.resourceVersion`.
    #[must_use]
    pub fn resource_version_changed() -> Self {
        Self::update(|old, new| old.resource_version() != new.resource_version())
    }

    /// Passes updates that change the value of one label, set or remove it.
    #[must_use]
    pub fn label_changed(label: impl Into<String>) -> Self {
        let label = label.into();
        Self::update(move |old, new| old.label(&label) != new.label(&label))
    }

    /// Passes updates that change the value of one annotation, set or remove it.
    #[must_use]
    pub fn annotation_changed(annotation: impl Into<String>) -> Self {
        let annotation = annotation.into();
        Self::update(move |old, new| old.annotation(&annotation) != new.annotation(&annotation))
    }

    /// Passes updates that begin a deletion that waits for finalizers. [`Predicate::generation_changed`] passes them as well,
    /// since a server raises the generation then.
    #[must_use]
    pub fn deletion_began() -> Self {
        Self::update(|old, new| !old.is_deleting() && new.is_deleting())
    }
}

impl<K: kube::Resource + 'static> Predicate<K> {
    /// Passes updates that change any label.
    #[must_use]
    pub fn labels_changed() -> Self {
        Self::update(|old, new| old.meta().labels != new.meta().labels)
    }

    /// Passes updates that change any annotation.
    #[must_use]
    pub fn annotations_changed() -> Self {
        Self::update(|old, new| old.meta().annotations != new.meta().annotations)
    }
}

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        Self { test: Arc::clone(&self.test) }
    }
}

impl<K> fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predicate").finish_non_exhaustive()
    }
}
