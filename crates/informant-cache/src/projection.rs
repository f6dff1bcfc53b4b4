//! Objects kept as a struct of the user's, with the fields that he uses and no others.
//!
//! `#[derive(Projection)]` turns a struct with a path at each field into a [`Projection`]. Its paths become a [`Plan`], a
//! tree that's made once per type; a walk over the object's bytes visits what the tree names and skips the rest, and
//! what was found there is decoded by serde. So nothing is made of what nobody asked for, and texts that repeat are kept
//! once ([`Strings`]).
//!
//! What's skipped isn't checked: it's known where it ends, and not what it holds.

mod found;
mod heap;
mod held;
mod json;
mod plan;
mod protobuf;
mod seed;
mod strings;
#[cfg(test)]
mod tests;

use kube::api::{ApiResource, GroupVersionKind};

pub use self::found::Found;
#[doc(hidden)]
pub use self::heap::HeapBytes;
pub use self::held::Projected;
pub use self::plan::Plan;
#[doc(hidden)]
pub use self::seed::{Interned, Listed, Mapped, Nullable, Plain, Text};
pub use self::strings::Strings;
use crate::document::Document;
use crate::error::DecodeError;
use crate::object::Metadata;

/// A part of a kind's objects: a struct whose fields are each taken from a path in the object.
///
/// It's made by `#[derive(Projection)]`, and by nothing else: what the derive says of a struct and how the struct is
/// read have to agree. Which attributes, paths and types there are is written at the derive.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Arc;
///
/// use informant_cache::{Document, Projection};
///
/// #[derive(Debug, Projection)]
/// #[projection(api_version = "v1", kind = "Pod")]
/// struct PodView {
///     #[projection(path = "metadata.name")]
///     name: String,
///     #[projection(path = "metadata.labels")]
///     labels: BTreeMap<Arc<str>, Arc<str>>,
///     #[projection(path = "spec.nodeName")]
///     node: Option<Arc<str>>,
///     #[projection(path = "status.conditions[type=Ready].status")]
///     ready: Option<Arc<str>>,
///     #[projection(path = "spec.containers[*].image")]
///     images: Vec<Arc<str>>,
/// }
///
/// let text = br#"{"metadata": {"name": "a"}, "spec": {"nodeName": "n", "containers": [{"image": "x:1"}]}}"#;
/// let pod: PodView = Document::json(text).project()?;
/// assert_eq!((pod.name.as_str(), pod.node.as_deref(), pod.ready), ("a", Some("n"), None));
/// assert_eq!(*pod.images[0], *"x:1");
/// # Ok::<(), informant_cache::DecodeError>(())
/// ```
///
/// An informer of it is made by [`InformerFactory::projection`](crate::InformerFactory::projection). Its [`Metadata`] answers
/// with the metadata that the struct keeps, and with nothing for the rest; so a lister selects by labels if the struct
/// keeps `metadata.labels`, and selects no object by them otherwise.
pub trait Projection: Metadata + Sized + Send + Sync + 'static {
    /// The kind whose objects it's a part of.
    const KIND: Kind;

    /// Its fields, in the order of the struct.
    const FIELDS: &'static [Field];

    /// What [`FIELDS`](Self::FIELDS) ask for, as a tree; made at the first call.
    fn plan() -> &'static Plan;

    /// Makes one of what a walk found.
    ///
    /// # Errors
    /// If a value isn't of its field's type, or isn't there and the field can't do without. The error names the path.
    fn read(found: &Found<'_>) -> Result<Self, DecodeError>;

    /// About how many bytes it holds beyond its own size: its texts, lists and maps, but for interned texts, which are
    /// counted once for all. Fields of types that the derive doesn't know count as nothing here.
    fn heap_bytes(&self) -> usize;

    /// The resource of [`KIND`](Self::KIND).
    #[must_use]
    fn resource() -> ApiResource {
        let Kind { api_version, kind, plural, .. } = Self::KIND;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = GroupVersionKind::gvk(group, version, kind);
        match plural {
            Some(plural) => ApiResource::from_gvk_with_plural(&kind, plural),
            None => ApiResource::from_gvk(&kind),
        }
    }
}

/// The kind that a [`Projection`] is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Group and version, as in `apps/v1`.
    pub api_version: &'static str,
    /// The kind's name.
    pub kind: &'static str,
    /// Its plural name in URLs, if it can't be derived from the kind's.
    pub plural: Option<&'static str>,
    /// Whether it has no namespaces.
    pub cluster_scoped: bool,
}

/// One field of a [`Projection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name in the struct.
    pub name: &'static str,
    /// Where its value is in the object, as it was written.
    pub path: &'static str,
    /// The same, step by step.
    pub steps: &'static [Step],
    /// Whether [`Projection::heap_bytes`] doesn't count it.
    pub opaque: bool,
}

/// One step of a path into an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// To the value of this key.
    Key(&'static str),
    /// To each element of a list.
    Each,
    /// To the element at this position of a list, from 0.
    At(usize),
    /// To the first element of a list that has this value under this key.
    Where(&'static str, &'static str),
}

impl Document<'_> {
    /// The part of the object that `V` keeps, without decoding the rest. Each text in it is its own.
    ///
    /// # Errors
    /// If a value isn't of its field's type, or isn't there and the field can't do without. The error names the path.
    pub fn project<V: Projection>(&self) -> Result<V, DecodeError> {
        V::plan().read(self, None)
    }

    /// As [`project`](Self::project); texts in `Arc<str>` are shared by means of `strings`.
    ///
    /// # Errors
    /// As there.
    pub fn project_with<V: Projection>(&self, strings: &Strings) -> Result<V, DecodeError> {
        V::plan().read(self, Some(strings))
    }
}
