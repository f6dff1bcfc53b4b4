//! What an informer asks the API server for: the URLs of its lists and watches, and of one object.

use std::fmt::Write as _;
use std::time::Duration;

use kube::api::ApiResource;

use crate::key::ObjectKey;
use crate::scope::Scope;

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

/// The name of an informer: its resource as people write it, with its version, and its scope.
pub(crate) fn informer_name(resource: &ApiResource, scope: &Scope, name: Option<&str>) -> String {
    let ApiResource { group, version, plural, .. } = resource;
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    let name = name.map(|name| format!(" named {name:?}")).unwrap_or_default();
    format!("{plural}{group}/{version}{scope}{name}")
}

/// The path of one object.
pub(crate) fn object_path(resource: &ApiResource, key: &ObjectKey) -> String {
    let mut path = path(resource, key.namespace());
    path.push('/');
    encode(key.name(), &mut path);
    path
}

/// The path of a resource's objects, of all or in a namespace.
fn path(resource: &ApiResource, namespace: Option<&str>) -> String {
    let ApiResource { group, api_version, plural, .. } = resource;
    let prefix = if group.is_empty() { "/api/" } else { "/apis/" };
    let mut path = format!("{prefix}{api_version}/");
    if let Some(namespace) = namespace {
        path.push_str("namespaces/");
        encode(namespace, &mut path);
        path.push('/');
    }
    path.push_str(plural);
    path
}

// === impl Request ===

impl Request {
    /// Path and query of the request; `part` is the one of a scope's namespaces that's asked for.
    pub(crate) fn url(&self, resource: &ApiResource, scope: &Scope, part: Option<&str>) -> String {
        let url = path(resource, part.or_else(|| scope.namespace()));
        let mut query = Query { url, separator: '?' };
        if let Some(labels) = scope.labels() {
            query.push("labelSelector", labels);
        }
        if let Some(fields) = scope.fields() {
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
        assert_eq!(
            request.url(&deployments(), &Scope::all(), None),
            "/apis/apps/v1/deployments?limit=500&resourceVersion=0"
        );
    }

    /// client-go fact 11.
    #[test]
    fn a_further_page_carries_its_token_and_neither_resource_version_nor_match() {
        let request = Request::List { resource_version: "7".into(), limit: 500, continue_token: Some("a+b=".into()) };
        assert_eq!(
            request.url(&deployments(), &Scope::all(), None),
            "/apis/apps/v1/deployments?limit=500&continue=a%2Bb%3D"
        );
    }

    #[test]
    fn a_scope_goes_into_path_and_query() {
        let pods = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Pod"), "pods");
        let scope = Scope::namespaced("web").with_labels("app in (a,b)").with_fields("spec.nodeName=n1");
        let request = Request::Watch { resource_version: "9".into(), timeout: Duration::from_secs(300) };
        let url = request.url(&pods, &scope, None);
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
    fn an_object_is_asked_for_by_its_own_path() {
        assert_eq!(
            object_path(&deployments(), &ObjectKey::namespaced("web", "a:b")),
            "/apis/apps/v1/namespaces/web/deployments/a%3Ab"
        );
        let nodes = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Node"), "nodes");
        assert_eq!(object_path(&nodes, &ObjectKey::cluster("n1")), "/api/v1/nodes/n1");
    }

    #[test]
    fn a_stream_of_the_present_state_asks_for_initial_events() {
        let request = Request::WatchList { resource_version: String::new(), timeout: Duration::from_secs(400) };
        assert_eq!(
            request.url(&deployments(), &Scope::all(), None),
            "/apis/apps/v1/deployments?watch=true&allowWatchBookmarks=true&timeoutSeconds=400\
             &sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        );
    }
}
