//! A stored object: a JSON value that never changes again, shared by everybody who reads it.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use super::WriteError;
use super::shelf::object_key;
use crate::object::{self, set_meta};

/// A stored object. Cheap to clone; reads like the [`Value`] that it holds.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    value: Value,
    resource_version: u64,
    json: OnceLock<Bytes>,
}

// === impl Object ===

impl Object {
    /// `value` must carry `resource_version` in its metadata already.
    pub(super) fn new(value: Value, resource_version: u64) -> Self {
        Self { inner: Arc::new(Inner { value, resource_version, json: OnceLock::new() }) }
    }

    /// The version in the object's metadata, as a number.
    pub(crate) fn resource_version(&self) -> u64 {
        self.inner.resource_version
    }

    /// The object as it is stored.
    pub(crate) fn value(&self) -> &Value {
        &self.inner.value
    }

    /// The object as JSON text in its stored version. Made once however many readers ask, and kept as long as the object.
    pub(crate) fn json(&self) -> Bytes {
        let make = || Bytes::from(self.inner.value.to_string());
        self.inner.json.get_or_init(make).clone()
    }

    /// `namespace/name`, or `name` for cluster-scoped kinds: what objects are ordered by.
    pub(crate) fn key(&self) -> Arc<str> {
        object_key(object::namespace(self), object::name(self))
    }

    /// The same body under another version.
    pub(super) fn at_version(&self, resource_version: u64) -> Self {
        let mut value = self.inner.value.clone();
        set_meta(&mut value, "resourceVersion", Value::from(resource_version.to_string()));
        Self::new(value, resource_version)
    }

    pub(super) fn check(&self, expected: Option<u64>) -> Result<(), WriteError> {
        let current = self.resource_version();
        match expected {
            Some(version) if version != current => Err(WriteError::Conflict { current }),
            Some(_) | None => Ok(()),
        }
    }
}

impl Deref for Object {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.inner.value
    }
}
