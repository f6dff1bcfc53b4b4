//! What the server adds to a new object in the creator's stead: it's there, but nobody comes to own it.
//!
//! Defaults of the API are the creator's, as if it had written them; what a kind's own rules and admission add is not.

use serde_json::{Map, Value};

use crate::resource::Resource;

/// Values that were taken out of an object, with their places.
pub(super) struct Taken {
    values: Vec<(&'static [&'static str], Value)>,
}

/// The places that the server fills in for a kind and that `object`, as its creator sent it, leaves out.
pub(super) fn left_out(resource: &Resource, object: &Value) -> Vec<&'static [&'static str]> {
    let missing = |path: &&&'static [&'static str]| {
        let value = path.iter().try_fold(object, |value, field| value.get(field));
        value.is_none_or(Value::is_null)
    };
    let mut places: Vec<_> = places(resource).iter().filter(missing).copied().collect();
    if resource.has_subresource("status") && !resource.rules.keeps_status_on_create {
        places.push(&["status"]);
    }
    places
}

/// Takes the values at `places` out.
pub(super) fn take(object: &mut Value, places: &[&'static [&'static str]]) -> Taken {
    let values = places.iter().filter_map(|place| {
        let (field, parents) = place.split_last()?;
        let parent = parents.iter().try_fold(&mut *object, |value, field| value.get_mut(field))?;
        Some((*place, parent.as_object_mut()?.remove(*field)?))
    });
    Taken { values: values.collect() }
}

// === impl Taken ===

impl Taken {
    /// Puts everything back.
    pub(super) fn restore(self, object: &mut Value) {
        for (place, value) in self.values {
            let Some((field, parents)) = place.split_last() else { continue };
            let parent = parents.iter().try_fold(&mut *object, |value, field| {
                Some(value.as_object_mut()?.entry(*field).or_insert_with(|| Value::Object(Map::new())))
            });
            if let Some(parent) = parent.and_then(Value::as_object_mut) {
                parent.insert((*field).to_owned(), value);
            }
        }
    }
}

fn places(resource: &Resource) -> &'static [&'static [&'static str]] {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") => &[&["spec", "finalizers"]],
        ("", "pods") => &[&["spec", "priority"], &["spec", "preemptionPolicy"], &["spec", "tolerations"]],
        ("", "services") => &[&["spec", "ipFamilies"], &["spec", "ipFamilyPolicy"]],
        ("", "persistentvolumes" | "persistentvolumeclaims") => &[&["metadata", "finalizers"]],
        ("batch", "jobs") => {
            &[&["metadata", "labels"], &["spec", "selector"], &["spec", "template", "metadata", "labels"]]
        }
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::testing::resource_with_status;
    use serde_json::json;

    #[test]
    fn only_what_the_creator_left_out_is_taken_and_all_of_it_comes_back() {
        let pods = resource_with_status("", "v1", "Pod", "pods");
        let sent = json!({"spec": {"priority": 5}});
        let places = left_out(&pods, &sent);
        let full = json!({"spec": {"priority": 5, "tolerations": [], "nodeName": "n"}, "status": {"phase": "Pending"}});
        let mut object = full.clone();
        let taken = take(&mut object, &places);
        assert_eq!(object, json!({"spec": {"priority": 5, "nodeName": "n"}}));
        taken.restore(&mut object);
        assert_eq!(object, full);
    }
}
