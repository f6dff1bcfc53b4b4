//! From what a person calls a resource (`deploy`, `deployments.apps`, `MyApp`) to the resource itself, by discovery.

use informant::kube::Client;
use informant::kube::discovery::ApiResource;
use kube::core::discovery::v2::{APIGroupDiscoveryList, APIResourceDiscovery};

/// A resource as discovery describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Names and version.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether it can be listed and watched.
    pub watchable: bool,
}

/// Asks the server (two requests) and resolves `name`; `None` when nothing of that name is served now.
///
/// # Errors
/// When discovery itself fails.
pub async fn resolve(client: &Client, name: &str) -> Result<Option<Resolved>, kube::Error> {
    let core = client.list_core_api_versions_aggregated().await?;
    let named = client.list_api_groups_aggregated().await?;
    Ok(find(name, [&core, &named]))
}

/// The first resource that `name` fits, in the server's order: the core group first, preferred versions first.
fn find(name: &str, documents: [&APIGroupDiscoveryList; 2]) -> Option<Resolved> {
    candidates(name).into_iter().find_map(|wanted| {
        documents.iter().flat_map(|document| &document.items).find_map(|group| {
            let group_name = group.metadata.as_ref().and_then(|meta| meta.name.as_deref()).unwrap_or("");
            if wanted.group.is_some_and(|asked| asked != group_name) {
                return None;
            }
            group.versions.iter().find_map(|version| {
                let version_name = version.version.as_deref().unwrap_or("");
                if wanted.version.is_some_and(|asked| asked != version_name) {
                    return None;
                }
                let found = version.resources.iter().find(|resource| is_called(resource, wanted.resource))?;
                Some(resolved(group_name, version_name, found))
            })
        })
    })
}

/// One way to read `a.b.c`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wanted<'a> {
    resource: &'a str,
    version: Option<&'a str>,
    group: Option<&'a str>,
}

/// The ways to read a name, best first: `resource.version.group` (when the second part looks like a version), then
/// `resource.group`, then a bare resource.
fn candidates(name: &str) -> Vec<Wanted<'_>> {
    let Some((resource, rest)) = name.split_once('.') else {
        return vec![Wanted { resource: name, version: None, group: None }];
    };
    let mut ways = Vec::new();
    if let Some((version, group)) = rest.split_once('.')
        && looks_like_version(version)
    {
        ways.push(Wanted { resource, version: Some(version), group: Some(group) });
    }
    ways.push(Wanted { resource, version: None, group: Some(rest) });
    if looks_like_version(rest) {
        ways.push(Wanted { resource, version: Some(rest), group: Some("") });
    }
    ways
}

fn looks_like_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_called(resource: &APIResourceDiscovery, name: &str) -> bool {
    let is = |text: Option<&String>| text.is_some_and(|text| text.eq_ignore_ascii_case(name));
    is(resource.resource.as_ref())
        || is(resource.singular_resource.as_ref())
        || is(resource.response_kind.as_ref().and_then(|kind| kind.kind.as_ref()))
        || resource.short_names.iter().any(|short| short.eq_ignore_ascii_case(name))
}

fn resolved(group: &str, version: &str, found: &APIResourceDiscovery) -> Resolved {
    let kind = found.response_kind.as_ref();
    let kind_name = kind.and_then(|kind| kind.kind.clone()).unwrap_or_default();
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let serves = |verb: &str| found.verbs.iter().any(|served| served == verb);
    Resolved {
        resource: ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind: kind_name,
            plural: found.resource.clone().unwrap_or_default(),
        },
        namespaced: found.scope.as_deref() == Some("Namespaced"),
        watchable: serves("list") && serves("watch"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn documents() -> (APIGroupDiscoveryList, APIGroupDiscoveryList) {
        let resource = |plural: &str, singular: &str, kind: &str, short: &[&str]| {
            json!({"resource": plural, "singularResource": singular, "scope": "Namespaced", "shortNames": short,
                "responseKind": {"group": "", "version": "", "kind": kind}, "verbs": ["get", "list", "watch"]})
        };
        let core = json!({"metadata": {}, "items": [{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [
            resource("pods", "pod", "Pod", &["po"]), resource("events", "event", "Event", &["ev"])]}]}]});
        let named = json!({"metadata": {}, "items": [
            {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [resource("deployments", "deployment", "Deployment", &["deploy"])]}]},
            {"metadata": {"name": "events.k8s.io"}, "versions": [{"version": "v1", "resources": [resource("events", "event", "Event", &["ev"])]}]},
            {"metadata": {"name": "shop.example.org"}, "versions": [
                {"version": "v2", "resources": [resource("orders", "order", "Order", &[])]},
                {"version": "v1", "resources": [resource("orders", "order", "Order", &[])]}]}]});
        (serde_json::from_value(core).unwrap(), serde_json::from_value(named).unwrap())
    }

    fn found(name: &str) -> Option<String> {
        let (core, named) = documents();
        find(name, [&core, &named]).map(|found| format!("{} {}", found.resource.api_version, found.resource.plural))
    }

    #[test]
    fn plural_singular_short_name_and_kind_mean_the_same() {
        for name in
            ["deployments", "deployment", "deploy", "Deployment", "DEPLOY", "deployments.apps", "deploy.v1.apps"]
        {
            assert_eq!(found(name).as_deref(), Some("apps/v1 deployments"), "{name}");
        }
    }

    #[test]
    fn the_core_group_comes_first_and_a_group_chooses() {
        assert_eq!(found("events").as_deref(), Some("v1 events"));
        assert_eq!(found("events.v1").as_deref(), Some("v1 events"));
        assert_eq!(found("events.events.k8s.io").as_deref(), Some("events.k8s.io/v1 events"));
    }

    #[test]
    fn the_first_version_served_is_taken_unless_one_is_named() {
        assert_eq!(found("orders.shop.example.org").as_deref(), Some("shop.example.org/v2 orders"));
        assert_eq!(found("orders.v1.shop.example.org").as_deref(), Some("shop.example.org/v1 orders"));
        assert_eq!(found("orders.v3.shop.example.org"), None);
    }

    #[test]
    fn what_isnt_served_isnt_found() {
        assert_eq!(found("gadgets"), None);
        assert_eq!(found("pods.apps"), None);
        assert_eq!(found(""), None);
    }
}
