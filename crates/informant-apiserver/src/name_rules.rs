//! The rules that names, labels, annotations and finalizers follow.
//!
//! A rule answers with what is wrong, in the words of the API, or with nothing.

use serde_json::Value;

use crate::schema::path::FieldPath;
use crate::status::Cause;

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
/// Bytes that all annotations of an object may take, keys and values together.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// A DNS label of RFC 1123: lower-case letters, digits and `-`, at most 63 bytes.
pub(crate) fn dns1123_label(name: &str) -> Option<String> {
    let mut errors = too_long(name, LABEL_MAX);
    if !is_dns1123_label(name) {
        errors.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
             end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    joined(errors)
}

/// A DNS subdomain of RFC 1123: labels with dots between, at most 253 bytes.
pub(crate) fn dns1123_subdomain(name: &str) -> Option<String> {
    let mut errors = too_long(name, SUBDOMAIN_MAX);
    if !name.split('.').all(is_dns1123_label) {
        errors.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    joined(errors)
}

/// A DNS label of RFC 1035: as of RFC 1123, but begins with a letter.
pub(crate) fn dns1035_label(name: &str) -> Option<String> {
    let mut errors = too_long(name, LABEL_MAX);
    if !is_dns1123_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        errors.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    joined(errors)
}

/// Any name that can be one segment of a path.
pub(crate) fn path_segment(name: &str) -> Option<String> {
    if matches!(name, "." | "..") {
        return Some(format!("may not be '{name}'"));
    }
    let errors = ["/", "%"].iter().filter(|sign| name.contains(**sign)).map(|sign| format!("may not contain '{sign}'"));
    joined(errors.collect())
}

/// A key of a label, an annotation or a finalizer: `[prefix/]name`.
pub(crate) fn qualified_name(key: &str) -> Option<String> {
    let mut errors = Vec::new();
    let name = match key.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            return Some(
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', with an optional DNS \
                 subdomain prefix and '/' (e.g. 'example.com/MyName')"
                    .to_owned(),
            );
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            errors.extend(dns1123_subdomain(prefix).map(|why| format!("prefix part {why}")));
            name
        }
        None => key,
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        errors.push(format!("name part must be no more than {LABEL_MAX} bytes"));
    }
    if !is_word(name) {
        errors.push(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                .to_owned(),
        );
    }
    joined(errors)
}

/// A label's value: at most 63 bytes, empty or a word.
pub(crate) fn label_value(value: &str) -> Option<String> {
    let mut errors = too_long(value, LABEL_MAX);
    if !value.is_empty() && !is_word(value) {
        errors.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    joined(errors)
}

/// What is wrong with `metadata.labels`; `metadata` is the path of the metadata.
pub(crate) fn labels(labels: Option<&Value>, metadata: &FieldPath<'_>) -> Vec<Cause> {
    let path = metadata.field("labels");
    let mut causes = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        causes.extend(qualified_name(key).map(|why| Cause::invalid(&path, &Value::from(key.as_str()), why)));
        if let Some(why) = value.as_str().and_then(label_value) {
            causes.push(Cause::invalid(&path, value, why));
        }
    }
    causes
}

/// What is wrong with `metadata.annotations`; `metadata` is the path of the metadata.
pub(crate) fn annotations(annotations: Option<&Value>, metadata: &FieldPath<'_>) -> Vec<Cause> {
    let path = metadata.field("annotations");
    let mut causes = Vec::new();
    let mut size = 0;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        // The name part may have upper-case letters, also in the prefix.
        if let Some(why) = qualified_name(&key.to_lowercase()) {
            causes.push(Cause::invalid(&path, &Value::from(key.as_str()), why));
        }
    }
    if size > ANNOTATIONS_MAX {
        causes.push(Cause::too_long(&path, ANNOTATIONS_MAX as u64));
    }
    causes
}

/// What is wrong with `metadata.finalizers`; `metadata` is the path of the metadata.
pub(crate) fn finalizers(finalizers: Option<&Value>, metadata: &FieldPath<'_>) -> Vec<Cause> {
    let path = metadata.field("finalizers");
    let mut causes = Vec::new();
    for (index, name) in finalizers.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(text) = name.as_str() else { continue };
        if let Some(why) = qualified_name(text) {
            causes.push(Cause::invalid(&path.index(index), name, why));
        } else if !text.contains('/') && !matches!(text, "orphan" | "foregroundDeletion" | "kubernetes") {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(&path.index(index), name, why));
        }
    }
    causes
}

fn too_long(name: &str, limit: usize) -> Vec<String> {
    if name.len() > limit { vec![format!("must be no more than {limit} bytes")] } else { Vec::new() }
}

fn joined(errors: Vec<String>) -> Option<String> {
    if errors.is_empty() { None } else { Some(errors.join(",")) }
}

fn is_dns1123_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

fn is_word(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |sign: char| sign.is_ascii_alphanumeric();
    !text.is_empty() && text.bytes().all(inner) && text.starts_with(edge) && text.ends_with(edge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_judged_by_their_rule() {
        for good in ["a", "a-1", "1a", &"a".repeat(63)] {
            assert_eq!(dns1123_label(good), None, "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a.b", &"a".repeat(64)] {
            assert!(dns1123_label(bad).is_some(), "{bad}");
        }
        assert_eq!(dns1123_subdomain("a.b-c.d"), None);
        assert!(dns1123_subdomain("a..b").is_some());
        assert!(dns1035_label("1a").is_some());
        assert_eq!(path_segment("system:node"), None);
        assert_eq!(path_segment(".."), Some("may not be '..'".to_owned()));
        assert_eq!(path_segment("a/b"), Some("may not contain '/'".to_owned()));
    }

    #[test]
    fn labels_annotations_and_finalizers_say_where() {
        let metadata = FieldPath::root("metadata");
        let causes = labels(Some(&json!({"ok/a": "b", "-x": "y", "k": "no spaces"})), &metadata);
        let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(fields, ["metadata.labels", "metadata.labels"]);
        assert_eq!(annotations(Some(&json!({"Example.com/A": "any thing"})), &metadata), []);
        assert_eq!(annotations(Some(&json!({"a": "x".repeat(300_000)})), &metadata).len(), 1);
        assert_eq!(
            finalizers(Some(&json!(["orphan", "a.b/c", "plain"])), &metadata)[0].field,
            "metadata.finalizers[2]"
        );
    }
}
