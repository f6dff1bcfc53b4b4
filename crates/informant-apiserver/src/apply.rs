//! Server-side apply: a client says which fields it wants and how, and so comes to own them.
//!
//! The applied configuration is merged into the live object; what the manager applied before and now leaves out goes, unless
//! somebody else owns it; a field that somebody else owns with another value is a conflict, unless forced.

mod check;
mod conflict;
mod last_applied;
mod merge;
mod remove;

use serde_json::{Map, Value};

use self::conflict::Conflict;
use crate::builtin::omit_empty;
use crate::field_set::FieldSet;
use crate::field_set::compare::{compare, same};
use crate::field_set::object::{field_set, with_named_parents};
use crate::field_set::place::Place;
use crate::managed_fields::{Entry, ManagedFields, Operation, Writer, without_managed_fields};
use crate::schema::SchemaView;
use crate::status::Status;

/// The owner of what was there before anybody applied, on objects that nobody has tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// What an apply has come to, before managedFields are written into it.
struct Applied {
    object: Value,
    managed: ManagedFields,
}

/// Why an apply came to nothing.
enum Refusal {
    Conflicts(Vec<Conflict>),
    Other(Status),
}

/// Merges `config` into `live` for `writer` and returns the object with its managedFields; `live` is `None` on create.
///
/// `config` must already be reduced to what the endpoint writes (no `status` where it's a subresource). Defaults are for the
/// caller to set afterwards: nobody owns them. If only times differ from `live`, nothing has happened: see
/// [`crate::managed_fields::keep_times_of_unchanged`].
///
/// 400 when `config` carries managedFields; 409 with a cause for each field when others own what would change and `force` is
/// false; 500, as a real server has it, when `config` doesn't fit the schema.
pub(crate) fn apply(
    live: Option<&Value>,
    config: &Value,
    schema: SchemaView<'_>,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, Status> {
    let place = Place::root(schema);
    if config.get("metadata").and_then(|metadata| metadata.get("managedFields")).is_some_and(|fields| !fields.is_null())
    {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    check::check(place, config)?;
    let managed = match live {
        Some(live) => ManagedFields::read(live)
            .map_err(|why| Status::internal(format!("failed to decode managed fields: {why}")))?,
        None => ManagedFields::default(),
    };
    let live = live.map_or_else(|| Value::Object(Map::new()), without_managed_fields);
    let managed = if managed.is_empty() {
        let before = Writer { manager: BEFORE_FIRST_APPLY, ..*writer };
        managed.updated(place, &place.blank(), &live, &before)
    } else {
        managed
    };
    let outcome = match merge_and_own(place, &live, config, &managed, writer, force) {
        Err(Refusal::Conflicts(conflicts)) => {
            let left = last_applied::without_own(place, &live, conflicts, writer);
            if left.is_empty() {
                merge_and_own(place, &live, config, &managed, writer, true)
            } else {
                Err(Refusal::Conflicts(left))
            }
        }
        outcome => outcome,
    };
    let Applied { mut object, managed } = outcome.map_err(|refusal| match refusal {
        Refusal::Conflicts(conflicts) => conflict::status(&conflicts),
        Refusal::Other(status) => status,
    })?;
    last_applied::refresh(&mut object, config, writer);
    if schema.has_definitions() {
        omit_empty::apply(&mut object, schema);
    }
    managed.write(&mut object);
    Ok(object)
}

/// The merge itself, and who owns what after it.
fn merge_and_own(
    place: Place<'_>,
    live: &Value,
    config: &Value,
    managed: &ManagedFields,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Applied, Refusal> {
    let mut managed = managed.clone().reconciled(place);
    let id = writer.id(Operation::Apply);
    let merged = merge::merge(place, live, config).map_err(Refusal::Other)?;
    let last = managed.get(&id).cloned();
    let wanted = field_set(place, config);
    let owned_now = managed
        .iter()
        .filter(|(other, _)| **other != id)
        .fold(wanted.clone(), |owned, (_, entry)| owned.union(&entry.fields));
    let object = match &last {
        Some(last) => give_up(place, merged, &last.fields, &owned_now),
        None => merged,
    };
    let comparison = compare(place, live, &object);
    if !force {
        let changed = comparison.modified.union(&comparison.added);
        let conflicts = conflict::find(&managed, &id, &changed);
        if !conflicts.is_empty() {
            return Err(Refusal::Conflicts(conflicts));
        }
    }
    managed.yield_to(Some(&id), &comparison);
    let mut entry = Entry::new(writer, wanted);
    if comparison.is_same() && same(live, &object) {
        // Nothing has changed, so neither has the time.
        entry.time = last.and_then(|last| last.time);
    }
    managed.set(id, entry);
    Ok(Applied { object, managed })
}

/// Takes away what the manager applied `last` and what nobody owns now.
///
/// The parents that the schema names go along once nothing in them is owned; what the manager never applied stays.
fn give_up(place: Place<'_>, merged: Value, last: &FieldSet, owned_now: &FieldSet) -> Value {
    let last = with_named_parents(place, last);
    let owned = with_named_parents(place, owned_now);
    let all = with_named_parents(place, &field_set(place, &merged));
    let left = |kept: &Value| with_named_parents(place, &field_set(place, kept));

    let without_last = remove::remove(place, &merged, &last);
    let without_unowned = remove::remove(place, &merged, &all.difference(&left(&without_last).union(&owned)));
    let given_up = all.difference(&left(&without_unowned)).intersection(&last).difference(&owned);
    remove::remove(place, &merged, &given_up)
}

#[cfg(test)]
mod tests;
