//! What's kept of a CRD: the few facts that decide whether its kind is served.

use std::sync::Arc;

use serde::Deserialize;

use crate::document::Document;
use crate::error::DecodeError;
use crate::object::Metadata;
use crate::representation::{Held, Representation};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CrdFacts {
    pub(crate) name: String,
    pub(crate) namespaced: bool,
    /// The versions that are served, in the CRD's order.
    pub(crate) served: Vec<String>,
    pub(crate) established: bool,
}

/// Keeps a CRD as its facts.
pub(crate) struct CrdForm;

#[derive(Deserialize)]
struct Crd {
    metadata: Name,
    spec: Spec,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Spec {
    scope: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    served: bool,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl CrdFacts {
    pub(crate) fn of(document: &Document<'_>) -> Result<Self, DecodeError> {
        let Crd { metadata, spec, status } = document.decode()?;
        let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
        Ok(Self {
            name: metadata.name,
            namespaced: spec.scope == "Namespaced",
            served: spec.versions.into_iter().filter(|version| version.served).map(|version| version.name).collect(),
            established: conditions
                .iter()
                .any(|condition| condition.kind == "Established" && condition.status == "True"),
        })
    }
}

impl Representation<CrdFacts> for CrdForm {
    fn hold(&self, document: &Document<'_>) -> Result<Held<CrdFacts>, DecodeError> {
        CrdFacts::of(document).map(|facts| Held::Full(Arc::new(facts)))
    }

    fn held_bytes(&self, held: &Held<CrdFacts>, _document: &Document<'_>) -> usize {
        let facts = held.read();
        let texts = facts.name.len() + facts.served.iter().map(String::len).sum::<usize>();
        std::mem::size_of::<CrdFacts>() + std::mem::size_of_val(&*facts.served) + texts
    }
}

/// The informer knows uid and resource version from the document itself.
impl Metadata for CrdFacts {
    fn name(&self) -> &str {
        &self.name
    }

    fn namespace(&self) -> Option<&str> {
        None
    }

    fn uid(&self) -> Option<&str> {
        None
    }

    fn resource_version(&self) -> Option<&str> {
        None
    }
}
