//! `cargo xtask schemas`: the facts about built-in kinds that the embedded server is made of, read from a real server.
//!
//! Written are two files of `crates/informant-apiserver/data`: `resources.tsv` from discovery, `schemas.bin` from OpenAPI v3.
//! Only what decides something is kept: fields, types, formats, required fields, defaults, list, map and patch rules; no
//! descriptions. Versions that a server doesn't serve by default (alpha, beta) are left out, whatever the one that is
//! asked serves.
//!
//! `schemas.bin`: the length of the index (4 bytes, little endian), the index (JSON: group version -> [offset, length], the
//! offset counted from the index's end), then one zstd frame a group version (JSON: definition name -> schema).

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::http::Server;

const DIRECTORY: &str = "crates/informant-apiserver/data";
const HEADER: &str = "\
# The built-in resources that a Kubernetes server serves by default. Written by `cargo xtask schemas`; not edited by hand.
# apiVersion\tplural\tkind\tsingular\tshort names\tcategories\tscope\tverbs
# and below it one line a subresource: /name\tkind (group/version/kind where it isn't the parent's)\tverbs
";
/// What is kept of a schema besides its inner schemas.
const FACTS: &[&str] = &[
    "type",
    "format",
    "required",
    "default",
    "enum",
    "nullable",
    "pattern",
    "minimum",
    "maximum",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-preserve-unknown-fields",
];
const REFERENCE: &str = "#/components/schemas/";

/// Runs the command: one argument, a kubeconfig or the URL of a server without TLS.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let [source] = arguments else {
        return Err(Failure::Usage("cargo xtask schemas KUBECONFIG|http://127.0.0.1:PORT".to_owned()));
    };
    let server = connect(source)?;
    let group_versions = group_versions(&server)?;
    write("resources.tsv", resources(&server, &group_versions)?.as_bytes())?;
    write("schemas.bin", &schemas(&server, &group_versions)?)
}

fn write(name: &str, content: &[u8]) -> Result<(), Failure> {
    let path = Path::new(DIRECTORY).join(name);
    std::fs::write(&path, content).map_err(Failure::file(&path))?;
    println!("{}: {} bytes", path.display(), content.len());
    Ok(())
}

fn get(server: &Server, path: &str) -> Result<Value, Failure> {
    let answer = server.get(path).and_then(crate::http::Answer::json);
    answer.map_err(|error| Failure::Failed(format!("GET {path}: {error}")))
}

/// A URL, or the kubeconfig of a server on loopback whose user has a token.
fn connect(source: &str) -> Result<Server, Failure> {
    if let Some(port) = port(source, "http://127.0.0.1:") {
        return Ok(Server::plain(port));
    }
    let path = Path::new(source);
    let text = std::fs::read_to_string(path).map_err(Failure::file(path))?;
    let config: Value = serde_saphyr::from_str(&text).map_err(|error| Failure::Failed(format!("{source}: {error}")))?;
    let missing = |what: &str| Failure::Failed(format!("{source}: the first entry has no {what}"));
    let cluster = &config["clusters"][0]["cluster"];
    let port = cluster["server"].as_str().and_then(|url| self::port(url, "https://127.0.0.1:"));
    let port = port.ok_or_else(|| missing("server at https://127.0.0.1:PORT"))?;
    let authority = cluster["certificate-authority"].as_str().ok_or_else(|| missing("certificate-authority"))?;
    let token = config["users"][0]["user"]["token"].as_str().ok_or_else(|| missing("token"))?;
    Server::tls(port, Path::new(authority), token).map_err(|error| Failure::Failed(format!("{authority}: {error}")))
}

fn port(url: &str, prefix: &str) -> Option<u16> {
    url.strip_prefix(prefix)?.trim_end_matches('/').parse().ok()
}

/// The group versions served by default, in the server's order, the core group first.
fn group_versions(server: &Server) -> Result<Vec<String>, Failure> {
    let groups = get(server, "/apis")?;
    let versions = items(&groups["groups"]).flat_map(|group| items(&group["versions"]));
    let names = versions.filter_map(|version| version["groupVersion"].as_str());
    let by_default = |name: &&str| !name.contains("/v") || !(name.contains("alpha") || name.contains("beta"));
    Ok(std::iter::once("v1").chain(names.filter(by_default)).map(str::to_owned).collect())
}

fn resources(server: &Server, group_versions: &[String]) -> Result<String, Failure> {
    let mut table = HEADER.to_owned();
    for group_version in group_versions {
        let document = get(server, &format!("/{}", path(group_version)))?;
        let all: Vec<&Value> = items(&document["resources"]).collect();
        for resource in all.iter().filter(|resource| !text(resource, "name").contains('/')) {
            let scope = if resource["namespaced"] == json!(true) { "namespaced" } else { "cluster" };
            let columns = [
                group_version,
                text(resource, "name"),
                text(resource, "kind"),
                text(resource, "singularName"),
                &list(&resource["shortNames"]),
                &list(&resource["categories"]),
                scope,
                &list(&resource["verbs"]),
            ];
            table += &(columns.join("\t") + "\n");
            let prefix = format!("{}/", text(resource, "name"));
            for sub in all.iter().filter(|sub| text(sub, "name").starts_with(&prefix)) {
                let kind = match sub["version"].as_str() {
                    Some(version) => format!("{}/{version}/{}", text(sub, "group"), text(sub, "kind")),
                    None => text(sub, "kind").to_owned(),
                };
                let name = &text(sub, "name")[prefix.len() - 1..];
                table += &format!("{name}\t{kind}\t{}\n", list(&sub["verbs"]));
            }
        }
    }
    Ok(table)
}

/// `api/v1` or `apis/apps/v1`.
fn path(group_version: &str) -> String {
    if group_version.contains('/') { format!("apis/{group_version}") } else { format!("api/{group_version}") }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn list(value: &Value) -> String {
    let words: Vec<&str> = items(value).filter_map(Value::as_str).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(",") }
}

fn schemas(server: &Server, group_versions: &[String]) -> Result<Vec<u8>, Failure> {
    let (mut index, mut frames) = (BTreeMap::new(), Vec::new());
    for group_version in group_versions {
        let document = get(server, &format!("/openapi/v3/{}", path(group_version)))?;
        let definitions: BTreeMap<_, _> = document["components"]["schemas"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name, facts(schema)))
            .collect();
        let json = serde_json::to_vec(&definitions).map_err(|error| Failure::Failed(error.to_string()))?;
        let frame = zstd::bulk::compress(&json, 19).map_err(|error| Failure::Failed(error.to_string()))?;
        index.insert(group_version, [frames.len(), frame.len()]);
        frames.extend(frame);
    }
    let index = serde_json::to_vec(&index).map_err(|error| Failure::Failed(error.to_string()))?;
    let length = u32::try_from(index.len()).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok([&length.to_le_bytes()[..], &index, &frames].concat())
}

/// One schema without prose. `allOf` of a single reference, which OpenAPI 3.0 needs beside other facts, becomes the reference.
fn facts(schema: &Value) -> Value {
    let mut kept = Map::new();
    for fact in FACTS {
        if let Some(value) = schema.get(fact) {
            kept.insert((*fact).to_owned(), value.clone());
        }
    }
    // Meta kinds belong to every group: a list of all of them decides nothing.
    if schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.len() > 1) {
        kept.remove("x-kubernetes-group-version-kind");
    }
    let only = schema["allOf"].as_array().filter(|all| all.len() == 1).and_then(|all| all.first());
    let reference = only.unwrap_or(schema)["$ref"].as_str().and_then(|target| target.strip_prefix(REFERENCE));
    if let Some(name) = reference {
        kept.insert("$ref".to_owned(), json!(name));
    }
    if let Some(properties) = schema["properties"].as_object() {
        let properties: Map<_, _> = properties.iter().map(|(name, schema)| (name.clone(), facts(schema))).collect();
        kept.insert("properties".to_owned(), Value::Object(properties));
    }
    for inner in ["items", "additionalProperties", "not"] {
        match schema.get(inner) {
            Some(flag @ Value::Bool(_)) => drop(kept.insert(inner.to_owned(), flag.clone())),
            Some(schema) => drop(kept.insert(inner.to_owned(), facts(schema))),
            None => {}
        }
    }
    for inner in ["allOf", "anyOf", "oneOf"] {
        if let Some(branches) = schema[inner].as_array().filter(|_| inner != "allOf" || reference.is_none()) {
            kept.insert(inner.to_owned(), branches.iter().map(facts).collect());
        }
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_goes_and_what_decides_something_stays() {
        let schema = json!({
            "description": "prose", "type": "object", "required": ["name"],
            "properties": {
                "description": {"type": "string", "description": "prose"},
                "spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}, "description": "prose"},
                "tags": {"type": "array", "items": {"type": "string", "default": ""}, "x-kubernetes-list-type": "set"},
            },
        });
        let expected = json!({
            "type": "object", "required": ["name"],
            "properties": {
                "description": {"type": "string"},
                "spec": {"$ref": "Spec", "default": {}},
                "tags": {"type": "array", "items": {"type": "string", "default": ""}, "x-kubernetes-list-type": "set"},
            },
        });
        assert_eq!(facts(&schema), expected);
    }
}
