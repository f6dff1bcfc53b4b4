//! The key of an object: its namespace and name within one resource.
//!
//! Keys are what travels through queues and indexes, so one costs a single shared allocation and a clone is a counter
//! increment. A key doesn't carry the uid: an object that is deleted and created again keeps its key.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// Namespace and name of an object, written `namespace/name`, or `name` for a cluster-scoped object.
///
/// A clone is cheap (one counter increment). Keys compare, sort and hash by their text, so a map of keys can be asked
/// with a `&str`.
#[derive(Clone)]
pub struct ObjectKey {
    text: Arc<str>,
    /// Length of the namespace; 0 for a cluster-scoped object.
    namespace_len: u32,
}

/// A text that isn't an object's key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no object key: write \"namespace/name\", or \"name\" for a cluster-scoped object")]
pub struct ParseKeyError {
    text: String,
}

impl ObjectKey {
    /// The key of an object; an empty namespace means a cluster-scoped object.
    #[must_use]
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) if !namespace.is_empty() => Self::namespaced(namespace, name),
            _ => Self::cluster(name),
        }
    }

    /// The key of an object in a namespace; an empty namespace means a cluster-scoped object.
    #[must_use]
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self::cluster(name);
        }
        // A namespace that doesn't fit is none that a server can hold; the text stays whole either way.
        let namespace_len = u32::try_from(namespace.len()).unwrap_or(0);
        // What a server can hold fits in here, so that the text is allocated once.
        let mut short = [0; 63 + 1 + 253];
        let length = namespace.len() + 1 + name.len();
        if let Some(short) = short.get_mut(..length)
            && let Some((before, after)) = short.split_at_mut_checked(namespace.len())
            && let Some((slash, after)) = after.split_first_mut()
        {
            before.copy_from_slice(namespace.as_bytes());
            *slash = b'/';
            after.copy_from_slice(name.as_bytes());
            if let Ok(text) = std::str::from_utf8(short) {
                return Self { text: text.into(), namespace_len };
            }
        }
        Self { text: format!("{namespace}/{name}").into(), namespace_len }
    }

    /// The key of a cluster-scoped object.
    #[must_use]
    pub fn cluster(name: &str) -> Self {
        Self { text: name.into(), namespace_len: 0 }
    }

    /// The key of any object that has metadata.
    #[must_use]
    pub fn of(object: &impl crate::Metadata) -> Self {
        Self::new(object.namespace(), object.name())
    }

    /// The namespace, `None` for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        if self.namespace_len == 0 { None } else { self.text.get(..self.namespace_len as usize) }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.namespace_len == 0 {
            &self.text
        } else {
            self.text.get(self.namespace_len as usize + 1..).unwrap_or("")
        }
    }

    /// The key as text: `namespace/name` or `name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

// === impl ObjectKey ===

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ObjectKey {}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As `str` does, which `Borrow<str>` relies on.
        self.text.hash(state);
    }
}

impl Borrow<str> for ObjectKey {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl FromStr for ObjectKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let error = || ParseKeyError { text: text.to_owned() };
        match text.split_once('/') {
            None if text.is_empty() => Err(error()),
            None => Ok(Self::cluster(text)),
            Some((namespace, name)) if namespace.is_empty() || name.is_empty() || name.contains('/') => Err(error()),
            Some((namespace, name)) => Ok(Self::namespaced(namespace, name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_knows_its_parts() {
        let key = ObjectKey::namespaced("web", "frontend");
        assert_eq!((key.namespace(), key.name(), key.as_str()), (Some("web"), "frontend", "web/frontend"));
        let key = ObjectKey::new(Some(""), "node-1");
        assert_eq!((key.namespace(), key.name(), key.as_str()), (None, "node-1", "node-1"));
    }

    #[test]
    fn a_key_is_read_back_from_its_text() {
        for key in [ObjectKey::namespaced("web", "frontend"), ObjectKey::cluster("node-1")] {
            assert_eq!(key.as_str().parse::<ObjectKey>().as_ref(), Ok(&key));
        }
    }

    /// client-go fact 82.
    #[test]
    fn a_text_with_more_than_one_slash_or_an_empty_part_is_no_key() {
        for text in ["a/b/c", "/b", "a/", "", "/"] {
            let error = text.parse::<ObjectKey>().expect_err(text);
            assert!(error.to_string().contains("namespace/name"), "{error}");
        }
    }
}
