//! What one informer is to be: its resource and scope, and the form in which it keeps its objects.
//!
//! Setting up does nothing; the last call, which names the form, makes the informer or finds the one made alike before.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::document::Document;
use crate::informer_factory::InformerFactory;
use crate::intake::{Filter, Intake};
use crate::lister_watcher::ListerWatcher;
use crate::object::Metadata;
use crate::packed::Packed;
use crate::projection::{Projected, Projection};
use crate::representation::{Full, Representation};
use crate::scope::Scope;
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
    /// `None` for the factory's.
    pub(crate) scope: Option<Scope>,
    /// Whether the kind is known to have no namespaces.
    pub(crate) cluster_scoped: bool,
    pub(crate) name: Option<String>,
    pub(crate) intake: Intake<K>,
    pub(crate) managed_fields: bool,
    /// Where its requests go, `None` for the factory's cluster.
    pub(crate) source: Option<Arc<dyn ListerWatcher>>,
    /// How the inventory names the form of the objects.
    pub(crate) form: &'static str,
    pub(crate) depends_on: Vec<Arc<dyn AnyInformer>>,
    pub(crate) optional: bool,
    pub(crate) any_version: bool,
    /// Whether protobuf isn't asked for.
    pub(crate) json: bool,
}

impl<K: Send + Sync + 'static> InformerBuilder<K> {
    pub(crate) fn new(factory: InformerFactory, resource: ApiResource) -> Self {
        let options = InformerOptions {
            resource,
            scope: None,
            cluster_scoped: false,
            name: None,
            intake: Intake::default(),
            managed_fields: false,
            source: None,
            form: std::any::type_name::<K>(),
            depends_on: Vec::new(),
            optional: false,
            any_version: false,
            json: false,
        };
        Self { factory, options }
    }

    /// Covers this part of the resource only. Default: the factory's
    /// [`default_scope`](crate::InformerFactoryBuilder::default_scope), which is all of it unless set. Of a kind that has no
    /// namespaces only the selectors count.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.options.scope = Some(scope);
        self
    }

    /// Says that the kind has no namespaces. That's known of types that say it themselves; a dynamic informer has to be
    /// told, if its scope (or the factory's) names namespaces.
    pub fn cluster_scoped(mut self) -> Self {
        self.options.cluster_scoped = true;
        self
    }

    /// Keeps only objects that `filter` wants; to everybody who uses the informer the others don't exist, and one that
    /// isn't wanted any more is deleted. The server still sends all of them, so where the server can select
    /// ([`Scope::with_labels`], [`Scope::with_fields`]) let it.
    ///
    /// It's called for each state of an object, before a [transform](Self::transform), in the informer's task; it should
    /// be quick and depend on nothing but the object. If it panics, the object counts as undecodable.
    ///
    /// As functions can't be compared, the informer is nobody else's, unless it's [named](Self::named): then it's shared by
    /// those who name it alike, and the filter of the first counts.
    pub fn filter(mut self, filter: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.options.intake.filter = Some(Filter::Whole(Arc::new(filter)));
        self
    }

    /// As [`filter`](Self::filter), by a few fields of the object: the [`Projection`] says which. They're read straight from
    /// what the server sent, so an object that isn't wanted is never decoded, nor is any for the filter's sake if it's kept
    /// [packed](Self::packed). It takes the place of a filter set before.
    pub fn filter_on<P: Projection>(mut self, filter: impl Fn(&P) -> bool + Send + Sync + 'static) -> Self {
        let wants = move |document: &Document<'_>| document.project::<P>().map(|part| filter(&part));
        self.options.intake.filter = Some(Filter::Part(Arc::new(wants)));
        self
    }

    /// Changes each object before it's kept, say to drop what nobody reads. It's called once for each state of an object
    /// that's received, whatever way it came, in the informer's task; it should be quick, and mustn't change what
    /// identifies the object (name, namespace, uid, resource version). If it fails or panics, the object counts as
    /// undecodable.
    ///
    /// The informer is shared as with a [filter](Self::filter): by name only.
    pub fn transform(mut self, transform: impl Fn(K) -> Result<K, String> + Send + Sync + 'static) -> Self {
        self.options.intake.transform = Some(Arc::new(transform));
        self
    }

    /// Keeps `metadata.managedFields` in objects that are kept whole. They're often a third of an object, hardly anybody
    /// reads them, and by default they're dropped. Whoever wants them has an informer apart.
    pub fn keep_managed_fields(mut self) -> Self {
        self.options.managed_fields = true;
        self
    }

    /// Has one object that can't be decoded end the informer, in [`Failed`](crate::InformerState::Failed). Default: it's
    /// skipped, counted and named in the status, and the informer goes on. Whoever wants this has an informer apart.
    pub fn strict(mut self) -> Self {
        self.options.intake.strict = true;
        self
    }

    /// Sends the informer's lists and watches there instead of to the factory's cluster.
    ///
    /// The informer is shared as with a [filter](Self::filter): by name only.
    pub fn from(mut self, source: impl ListerWatcher) -> Self {
        self.options.source = Some(Arc::new(source));
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

    /// Follows another version of the resource if the one named isn't served: the best by Kubernetes' order of versions.
    /// Default: only the version named; in others the informer is [missing](crate::InformerState::Missing).
    ///
    /// It stays with what it found until that's no longer served. A change of version is told as a deletion and an add of
    /// every object, as their shape may differ. For objects without a compile-time type; a type of one version would find
    /// others undecodable.
    pub fn any_served_version(mut self) -> Self {
        self.options.any_version = true;
        self
    }

    /// Has the server send JSON. Default: built-in kinds that have a compile-time type are asked for as protobuf, which is
    /// smaller and faster to read, and taken as JSON from a server that can't write it. Whoever wants this has an informer
    /// apart.
    pub fn json(mut self) -> Self {
        self.options.json = true;
        self
    }

    /// The informer, its objects kept in a form of your own.
    ///
    /// It's the same informer for the same `K`, `R`, resource, scope and name; what makes another one of it besides is said
    /// at each option.
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
    pub fn full(mut self) -> SharedInformer<K> {
        let InformerOptions { resource, managed_fields, form, .. } = &mut self.options;
        let representation = Full::<K>::new(resource).keep_managed_fields(*managed_fields);
        *form = if K::metadata_api() {
            "metadata"
        } else if TypeId::of::<K>() == TypeId::of::<DynamicObject>() {
            "full, dynamic"
        } else {
            "full"
        };
        self.held_as(representation)
    }
}

impl<K> InformerBuilder<K>
where
    K: kube::Resource + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    /// The informer, its objects kept as compressed bytes and decoded when read: a Pod takes about a kilobyte, where a
    /// struct takes thirty to eighty.
    ///
    /// Handlers, listers and indexes work as with [`full`](Self::full), but that each read of an object decodes it (a Pod:
    /// tens of microseconds); the last few are kept decoded. Who reads every object all the time wants
    /// another form. [`Cached`](crate::Cached) gives the JSON, or a few fields of it, for less. A [filter](Self::filter),
    /// a [transform](Self::transform) and an [index](SharedInformer::index) over whole objects decode each state of an
    /// object once when it comes; a transformed object is written as JSON again.
    #[must_use]
    pub fn packed(self) -> SharedInformer<K> {
        self.kept_as_bytes("packed", true)
    }

    /// As [`packed`](Self::packed), but not compressed: six to eight times the memory, and about twice the speed.
    #[must_use]
    pub fn raw(self) -> SharedInformer<K> {
        self.kept_as_bytes("raw", false)
    }

    fn kept_as_bytes(mut self, form: &'static str, compress: bool) -> SharedInformer<K> {
        let InformerOptions { resource, managed_fields, .. } = &self.options;
        let full = Full::<K>::new(resource).keep_managed_fields(*managed_fields);
        let representation = Packed::new(full, compress, *managed_fields);
        self.options.form = form;
        self.held_as(representation)
    }
}

impl<V: Projection> InformerBuilder<V> {
    /// The informer, its objects kept as the projection that they are. Usually it's set up by
    /// [`InformerFactory::projection`].
    #[must_use]
    pub fn projected(mut self) -> SharedInformer<V> {
        self.options.form = "projected";
        self.held_as(Projected::new())
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
