//! What one informer is to be: its resource and scope, and the form in which it keeps its objects.
//!
//! Setting up does nothing; the last call, which names the form, makes the informer or finds the one made alike before.

use std::fmt;
use std::sync::Arc;

use kube::api::ApiResource;
use serde::de::DeserializeOwned;

use crate::informer_factory::InformerFactory;
use crate::intake::Intake;
use crate::object::Metadata;
use crate::representation::{Full, Representation};
use crate::request::Scope;
use crate::shared_informer::{AnyInformer, SharedInformer};

/// Sets up an informer, made by [`InformerFactory::informer`] or [`InformerFactory::dynamic`].
#[must_use = "it does nothing until the form of its objects is named, with `full()` for example"]
pub struct InformerBuilder<K> {
    factory: InformerFactory,
    options: InformerOptions<K>,
}

/// What an informer is to be, but for the form of its objects.
pub(crate) struct InformerOptions<K> {
    pub(crate) resource: ApiResource,
    pub(crate) scope: Scope,
    pub(crate) name: Option<String>,
    pub(crate) intake: Intake<K>,
    pub(crate) depends_on: Vec<Arc<dyn AnyInformer>>,
    pub(crate) optional: bool,
}

impl<K: Send + Sync + 'static> InformerBuilder<K> {
    pub(crate) fn new(factory: InformerFactory, resource: ApiResource) -> Self {
        let options = InformerOptions {
            resource,
            scope: Scope::all(),
            name: None,
            intake: Intake::default(),
            depends_on: Vec::new(),
            optional: false,
        };
        Self { factory, options }
    }

    /// Covers this part of the resource only. Default: all of it.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.options.scope = scope;
        self
    }

    /// Gives the informer a name, so that it's shared by those only who name it alike.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.options.name = Some(name.into());
        self
    }

    /// Has the informer send its first request when `other` is synced, or its kind is known to be absent, or it has
    /// stopped; and has it end before `other` when the factory stops. It adds to what the informer depends on already.
    ///
    /// Informers that depend on each other in a circle are an error of [`InformerFactory::start`]. After the start, what
    /// would close a circle is ignored with a warning.
    pub fn depends_on<J: Send + Sync + 'static>(mut self, other: &SharedInformer<J>) -> Self {
        self.options.depends_on.push(other.shared());
        self
    }

    /// Lets [`InformerFactory::wait_for_cache_sync`] pass when the kind is known to be absent. It counts if everybody who
    /// asks for this informer says so.
    pub fn optional(mut self) -> Self {
        self.options.optional = true;
        self
    }

    /// The informer, its objects kept in a form of your own.
    ///
    /// It's the same informer for the same `K`, `R`, resource, scope and name.
    #[must_use]
    pub fn held_as<R>(self, representation: R) -> SharedInformer<K>
    where
        K: Metadata,
        R: Representation<K>,
    {
        self.factory.get_or_create(self.options, representation)
    }
}

impl<K> InformerBuilder<K>
where
    K: kube::Resource + DeserializeOwned + Send + Sync + 'static,
{
    /// The informer, its objects kept whole.
    #[must_use]
    pub fn full(self) -> SharedInformer<K> {
        let representation = Full::<K>::new(&self.options.resource);
        self.held_as(representation)
    }
}

impl<K> fmt::Debug for InformerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InformerOptions { resource, scope, name, .. } = &self.options;
        f.debug_struct("InformerBuilder")
            .field("resource", &resource.plural)
            .field("scope", scope)
            .field("name", name)
            .finish_non_exhaustive()
    }
}
