//! From a document to an object for the store, or to what's wrong with it.
//!
//! The head is read first: an object that the store has in this very state is taken from there, and the rest of the
//! document isn't looked at.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::delta::Staging;
use crate::document::{Document, Encoding};
use crate::error::{DecodeError, RequestError, RequestErrorKind};
use crate::frame::Frame;
use crate::head::{Head, Text};
use crate::key::ObjectKey;
use crate::object::Cached;
use crate::protobuf::Metadata;
use crate::shared_informer::Shared;
use crate::store::Table;

/// How many undecodable objects are named; the others are counted only.
const NAMED_MAX: usize = 100;

pub(super) struct Decoder<'a, K> {
    informer: &'a Shared<K>,
    /// The namespace that it's about, `None` for all.
    part: Option<&'a str>,
    /// Objects on the server that can't be decoded, with their resource version and what's wrong.
    undecodable: BTreeMap<ObjectKey, (String, String)>,
    /// Objects of attempts to take in a state that came to nothing: they needn't be decoded again. Empty once a state is
    /// in the store.
    aside: Table<K>,
    /// An object that couldn't be decoded, if the informer is to end at that.
    pub(super) refused: Option<RequestError>,
}

pub(super) enum Found<K> {
    Object(Cached<K>),
    /// There's such an object, and it can't be decoded.
    Undecodable(ObjectKey),
    /// There's no telling which object it is.
    Unreadable(DecodeError),
    /// It's an object of another kind.
    OtherKind,
    /// The informer's filter doesn't want it.
    Unwanted(ObjectKey),
}

impl<'a, K: Send + Sync + 'static> Decoder<'a, K> {
    pub(super) fn new(informer: &'a Shared<K>, part: Option<&'a str>) -> Self {
        Self { informer, part, undecodable: BTreeMap::new(), aside: Table::default(), refused: None }
    }

    /// An item of a list, which needn't say its kind.
    pub(super) fn item(&mut self, item: &Frame, encoding: Encoding) -> Found<K> {
        let (bytes, whole) = match item {
            Frame::Document(document) => (document, true),
            Frame::TooLarge(prefix) => (prefix, false),
        };
        let head = match encoding {
            Encoding::Json => Head::parse(bytes, false),
            Encoding::Protobuf(_) => {
                let metadata = if whole { Metadata::read(bytes) } else { Metadata::read_start(bytes) };
                metadata.map(|metadata| Head::of_protobuf(&metadata, None)).map_err(DecodeError::from)
            }
        };
        match head {
            Ok(head) if whole => self.object(&head, &Document::stored(encoding, bytes), false),
            Ok(head) => self.too_large(&head),
            Err(error) => self.unreadable(error),
        }
    }

    /// The object of a watch event, JSON or in an envelope, and its resource version.
    pub(super) fn event(&mut self, object: &[u8], deleted: bool) -> (Found<K>, String) {
        let (head, object) = match Head::open(object) {
            Ok((head, _)) if self.is_other_kind(&head) => return (Found::OtherKind, String::new()),
            Ok(opened) => opened,
            Err(error) => return (self.unreadable(error), String::new()),
        };
        let document = match object.document() {
            Ok(document) => document,
            Err(error) => return (self.unreadable(error), String::new()),
        };
        let found = self.object(&head, &document, deleted);
        if deleted && let Found::Object(object) = &found {
            self.forget(&object.key().clone());
        }
        (found, head.resource_version().to_owned())
    }

    /// The beginning of a watch event's object that's larger than the bound.
    pub(super) fn large_event(&mut self, prefix: &[u8]) -> (Found<K>, String) {
        match Head::open_start(prefix) {
            Ok(head) if self.is_other_kind(&head) => (Found::OtherKind, String::new()),
            Ok(head) => {
                let resource_version = head.resource_version().to_owned();
                (self.too_large(&head), resource_version)
            }
            Err(error) => (self.unreadable(error), String::new()),
        }
    }

    /// The object is gone.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        if self.undecodable.remove(key).is_some() {
            self.show();
        }
    }

    /// Forgets the undecodable objects that the server no longer has.
    pub(super) fn keep(&mut self, keep: impl Fn(&ObjectKey) -> bool) {
        let before = self.undecodable.len();
        self.undecodable.retain(|key, _| keep(key));
        if self.undecodable.len() != before {
            self.show();
        }
    }

    /// Keeps the objects of a state that came to nothing at hand for the next attempt.
    pub(super) fn put_aside(&mut self, staging: &mut Staging<K>) {
        for object in std::mem::take(staging).into_objects() {
            self.aside.insert(object);
        }
    }

    /// A whole state is in the store.
    pub(super) fn taken_in(&mut self) {
        self.aside = Table::default();
    }

    fn unreadable(&mut self, error: DecodeError) -> Found<K> {
        self.nameless(&error);
        Found::Unreadable(error)
    }

    fn object(&mut self, head: &Head<'_>, document: &Document<'_>, deleted: bool) -> Found<K> {
        let key = match head.key() {
            Ok(key) => key,
            Err(error) => return self.unreadable(error),
        };
        let (uid, resource_version) = (head.uid(), head.resource_version());
        let known = self.informer.store.held(&key).filter(|known| known.is_at(uid, resource_version));
        let aside = || self.aside.get(key.as_str()).filter(|known| known.is_at(uid, resource_version)).cloned();
        if let Some(known) = known.or_else(aside) {
            return Found::Object(known);
        }
        // Representation, filter and transform may be the user's; a panic in one is an object that can't be decoded.
        let Shared { intake, representation, .. } = self.informer;
        let take = || {
            let held = intake.take(&**representation, document, deleted)?;
            let bytes = held.as_ref().map_or(0, |held| representation.held_bytes(held, document));
            Ok(held.map(|held| (held, bytes)))
        };
        let held = catch_unwind(AssertUnwindSafe(take))
            .unwrap_or_else(|_| Err(DecodeError::new("taking in the object panicked")));
        match held {
            Ok(None) => {
                self.forget(&key);
                Found::Unwanted(key)
            }
            Ok(Some((held, bytes))) => {
                self.forget(&key);
                Found::Object(Cached::new(key, uid, resource_version, held, bytes))
            }
            Err(error) => self.undecodable(key, resource_version, error.to_string()),
        }
    }

    fn too_large(&mut self, head: &Head<'_>) -> Found<K> {
        match head.key() {
            Ok(key) => {
                let limit = self.informer.settings.document_bytes_max;
                self.undecodable(key, head.resource_version(), format!("the object is larger than {limit} bytes"))
            }
            Err(error) => self.unreadable(error),
        }
    }

    fn undecodable(&mut self, key: ObjectKey, resource_version: &str, reason: String) -> Found<K> {
        let known = self.undecodable.get(&key).is_some_and(|(known, _)| known == resource_version);
        if known {
            // Seen again in a new list; it's reported once per change.
            return Found::Undecodable(key);
        }
        self.refuse(|| format!("{key} can't be decoded: {reason}"));
        self.informer.status.count(|counters| counters.undecodable += 1);
        tracing::warn!(informer = %self.informer.name, key = %key, error = %reason, "object can't be decoded; skipped");
        if self.undecodable.len() < NAMED_MAX || self.undecodable.contains_key(&key) {
            self.undecodable.insert(key.clone(), (resource_version.to_owned(), reason));
            self.show();
        }
        Found::Undecodable(key)
    }

    fn refuse(&mut self, message: impl FnOnce() -> String) {
        if self.informer.intake.strict {
            self.refused = Some(RequestError::new(RequestErrorKind::Malformed, message()));
        }
    }

    fn nameless(&mut self, error: &DecodeError) {
        self.refuse(|| format!("an object without a name can't be decoded: {error}"));
        self.informer.status.count(|counters| counters.undecodable += 1);
        tracing::warn!(informer = %self.informer.name, error = %error, "document names no object; skipped");
    }

    fn show(&self) {
        let named = self.undecodable.iter().map(|(key, (_, reason))| (key.clone(), reason.clone())).collect();
        self.informer.status.set_undecodable(self.part, named);
    }

    fn is_other_kind(&self, head: &Head<'_>) -> bool {
        let resource = &self.informer.resource;
        let kind = head.kind.as_ref().map(Text::as_str);
        let api_version = head.api_version.as_ref().map(Text::as_str);
        // Metadata-only answers have a kind of their own.
        let is_metadata = kind == Some("PartialObjectMetadata");
        let differs = |given: Option<&str>, ours: &str| given.is_some_and(|given| given != ours);
        let differs_in_version = api_version.is_some_and(|given| !self.informer.is_api_version(given));
        !is_metadata && (differs(kind, &resource.kind) || differs_in_version)
    }
}
