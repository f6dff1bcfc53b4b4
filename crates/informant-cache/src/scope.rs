//! The part of a resource that an informer covers.

mod namespaces;

use std::fmt;

pub use self::namespaces::{NamespaceSelector, NamespaceSet};

/// The part of a resource that an informer covers: all of it, some namespaces, or what a selector selects.
///
/// The server does the selecting by labels and fields. An object that stops matching is deleted from the cache, one that
/// starts to is added. Of a kind that has no namespaces only these selectors count.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Scope {
    namespaces: Namespaces,
    labels: Option<String>,
    fields: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
enum Namespaces {
    #[default]
    All,
    One(String),
    Set(NamespaceSet),
    Selected(NamespaceSelector),
}

impl Scope {
    /// Everything: all namespaces, no selector.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// One namespace.
    #[must_use]
    pub fn namespaced(namespace: impl Into<String>) -> Self {
        Self { namespaces: Namespaces::One(namespace.into()), ..Self::default() }
    }

    /// The namespaces of a set, which can be changed while the informer runs. Each has a list and a watch of its own, so
    /// permission for these namespaces is enough; all share one cache, which is synced when each of them is. A namespace
    /// that doesn't exist (yet) has no objects. One that's added is listed and told of as added; one that's removed is
    /// told of as deleted, out of scope.
    ///
    /// Scopes with clones of one set are the same scope; with different sets they aren't, whatever is in them.
    #[must_use]
    pub fn namespaces(set: &NamespaceSet) -> Self {
        Self { namespaces: Namespaces::Set(set.clone()), ..Self::default() }
    }

    /// The namespaces whose labels a selector selects, which can be changed while the informer runs. One list and watch
    /// covers all namespaces; what isn't selected is kept apart, so it costs memory, and a namespace that's selected is
    /// there at once, without a request. The informer needs permission for all namespaces and to watch namespaces
    /// themselves; it begins when those are synced.
    ///
    /// When a namespace is selected, its objects are told of as added; when it isn't any more, as deleted, out of scope.
    /// Scopes with clones of one selector are the same scope.
    #[must_use]
    pub fn selected_namespaces(selector: &NamespaceSelector) -> Self {
        Self { namespaces: Namespaces::Selected(selector.clone()), ..Self::default() }
    }

    /// Only what this label selector selects, written as for `kubectl -l`.
    #[must_use]
    pub fn with_labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Only what this field selector selects, written as for `kubectl --field-selector`.
    #[must_use]
    pub fn with_fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// The namespace, if it's exactly one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        match &self.namespaces {
            Namespaces::One(namespace) => Some(namespace),
            Namespaces::All | Namespaces::Set(_) | Namespaces::Selected(_) => None,
        }
    }

    /// Whether a namespace can be called that: 1 to 63 of a-z, 0-9 and '-', with '-' neither first nor last (a label by
    /// RFC 1123). An informer of one that can't asks the server nothing and says so in its state.
    #[must_use]
    pub fn is_namespace_name(name: &str) -> bool {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=63).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with('-') && !name.ends_with('-')
    }

    pub(crate) fn labels(&self) -> Option<&str> {
        self.labels.as_deref()
    }

    pub(crate) fn fields(&self) -> Option<&str> {
        self.fields.as_deref()
    }

    pub(crate) fn set(&self) -> Option<&NamespaceSet> {
        if let Namespaces::Set(set) = &self.namespaces { Some(set) } else { None }
    }

    pub(crate) fn selector(&self) -> Option<&NamespaceSelector> {
        if let Namespaces::Selected(selector) = &self.namespaces { Some(selector) } else { None }
    }

    /// Whether an object with this key may be in it, as far as its namespace tells.
    pub(crate) fn may_hold(&self, key: &crate::key::ObjectKey) -> bool {
        let Some(namespace) = key.namespace() else { return true };
        match &self.namespaces {
            Namespaces::One(one) => one == namespace,
            Namespaces::Set(set) => set.contains(namespace),
            Namespaces::All | Namespaces::Selected(_) => true,
        }
    }

    /// Whether a selector keeps objects out.
    pub(crate) fn is_selective(&self) -> bool {
        self.labels.is_some() || self.fields.is_some()
    }

    /// The same for a kind that has no namespaces.
    pub(crate) fn without_namespaces(mut self) -> Self {
        self.namespaces = Namespaces::All;
        self
    }

    /// Whether an object may be in both. What isn't known is taken for possible.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        match (&self.namespaces, &other.namespaces) {
            (Namespaces::One(one), Namespaces::One(other)) => one == other,
            (Namespaces::One(one), Namespaces::Set(set)) | (Namespaces::Set(set), Namespaces::One(one)) => {
                set.contains(one)
            }
            (Namespaces::Set(one), Namespaces::Set(other)) => !one.names().is_disjoint(&other.names()),
            _ => true,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespaces {
            Namespaces::All => {}
            Namespaces::One(namespace) => write!(f, " in namespace {namespace:?}")?,
            // Its members change; a name doesn't.
            Namespaces::Set(set) => write!(f, " in the namespaces of {set}")?,
            Namespaces::Selected(selector) => write!(f, " in the namespaces selected by {selector}")?,
        }
        if let Some(labels) = &self.labels {
            write!(f, " with labels {labels:?}")?;
        }
        if let Some(fields) = &self.fields {
            write!(f, " with fields {fields:?}")?;
        }
        Ok(())
    }
}
