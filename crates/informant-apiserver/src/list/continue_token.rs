//! The continue token: where the next page starts, and in which state. Opaque to clients, so it's free to change.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::status::Status;

/// The form of the token, so that one of another form is refused rather than misread.
const FORM: &str = "meta.k8s.io/v1";

/// A place in a paged list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContinueToken {
    #[serde(rename = "v")]
    form: String,
    /// The version of the state that the pages are cut from; -1 for "whatever is there then".
    rv: i64,
    /// The first key that may be on the next page.
    start: String,
}

// === impl ContinueToken ===

impl ContinueToken {
    /// The place after `key` in the state at `version`.
    pub(super) fn after(key: &str, version: u64) -> Self {
        // The smallest key that is greater.
        Self::new(format!("{key}\0"), i64::try_from(version).unwrap_or(i64::MAX))
    }

    /// The place `start` in whatever state there will be.
    pub(super) fn inconsistent(start: &str) -> Self {
        Self::new(start.to_owned(), -1)
    }

    fn new(start: String, rv: i64) -> Self {
        Self { form: FORM.to_owned(), rv, start }
    }

    /// The version of the state; `None` for the present.
    pub(super) fn version(&self) -> Option<u64> {
        u64::try_from(self.rv).ok()
    }

    /// The first key that may be on the page.
    pub(super) fn start(&self) -> &str {
        &self.start
    }

    /// The token as it stands in `metadata.continue`.
    pub(super) fn encode(&self) -> String {
        // A map of strings and a number always has a JSON form.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads a token.
    ///
    /// # Errors
    ///
    /// 400 for everything that [`encode`](Self::encode) doesn't produce.
    pub(super) fn decode(text: &str) -> Result<Self, Status> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| refused(&error))?;
        let token: Self = serde_json::from_slice(&bytes).map_err(|error| refused(&error))?;
        if token.form != FORM || token.start.is_empty() || token.rv == 0 || token.rv < -1 {
            return Err(refused(&"it's of another form"));
        }
        Ok(token)
    }
}

fn refused(why: &dyn std::fmt::Display) -> Status {
    Status::bad_request(format!("invalid continue token: continue key is not valid: {why}; list again without it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was() {
        for token in [ContinueToken::after("default/a", 7), ContinueToken::inconsistent("default/a\0")] {
            assert_eq!(ContinueToken::decode(&token.encode()), Ok(token));
        }
        assert_eq!(ContinueToken::after("a", 7).version(), Some(7));
        assert_eq!(ContinueToken::inconsistent("a").version(), None);
    }

    #[test]
    fn anything_else_is_a_bad_request() {
        let other_form = URL_SAFE_NO_PAD.encode(r#"{"v":"v2","rv":7,"start":"a"}"#);
        let no_start = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":7,"start":""}"#);
        for text in ["garbage", "%%", "", &other_form, &no_start] {
            assert_eq!(ContinueToken::decode(text).map_err(|status| status.code), Err(400), "{text}");
        }
    }
}
