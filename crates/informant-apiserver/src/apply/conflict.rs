//! Conflicts: fields that an apply would change and that somebody else owns.

use std::collections::BTreeMap;

use crate::field_set::{FieldSet, PathElement, path_text};
use crate::managed_fields::{ManagedFields, ManagerId};
use crate::status::{Cause, Details, Reason, Status};

/// The most conflicts that an answer names; it always says how many there are.
const MOST_NAMED: usize = 1_000;

/// One field with one other owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    owner: ManagerId,
    pub(super) path: Vec<PathElement>,
}

/// What others than `id` own of the changed fields, by owner.
pub(super) fn find(managed: &ManagedFields, id: &ManagerId, changed: &FieldSet) -> Vec<Conflict> {
    let others = managed.iter().filter(|(owner, _)| *owner != id);
    others
        .flat_map(|(owner, entry)| {
            let paths = entry.fields.intersection(changed).paths();
            paths.into_iter().map(|path| Conflict { owner: owner.clone(), path })
        })
        .collect()
}

/// 409 with one cause for each conflict, up to a bound.
pub(super) fn status(conflicts: &[Conflict]) -> Status {
    let causes = conflicts.iter().take(MOST_NAMED).map(|conflict| {
        let message = format!("conflict with {}", conflict.owner.described());
        Cause::new("FieldManagerConflict", message, path_text(&conflict.path))
    });
    let details = Details { causes: causes.collect(), ..Details::default() };
    Status::new(Reason::Conflict, message(conflicts)).with_details(details)
}

fn message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        let (owner, path) = (only.owner.described(), path_text(&only.path));
        return format!("Apply failed with 1 conflict: conflict with {owner}: {path}");
    }
    let mut by_owner: BTreeMap<&ManagerId, Vec<String>> = BTreeMap::new();
    for conflict in conflicts.iter().take(MOST_NAMED) {
        by_owner.entry(&conflict.owner).or_default().push(format!("- {}", path_text(&conflict.path)));
    }
    let groups: Vec<String> = by_owner
        .iter()
        .map(|(owner, paths)| format!("conflicts with {}:\n{}", owner.described(), paths.join("\n")))
        .collect();
    format!("Apply failed with {} conflicts: {}", conflicts.len(), groups.join("\n"))
}
