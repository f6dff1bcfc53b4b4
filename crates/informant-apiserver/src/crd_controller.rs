//! The life of a CRD, as pure decisions: which names it gets, whether it is established, when it is gone.
//!
//! Names are taken first come, first served within a group: a CRD keeps what it was given, and gets a name that nobody
//! else holds. Only an established CRD is served.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::crd::{CLEANUP_FINALIZER, CrdSpec, Names};
use crate::object;

/// Whether the CRD's resources are served: its names have been accepted once, and stay so.
pub(crate) fn is_established(crd: &Value) -> bool {
    condition(crd, "Established").is_some_and(|condition| condition["status"] == "True")
}

/// Whether the CRD is being deleted and its objects still have to go.
pub(crate) fn awaits_cleanup(crd: &Value) -> bool {
    object::is_terminating(crd) && object::finalizers(crd).any(|finalizer| finalizer == CLEANUP_FINALIZER)
}

/// The next `status` of a CRD; `None` when it stays as it is.
///
/// `others` are all other CRDs (those of other groups don't matter); `now` is an RFC 3339 time, which a condition gets when
/// its status changes.
pub(crate) fn reconcile(crd: &Value, others: &[&Value], now: &str) -> Option<Value> {
    let spec = CrdSpec::parse(crd).ok()?;
    let old = crd.get("status").cloned().unwrap_or_else(|| json!({}));
    let mut status = old.clone();
    let accepted = accepted_names(&old);
    let taken = Taken::by_others(&spec.group, others);
    let (names, conflict) = next_names(&spec.names, &accepted, &taken);
    let fields = status.as_object_mut()?;
    fields.insert("acceptedNames".to_owned(), names_value(&names));
    let was_established = is_established(crd);
    let (accepted, established) = match conflict {
        None => (
            ["NamesAccepted", "True", "NoConflicts", "no conflicts found"],
            ["Established", "True", "InitialNamesAccepted", "the initial names have been accepted"],
        ),
        Some((reason, ref message)) => (
            ["NamesAccepted", "False", reason, message.as_str()],
            ["Established", "False", "NotAccepted", "not all names are accepted"],
        ),
    };
    set_condition(fields, accepted, now);
    // Once established, a CRD stays so, whatever names it asks for later.
    if !was_established {
        set_condition(fields, established, now);
    }
    if object::is_terminating(crd) {
        let why = "CustomResource deletion is in progress";
        set_condition(fields, ["Terminating", "True", "InstanceDeletionInProgress", why], now);
    }
    (status != old).then_some(status)
}

/// Names that other CRDs of the group hold.
#[derive(Debug, Default)]
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

// === impl Taken ===

impl Taken {
    fn by_others(group: &str, others: &[&Value]) -> Self {
        let mut taken = Self::default();
        for other in others {
            let other_group = other.get("spec").and_then(|spec| spec.get("group")).and_then(Value::as_str);
            if other_group != Some(group) {
                continue;
            }
            let status = other.get("status").cloned().unwrap_or(Value::Null);
            let names = accepted_names(&status);
            taken.resources.extend([names.plural, names.singular].into_iter().filter(|name| !name.is_empty()));
            taken.resources.extend(names.short_names);
            taken.kinds.extend([names.kind, names.list_kind].into_iter().filter(|name| !name.is_empty()));
        }
        taken
    }
}

fn accepted_names(status: &Value) -> Names {
    let names = status.get("acceptedNames").cloned().unwrap_or(Value::Null);
    serde_json::from_value(names).unwrap_or_default()
}

/// The names a CRD holds next, and the last of its conflicts.
fn next_names(wanted: &Names, held: &Names, taken: &Taken) -> (Names, Option<(&'static str, String)>) {
    let mut next = held.clone();
    let mut conflict = None;
    let mut claim = |wanted: &str, held: &mut String, used: &BTreeSet<String>, reason: &'static str| {
        if wanted != held.as_str() && used.contains(wanted) {
            conflict = Some((reason, in_use(wanted)));
        } else {
            wanted.clone_into(held);
        }
    };
    claim(&wanted.plural, &mut next.plural, &taken.resources, "PluralConflict");
    claim(&wanted.singular, &mut next.singular, &taken.resources, "SingularConflict");
    let clashes: Vec<String> = wanted
        .short_names
        .iter()
        .filter(|name| !held.short_names.contains(name) && taken.resources.contains(*name))
        .map(|name| in_use(name))
        .collect();
    let short_names_conflict = (!clashes.is_empty()).then(|| match clashes.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    });
    let mut kind_conflict = None;
    for (wanted, held, reason) in
        [(&wanted.kind, &mut next.kind, "KindConflict"), (&wanted.list_kind, &mut next.list_kind, "ListKindConflict")]
    {
        if wanted != held && taken.kinds.contains(wanted) {
            kind_conflict = Some((reason, in_use(wanted)));
        } else {
            held.clone_from(wanted);
        }
    }
    if short_names_conflict.is_none() {
        next.short_names.clone_from(&wanted.short_names);
    }
    next.categories.clone_from(&wanted.categories);
    let short_names_conflict = short_names_conflict.map(|message| ("ShortNamesConflict", message));
    (next, kind_conflict.or(short_names_conflict).or(conflict))
}

fn in_use(name: &str) -> String {
    format!("\"{name}\" is already in use")
}

fn names_value(names: &Names) -> Value {
    let mut value = json!({"plural": names.plural, "kind": names.kind});
    for (field, text) in [("singular", &names.singular), ("listKind", &names.list_kind)] {
        if !text.is_empty() {
            value[field] = json!(text);
        }
    }
    for (field, list) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
        if !list.is_empty() {
            value[field] = json!(list);
        }
    }
    value
}

fn condition<'a>(crd: &'a Value, type_name: &str) -> Option<&'a Value> {
    let conditions = crd.get("status")?.get("conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == type_name)
}

/// Sets a condition given as type, status, reason and message; its time changes with its status only.
fn set_condition(status: &mut Map<String, Value>, condition: [&str; 4], now: &str) {
    let [type_name, value, reason, message] = condition;
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let next = |time: &Value| json!({"type": type_name, "status": value, "lastTransitionTime": time, "reason": reason, "message": message});
    match conditions.iter_mut().find(|present| present["type"] == type_name) {
        Some(present) if present["status"] == value => *present = next(&present["lastTransitionTime"].clone()),
        Some(present) => *present = next(&json!(now)),
        None => conditions.push(next(&json!(now))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(plural: &str, kind: &str, short_names: &[&str]) -> Value {
        let mut crd = json!({"metadata": {"name": format!("{plural}.x.example.com")}, "spec": {"group": "x.example.com",
            "names": {"plural": plural, "kind": kind, "shortNames": short_names}, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
        crate::crd::prepare(&mut crd, None);
        crd
    }

    fn reconciled(crd: &Value, others: &[&Value]) -> Value {
        let mut crd = crd.clone();
        crd["status"] = reconcile(&crd, others, "2026-01-01T00:00:00Z").unwrap();
        assert_eq!(reconcile(&crd, others, "2027-01-01T00:00:00Z"), None, "a second look changes nothing");
        crd
    }

    #[test]
    fn a_crd_with_free_names_is_established() {
        let tests = reconciled(&crd("tests", "Test", &["t"]), &[]);
        assert!(is_established(&tests));
        assert_eq!(
            tests["status"],
            json!({
                "conditions": [
                    {"type": "NamesAccepted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
                     "reason": "NoConflicts", "message": "no conflicts found"},
                    {"type": "Established", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
                     "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
                ],
                "acceptedNames": {"plural": "tests", "singular": "test", "kind": "Test", "listKind": "TestList",
                    "shortNames": ["t"]},
                "storedVersions": ["v1"],
            })
        );
    }

    #[test]
    fn a_name_that_another_holds_is_refused_until_it_is_free() {
        let first = reconciled(&crd("tests", "Test", &[]), &[]);
        let second = reconciled(&crd("others", "Test", &["tests"]), &[&first]);
        assert!(!is_established(&second));
        let accepted = condition(&second, "NamesAccepted").unwrap();
        assert_eq!(accepted["reason"], "ListKindConflict");
        assert_eq!(accepted["message"], "\"TestList\" is already in use");
        assert_eq!(second["status"]["acceptedNames"], json!({"plural": "others", "kind": ""}));
        assert!(is_established(&reconciled(&second, &[])));
    }

    #[test]
    fn another_group_does_not_matter() {
        let mut first = reconciled(&crd("tests", "Test", &[]), &[]);
        first["spec"]["group"] = json!("y.example.com");
        assert!(is_established(&reconciled(&crd("tests", "Test", &[]), &[&first])));
    }

    #[test]
    fn an_established_crd_stays_established_when_a_new_name_clashes() {
        let first = reconciled(&crd("tests", "Test", &["t"]), &[]);
        let mut second = reconciled(&crd("others", "Other", &[]), &[&first]);
        second["spec"]["names"]["shortNames"] = json!(["t"]);
        let second = reconciled(&second, &[&first]);
        assert!(is_established(&second));
        assert_eq!(condition(&second, "NamesAccepted").unwrap()["reason"], "ShortNamesConflict");
    }

    #[test]
    fn deletion_shows_as_a_condition() {
        let mut tests = reconciled(&crd("tests", "Test", &[]), &[]);
        tests["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        tests["metadata"]["finalizers"] = json!([CLEANUP_FINALIZER]);
        assert!(awaits_cleanup(&tests));
        let tests = reconciled(&tests, &[]);
        assert_eq!(condition(&tests, "Terminating").unwrap()["status"], "True");
    }
}
