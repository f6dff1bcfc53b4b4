//! What the manifests say about who may depend on whom, and on which Rust: the layout in ARCHITECTURE.md holds because
//! this fails when it doesn't.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::process::Command;

use serde_json::{Value, json};

/// Each crate of the workspace, and which of the others its shipped part may depend on. Tests may use the embedded server
/// too, whoever they test.
const ARROWS: &[(&str, &[&str])] = &[
    ("informant-queue", &[]),
    ("informant-apiserver", &[]),
    ("informant-derive", &[]),
    ("informant-cache", &["informant-derive"]),
    ("informant-controller", &["informant-cache", "informant-queue"]),
    (
        "informant",
        &["informant-apiserver", "informant-cache", "informant-controller", "informant-derive", "informant-queue"],
    ),
    ("informant-cli", &["informant"]),
    ("xtask", &[]),
    // Measures them, and ships with none of them.
    ("informant-bench", &["informant-apiserver", "informant-cache"]),
];

/// Foreign crates, and which of ours must not ship with them, with the reason.
const BANS: &[(&str, &[&str], &str)] = &[
    (
        "kube",
        &["informant-apiserver", "informant-queue"],
        "the server mustn't share the client's bugs, and the queue knows nothing of Kubernetes",
    ),
    (
        "k8s-openapi",
        &["informant-apiserver", "informant-queue"],
        "a build may choose one version feature only, and the user chooses it",
    ),
];

/// Crates that users build into programs of their own.
const LIBRARIES: &[&str] = &[
    "informant-queue",
    "informant-apiserver",
    "informant-derive",
    "informant-cache",
    "informant-controller",
    "informant",
];

fn metadata(arguments: &[&str]) -> Option<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON"))
}

fn workspace() -> Value {
    metadata(&["--no-deps", "--offline"]).expect("cargo reads the workspace's manifests")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// One sentence for each dependency that the layout forbids.
fn forbidden(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for package in list(metadata, "packages") {
        let name = text(package, "name");
        let Some((_, allowed)) = ARROWS.iter().find(|(crate_name, _)| *crate_name == name) else {
            found.push(format!("{name} isn't in the table of arrows: say there what it may depend on"));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let target = text(dependency, "name");
            let shipped = text(dependency, "kind") != "dev";
            let ours = ARROWS.iter().any(|(crate_name, _)| *crate_name == target);
            let for_tests = !shipped && (target == "informant-apiserver" || target == name);
            if ours && !allowed.contains(&target) && !for_tests {
                found.push(format!("{name} must not depend on {target}"));
            }
            if shipped {
                found.extend(banned(name, dependency));
            }
        }
    }
    found
}

fn banned(name: &str, dependency: &Value) -> Vec<String> {
    let target = text(dependency, "name");
    let mut found = Vec::new();
    for (foreign, crates, reason) in BANS {
        if *foreign == target && crates.contains(&name) {
            found.push(format!("{name} must not ship with {target}: {reason}"));
        }
    }
    if LIBRARIES.contains(&name) {
        for feature in list(dependency, "features").iter().filter_map(Value::as_str) {
            if target == "k8s-openapi" && (feature.starts_with("v1_") || matches!(feature, "latest" | "earliest")) {
                found.push(format!("{name} chooses k8s-openapi's {feature}: the user of a library chooses that"));
            }
            if target == "kube" && feature == "runtime" {
                found.push(format!("{name} is built on kube's runtime: nothing here is"));
            }
        }
    }
    found
}

#[test]
fn no_crate_depends_on_what_the_layout_forbids() {
    let found = forbidden(&workspace());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_forbidden_arrow_would_be_found() {
    let package = |name: &str, dependency: Value| json!({"packages": [{"name": name, "dependencies": [dependency]}]});
    let upward = json!({"name": "informant-controller", "kind": null, "features": []});
    assert_eq!(
        forbidden(&package("informant-cache", upward)),
        ["informant-cache must not depend on informant-controller"]
    );
    let in_tests = json!({"name": "informant-apiserver", "kind": "dev", "features": []});
    assert!(forbidden(&package("informant-cache", in_tests.clone())).is_empty());
    let shipped = json!({"name": "informant-apiserver", "kind": null, "features": []});
    assert_eq!(forbidden(&package("informant-cache", shipped)).len(), 1);
    let upward_in_tests = json!({"name": "informant", "kind": "dev", "features": []});
    assert_eq!(forbidden(&package("informant-queue", upward_in_tests)).len(), 1);
    let version = json!({"name": "k8s-openapi", "kind": null, "features": ["v1_37"]});
    assert_eq!(forbidden(&package("informant-controller", version.clone())).len(), 1);
    assert!(forbidden(&package("informant-cli", version)).is_empty());
    let client = json!({"name": "kube", "kind": null, "features": ["runtime"]});
    assert_eq!(forbidden(&package("informant-queue", client)).len(), 2);
    assert_eq!(forbidden(&package("informant-new", in_tests)).len(), 1);
}

#[test]
fn the_table_of_arrows_names_crates_that_exist() {
    let workspace = workspace();
    for (name, _) in ARROWS {
        assert!(list(&workspace, "packages").iter().any(|package| text(package, "name") == *name), "{name} is gone");
    }
}

#[test]
fn the_facade_turns_no_feature_on_by_default() {
    let workspace = workspace();
    let facade = list(&workspace, "packages").iter().find(|package| text(package, "name") == "informant").unwrap();
    assert!(list(&facade["features"], "default").is_empty(), "{}", facade["features"]);
}

fn version(text: &str) -> Vec<u64> {
    let numbers = text.split(['.', '-']).map_while(|part| part.parse().ok());
    numbers.chain(std::iter::repeat(0)).take(3).collect()
}

/// Every package that is built on this platform: from what is at hand, else from the registry.
fn all_packages() -> Value {
    let rustc = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let about = String::from_utf8(rustc.stdout).unwrap();
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc says its host");
    metadata(&["--offline", "--filter-platform", host])
        .or_else(|| metadata(&["--filter-platform", host]))
        .expect("cargo resolves the workspace as Cargo.lock says")
}

#[test]
fn the_stated_rust_is_new_enough_for_every_dependency() {
    let packages = all_packages();
    let stated = text(&workspace()["packages"][0], "rust_version").to_owned();
    assert!(!stated.is_empty(), "the workspace states its rust-version");
    let built: Vec<&str> = list(&packages["resolve"], "nodes").iter().map(|node| text(node, "id")).collect();
    let too_new: Vec<String> = list(&packages, "packages")
        .iter()
        .filter(|package| built.contains(&text(package, "id")))
        .filter(|package| version(text(package, "rust_version")) > version(&stated))
        .map(|package| format!("{} needs Rust {}", text(package, "name"), text(package, "rust_version")))
        .collect();
    assert!(built.len() > 100, "the whole tree was looked at, not {} packages", built.len());
    assert!(too_new.is_empty(), "stated is {stated}, but:\n{}", too_new.join("\n"));
}

#[test]
fn the_lints_know_the_stated_rust() {
    let root = text(&workspace(), "workspace_root").to_owned();
    let stated = text(&workspace()["packages"][0], "rust_version").to_owned();
    let lints = std::fs::read_to_string(format!("{root}/clippy.toml")).unwrap();
    assert!(lints.contains(&format!("msrv = \"{stated}\"")), "clippy.toml doesn't say msrv = \"{stated}\"");
}
