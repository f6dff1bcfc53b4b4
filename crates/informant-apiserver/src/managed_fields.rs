//! managedFields: who owns which field.
//!
//! Every writer is tracked. One who applies owns what it applies ([`crate::apply`]); every other writer owns the fields that
//! it changes, and takes them from whoever had them. A field that is gone is owned by nobody. Identity, times of the
//! server and the like are never owned.
//!
//! An entry's time changes only when its manager gains or re-applies something, so a write without effect changes nothing.

mod cap;
mod entry;

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) use self::entry::{Entry, ManagerId, Operation};
use crate::field_set::FieldSet;
use crate::field_set::compare::{Comparison, compare, same};
use crate::field_set::object::reconciled;
use crate::field_set::place::Place;
use crate::object;
use crate::schema::SchemaView;

/// The field that holds it all, below `metadata`.
const FIELD: &str = "managedFields";
/// The manager of a writer that gives no name.
const UNKNOWN_MANAGER: &str = "unknown";

/// Who writes, through which door, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer<'a> {
    /// The `fieldManager` parameter, or the beginning of the User-Agent up to the first `/`.
    pub(crate) manager: &'a str,
    /// `v1` or `apps/v1`: the version that the request speaks.
    pub(crate) api_version: &'a str,
    /// `status` and the like; empty for the object itself.
    pub(crate) subresource: &'a str,
    /// RFC 3339 with seconds, in UTC.
    pub(crate) now: &'a str,
}

/// Every manager's entry, by identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ManagedFields {
    entries: BTreeMap<ManagerId, Entry>,
}

/// Brings `new.metadata.managedFields` up to date after a create, update or patch (but not an apply).
///
/// `old` is the stored object, `None` on create; `new` is the object as it will be stored, defaults included. Entries that
/// the request carries stand in for the stored ones if they can be read, `[]` and `[{}]` reset them. An object that has no
/// entries gets none until somebody applies.
pub(crate) fn track_update(old: Option<&Value>, new: &mut Value, schema: SchemaView<'_>, writer: &Writer<'_>) {
    let place = Place::root(schema);
    let sent = object::remove_meta(new, FIELD);
    let stored = || old.map(|old| ManagedFields::read(old).unwrap_or_default()).unwrap_or_default();
    let managed = match sent {
        _ if !writer.subresource.is_empty() => stored(),
        Some(sent) if is_reset(&sent) => ManagedFields::default(),
        Some(sent) => ManagedFields::decode(&sent).ok().filter(|sent| !sent.is_empty()).unwrap_or_else(stored),
        None => stored(),
    };
    if managed.is_empty() && old.is_some() {
        return;
    }
    let before = old.map_or_else(|| place.blank(), without_managed_fields);
    managed.updated(place, &before, new, writer).write(new);
}

/// Takes back the times in `new` if nothing but times of managedFields has changed, so that the write is none.
pub(crate) fn keep_times_of_unchanged(old: &Value, new: &mut Value) {
    let entries = |object: &Value| object.get("metadata").and_then(|metadata| metadata.get(FIELD)).cloned();
    let (Some(Value::Array(before)), Some(Value::Array(after))) = (entries(old), entries(new)) else { return };
    let timeless = |entry: &Value| {
        let mut entry = entry.clone();
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("time");
        }
        entry
    };
    let same_entries = before.len() == after.len()
        && before.iter().zip(&after).all(|(before, after)| timeless(before) == timeless(after));
    if same_entries && before != after && same(&without_managed_fields(old), &without_managed_fields(new)) {
        object::set_meta(new, FIELD, Value::Array(before));
    }
}

/// The object without its managedFields.
pub(crate) fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    object::remove_meta(&mut object, FIELD);
    object
}

// === impl Writer ===

impl Writer<'_> {
    /// The identity under which the writer's fields are kept.
    pub(crate) fn id(&self, operation: Operation) -> ManagerId {
        let manager = if self.manager.is_empty() { UNKNOWN_MANAGER } else { self.manager };
        ManagerId::new(manager, operation, self.api_version, self.subresource)
    }
}

// === impl ManagedFields ===

impl ManagedFields {
    /// The entries of an object; none if there is no such field. The error says what isn't understood.
    pub(crate) fn read(object: &Value) -> Result<Self, String> {
        match object.get("metadata").and_then(|metadata| metadata.get(FIELD)) {
            Some(entries) => Self::decode(entries),
            None => Ok(Self::default()),
        }
    }

    /// The entries as they stand in an object.
    pub(crate) fn decode(entries: &Value) -> Result<Self, String> {
        let entries = match entries {
            Value::Null => &[],
            Value::Array(entries) => entries.as_slice(),
            other => return Err(format!("managedFields must be a list, but has {other}")),
        };
        let entries = entries.iter().map(entry::decode).collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    /// Puts the entries into an object; none at all leaves no field.
    pub(crate) fn write(&self, object: &mut Value) {
        object::remove_meta(object, FIELD);
        if !self.entries.is_empty() {
            object::set_meta(object, FIELD, Value::Array(entry::encode_sorted(&self.entries)));
        }
    }

    /// Whether there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry of one manager.
    pub(crate) fn get(&self, id: &ManagerId) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// Every entry, in order of identity.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ManagerId, &Entry)> {
        self.entries.iter()
    }

    /// Sets one manager's entry, without what nobody owns; an entry that owns nothing goes.
    pub(crate) fn set(&mut self, id: ManagerId, mut entry: Entry) {
        entry.fields = entry.fields.difference(&never_owned());
        if entry.fields.is_empty() {
            self.entries.remove(&id);
        } else {
            self.entries.insert(id, entry);
        }
    }

    /// Everybody else than `id` loses the fields that have changed or gone.
    pub(crate) fn yield_to(&mut self, id: Option<&ManagerId>, comparison: &Comparison) {
        let lost = comparison.modified.union(&comparison.added).union(&comparison.removed);
        for (other, entry) in &mut self.entries {
            if Some(other) != id {
                entry.fields = entry.fields.difference(&lost);
            }
        }
        self.entries.retain(|_, entry| !entry.fields.is_empty());
    }

    /// The entries as they must be read under today's schema.
    #[must_use]
    pub(crate) fn reconciled(mut self, place: Place<'_>) -> Self {
        for entry in self.entries.values_mut() {
            entry.fields = reconciled(place, &entry.fields);
        }
        self
    }

    /// The entries after a writer has made `new` out of `old` by other means than apply.
    #[must_use]
    pub(crate) fn updated(self, place: Place<'_>, old: &Value, new: &Value, writer: &Writer<'_>) -> Self {
        let mut managed = self.reconciled(place);
        let comparison = compare(place, old, new);
        managed.yield_to(None, &comparison);
        let gained = comparison.modified.union(&comparison.added).difference(&never_owned());
        if !gained.is_empty() {
            let id = writer.id(Operation::Update);
            let fields = managed.get(&id).map_or_else(FieldSet::default, |entry| entry.fields.clone()).union(&gained);
            managed.set(id, Entry::new(writer, fields));
        }
        managed.cap_updates();
        managed
    }
}

/// What belongs to the server or names the object.
fn never_owned() -> FieldSet {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
}

/// `[]` and `[{}]` ask for all entries to go.
fn is_reset(entries: &Value) -> bool {
    match entries.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => one.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
