//! How an informer keeps its objects in memory.
//!
//! Everything behind the decoder (store, indexes, listers, handlers) sees [`Cached`](crate::Cached) objects only and
//! never learns which representation is used; this is the one place that does.

use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use serde::de::DeserializeOwned;

use crate::document::Document;
use crate::error::DecodeError;
use crate::heap_size::{ARC_COUNTERS, HeapSampler, heap_size, loose_size};
use crate::object::Metadata;
use crate::packed::PackedObject;
use crate::selector::Selector;

/// Turns an object, as the server sent it, into the form that the store keeps.
///
/// Contract: `hold` is called once for each state of an object that the server sends and the store doesn't have; it
/// runs in the informer's task, so it should be quick; an error skips this object only.
pub trait Representation<K>: Send + Sync + 'static {
    /// The form to keep of one object.
    ///
    /// # Errors
    /// If the document isn't a `K`. The informer skips the object, counts and names it, and goes on.
    fn hold(&self, document: &Document<'_>) -> Result<Held<K>, DecodeError>;

    /// The object itself, for a filter or a transform. Default: what [`hold`](Self::hold) gives.
    ///
    /// # Errors
    /// As `hold`; and by default if somebody else has the object too.
    fn object(&self, document: &Document<'_>) -> Result<K, DecodeError> {
        let object = match self.hold(document)? {
            Held::Full(object) => Arc::into_inner(object),
            Held::Packed(_) => None,
        };
        object.ok_or_else(|| DecodeError::new("the form of the objects shares them, so they can't be transformed"))
    }

    /// The form to keep of an object that was decoded for a filter and passed it. Default:
    /// [`hold_object`](Self::hold_object).
    ///
    /// # Errors
    /// As `hold`.
    fn hold_unchanged(&self, object: K, _document: &Document<'_>) -> Result<Held<K>, DecodeError> {
        self.hold_object(object)
    }

    /// The form to keep of an object that was changed after it was decoded, by a transform. Default: the object itself.
    ///
    /// # Errors
    /// If the object can't be kept. The informer skips it, counts and names it, and goes on.
    fn hold_object(&self, object: K) -> Result<Held<K>, DecodeError> {
        Ok(Held::Full(Arc::new(object)))
    }

    /// About how many bytes a held object takes, for the inventory of the caches; asked once for each object that's held.
    /// Default: the length of its document, as the server sent it.
    fn held_bytes(&self, _held: &Held<K>, document: &Document<'_>) -> usize {
        document.len()
    }

    /// What's to be waited for before more objects come. Default: nothing.
    fn settle(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// A better form of an object that nobody has seen yet, after [`settle`](Self::settle). Default: it stays.
    fn improve(&self, _held: &Held<K>) -> Option<Held<K>> {
        None
    }

    /// How many bytes it takes for all objects together, beside what each of them takes. Default: none.
    fn shared_bytes(&self) -> usize {
        0
    }

    /// The media type to ask the server for, where it isn't protobuf.
    fn accept(&self) -> &'static str {
        "application/json"
    }

    /// Whether documents may be protobuf too: built-in kinds are asked for in that form first then. It's for forms that
    /// read a document by [`decode`](Document::decode) or [`to_json`](Document::to_json). Default: no.
    fn takes_protobuf(&self) -> bool {
        false
    }
}

/// An object as a representation keeps it.
pub enum Held<K> {
    /// The object itself.
    Full(Arc<K>),
    /// The object's bytes, decoded when read: [`packed`](crate::InformerBuilder::packed) or
    /// [`raw`](crate::InformerBuilder::raw).
    Packed(PackedObject<K>),
}

/// Keeps the whole object but for its `metadata.managedFields`, which are often a third of it and which hardly anybody
/// reads. Of one without a compile-time type it fills in `apiVersion` and `kind`, which servers leave out of the items of
/// a list.
pub struct Full<K> {
    types: TypeMeta,
    managed_fields: bool,
    sizes: HeapSampler,
    kind: PhantomData<fn() -> K>,
}

// === impl Held ===

impl<K> Held<K> {
    pub(crate) fn read(&self) -> Arc<K> {
        match self {
            Self::Full(object) => Arc::clone(object),
            Self::Packed(object) => object.read(),
        }
    }

    /// What it takes if it's packed; of a struct the representation knows.
    pub(crate) fn packed_bytes(&self) -> usize {
        match self {
            Self::Full(_) => 0,
            Self::Packed(object) => object.held_bytes(),
        }
    }

    pub(crate) fn into_object(self) -> Arc<K> {
        match self {
            Self::Full(object) => object,
            Self::Packed(object) => object.read(),
        }
    }
}

impl<K: Metadata> Held<K> {
    pub(crate) fn matches(&self, selector: &Selector) -> bool {
        match self {
            Self::Full(object) => selector.matches(|key| object.label(key)),
            Self::Packed(object) => object.matches(selector),
        }
    }
}

// === impl Full ===

impl<K> Full<K> {
    /// The representation that keeps this resource's objects as they are.
    #[must_use]
    pub fn new(resource: &ApiResource) -> Self {
        let types = TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() };
        Self { types, managed_fields: false, sizes: HeapSampler::default(), kind: PhantomData }
    }

    pub(crate) fn types(&self) -> &TypeMeta {
        &self.types
    }

    /// Whether to keep `metadata.managedFields` too. Default: no.
    #[must_use]
    pub fn keep_managed_fields(mut self, keep: bool) -> Self {
        self.managed_fields = keep;
        self
    }
}

impl<K> Full<K>
where
    K: kube::Resource + DeserializeOwned + Send + Sync + 'static,
{
    pub(crate) fn decode(&self, document: &Document<'_>) -> Result<K, DecodeError> {
        let mut object: K = if self.managed_fields { document.decode()? } else { document.decode_trimmed()? };
        if !self.managed_fields {
            // What isn't written as servers do may still have them.
            object.meta_mut().managed_fields = None;
        }
        if let Some(dynamic) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>() {
            dynamic.types.get_or_insert_with(|| self.types.clone());
        }
        Ok(object)
    }

    /// What the object takes: measured for some, and estimated for the others by the length of their documents.
    pub(crate) fn size(&self, document: &Document<'_>) -> usize {
        let own = ARC_COUNTERS + size_of::<K>();
        own + self.sizes.estimate(document.len(), || {
            let mut object: serde_json::Value = document.decode().ok()?;
            if !self.managed_fields {
                object.get_mut("metadata")?.as_object_mut()?.remove("managedFields");
            }
            let dynamic = TypeId::of::<K>() == TypeId::of::<DynamicObject>();
            if dynamic || K::metadata_api() { loose_size(&object, dynamic) } else { heap_size::<K>(&object) }
        })
    }
}

impl<K> Representation<K> for Full<K>
where
    K: kube::Resource + DeserializeOwned + Send + Sync + 'static,
{
    fn hold(&self, document: &Document<'_>) -> Result<Held<K>, DecodeError> {
        Ok(Held::Full(Arc::new(self.decode(document)?)))
    }

    fn held_bytes(&self, _held: &Held<K>, document: &Document<'_>) -> usize {
        self.size(document)
    }

    fn accept(&self) -> &'static str {
        if K::metadata_api() {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        } else {
            "application/json"
        }
    }

    fn takes_protobuf(&self) -> bool {
        !K::metadata_api() && TypeId::of::<K>() != TypeId::of::<DynamicObject>()
    }
}
