//! From a path to what it names. Pure: it knows the shape of API paths, not which resources are served.

use crate::status::Status;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/api`: the versions of the core group.
    CoreVersions,
    /// `/apis`: all other groups.
    Groups,
    /// `/apis/G`: one group.
    Group(String),
    /// `/api/v1` (empty group) or `/apis/G/V`: the resources of one group version.
    GroupVersion(String, String),
    /// `/openapi/v3`: the index of documents.
    OpenApiIndex,
    /// `/openapi/v3/api/v1` or `/openapi/v3/apis/G/V`: the document of a group (empty for core) and version.
    OpenApiDocument(String, String),
    /// `/openapi/v2`: the older document.
    OpenApiV2,
    /// `/version`.
    Version,
    /// `/livez`, `/readyz`, `/healthz`, or one check of them.
    Health {
        /// `livez`, `readyz` or `healthz`.
        endpoint: String,
        /// The single check that is asked for.
        check: Option<String>,
    },
    /// `/`: the list of paths.
    Root,
    /// A collection, an object or a subresource.
    Resource(ResourcePath),
}

/// The path of a collection (`name` empty), an object or a subresource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// API group; empty for the core group.
    pub(crate) group: String,
    /// Version.
    pub(crate) version: String,
    /// The namespace in the path; empty for cluster scope and for all namespaces.
    pub(crate) namespace: String,
    /// Plural resource name.
    pub(crate) plural: String,
    /// Object name; empty for a collection.
    pub(crate) name: String,
    /// Subresource; empty for none.
    pub(crate) subresource: String,
    /// Whether the path had the deprecated `/watch/` prefix.
    pub(crate) watch: bool,
}

/// Reads a path.
///
/// # Errors
/// 404 when nothing can be served there, 400 when its escapes don't decode to UTF-8.
pub(crate) fn parse(path: &str) -> Result<Route, Status> {
    let mut segments = Vec::new();
    for raw in path.split('/').filter(|segment| !segment.is_empty()) {
        segments.push(decode(raw)?);
    }
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        [] => Ok(Route::Root),
        ["api"] => Ok(Route::CoreVersions),
        ["apis"] => Ok(Route::Groups),
        ["api", version] => Ok(Route::GroupVersion(String::new(), (*version).to_owned())),
        ["apis", group] => Ok(Route::Group((*group).to_owned())),
        ["apis", group, version] => Ok(Route::GroupVersion((*group).to_owned(), (*version).to_owned())),
        ["openapi", "v2"] => Ok(Route::OpenApiV2),
        ["openapi", "v3"] => Ok(Route::OpenApiIndex),
        ["openapi", "v3", "api", version] => Ok(Route::OpenApiDocument(String::new(), (*version).to_owned())),
        ["openapi", "v3", "apis", group, version] => {
            Ok(Route::OpenApiDocument((*group).to_owned(), (*version).to_owned()))
        }
        ["version"] => Ok(Route::Version),
        [endpoint @ ("livez" | "readyz" | "healthz")] => {
            Ok(Route::Health { endpoint: (*endpoint).to_owned(), check: None })
        }
        [endpoint @ ("livez" | "readyz" | "healthz"), check @ ..] => {
            Ok(Route::Health { endpoint: (*endpoint).to_owned(), check: Some(check.join("/")) })
        }
        ["api", version, rest @ ..] => resource("", version, rest).map(Route::Resource),
        ["apis", group, version, rest @ ..] => resource(group, version, rest).map(Route::Resource),
        _ => Err(Status::no_such_path()),
    }
}

/// The part of a path behind its group and version.
fn resource(group: &str, version: &str, rest: &[&str]) -> Result<ResourcePath, Status> {
    let (watch, rest) = match rest {
        ["watch", more @ ..] if !more.is_empty() => (true, more),
        _ => (false, rest),
    };
    let path = |namespace: &str, plural: &str, name: &str, subresource: &str| ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        plural: plural.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        watch,
    };
    // The namespaces resource is special: its objects' subresources look like collections in a namespace.
    match rest {
        ["namespaces", name, subresource @ ("status" | "finalize")] if group.is_empty() => {
            Ok(path("", "namespaces", name, subresource))
        }
        ["namespaces", namespace, plural] => Ok(path(namespace, plural, "", "")),
        ["namespaces", namespace, plural, name] => Ok(path(namespace, plural, name, "")),
        ["namespaces", namespace, plural, name, subresource] => Ok(path(namespace, plural, name, subresource)),
        [plural] => Ok(path("", plural, "", "")),
        [plural, name] => Ok(path("", plural, name, "")),
        [plural, name, subresource] => Ok(path("", plural, name, subresource)),
        _ => Err(Status::no_such_path()),
    }
}

/// Decodes `%xx` escapes. `plus_is_space` isn't a thing in paths.
fn decode(segment: &str) -> Result<String, Status> {
    percent_decode(segment, false).ok_or_else(|| {
        Status::bad_request(format!("the path segment \"{segment}\" isn't valid: its escapes must decode to UTF-8"))
    })
}

/// Decodes `%xx` escapes and, in queries, `+` as a space; `None` when the result isn't UTF-8 or an escape is cut short.
pub(crate) fn percent_decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    String::from_utf8(decoded).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource_at(path: &str) -> ResourcePath {
        match parse(path) {
            Ok(Route::Resource(path)) => path,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn a_namespace_and_its_content_are_told_apart() {
        let namespace = resource_at("/api/v1/namespaces/shop");
        assert_eq!(
            (namespace.plural.as_str(), namespace.name.as_str(), namespace.namespace.as_str()),
            ("namespaces", "shop", "")
        );
        let finalize = resource_at("/api/v1/namespaces/shop/finalize");
        assert_eq!((finalize.plural.as_str(), finalize.subresource.as_str()), ("namespaces", "finalize"));
        let pods = resource_at("/api/v1/namespaces/shop/pods");
        assert_eq!((pods.plural.as_str(), pods.namespace.as_str(), pods.name.as_str()), ("pods", "shop", ""));
        let scale = resource_at("/apis/apps/v1/namespaces/shop/deployments/web/scale");
        assert_eq!((scale.group.as_str(), scale.name.as_str(), scale.subresource.as_str()), ("apps", "web", "scale"));
    }

    #[test]
    fn the_watch_prefix_is_taken_off() {
        let watched = resource_at("/api/v1/watch/namespaces/shop/pods/web");
        assert!(watched.watch);
        assert_eq!((watched.plural.as_str(), watched.name.as_str()), ("pods", "web"));
    }

    #[test]
    fn escapes_are_decoded_and_bad_ones_refused() {
        assert_eq!(resource_at("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode").name, "system:node");
        assert_eq!(parse("/api/v1/pods/%ff").map_err(|status| status.code), Err(400));
        assert_eq!(parse("/api/v1/pods/%2").map_err(|status| status.code), Err(400));
    }

    #[test]
    fn other_paths_are_not_found() {
        for path in ["/nope", "/api/v1/a/b/c/d/e/f", "/openapi/v1"] {
            assert_eq!(parse(path).map_err(|status| status.code), Err(404), "{path}");
        }
        assert_eq!(parse("/version/"), Ok(Route::Version));
        assert_eq!(
            parse("/readyz/poststarthook/crds"),
            Ok(Route::Health { endpoint: "readyz".into(), check: Some("poststarthook/crds".into()) })
        );
    }
}
