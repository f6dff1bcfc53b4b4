//! Each verdict from the facts that lead to it.

use serde_json::json;

use super::*;

fn wanted() -> Wanted {
    Wanted {
        group: "example.com".into(),
        version: "v1".into(),
        plural: "widgets".into(),
        in_namespace: false,
        any_version: false,
    }
}

fn crd(scope: &str, versions: &[(&str, bool)], established: bool) -> CrdFacts {
    let versions: Vec<_> = versions.iter().map(|(name, served)| json!({"name": name, "served": served})).collect();
    let established = if established { "True" } else { "False" };
    let document = json!({
        "metadata": {"name": "widgets.example.com", "labels": {"a": "b"}},
        "spec": {"group": "example.com", "scope": scope, "names": {"plural": "widgets"}, "versions": versions},
        "status": {"conditions": [
            {"type": "NamesAccepted", "status": "True"},
            {"type": "Established", "status": established},
        ]},
    });
    CrdFacts::of(&crate::document::Document::json(document.to_string().as_bytes())).expect("a CRD")
}

fn cause(verdict: Verdict) -> MissingCause {
    match verdict {
        Verdict::Absent(absence) => absence.cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_established_crd_that_serves_the_version_serves_it_in_a_namespace_and_in_all() {
    let crd = crd("Namespaced", &[("v1", true)], true);
    assert_eq!(by_crd(&wanted(), &crd), Verdict::Served);
    assert_eq!(by_crd(&Wanted { in_namespace: true, ..wanted() }, &crd), Verdict::Served);
}

#[test]
fn a_crd_without_status_or_condition_is_not_established() {
    assert_eq!(cause(by_crd(&wanted(), &crd("Namespaced", &[("v1", true)], false))), MissingCause::NotEstablished);
    let bare =
        json!({"metadata": {"name": "x"}, "spec": {"scope": "Cluster", "versions": [{"name": "v1", "served": true}]}});
    let bare = CrdFacts::of(&crate::document::Document::json(bare.to_string().as_bytes())).expect("a CRD");
    assert_eq!(cause(by_crd(&wanted(), &bare)), MissingCause::NotEstablished);
}

#[test]
fn other_versions_are_named_best_first_and_those_that_are_not_served_are_not() {
    let versions = [("v1", false), ("v1beta1", true), ("v2alpha1", true), ("v2", true)];
    let crd = crd("Namespaced", &versions, true);
    let others = ["v2", "v1beta1", "v2alpha1"].map(str::to_owned).to_vec();
    assert_eq!(cause(by_crd(&wanted(), &crd)), MissingCause::OtherVersions(others));
    assert_eq!(by_crd(&Wanted { any_version: true, ..wanted() }, &crd), Verdict::ServedAs("v2".into()));
}

#[test]
fn a_crd_that_serves_no_version_is_not_served_yet() {
    assert_eq!(cause(by_crd(&wanted(), &crd("Namespaced", &[("v1", false)], true))), MissingCause::NotEstablished);
}

#[test]
fn a_cluster_scoped_kind_is_not_in_a_namespace() {
    let crd = crd("Cluster", &[("v1", true)], true);
    assert_eq!(cause(by_crd(&Wanted { in_namespace: true, ..wanted() }, &crd)), MissingCause::OtherScope);
    assert_eq!(by_crd(&wanted(), &crd), Verdict::Served);
}

#[test]
fn discovery_is_judged_alike() {
    let offer = |version: &str, namespaced| Offer { version: version.into(), namespaced };
    assert_eq!(cause(by_discovery(&wanted(), &[])), MissingCause::NoSuchKind);
    assert_eq!(by_discovery(&wanted(), &[offer("v1", true)]), Verdict::Served);
    let others = cause(by_discovery(&wanted(), &[offer("v1alpha1", true), offer("v1beta2", true)]));
    assert_eq!(others, MissingCause::OtherVersions(vec!["v1beta2".into(), "v1alpha1".into()]));
    let in_namespace = Wanted { in_namespace: true, ..wanted() };
    assert_eq!(cause(by_discovery(&in_namespace, &[offer("v1", false)])), MissingCause::OtherScope);
}
