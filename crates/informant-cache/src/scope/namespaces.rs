//! Namespaces that are chosen at run time: by name, or by their labels.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tokio::sync::watch;

use crate::selector::{ParseSelectorError, Selector};

/// A set of namespaces that can change while informers run. A clone is the same set; two sets are equal if they're the
/// same, not if they hold the same.
#[derive(Clone)]
pub struct NamespaceSet {
    inner: Arc<Set>,
}

struct Set {
    /// As informers with this scope are called.
    name: String,
    names: watch::Sender<BTreeSet<String>>,
}

/// A label selector on namespaces that can change while informers run. A clone is the same selector; two are equal if
/// they're the same, not if they select the same.
#[derive(Clone)]
pub struct NamespaceSelector {
    inner: Arc<Selection>,
}

struct Selection {
    /// As informers with this scope are called.
    name: String,
    selector: watch::Sender<Selector>,
}

// === impl NamespaceSet ===

impl NamespaceSet {
    /// A set of these namespaces. The name is what informers with this scope are called by, as in
    /// `pods/v1 in the namespaces of "tenants"`.
    #[must_use]
    pub fn new<N: Into<String>>(name: impl Into<String>, namespaces: impl IntoIterator<Item = N>) -> Self {
        let names = watch::Sender::new(namespaces.into_iter().map(Into::into).collect());
        Self { inner: Arc::new(Set { name: name.into(), names }) }
    }

    /// Adds a namespace; false if it's there already. It returns at once: informers with this scope begin to list it.
    pub fn insert(&self, namespace: impl Into<String>) -> bool {
        let namespace = namespace.into();
        self.inner.names.send_if_modified(|names| names.insert(namespace))
    }

    /// Removes a namespace; false if it isn't there. It returns at once: informers with this scope forget it.
    pub fn remove(&self, namespace: &str) -> bool {
        self.inner.names.send_if_modified(|names| names.remove(namespace))
    }

    /// Replaces the whole set. What's in both isn't touched.
    pub fn replace<N: Into<String>>(&self, namespaces: impl IntoIterator<Item = N>) {
        let new = namespaces.into_iter().map(Into::into).collect();
        self.inner.names.send_if_modified(|names| {
            let differs = *names != new;
            *names = new;
            differs
        });
    }

    /// Whether a namespace is in the set.
    #[must_use]
    pub fn contains(&self, namespace: &str) -> bool {
        self.inner.names.borrow().contains(namespace)
    }

    /// The namespaces.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        self.inner.names.borrow().clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<BTreeSet<String>> {
        self.inner.names.subscribe()
    }
}

impl fmt::Display for NamespaceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.inner.name)
    }
}

impl fmt::Debug for NamespaceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamespaceSet").field(&self.inner.name).field(&self.names()).finish()
    }
}

impl PartialEq for NamespaceSet {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for NamespaceSet {}

impl Hash for NamespaceSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.inner).hash(state);
    }
}

// === impl NamespaceSelector ===

impl NamespaceSelector {
    /// A selector, written as for `kubectl get namespaces -l`; an empty one selects every namespace. The name is what
    /// informers with this scope are called by, as in `pods/v1 in the namespaces selected by "mesh"`.
    ///
    /// # Errors
    /// If it's no label selector.
    pub fn new(name: impl Into<String>, selector: &str) -> Result<Self, ParseSelectorError> {
        let selector = watch::Sender::new(selector.parse()?);
        Ok(Self { inner: Arc::new(Selection { name: name.into(), selector }) })
    }

    /// Selects others from now on. It returns at once: informers with this scope tell what leaves and what comes.
    ///
    /// # Errors
    /// If it's no label selector; the old one stays then.
    pub fn set(&self, selector: &str) -> Result<(), ParseSelectorError> {
        self.inner.selector.send_replace(selector.parse()?);
        Ok(())
    }

    /// The selector.
    #[must_use]
    pub fn selector(&self) -> Selector {
        self.inner.selector.borrow().clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Selector> {
        self.inner.selector.subscribe()
    }
}

impl fmt::Display for NamespaceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.inner.name)
    }
}

impl fmt::Debug for NamespaceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamespaceSelector").field(&self.inner.name).field(&self.selector()).finish()
    }
}

impl PartialEq for NamespaceSelector {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for NamespaceSelector {}

impl Hash for NamespaceSelector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.inner).hash(state);
    }
}
