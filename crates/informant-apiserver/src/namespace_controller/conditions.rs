//! The conditions of a namespace that is being deleted: what is left in it, and what holds that.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::controllers::ObjectId;
use crate::object;
use crate::store::Object;

/// What is left in a namespace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Remaining {
    /// Number of objects by kind, named `plural[.group]`.
    objects: BTreeMap<String, usize>,
    /// Number of objects by finalizer.
    finalizers: BTreeMap<String, usize>,
}

// === impl Remaining ===

impl Remaining {
    /// Counts.
    pub(super) fn count(content: Vec<(ObjectId, Object)>) -> Self {
        let mut remaining = Self::default();
        for (id, object) in content {
            let kind = match &*id.storage.group {
                "" => id.storage.plural.to_string(),
                group => format!("{}.{group}", id.storage.plural),
            };
            *remaining.objects.entry(kind).or_default() += 1;
            for finalizer in object::finalizers(&object) {
                *remaining.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
        remaining
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The five conditions, without times.
    pub(super) fn conditions(&self) -> Vec<Value> {
        let told = |counts: &BTreeMap<String, usize>| {
            counts.iter().map(|(name, count)| format!("{name}: {count}")).collect::<Vec<_>>().join(", ")
        };
        let condition = |kind: &str, holds: bool, reason: &str, message: String| {
            let status = if holds { "True" } else { "False" };
            json!({"type": kind, "status": status, "reason": reason, "message": message})
        };
        let fine = |kind: &str, reason: &str, message: &str| condition(kind, false, reason, message.to_owned());
        vec![
            fine("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "every resource was found"),
            fine("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "every group version was read"),
            fine("NamespaceDeletionContentFailure", "ContentDeleted", "everything was deleted or waits for finalizers"),
            if self.is_empty() {
                fine("NamespaceContentRemaining", "ContentRemoved", "nothing is left")
            } else {
                let message = format!("objects are left, {}", told(&self.objects));
                condition("NamespaceContentRemaining", true, "SomeResourcesRemain", message)
            },
            if self.finalizers.is_empty() {
                fine("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "no finalizer is left")
            } else {
                let message = format!("objects wait for finalizers, {}", told(&self.finalizers));
                condition("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", message)
            },
        ]
    }
}

/// Puts `new` conditions among the `known` ones. A condition that keeps its status keeps its time.
pub(super) fn merge(mut known: Vec<Value>, new: Vec<Value>, now: &str) -> Vec<Value> {
    for mut condition in new {
        let before = known.iter_mut().find(|before| before.get("type") == condition.get("type"));
        let time = match &before {
            Some(before) if before.get("status") == condition.get("status") => {
                before.get("lastTransitionTime").cloned()
            }
            Some(_) | None => None,
        };
        if let Some(fields) = condition.as_object_mut() {
            fields.insert("lastTransitionTime".to_owned(), time.unwrap_or_else(|| json!(now)));
        }
        match before {
            Some(before) => *before = condition,
            None => known.push(condition),
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let mut remaining = Remaining::default();
        remaining.objects.insert("pods".to_owned(), 1);
        let first = merge(vec![json!({"type": "Other"})], remaining.conditions(), "t1");
        assert_eq!(first.len(), 6);
        let second = merge(first.clone(), Remaining::default().conditions(), "t2");
        let find =
            |list: &[Value], kind: &str| list.iter().find(|condition| condition["type"] == kind).cloned().unwrap();
        let changed = find(&second, "NamespaceContentRemaining");
        assert_eq!((&changed["status"], &changed["lastTransitionTime"]), (&json!("False"), &json!("t2")));
        assert_eq!(find(&second, "NamespaceDeletionContentFailure"), find(&first, "NamespaceDeletionContentFailure"));
    }
}
