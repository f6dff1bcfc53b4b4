//! Everything that isn't an object: discovery, the version, health, the list of paths.

use http::Method;
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, LOCATION, VARY};
use serde_json::{Value, json};

use crate::discovery::{self, Form, Root};
use crate::openapi;
use crate::registry::Catalog;
use crate::resource::Resource;
use crate::service::answer::{Answer, ResponseBody};
use crate::service::route::Route;
use crate::service::{Caller, Shared};
use crate::status::{Reason, Status};
use std::sync::Arc;

/// The release whose API is served.
const GIT_VERSION: &str = "v1.37.2";
/// The media type in which kubectl wants the older OpenAPI document.
const OPENAPI_V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The checks behind the health endpoints. What they check has happened by the time the server can be asked.
const CHECKS: &[&str] = &["ping", "store", "crds"];

/// Answers a request for a document.
///
/// # Errors
/// 404 and 405.
pub(crate) fn answer(shared: &Shared, caller: &Caller, route: &Route) -> Result<Answer, Status> {
    if caller.method != Method::GET && caller.method != Method::HEAD {
        return Err(Status::new(Reason::MethodNotAllowed, format!("the server answers GET only on {}", caller.path)));
    }
    let catalog = shared.registry.catalog();
    let resources = catalog.resources();
    match route {
        Route::CoreVersions => Ok(root(caller, resources, Root::Api)),
        Route::Groups => Ok(root(caller, resources, Root::Apis)),
        Route::Group(group) => found(discovery::api_group(resources, group)),
        Route::GroupVersion(group, version) => found(discovery::api_resource_list(resources, group, version)),
        Route::Version => Ok(Answer::json(200, &version(shared.minor))),
        Route::Health { endpoint, check } => health(caller, endpoint, check.as_deref()),
        Route::Root => Ok(Answer::json(200, &paths(resources))),
        Route::OpenApiV2 => Ok(openapi_v2(caller)),
        Route::OpenApiIndex => Ok(openapi_index(shared, caller, &catalog)),
        Route::OpenApiDocument(group, version) => openapi_document(shared, caller, &catalog, group, version),
        Route::Resource(_) => Err(Status::no_such_path()),
    }
}

/// Whether nothing of the API is at the path, not even a group: there a server answers with a page and not with a `Status`.
pub(crate) fn is_outside_the_api(catalog: &Catalog, path: &str) -> bool {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    match (segments.next(), segments.next()) {
        (None, _)
        | (Some("api" | "openapi" | "version" | "livez" | "readyz" | "healthz"), _)
        | (Some("apis"), None) => false,
        (Some("apis"), Some(group)) => !catalog.resources().iter().any(|resource| resource.group == group),
        (Some(_), _) => true,
    }
}

fn found(document: Option<Value>) -> Result<Answer, Status> {
    document.map(|document| Answer::json(200, &document)).ok_or_else(Status::no_such_path)
}

fn root(caller: &Caller, resources: &[Arc<Resource>], root: Root) -> Answer {
    let form = Form::negotiate(&caller.accept);
    let body = discovery::root(resources, root, form).to_string();
    tagged(caller, form.content_type(), body).header(VARY, "Accept")
}

/// A document with an ETag; 304 when the client has it already.
pub(super) fn tagged(caller: &Caller, content_type: &str, body: impl Into<bytes::Bytes>) -> Answer {
    let body = body.into();
    let tag = discovery::etag(&body);
    let known = caller
        .headers
        .get(IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|known| known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag));
    let answer = if known {
        Answer::new(304, content_type, ResponseBody::empty())
    } else {
        Answer::new(200, content_type, ResponseBody::whole(body))
    };
    answer.header(ETAG, &tag)
}

/// The older OpenAPI document, without a single definition. kubectl asks for it as protobuf where the newer ones don't say
/// enough (a `List`, a kind that isn't there yet), and checks nothing by an empty one, where it gives up without one.
fn openapi_v2(caller: &Caller) -> Answer {
    if caller.accept.contains(OPENAPI_V2_PROTOBUF) {
        // swagger: "2.0", info: {title: "Kubernetes", version: "v1.37.2"}
        let body = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.37.2";
        // The name that was asked for isn't a media type by the book; this one is.
        let media_type = OPENAPI_V2_PROTOBUF.replace('@', ".");
        return Answer::new(200, media_type, ResponseBody::whole(&body[..]));
    }
    let info = json!({"title": "Kubernetes", "version": GIT_VERSION});
    Answer::json(200, &json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}))
}

fn openapi_index(shared: &Shared, caller: &Caller, catalog: &Catalog) -> Answer {
    let index = || Some(openapi::index(catalog.resources(), &shared.descriptions).to_string().into());
    tagged(caller, "application/json", catalog.document("", index).unwrap_or_default())
}

/// A group version's document. Under its hash it never changes; a wrong hash is sent on to the right one.
fn openapi_document(
    shared: &Shared,
    caller: &Caller,
    catalog: &Catalog,
    group: &str,
    version: &str,
) -> Result<Answer, Status> {
    let resources = catalog.resources();
    let make =
        || openapi::document(resources, group, version, &shared.descriptions).map(|text| text.to_string().into());
    let body = catalog.document(&format!("{group}/{version}"), make).ok_or_else(Status::no_such_path)?;
    let hash = openapi::hash(resources, group, version, &shared.descriptions);
    match caller.query.get("hash") {
        Some(known) if known != hash => {
            let place = format!("{}?hash={hash}", caller.path);
            Ok(Answer::new(301, "text/plain; charset=utf-8", ResponseBody::empty()).header(LOCATION, &place))
        }
        Some(_) => Ok(tagged(caller, "application/json", body).header(CACHE_CONTROL, "public, immutable")),
        None => Ok(tagged(caller, "application/json", body)),
    }
}

fn version(minor: u32) -> Value {
    json!({
        "major": "1", "minor": minor.to_string(), "gitVersion": GIT_VERSION.replace("37", &minor.to_string()), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// The architecture by the name that Kubernetes gives it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn health(caller: &Caller, endpoint: &str, check: Option<&str>) -> Result<Answer, Status> {
    if let Some(check) = check {
        return if CHECKS.contains(&check) { Ok(Answer::text(200, "ok")) } else { Err(Status::no_such_path()) };
    }
    if caller.query.get("verbose").is_none() {
        return Ok(Answer::text(200, "ok"));
    }
    let excluded: Vec<&str> = caller.query.all("exclude").collect();
    let mut text = String::new();
    for check in CHECKS {
        let state = if excluded.contains(check) { "excluded: ok" } else { "ok" };
        text.push_str(&format!("[+]{check} {state}\n"));
    }
    text.push_str(&format!("{endpoint} check passed\n"));
    Ok(Answer::text(200, text))
}

fn paths(resources: &[Arc<Resource>]) -> Value {
    let mut paths: Vec<String> = vec!["/api".into(), "/apis".into(), "/openapi/v3".into(), "/version".into()];
    paths.extend(["/healthz", "/livez", "/readyz"].map(String::from));
    for resource in resources {
        if resource.group.is_empty() {
            paths.push(format!("/api/{}", resource.version));
        } else {
            paths.push(format!("/apis/{}", resource.group));
            paths.push(format!("/apis/{}/{}", resource.group, resource.version));
        }
    }
    paths.sort();
    paths.dedup();
    json!({"paths": paths})
}
