//! JSON patch (RFC 6902): a list of operations, all or none.

use json_patch::{AddOperation, PatchOperation, ReplaceOperation};
use serde_json::Value;

use crate::object;
use crate::status::{Details, Reason, Status};

/// More operations than that are refused before anything is done.
const MOST_OPERATIONS: usize = 10_000;
/// What all copies and moves of a patch may carry together, in bytes of JSON: each may carry the whole document.
const MOST_COPIED: usize = 3 * 1024 * 1024;
/// How deep a patched document may be. What reads and drops documents goes as deep as they are, and the stack has an end.
const GREATEST_DEPTH: usize = 256;

/// Applies the operations of `patch` to `document`, in order.
///
/// 400 when `patch` isn't a list of objects, 413 when there are too many, 422 when one isn't an operation, a `test` fails or a
/// path isn't there.
pub(crate) fn apply(document: &Value, patch: &Value) -> Result<Value, Status> {
    let operations = patch.as_array().ok_or_else(|| {
        Status::bad_request("a JSON patch must be a list of operations, each an object with op and path".to_owned())
    })?;
    if operations.len() > MOST_OPERATIONS {
        let why = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
            operations.len()
        );
        return Err(Status::new(Reason::RequestEntityTooLarge, why));
    }
    let operations = operations.iter().enumerate().map(operation).collect::<Result<Vec<_>, _>>()?;
    let mut patched = document.clone();
    let mut copied = 0;
    for (index, operation) in operations.into_iter().enumerate() {
        let Some(operation) = as_real_servers_read_it(operation, &patched) else { continue };
        copied += check_bounds(index, &operation, &patched)?;
        if copied > MOST_COPIED {
            let why = format!(
                "Request entity too large: the copies and moves of a JSON patch may carry {MOST_COPIED} bytes at most"
            );
            return Err(Status::new(Reason::RequestEntityTooLarge, why));
        }
        // On an error the half-changed copy is dropped, so nothing needs to be undone.
        json_patch::patch_unsafe(&mut patched, std::slice::from_ref(&operation))
            .map_err(|error| refused(index, format!("at {}: {}", operation.path(), error.kind)))?;
    }
    Ok(patched)
}

/// How many bytes the operation copies within the document; 422 when its value would lie too deep.
fn check_bounds(index: usize, operation: &PatchOperation, document: &Value) -> Result<usize, Status> {
    let at = |path: &json_patch::jsonptr::Pointer| document.pointer(path.as_str());
    let (value, copied) = match operation {
        PatchOperation::Add(add) => (Some(&add.value), 0),
        PatchOperation::Replace(replace) => (Some(&replace.value), 0),
        PatchOperation::Move(moved) => (at(&moved.from), at(&moved.from).map_or(0, object::json_size)),
        PatchOperation::Copy(copy) => (at(&copy.from), at(&copy.from).map_or(0, object::json_size)),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => (None, 0),
    };
    let depth = operation.path().count() + value.map_or(0, object::depth);
    if depth > GREATEST_DEPTH {
        return Err(refused(index, format!("at {}: the value would lie too deep", operation.path())));
    }
    Ok(copied)
}

/// 400 for what isn't even an operation's form, 422 for what isn't one of the six.
fn operation((index, operation): (usize, &Value)) -> Result<PatchOperation, Status> {
    if !operation.is_object() {
        let why = format!("error decoding patch: operation {index} must be an object, but is {operation}");
        return Err(Status::bad_request(why));
    }
    serde_json::from_value(operation.clone()).map_err(|error| refused(index, format!("isn't understood: {error}")))
}

/// Real servers are laxer than the standard in two points: to replace a field that isn't there adds it, and a field that
/// isn't there passes a test for null. `None` when nothing is left to do.
fn as_real_servers_read_it(operation: PatchOperation, document: &Value) -> Option<PatchOperation> {
    let missing = |path: &json_patch::jsonptr::Pointer| {
        let parent = path.parent().and_then(|parent| document.pointer(parent.as_str()));
        parent.is_some_and(Value::is_object) && document.pointer(path.as_str()).is_none()
    };
    match operation {
        PatchOperation::Replace(ReplaceOperation { path, value }) if missing(&path) => {
            Some(PatchOperation::Add(AddOperation { path, value }))
        }
        PatchOperation::Test(test) if test.value.is_null() && missing(&test.path) => None,
        other => Some(other),
    }
}

fn refused(index: usize, why: String) -> Status {
    // Clients show this beginning; what follows is for whoever looks closer.
    let why = format!("the server rejected our request due to an error in our request: operation {index} {why}");
    Status::new(Reason::Invalid, why).with_details(Details::default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_can_neither_blow_up_nor_bury_a_document() {
        let doubling: Vec<Value> =
            (0..60).map(|at| json!({"op": "copy", "from": "", "path": format!("/k{at}")})).collect();
        let document = json!({"a": "x".repeat(1_000)});
        assert_eq!(apply(&document, &json!(doubling)).map_err(|refused| refused.code), Err(413));
        let burying: Vec<Value> =
            (1..1_000).map(|at| json!({"op": "add", "path": "/a".repeat(at), "value": {}})).collect();
        assert_eq!(apply(&json!({}), &json!(burying)).map_err(|refused| refused.code), Err(422));
    }

    #[test]
    fn every_operation_works() {
        let document = json!({"a": {"b": [1, 2]}, "c": "x"});
        let patch = json!([
            {"op": "test", "path": "/c", "value": "x"},
            {"op": "add", "path": "/a/b/-", "value": 3},
            {"op": "add", "path": "/a/b/0", "value": 0},
            {"op": "replace", "path": "/c", "value": "y"},
            {"op": "copy", "from": "/c", "path": "/d"},
            {"op": "move", "from": "/d", "path": "/e~1f"},
            {"op": "remove", "path": "/a/b/1"},
        ]);
        assert_eq!(apply(&document, &patch).unwrap(), json!({"a": {"b": [0, 2, 3]}, "c": "y", "e/f": "y"}));
    }

    #[test]
    fn a_failed_test_and_a_missing_path_are_422() {
        let document = json!({"metadata": {"resourceVersion": "5"}, "list": [1]});
        for patch in [
            json!([{"op": "test", "path": "/metadata/resourceVersion", "value": "4"}]),
            json!([{"op": "remove", "path": "/nothing"}]),
            json!([{"op": "replace", "path": "/no/parent", "value": 1}]),
            json!([{"op": "replace", "path": "/list/7", "value": 1}]),
            json!([{"op": "mend", "path": "/list"}]),
            json!([{"op": "test", "path": "/list", "value": null}]),
            json!([{"op": "add", "path": "/no/parent", "value": 1}]),
            json!([{"op": "add", "path": "/list/7", "value": 1}]),
            json!([{"op": "move", "from": "/nothing", "path": "/x"}]),
        ] {
            let error = apply(&document, &patch).unwrap_err();
            assert_eq!((error.code, error.reason), (422, Reason::Invalid), "{patch}");
            assert!(error.message.starts_with("the server rejected our request due to an error in our request"));
        }
    }

    #[test]
    fn what_is_no_patch_is_400() {
        for patch in [json!({"op": "add"}), json!("x"), json!([1])] {
            assert_eq!(apply(&json!({}), &patch).unwrap_err().code, 400, "{patch}");
        }
    }

    #[test]
    fn a_missing_field_can_be_replaced_and_is_null_to_a_test() {
        let patch = json!([
            {"op": "replace", "path": "/a/new", "value": 1},
            {"op": "test", "path": "/a/nothing", "value": null},
        ]);
        assert_eq!(apply(&json!({"a": {}}), &patch).unwrap(), json!({"a": {"new": 1}}));
    }

    #[test]
    fn too_many_operations_are_413() {
        let add = json!({"op": "add", "path": "/a", "value": 1});
        let patch = |count| Value::Array(vec![add.clone(); count]);
        assert_eq!(apply(&json!({}), &patch(MOST_OPERATIONS)).unwrap(), json!({"a": 1}));
        assert_eq!(apply(&json!({}), &patch(MOST_OPERATIONS + 1)).unwrap_err().code, 413);
    }
}
