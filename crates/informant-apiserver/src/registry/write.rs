//! What is known about a write besides its object: who writes, how strictly, and what the answer warns of.

use serde_json::{Value, json};

use crate::managed_fields::Writer;
use crate::object;
use crate::registry::decode::decode;
use crate::registry::metadata;
use crate::resource::Resource;
use crate::schema::prune;
use crate::service::body::Document;
use crate::service::query::{FieldValidation, WriteOptions};
use crate::status::{Cause, Status};

/// Most warnings of one answer, and most unknown fields that an error names.
const MAX_WARNINGS: usize = 100;

/// One write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Write {
    /// The options of the request.
    pub(crate) options: WriteOptions,
    /// Who owns what is written: the `fieldManager`, or the program by its User-Agent.
    pub(crate) manager: String,
    /// The texts of the answer's `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

// === impl Write ===

impl Write {
    /// A write with the options of a request from the program `user_agent`.
    pub(crate) fn new(options: WriteOptions, user_agent: &str) -> Self {
        let manager = if options.field_manager.is_empty() {
            let program = user_agent.split('/').next().unwrap_or("").trim();
            if program.is_empty() { "unknown".to_owned() } else { program.chars().take(128).collect() }
        } else {
            options.field_manager.clone()
        };
        Self { options, manager, warnings: Vec::new() }
    }

    /// A write of the server's own.
    pub(crate) fn internal(manager: &str) -> Self {
        let options = WriteOptions { field_validation: FieldValidation::Ignore, ..WriteOptions::default() };
        Self { options, manager: manager.to_owned(), warnings: Vec::new() }
    }

    /// The writer as field ownership sees it.
    pub(crate) fn writer<'a>(&'a self, api_version: &'a str, subresource: &'a str, now: &'a str) -> Writer<'a> {
        Writer { manager: &self.manager, api_version, subresource, now }
    }

    /// Looks for duplicate and unknown fields: warns of them, or refuses them, as the request wants it.
    ///
    /// # Errors
    /// In strict mode, one sentence that names the fields.
    pub(crate) fn check_fields(
        &mut self,
        resource: &Resource,
        object: &Value,
        duplicates: &[String],
    ) -> Result<(), String> {
        if self.options.field_validation == FieldValidation::Ignore {
            return Ok(());
        }
        let unknown = prune::unknown_fields(object, resource.schema.view());
        let mut problems: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
        problems.extend(duplicates.iter().map(|path| format!("duplicate field \"{path}\"")));
        self.take_problems(problems)
    }

    /// Looks for duplicate fields only.
    ///
    /// # Errors
    /// In strict mode, one sentence that names the fields.
    pub(crate) fn check_duplicates(&mut self, duplicates: &[String]) -> Result<(), String> {
        if self.options.field_validation == FieldValidation::Ignore {
            return Ok(());
        }
        self.take_problems(duplicates.iter().map(|path| format!("duplicate field \"{path}\"")).collect())
    }

    fn take_problems(&mut self, mut problems: Vec<String>) -> Result<(), String> {
        problems.truncate(MAX_WARNINGS);
        if self.options.field_validation == FieldValidation::Warn || problems.is_empty() {
            self.warnings.extend(problems);
            return Ok(());
        }
        Err(format!("strict decoding error: {}", problems.join(", ")))
    }
}

/// Reads the body of a create or an update: of the right kind and types, with known fields.
///
/// # Errors
/// 400, and 422 for another kind in a custom resource's place.
pub(crate) fn read_body(resource: &Resource, body: &mut Document, write: &mut Write) -> Result<(), Status> {
    check_kind(resource, &mut body.value)?;
    metadata::check_types(&body.value)
        .and_then(|()| decode(resource, &mut body.value))
        .and_then(|()| write.check_fields(resource, &body.value, &body.duplicates))
        .map_err(|why| {
            let (kind, version) = (&resource.kind, &resource.version);
            Status::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
        })
}

/// Checks that a body is of the kind that the path takes; a built-in kind's body may leave its kind out.
///
/// # Errors
/// 400 that says what it is and what it should be.
pub(crate) fn check_kind(resource: &Resource, body: &mut Value) -> Result<(), Status> {
    if !body.is_object() {
        return Err(Status::bad_request("the body of the request isn't an object"));
    }
    let is_odd = |field: &&str| body.get(field).is_some_and(|value| !value.is_string() && !value.is_null());
    if let Some(field) = ["apiVersion", "kind"].into_iter().find(is_odd) {
        return Err(Status::bad_request(format!("{field} of the body must be a string")));
    }
    let text = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or("").to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let expected = resource.api_version();
    if resource.custom && kind.is_empty() {
        return Err(Status::bad_request(format!("Object 'Kind' is missing in the body: it must be {}", resource.kind)));
    }
    if resource.custom && api_version.is_empty() {
        return Err(Status::bad_request(format!("Object 'apiVersion' is missing in the body: it must be {expected}")));
    }
    if !api_version.is_empty() && api_version != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    if resource.custom && kind != resource.kind {
        let cause = Cause::invalid("kind", &json!(kind), format!("must be {}", resource.kind));
        return Err(Status::invalid(&resource.group, &kind, object::name(body), vec![cause]));
    }
    if !kind.is_empty() && kind != resource.kind {
        return Err(Status::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {expected_kind}: this path takes {expected_kind} only",
            version = resource.version,
            expected_kind = resource.kind,
        )));
    }
    if let Some(root) = body.as_object_mut() {
        root.insert("apiVersion".into(), json!(expected));
        root.insert("kind".into(), json!(resource.kind));
    }
    Ok(())
}

/// Checks that a body belongs in the namespace of the path, and puts it there.
///
/// # Errors
/// 400 when it names another one, or when a namespaced object has none.
pub(crate) fn check_namespace(resource: &Resource, namespace: &str, body: &mut Value) -> Result<(), Status> {
    let given = object::namespace(body);
    if !resource.namespaced {
        return if given.is_empty() {
            Ok(())
        } else {
            Err(Status::bad_request(format!(
                "{} are not namespaced, but the object names a namespace",
                resource.plural
            )))
        };
    }
    if namespace.is_empty() {
        return Err(Status::bad_request("an empty namespace may not be set during creation"));
    }
    if !given.is_empty() && given != namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object::set_meta(body, "namespace", json!(namespace));
    Ok(())
}

/// Checks that a body has the name of the path.
///
/// # Errors
/// 400 when it has another one.
pub(crate) fn check_name(name: &str, body: &Value) -> Result<(), Status> {
    let given = object::name(body);
    if given.is_empty() {
        return Err(Status::bad_request(format!(
            "the object has no metadata.name; on this path it must be \"{name}\""
        )));
    }
    if given != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}
