//! The bound on updates: past ten entries the oldest are merged into one, so that an object touched by ever new clients
//! doesn't grow for ever. Entries of managers that apply are never merged: they are few, and needed to take fields away.

use std::collections::BTreeMap;

use super::{ManagedFields, ManagerId, Operation};

/// The most entries of updates.
const MOST_UPDATES: usize = 10;
/// The manager of the entry that the oldest are merged into, one for each version.
const OLDEST: &str = "ancient-changes";

impl ManagedFields {
    pub(super) fn cap_updates(&mut self) {
        let updates = self.entries.iter().filter(|(id, _)| id.operation == Operation::Update);
        let mut oldest_first: Vec<(Option<String>, ManagerId)> =
            updates.map(|(id, entry)| (entry.time.clone(), id.clone())).collect();
        oldest_first.sort();
        let mut count = oldest_first.len();
        let mut firsts: BTreeMap<String, ManagerId> = BTreeMap::new();
        for (time, id) in oldest_first {
            if count <= MOST_UPDATES {
                break;
            }
            let Some(version) = self.entries.get(&id).map(|entry| entry.api_version.clone()) else { continue };
            // The first of a version stays as it is until there is a second one to merge it with.
            let Some(first) = firsts.get(&version) else {
                firsts.insert(version, id);
                continue;
            };
            let bucket = ManagerId::new(OLDEST, Operation::Update, &version, "");
            // Whichever of the two isn't the bucket goes into it; if neither is, the first one becomes it.
            let (kept, merged) = if id == bucket { (id, first.clone()) } else { (first.clone(), id) };
            let (Some(mut entry), Some(other)) = (self.entries.remove(&kept), self.entries.remove(&merged)) else {
                continue;
            };
            entry.fields = entry.fields.union(&other.fields);
            // Of the two times the later one, which is this one's: they come oldest first.
            entry.time = time;
            self.entries.insert(bucket.clone(), entry);
            firsts.insert(version, bucket);
            count -= 1;
        }
    }
}
