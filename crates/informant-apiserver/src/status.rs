//! `Status`: the one shape of every answer that isn't an object.
//!
//! Clients branch on `reason` (and on `details.causes[].reason`), never on the text, so the constructors here fix both.

use std::fmt;

use serde_json::{Value, json};

/// An error answer of the API, as a value: code, reason, message and details.
///
/// Every function of this crate that can refuse a request returns it; the service writes it as a `v1` `Status` object.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, for example `NotFound`.
    pub reason: Reason,
    /// What happened and to which object, for people.
    pub message: String,
    /// The object and the causes, for programs.
    pub details: Option<Box<Details>>,
    /// What a paged list that has expired can go on with, in `metadata.continue`; empty for every other error.
    pub continue_token: String,
}

/// What the error is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The kind or, for errors about a path, the plural resource name (upstream mixes the two; so do clients).
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// One entry for each field or conflict.
    pub causes: Vec<Cause>,
    /// Seconds after which a retry makes sense; 0 is left out.
    pub retry_after_seconds: u32,
}

/// One cause within [`Details`].
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// For example `FieldValueInvalid`, `FieldManagerConflict`, `ResourceVersionTooLarge`.
    pub reason: String,
    /// What is wrong, for people.
    pub message: String,
    /// The path of the field, for example `spec.replicas`; empty when the cause isn't about a field.
    pub field: String,
}

/// The reasons that the API uses, with the code that each usually carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// 400
    BadRequest,
    /// 401
    Unauthorized,
    /// 403
    Forbidden,
    /// 404
    NotFound,
    /// 405
    MethodNotAllowed,
    /// 406
    NotAcceptable,
    /// 409, a create met an object of that name
    AlreadyExists,
    /// 409, the object has changed meanwhile
    Conflict,
    /// 410, the resource version is older than the history window
    Expired,
    /// 413
    RequestEntityTooLarge,
    /// 415
    UnsupportedMediaType,
    /// 422
    Invalid,
    /// 429
    TooManyRequests,
    /// 500
    InternalError,
    /// 503
    ServiceUnavailable,
    /// 504
    Timeout,
}

// === impl Reason ===

impl Reason {
    /// The reason as it stands in a `Status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Expired => "Expired",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Invalid => "Invalid",
            Self::TooManyRequests => "TooManyRequests",
            Self::InternalError => "InternalError",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Timeout => "Timeout",
        }
    }

    /// The HTTP status code that goes with the reason.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError => 500,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
        }
    }
}

// === impl Cause ===

impl Cause {
    /// A cause with a reason, a message and a field path.
    pub fn new(reason: &str, message: impl Into<String>, field: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into(), field: field.into() }
    }

    /// `FieldValueInvalid`: `Invalid value: <value>: <why>`.
    pub fn invalid(field: impl Into<String>, value: &Value, why: impl fmt::Display) -> Self {
        Self::new("FieldValueInvalid", format!("Invalid value: {value}: {why}"), field)
    }

    /// `FieldValueRequired`: `Required value[: <why>]`.
    pub fn required(field: impl Into<String>, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self::new("FieldValueRequired", message, field)
    }

    /// `FieldValueForbidden`: `Forbidden: <why>`.
    pub fn forbidden(field: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::new("FieldValueForbidden", format!("Forbidden: {why}"), field)
    }

    /// `FieldValueNotSupported`: `Unsupported value: <value>: supported values: <values>`.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[Value]) -> Self {
        let supported: Vec<String> = supported.iter().map(Value::to_string).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self::new("FieldValueNotSupported", message, field)
    }

    /// `FieldValueDuplicate`: `Duplicate value: <value>`.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", format!("Duplicate value: {value}"), field)
    }

    /// `FieldValueTooMany`: `Too many: <count>: must have at most <limit> items`.
    pub fn too_many(field: impl Into<String>, count: u64, limit: u64) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        Self::new("FieldValueTooMany", format!("Too many: {count}: must have at most {limit} {items}"), field)
    }

    /// `FieldValueTooLong`: `Too long: may not be more than <limit> bytes`.
    pub fn too_long(field: impl Into<String>, limit: u64) -> Self {
        let bytes = if limit == 1 { "byte" } else { "bytes" };
        Self::new("FieldValueTooLong", format!("Too long: may not be more than {limit} {bytes}"), field)
    }

    /// `FieldValueTypeInvalid`: `Invalid value: <value>: <why>`.
    pub fn type_invalid(field: impl Into<String>, value: &Value, why: impl fmt::Display) -> Self {
        Self::new("FieldValueTypeInvalid", format!("Invalid value: {value}: {why}"), field)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.field, self.message) }
    }
}

// === impl Status ===

impl Status {
    /// A status with the reason's usual code and no details.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { code: reason.code(), reason, message: message.into(), details: None, continue_token: String::new() }
    }

    /// The same status with details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400: the request makes no sense as it stands.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// 500: a defect of this server.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Reason::InternalError, message)
    }

    /// 404 for a named object; `group` is empty for the core group.
    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        Self::about(Reason::NotFound, group, plural, name, format!("{} \"{name}\" not found", qualified(plural, group)))
    }

    /// 404 for a path that nothing is served at.
    pub fn no_such_path() -> Self {
        Self::new(Reason::NotFound, "the server could not find the requested resource").with_details(Details::default())
    }

    /// 409: a create met an object of that name.
    pub fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", qualified(plural, group));
        Self::about(Reason::AlreadyExists, group, plural, name, message)
    }

    /// 409: an update was based on another resource version, or a precondition failed.
    pub fn conflict(group: &str, plural: &str, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified(plural, group));
        Self::about(Reason::Conflict, group, plural, name, message)
    }

    /// 403: the object or the action is refused whatever its content.
    pub fn forbidden(group: &str, plural: &str, name: &str, why: impl fmt::Display) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", qualified(plural, group))
        } else {
            format!("{} \"{name}\" is forbidden: {why}", qualified(plural, group))
        };
        Self::about(Reason::Forbidden, group, plural, name, message)
    }

    /// 422: the object's fields are wrong; one cause for each field.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let list = match causes.as_slice() {
            [one] => one.to_string(),
            many => format!("[{}]", many.iter().map(Cause::to_string).collect::<Vec<_>>().join(", ")),
        };
        let mut status = Self::about(
            Reason::Invalid,
            group,
            kind,
            name,
            format!("{} \"{name}\" is invalid: {list}", qualified(kind, group)),
        );
        if let Some(details) = &mut status.details {
            details.causes = causes;
        }
        status
    }

    /// 410: the resource version is older than the history window.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(Reason::Expired, message)
    }

    /// 504: a resource version from the future was asked for.
    pub fn resource_version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        Self::new(Reason::Timeout, message).with_details(Details {
            causes: vec![Cause::new("ResourceVersionTooLarge", "Too large resource version", "")],
            retry_after_seconds: 1,
            ..Details::default()
        })
    }

    /// 415: the body's media type isn't taken here.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        Self::new(
            Reason::UnsupportedMediaType,
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    /// The status as a `v1` `Status` object.
    pub fn to_value(&self) -> Value {
        let mut value = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason.as_str(), "code": self.code,
        });
        if let Some(details) = &self.details {
            value["details"] = details.to_value();
        }
        if !self.continue_token.is_empty() {
            value["metadata"]["continue"] = json!(self.continue_token);
        }
        value
    }

    fn about(reason: Reason, group: &str, kind: &str, name: &str, message: String) -> Self {
        Self::new(reason, message).with_details(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..Details::default()
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.reason.as_str(), self.code, self.message)
    }
}

impl std::error::Error for Status {}

// === impl Details ===

impl Details {
    fn to_value(&self) -> Value {
        let mut value = json!({});
        for (key, text) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)] {
            if !text.is_empty() {
                value[key] = json!(text);
            }
        }
        if !self.causes.is_empty() {
            value["causes"] = self.causes.iter().map(Cause::to_value).collect();
        }
        if self.retry_after_seconds > 0 {
            value["retryAfterSeconds"] = json!(self.retry_after_seconds);
        }
        value
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut value = json!({"reason": self.reason, "message": self.message});
        if !self.field.is_empty() {
            value["field"] = json!(self.field);
        }
        value
    }
}

/// `plural` or `plural.group`: how messages name a resource.
fn qualified(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}
