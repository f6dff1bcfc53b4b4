//! How an informer keeps its objects in memory.
//!
//! Everything behind the decoder (store, indexes, listers, handlers) sees [`Cached`](crate::Cached) objects only and
//! never learns which representation is used; this is the one place that does.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject, TypeMeta};
use serde::de::DeserializeOwned;

use crate::document::Document;
use crate::error::DecodeError;
use crate::object::Metadata;
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

    /// The form to keep of an object that was changed after it was decoded, by a transform. Default: the object itself.
    ///
    /// # Errors
    /// If the object can't be kept. The informer skips it, counts and names it, and goes on.
    fn hold_object(&self, object: K) -> Result<Held<K>, DecodeError> {
        Ok(Held::Full(Arc::new(object)))
    }

    /// About how many bytes a held object takes, for the inventory of the caches; asked once for each object that's held.
    /// Default: the length of its document, as the server sent it. That's an approximation for whole objects: the same
    /// texts are in both, `managedFields` in the document only, and a struct has its own cost for each field. A form that
    /// keeps less, or something packed, says its own.
    fn held_bytes(&self, _held: &Held<K>, document: &Document<'_>) -> usize {
        document.len()
    }

    /// The media type to ask the server for.
    fn accept(&self) -> &'static str {
        "application/json"
    }
}

/// An object as a representation keeps it.
pub enum Held<K> {
    /// The object itself.
    Full(Arc<K>),
    /// A form that is decoded when read.
    Lazy(Arc<dyn LazyObject<K>>),
}

/// An object in a form that is decoded when read.
pub trait LazyObject<K>: Send + Sync {
    /// Decodes the object. The document was accepted when it was taken in, so this can't fail.
    fn read(&self) -> Arc<K>;

    /// Whether the object's labels satisfy a selector. A form that keeps its labels apart needn't decode for it.
    fn matches(&self, selector: &Selector) -> bool;
}

/// Keeps the whole object but for its `metadata.managedFields`, which are often a third of it and which hardly anybody
/// reads. Of one without a compile-time type it fills in `apiVersion` and `kind`, which servers leave out of the items of
/// a list.
pub struct Full<K> {
    types: TypeMeta,
    managed_fields: bool,
    kind: PhantomData<fn() -> K>,
}

// === impl Held ===

impl<K> Held<K> {
    pub(crate) fn read(&self) -> Arc<K> {
        match self {
            Self::Full(object) => Arc::clone(object),
            Self::Lazy(object) => object.read(),
        }
    }

    pub(crate) fn into_object(self) -> Arc<K> {
        match self {
            Self::Full(object) => object,
            Self::Lazy(object) => object.read(),
        }
    }
}

impl<K: Metadata> Held<K> {
    pub(crate) fn matches(&self, selector: &Selector) -> bool {
        match self {
            Self::Full(object) => selector.matches(|key| object.label(key)),
            Self::Lazy(object) => object.matches(selector),
        }
    }
}

// === impl Full ===

impl<K> Full<K> {
    /// The representation that keeps this resource's objects as they are.
    #[must_use]
    pub fn new(resource: &ApiResource) -> Self {
        let types = TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() };
        Self { types, managed_fields: false, kind: PhantomData }
    }

    /// Whether to keep `metadata.managedFields` too. Default: no.
    #[must_use]
    pub fn keep_managed_fields(mut self, keep: bool) -> Self {
        self.managed_fields = keep;
        self
    }
}

impl<K> Representation<K> for Full<K>
where
    K: kube::Resource + DeserializeOwned + Send + Sync + 'static,
{
    fn hold(&self, document: &Document<'_>) -> Result<Held<K>, DecodeError> {
        let mut object: K = document.decode()?;
        if !self.managed_fields {
            object.meta_mut().managed_fields = None;
        }
        if let Some(dynamic) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>() {
            dynamic.types.get_or_insert_with(|| self.types.clone());
        }
        Ok(Held::Full(Arc::new(object)))
    }

    fn accept(&self) -> &'static str {
        if K::metadata_api() {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        } else {
            "application/json"
        }
    }
}
