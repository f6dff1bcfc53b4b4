//! What an informer asks the API server for: its scope, and the URLs of its lists and watches.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use kube::api::ApiResource;

/// The part of a resource that an informer covers: all of it, one namespace, or what a selector selects.
///
/// The server does the selecting. An object that stops matching is deleted from the cache, one that starts to is added.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Scope {
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
}

/// A request of the reflector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// One page of a list.
    List {
        resource_version: String,
        /// 0 for no limit.
        limit: u32,
        continue_token: Option<String>,
    },
    /// A stream of the present state, followed by changes.
    WatchList { resource_version: String, timeout: Duration },
    /// Changes after a resource version.
    Watch { resource_version: String, timeout: Duration },
}

// === impl Scope ===

impl Scope {
    /// Everything: all namespaces, no selector.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// One namespace.
    #[must_use]
    pub fn namespaced(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// Only what this label selector selects, written as for `kubectl -l`.
    #[must_use]
    pub fn with_labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Only what this field selector selects, written as for `kubectl --field-selector`.
    #[must_use]
    pub fn with_fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// The namespace, `None` for all.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace {namespace:?}")?;
        }
        if let Some(labels) = &self.labels {
            write!(f, " with labels {labels:?}")?;
        }
        if let Some(fields) = &self.fields {
            write!(f, " with fields {fields:?}")?;
        }
        Ok(())
    }
}

/// The name of an informer: its resource as people write it, with its version, and its scope.
pub(crate) fn informer_name(resource: &ApiResource, scope: &Scope, name: Option<&str>) -> String {
    let ApiResource { group, version, plural, .. } = resource;
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    let name = name.map(|name| format!(" named {name:?}")).unwrap_or_default();
    format!("{plural}{group}/{version}{scope}{name}")
}

// === impl Request ===

impl Request {
    /// Path and query of the request.
    pub(crate) fn url(&self, resource: &ApiResource, scope: &Scope) -> String {
        let ApiResource { group, api_version, plural, .. } = resource;
        let prefix = if group.is_empty() { "/api/" } else { "/apis/" };
        let mut url = format!("{prefix}{api_version}/");
        if let Some(namespace) = &scope.namespace {
            url.push_str("namespaces/");
            encode(namespace, &mut url);
            url.push('/');
        }
        url.push_str(plural);

        let mut query = Query { url, separator: '?' };
        if let Some(labels) = &scope.labels {
            query.push("labelSelector", labels);
        }
        if let Some(fields) = &scope.fields {
            query.push("fieldSelector", fields);
        }
        self.push_parameters(&mut query);
        query.url
    }

    fn push_parameters(&self, query: &mut Query) {
        match self {
            Self::List { resource_version, limit, continue_token } => {
                if *limit > 0 {
                    query.push("limit", &limit.to_string());
                }
                match continue_token {
                    // The token holds the resource version; the server refuses both.
                    Some(token) => query.push("continue", token),
                    None if !resource_version.is_empty() => query.push("resourceVersion", resource_version),
                    None => {}
                }
            }
            Self::WatchList { resource_version, timeout } => {
                query.push_watch(resource_version, *timeout);
                query.push("sendInitialEvents", "true");
                query.push("resourceVersionMatch", "NotOlderThan");
            }
            Self::Watch { resource_version, timeout } => query.push_watch(resource_version, *timeout),
        }
    }
}

struct Query {
    url: String,
    separator: char,
}

impl Query {
    fn push(&mut self, name: &str, value: &str) {
        self.url.push(self.separator);
        self.separator = '&';
        self.url.push_str(name);
        self.url.push('=');
        encode(value, &mut self.url);
    }

    fn push_watch(&mut self, resource_version: &str, timeout: Duration) {
        self.push("watch", "true");
        self.push("allowWatchBookmarks", "true");
        self.push("timeoutSeconds", &timeout.as_secs().to_string());
        if !resource_version.is_empty() {
            self.push("resourceVersion", resource_version);
        }
    }
}

/// Percent-encodes all but the characters that are the same everywhere in a URL.
fn encode(text: &str, url: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            url.push(char::from(byte));
        } else {
            // Writing into a string can't fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::api::GroupVersionKind;

    use super::*;

    fn deployments() -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("apps", "v1", "Deployment"), "deployments")
    }

    #[test]
    fn a_first_page_asks_for_its_limit_and_resource_version() {
        let request = Request::List { resource_version: "0".into(), limit: 500, continue_token: None };
        assert_eq!(request.url(&deployments(), &Scope::all()), "/apis/apps/v1/deployments?limit=500&resourceVersion=0");
    }

    /// client-go fact 11.
    #[test]
    fn a_further_page_carries_its_token_and_neither_resource_version_nor_match() {
        let request = Request::List { resource_version: "7".into(), limit: 500, continue_token: Some("a+b=".into()) };
        assert_eq!(request.url(&deployments(), &Scope::all()), "/apis/apps/v1/deployments?limit=500&continue=a%2Bb%3D");
    }

    #[test]
    fn a_scope_goes_into_path_and_query() {
        let pods = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Pod"), "pods");
        let scope = Scope::namespaced("web").with_labels("app in (a,b)").with_fields("spec.nodeName=n1");
        let request = Request::Watch { resource_version: "9".into(), timeout: Duration::from_secs(300) };
        let url = request.url(&pods, &scope);
        assert_eq!(
            url,
            "/api/v1/namespaces/web/pods?labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=spec.nodeName%3Dn1\
             &watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=9"
        );
        assert_eq!(
            informer_name(&pods, &scope, Some("mine")),
            "pods/v1 in namespace \"web\" with labels \"app in (a,b)\" with fields \"spec.nodeName=n1\" named \"mine\""
        );
    }

    #[test]
    fn a_stream_of_the_present_state_asks_for_initial_events() {
        let request = Request::WatchList { resource_version: String::new(), timeout: Duration::from_secs(400) };
        assert_eq!(
            request.url(&deployments(), &Scope::all()),
            "/apis/apps/v1/deployments?watch=true&allowWatchBookmarks=true&timeoutSeconds=400\
             &sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        );
    }
}
