//! From the facts of a CRD, or of discovery documents, to whether what's wanted is served. Pure.

use std::cmp::Reverse;

use kube::api::ApiResource;
use kube::core::Version;

use super::crd::CrdFacts;
use crate::error::RequestError;
use crate::status::{AvailabilityCheck, MissingCause};

/// What an informer wants of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Whether it asks in a namespace, which a cluster-scoped kind doesn't answer.
    pub(crate) in_namespace: bool,
    /// Whether any other version will do.
    pub(crate) any_version: bool,
}

/// Whether what's wanted is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Served,
    /// It's served in this version, which will do.
    ServedAs(String),
    Absent(Absence),
    /// There's no telling: the server couldn't be asked. It says nothing of the kind.
    Unknown(RequestError),
}

/// What's missing, and how that's known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Absence {
    pub(crate) cause: MissingCause,
    pub(crate) reason: String,
    pub(crate) checked_by: AvailabilityCheck,
    /// The last error on the way.
    pub(crate) error: Option<RequestError>,
}

/// What the watch of CRDs knows of what's wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sight {
    /// CRDs aren't watched, or not at present.
    Unwatched,
    /// There's no such CRD.
    NoCrd,
    /// There's one, from which this follows.
    Crd(Verdict),
}

/// A version in which discovery lists the resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) version: String,
    pub(crate) namespaced: bool,
}

// === impl Absence ===

impl Absence {
    /// Of an informer for which nobody looks: a 404 has to do.
    pub(crate) fn unchecked() -> Self {
        Self {
            cause: MissingCause::NoSuchKind,
            reason: "the server refused it".to_owned(),
            checked_by: AvailabilityCheck::Discovery,
            error: None,
        }
    }
}

// === impl Wanted ===

impl Wanted {
    pub(crate) fn new(resource: &ApiResource, in_namespace: bool, any_version: bool) -> Self {
        let ApiResource { group, version, plural, .. } = resource;
        Self { group: group.clone(), version: version.clone(), plural: plural.clone(), in_namespace, any_version }
    }

    /// Whether a CRD can have it: their groups have a dot.
    pub(crate) fn may_be_custom(&self) -> bool {
        self.group.contains('.')
    }

    pub(crate) fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    fn group_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    fn judge(&self, offers: &[Offer], checked_by: AvailabilityCheck, by: &str) -> Verdict {
        let usable = |offer: &&Offer| offer.namespaced || !self.in_namespace;
        let absent = |cause, reason: String| Verdict::Absent(Absence { cause, reason, checked_by, error: None });
        let wanted = offers.iter().find(|offer| offer.version == self.version);
        if wanted.as_ref().is_some_and(usable) {
            return Verdict::Served;
        }
        if !offers.is_empty() && offers.iter().all(|offer| !usable(&offer)) {
            let reason = format!("{by}: {} are cluster-scoped, and one namespace was asked for", self.plural);
            return absent(MissingCause::OtherScope, reason);
        }
        let mut versions: Vec<String> = offers.iter().filter(usable).map(|offer| offer.version.clone()).collect();
        versions.sort_by_cached_key(|version| Reverse(Version::parse(version).priority()));
        match versions.first() {
            None => {
                let reason = format!("{by} lists no {} in {}", self.plural, self.group_version());
                absent(MissingCause::NoSuchKind, reason)
            }
            Some(best) if self.any_version => Verdict::ServedAs(best.clone()),
            Some(_) => {
                let reason = format!(
                    "{by}: {} of {} are served as {}, not as {}",
                    self.plural,
                    self.group,
                    versions.join(", "),
                    self.version
                );
                absent(MissingCause::OtherVersions(versions), reason)
            }
        }
    }
}

/// What a CRD says.
pub(crate) fn by_crd(wanted: &Wanted, crd: &CrdFacts) -> Verdict {
    let checked_by = AvailabilityCheck::CrdWatch;
    let by = format!("the CRD {}", wanted.crd_name());
    let not_established = |why| {
        let reason = format!("{by} {why}");
        Verdict::Absent(Absence { cause: MissingCause::NotEstablished, reason, checked_by, error: None })
    };
    if !crd.established {
        return not_established("isn't established yet");
    }
    if crd.served.is_empty() {
        return not_established("serves no version");
    }
    let offer = |version: &String| Offer { version: version.clone(), namespaced: crd.namespaced };
    let offers: Vec<Offer> = crd.served.iter().map(offer).collect();
    wanted.judge(&offers, checked_by, &by)
}

/// What discovery says.
pub(crate) fn by_discovery(wanted: &Wanted, offers: &[Offer]) -> Verdict {
    wanted.judge(offers, AvailabilityCheck::Discovery, "discovery")
}

#[cfg(test)]
mod tests;
