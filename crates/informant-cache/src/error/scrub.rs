//! Error texts without the values that they quote.
//!
//! A parser quotes what it stumbles over, and that may be a Secret's value, a token or a key. An error of ours says
//! where it is and what was expected, never what it is.

use kube::client::AuthError;
use kube::config::KubeconfigError;

/// What a JSON parser complains of, in its own words but for the values.
pub(super) fn json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let complaint = text.strip_suffix(&place).unwrap_or(&text);
    if !error.is_data() {
        // Of the syntax it says what's wrong in fixed words.
        return text;
    }
    self::complaint(complaint)
}

/// What the decoding of a type complains of, but for the values.
pub(crate) fn complaint(complaint: &str) -> String {
    // `invalid type: string "x", expected a map`: what's expected is the program's own text.
    let (found, expected) = complaint.rsplit_once(", expected ").unwrap_or((complaint, ""));
    let fixed = ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant ", "unknown field "];
    let known = fixed.iter().find(|start| found.starts_with(*start));
    let found = match known {
        Some(start @ &("invalid type: " | "invalid value: ")) => {
            // The kind of value comes before the value itself.
            let value = found.strip_prefix(start).unwrap_or_default();
            format!("{start}{}", value.split(['`', '"']).next().unwrap_or_default().trim_end())
        }
        Some(start) => start.trim_end().to_owned(),
        None if found.starts_with("missing field `") || found.starts_with("duplicate field `") => found.to_owned(),
        None => "invalid value".to_owned(),
    };
    if known.is_some() && !expected.is_empty() { format!("{found}, expected {expected}") } else { found }
}

/// What went wrong with the credentials, without what a plugin printed.
pub(super) fn auth(error: &AuthError) -> Option<&'static str> {
    match error {
        AuthError::AuthExecRun { .. } => Some("the command that gives the credentials failed"),
        AuthError::AuthExecParse(_) | AuthError::ParseTokenKey(_) => {
            Some("what the command that gives the credentials printed can't be read")
        }
        AuthError::AuthExec(_) => Some("the credentials can't be obtained as configured"),
        _ => None,
    }
}

/// The same error, without what a plugin printed.
pub(crate) fn kube(error: kube::Error) -> kube::Error {
    match error {
        kube::Error::Auth(inner) => match auth(&inner) {
            Some(text) => kube::Error::Auth(AuthError::AuthExec(text.to_owned())),
            None => kube::Error::Auth(inner),
        },
        other => other,
    }
}

/// The same error, without the lines of the file that a YAML parser shows.
pub(crate) fn kubeconfig(error: KubeconfigError) -> KubeconfigError {
    match error {
        KubeconfigError::Parse(inner) => {
            let line = inner.location().map_or_else(String::new, |location| format!(", line {}", location.line()));
            let text = format!("it isn't as a kubeconfig should be{line}");
            let mut inner = inner;
            *inner = serde::de::Error::custom(text);
            KubeconfigError::Parse(inner)
        }
        other => other,
    }
}

/// A text of the server, without a token that it may quote.
pub(super) fn text(text: &str) -> String {
    const BEARER: &str = "bearer ";
    let lower = text.to_ascii_lowercase();
    let Some(start) = lower.find(BEARER).map(|at| at + BEARER.len()) else { return text.to_owned() };
    let (before, after) = text.split_at(start);
    let end =
        after.find(|char: char| char.is_whitespace() || matches!(char, '"' | '\'' | ',' | '<')).unwrap_or(after.len());
    format!("{before}...{}", self::text(after.get(end..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Secret;
    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "it's parsed only")]
    enum Level {
        Low,
    }

    fn shown<T: DeserializeOwned>(document: &str) -> String {
        json(&serde_json::from_str::<T>(document).err().expect("an error"))
    }

    #[test]
    fn a_parser_s_complaint_says_what_is_expected_and_never_what_is_there() {
        assert_eq!(shown::<u8>(r#""hunter2, expected hunter3""#), "invalid type: string, expected u8");
        assert_eq!(shown::<u8>("77777"), "invalid value: integer, expected u8");
        assert_eq!(shown::<BTreeMap<String, String>>(r#"{"a":7}"#), "invalid type: integer, expected a string");
        assert_eq!(shown::<Level>(r#""hunter2""#), "unknown variant, expected `Low`");
        for document in [
            r#"{"metadata":{"name":"s"},"data":{"password":"hunter2 hunter2"}}"#,
            r#"{"metadata":{"name":"s"},"data":"hunter2"}"#,
            r#"{"metadata":{"name":"s","creationTimestamp":"hunter2"}}"#,
        ] {
            let shown = shown::<Secret>(document);
            assert!(!shown.contains("hunter") && !shown.is_empty(), "{shown}");
        }
        assert!(shown::<Secret>("{\"a\":").contains("EOF"));
    }

    #[test]
    fn a_token_that_a_server_quotes_is_left_out() {
        assert_eq!(text("Authorization: Bearer abc.def, or bearer x"), "Authorization: Bearer ..., or bearer ...");
        assert_eq!(text("no such thing"), "no such thing");
    }

    #[test]
    fn what_a_plugin_printed_is_not_shown() {
        let out = std::process::Output { status: Default::default(), stdout: b"token: hunter2".into(), stderr: vec![] };
        let error = AuthError::AuthExecRun { cmd: "get-token --password hunter2".to_owned(), out: Box::new(out) };
        let error = kube(kube::Error::Auth(error));
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        let request = crate::error::RequestError::from_connection(&error);
        assert!(request.message.contains("credentials"), "{}", request.message);
    }
}
