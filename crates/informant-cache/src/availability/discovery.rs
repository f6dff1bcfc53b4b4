//! Asks the server's discovery documents for one resource, with as few requests as will do: one if it's served as wanted.
//!
//! That a kind is absent is taken from a document that can be read and doesn't have it. A 404 alone proves nothing: it
//! may be a proxy's.

use std::time::Duration;

use http::header;
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::verdict::{Offer, Wanted};
use crate::cluster::Cluster;
use crate::error::{RequestError, RequestErrorKind as Kind};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How large a document may be.
const BYTES_MAX: usize = 8 << 20;
/// How many other versions of a group are looked at.
const VERSIONS_MAX: usize = 16;

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    namespaced: bool,
}

#[derive(Deserialize)]
struct GroupList {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

/// The versions that serve what's wanted: the wanted one alone if it's among them.
pub(super) async fn offers(cluster: &Cluster, wanted: &Wanted) -> Result<Vec<Offer>, RequestError> {
    if wanted.group.is_empty() {
        // Every server has this document, so it must be there.
        let list: ResourceList = get(cluster, &format!("/api/{}", wanted.version)).await?;
        return Ok(list.offer(wanted, &wanted.version).into_iter().collect());
    }
    if let Some(offer) = offer(cluster, wanted, &wanted.version).await? {
        return Ok(vec![offer]);
    }
    let list: GroupList = get(cluster, "/apis").await?;
    let group = list.groups.into_iter().find(|group| group.name == wanted.group);
    let versions = group.map(|group| group.versions).unwrap_or_default();
    let mut offers = Vec::new();
    for GroupVersion { version } in versions.into_iter().take(VERSIONS_MAX) {
        if version != wanted.version {
            offers.extend(offer(cluster, wanted, &version).await?);
        }
    }
    Ok(offers)
}

async fn offer(cluster: &Cluster, wanted: &Wanted, version: &str) -> Result<Option<Offer>, RequestError> {
    match get::<ResourceList>(cluster, &format!("/apis/{}/{version}", wanted.group)).await {
        Ok(list) => Ok(list.offer(wanted, version)),
        Err(error) if error.kind == Kind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

async fn get<T: DeserializeOwned>(cluster: &Cluster, path: &str) -> Result<T, RequestError> {
    let failed = |kind, message: String| RequestError::new(kind, format!("discovery at {path} failed: {message}"));
    let request = http::Request::get(path).header(header::ACCEPT, "application/json").body(());
    let request = request.map_err(|error| failed(Kind::Malformed, error.to_string()))?;
    let exchange = async {
        let answer = cluster.send(request).await.map_err(|error| RequestError::from_connection(&error))?;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, BYTES_MAX).collect().await;
        let body = body.map_err(|error| RequestError::from_connection(&*error))?.to_bytes();
        if parts.status.is_success() {
            Ok(body)
        } else {
            Err(RequestError::from_answer(parts.status, &parts.headers, &body))
        }
    };
    let answer = tokio::time::timeout(PATIENCE, exchange).await;
    let answer = answer.map_err(|_| failed(Kind::Connection, format!("no answer in {} s", PATIENCE.as_secs())))?;
    let body = answer.map_err(|error| RequestError { message: failed(error.kind, error.message).message, ..error })?;
    serde_json::from_slice(&body).map_err(|error| failed(Kind::Malformed, error.to_string()))
}

impl ResourceList {
    fn offer(&self, wanted: &Wanted, version: &str) -> Option<Offer> {
        let resource = self.resources.iter().find(|resource| resource.name == wanted.plural)?;
        Some(Offer { version: version.to_owned(), namespaced: resource.namespaced })
    }
}
