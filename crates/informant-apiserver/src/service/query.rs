//! Query parameters: the pairs as they came, and the options of a write read from them.

use crate::service::route::percent_decode;
use crate::status::{Cause, Status};
use serde_json::json;

/// The decoded pairs of a query, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

/// What to do about fields that the schema doesn't know and about duplicate fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them, with one `Warning` header for each.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// The options that every write takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    /// The `fieldManager` parameter; empty when there was none.
    pub(crate) field_manager: String,
    /// The `fieldValidation` parameter.
    pub(crate) field_validation: FieldValidation,
    /// Whether nothing is to be stored.
    pub(crate) dry_run: bool,
    /// The `force` parameter of an apply.
    pub(crate) force: Option<bool>,
}

// === impl Query ===

impl Query {
    /// Splits and decodes a query.
    ///
    /// # Errors
    /// 400 when an escape doesn't decode to UTF-8.
    pub(crate) fn parse(query: &str) -> Result<Self, Status> {
        let mut pairs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (percent_decode(key, true), percent_decode(value, true)) {
                (Some(key), Some(value)) => pairs.push((key, value)),
                _ => {
                    return Err(Status::bad_request(format!(
                        "the query parameter \"{pair}\" isn't valid: its escapes must decode to UTF-8"
                    )));
                }
            }
        }
        Ok(Self { pairs })
    }

    /// The first value of a parameter; `None` when it is missing.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter, or the empty string.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.get(key).unwrap_or("")
    }

    /// Every value of a parameter.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// A boolean: present without a value, `1` and `true` say yes; missing says nothing.
    ///
    /// # Errors
    /// 400 for anything that isn't a boolean.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, Status> {
        match self.get(key) {
            None => Ok(None),
            Some("" | "1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(Some(true)),
            Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(Some(false)),
            Some(other) => {
                Err(Status::bad_request(format!("the query parameter {key} must be true or false, not \"{other}\"")))
            }
        }
    }

    /// A number of things or seconds; missing and negative mean the same as 0: no bound.
    ///
    /// # Errors
    /// 400 for anything that isn't a whole number.
    pub(crate) fn count(&self, key: &str) -> Result<u64, Status> {
        match self.get(key) {
            None | Some("") => Ok(0),
            Some(text) => text.parse::<i64>().map(|number| u64::try_from(number).unwrap_or(0)).map_err(|_| {
                Status::bad_request(format!("the query parameter {key} must be a whole number, not \"{text}\""))
            }),
        }
    }

    /// The options of a write. `options_kind` (`CreateOptions`, `PatchOptions`…) names them in errors.
    ///
    /// # Errors
    /// 422 for a value that isn't known, 400 for a malformed one.
    pub(crate) fn write_options(&self, options_kind: &str) -> Result<WriteOptions, Status> {
        let mut causes = Vec::new();
        let dry_run = self.all("dryRun").map(str::to_owned).collect::<Vec<_>>();
        causes.extend(check_dry_run(&dry_run));
        let field_validation = match self.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                causes.push(unsupported("fieldValidation", other, "\"\", \"Ignore\", \"Strict\", \"Warn\""));
                FieldValidation::Warn
            }
        };
        let field_manager = self.text("fieldManager").to_owned();
        causes.extend(check_field_manager(&field_manager));
        if !causes.is_empty() {
            return Err(Status::invalid("meta.k8s.io", options_kind, "", causes));
        }
        Ok(WriteOptions {
            field_manager,
            field_validation,
            dry_run: dry_run.iter().any(|value| value == "All"),
            force: self.flag("force")?,
        })
    }
}

/// The cause for a `dryRun` that isn't `All`, if any.
pub(crate) fn check_dry_run(values: &[String]) -> Option<Cause> {
    let wrong = values.iter().find(|value| !matches!(value.as_str(), "All" | ""))?;
    Some(unsupported("dryRun", wrong, r#""All""#))
}

fn check_field_manager(manager: &str) -> Option<Cause> {
    if manager.len() > 128 {
        return Some(Cause::new("FieldValueTooLong", "Too long: may not be more than 128 bytes", "fieldManager"));
    }
    let unprintable = manager.chars().any(char::is_control);
    unprintable.then(|| Cause::invalid("fieldManager", &json!(manager), "should only contain printable characters"))
}

fn unsupported(field: &str, value: &str, supported: &str) -> Cause {
    let message = format!("Unsupported value: \"{value}\": supported values: {supported}");
    Cause::new("FieldValueNotSupported", message, field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded_and_the_first_value_wins() {
        let query = Query::parse("labelSelector=a%3Db%2Cc&watch&limit=5&limit=6&x=a+b").unwrap();
        assert_eq!(query.text("labelSelector"), "a=b,c");
        assert_eq!(query.flag("watch"), Ok(Some(true)));
        assert_eq!(query.count("limit"), Ok(5));
        assert_eq!(query.text("x"), "a b");
        assert_eq!(Query::parse("a=%zz").map_err(|status| status.code).err(), Some(400));
    }

    #[test]
    fn unknown_option_values_are_refused_with_causes() {
        let query = Query::parse("dryRun=Some&fieldValidation=Loose").unwrap();
        let status = query.write_options("CreateOptions").unwrap_err();
        assert_eq!(status.code, 422);
        assert_eq!(status.details.map(|details| details.causes.len()), Some(2));
        let query = Query::parse("watch=maybe&limit=many&timeoutSeconds=-1").unwrap();
        assert_eq!(query.flag("watch").map_err(|status| status.code), Err(400));
        assert_eq!(query.count("limit").map_err(|status| status.code), Err(400));
        assert_eq!(query.count("timeoutSeconds"), Ok(0));
    }

    #[test]
    fn options_are_read() {
        let query = Query::parse("dryRun=All&fieldValidation=Strict&fieldManager=kubectl&force=true").unwrap();
        let options = query.write_options("PatchOptions").unwrap();
        assert!(options.dry_run);
        assert_eq!(options.field_validation, FieldValidation::Strict);
        assert_eq!(options.field_manager, "kubectl");
        assert_eq!(options.force, Some(true));
    }
}
