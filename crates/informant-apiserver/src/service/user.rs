//! Who sends a request: by bearer token, or the administrator.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::review;
use crate::status::{Reason, Status};

/// A user as reviews report it. Nothing is refused to anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// For example `system:admin`.
    pub name: String,
    /// An id that is never used again; may be empty.
    pub uid: String,
    /// For example `system:masters`.
    pub groups: Vec<String>,
}

/// Which tokens are known. Without any, every request is the administrator's, whatever token it brings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens {
    by_token: BTreeMap<String, User>,
}

// === impl User ===

impl User {
    /// A user of that name and those groups.
    pub fn new(name: impl Into<String>, groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { name: name.into(), uid: String::new(), groups: groups.into_iter().map(Into::into).collect() }
    }

    /// The administrator.
    pub fn admin() -> Self {
        Self::new("system:admin", ["system:masters", "system:authenticated"])
    }
}

// === impl Tokens ===

impl Tokens {
    pub(crate) fn add(&mut self, token: String, user: User) {
        self.by_token.insert(token, user);
    }

    /// A token that is let in, for kubeconfigs.
    pub(crate) fn any(&self) -> &str {
        self.by_token.keys().next().map_or("informant", String::as_str)
    }

    /// Who sends a request with these headers.
    ///
    /// # Errors
    /// 401 when tokens are configured and the request brings neither one of them nor one that was issued here.
    pub(crate) fn authenticate(&self, headers: &HeaderMap, now: jiff::Timestamp) -> Result<User, Status> {
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or("");
        let token = header.strip_prefix("Bearer ").or_else(|| header.strip_prefix("bearer ")).unwrap_or("").trim();
        match self.user_of(token, now) {
            Some(user) => Ok(user),
            None if self.by_token.is_empty() => Ok(User::admin()),
            None => Err(Status::new(Reason::Unauthorized, "Unauthorized")),
        }
    }

    /// Whose token it is: a configured one, or one that was issued for a service account.
    pub(crate) fn user_of(&self, token: &str, now: jiff::Timestamp) -> Option<User> {
        self.by_token.get(token).cloned().or_else(|| review::service_account(token, now))
    }
}
