//! Finalizers: names in an object's metadata that keep it from being removed until their owners have cleaned up.
//!
//! The functions edit an object in memory and say whether it changed; [`finalizer_patch`] writes the list, and only the list, back.

use kube::Resource;
use serde_json::{Value, json};

/// Whether the object has this finalizer.
#[must_use]
pub fn has_finalizer<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|existing| existing == finalizer)
}

/// Adds the finalizer at the end. Returns whether it was missing.
///
/// A server refuses new finalizers on an object that is being deleted.
pub fn add_finalizer<K: Resource>(object: &mut K, finalizer: &str) -> bool {
    if has_finalizer(object, finalizer) {
        return false;
    }
    object.meta_mut().finalizers.get_or_insert_default().push(finalizer.to_owned());
    true
}

/// Removes the finalizer, wherever it stands and however often. Returns whether it was there.
pub fn remove_finalizer<K: Resource>(object: &mut K, finalizer: &str) -> bool {
    let Some(finalizers) = object.meta_mut().finalizers.as_mut() else { return false };
    let before = finalizers.len();
    finalizers.retain(|existing| existing != finalizer);
    finalizers.len() != before
}

/// A merge patch that writes the object's list of finalizers, and that a server refuses with 409 if the object changed since it
/// was read, so that no finalizer of somebody else gets lost.
///
/// ```
/// use informant_controller::{add_finalizer, finalizer_patch};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let mut object = ConfigMap::default();
/// object.metadata.resource_version = Some("7".into());
/// assert!(add_finalizer(&mut object, "example.com/cleanup"));
/// let patch = kube::api::Patch::Merge(finalizer_patch(&object));
/// # let kube::api::Patch::Merge(value) = patch else { unreachable!() };
/// # assert_eq!(value.to_string(), r#"{"metadata":{"finalizers":["example.com/cleanup"],"resourceVersion":"7"}}"#);
/// ```
#[must_use]
pub fn finalizer_patch<K: Resource>(object: &K) -> Value {
    let finalizers = object.meta().finalizers.as_deref().unwrap_or_default();
    json!({ "metadata": { "resourceVersion": object.meta().resource_version, "finalizers": finalizers } })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn adding_and_removing_say_whether_anything_changed() {
        let mut object = ConfigMap::default();
        assert!(!remove_finalizer(&mut object, "a"));
        assert!(add_finalizer(&mut object, "a"));
        assert!(!add_finalizer(&mut object, "a"));
        assert!(add_finalizer(&mut object, "b"));
        assert!(remove_finalizer(&mut object, "a"));
        assert!(!has_finalizer(&object, "a") && has_finalizer(&object, "b"));
    }
}
