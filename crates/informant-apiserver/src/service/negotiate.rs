//! Content negotiation: which form of an answer the client takes, from its `Accept` header.
//!
//! Clients list several forms and take the first that the server knows; the list is read in its order (none of them
//! sends weights that differ from it).

use crate::protobuf::encode;
use crate::status::{Details, Reason, Status};

/// The media type of protobuf in Kubernetes' envelope.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// How an answer is to be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Representation {
    /// The syntax.
    pub(crate) format: Format,
    /// The object itself, or a view of it.
    pub(crate) form: Form,
}

/// The syntax of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// `application/json`
    #[default]
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`, for built-in kinds
    Protobuf,
}

/// The shape of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object or list itself.
    #[default]
    Object,
    /// `Table`
    Table,
    /// `PartialObjectMetadata`, or its list.
    PartialMetadata,
}

/// One entry of an `Accept` header.
struct MediaRange<'a> {
    media_type: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

/// What a client takes for an object or a list; `protobuf` says whether the kind can be written so, and is asked only if
/// the client takes that.
///
/// # Errors
/// 406 when it takes none of the forms that this server writes.
pub(crate) fn representation(accept: &str, protobuf: impl Fn() -> bool) -> Result<Representation, Status> {
    if accept.trim().is_empty() {
        return Ok(Representation::default());
    }
    for range in ranges(accept) {
        let format = match range.media_type {
            "application/json" | "*/*" | "application/*" => Format::Json,
            "application/yaml" | "application/x-yaml" | "text/yaml" => Format::Yaml,
            PROTOBUF if protobuf() => Format::Protobuf,
            _ => continue,
        };
        if let Some(form) = form(&range)
            // Tables are for people.
            && (format, form) != (Format::Protobuf, Form::Table)
        {
            return Ok(Representation { format, form });
        }
    }
    Err(not_acceptable(protobuf()))
}

/// In which syntax a client reads an error, whatever else it asks for.
pub(crate) fn error_format(accept: &str, path: &str) -> Format {
    let protobuf = || {
        let mut segments = path.split('/').skip(1);
        match (segments.next(), segments.next(), segments.next()) {
            (Some("api"), Some(version), _) => encode::knows_version(version),
            (Some("apis"), Some(group), Some(version)) => encode::knows_version(&format!("{group}/{version}")),
            _ => false,
        }
    };
    representation(accept, protobuf).map(|representation| representation.format).unwrap_or_default()
}

/// The media type and parameters of a `Content-Type`, lower-cased type first.
pub(crate) fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// The form that a range asks for; `None` when it isn't known here.
fn form(range: &MediaRange<'_>) -> Option<Form> {
    // Older versions of these forms aren't written; clients list the new one first.
    if range.get("v").is_some_and(|version| version != "v1") {
        return None;
    }
    match (range.get("as"), range.get("g")) {
        (None, _) => Some(Form::Object),
        (Some("Table"), Some("meta.k8s.io")) => Some(Form::Table),
        (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("meta.k8s.io")) => {
            Some(Form::PartialMetadata)
        }
        _ => None,
    }
}

fn ranges(accept: &str) -> impl Iterator<Item = MediaRange<'_>> {
    accept.split(',').map(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or("");
        MediaRange { media_type, parameters: parts.filter_map(|part| part.split_once('=')).collect() }
    })
}

fn not_acceptable(protobuf: bool) -> Status {
    let accepted = "only the following media types are accepted: application/json, application/yaml";
    let message = if protobuf { format!("{accepted}, {PROTOBUF}") } else { accepted.to_owned() };
    Status::new(Reason::NotAcceptable, message).with_details(Details::default())
}

// === impl MediaRange ===

impl<'a> MediaRange<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_get_asks_for_a_table_first() {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(representation(accept, || true).map(|found| found.form), Ok(Form::Table));
    }

    #[test]
    fn protobuf_is_written_of_built_in_kinds_and_passed_over_for_others() {
        let both = "application/vnd.kubernetes.protobuf, application/json";
        assert_eq!(representation(both, || true).map(|found| found.format), Ok(Format::Protobuf));
        assert_eq!(representation(both, || false), Ok(Representation::default()));
        assert_eq!(
            representation("application/vnd.kubernetes.protobuf", || false).map_err(|status| status.code),
            Err(406)
        );
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        let expected = Representation { format: Format::Protobuf, form: Form::PartialMetadata };
        assert_eq!(representation(metadata, || true), Ok(expected));
        assert_eq!(representation(metadata, || false).map(|found| found.form), Ok(Form::PartialMetadata));
    }
}
