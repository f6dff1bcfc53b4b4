//! `#[derive(Projection)]`: a struct that says of each field where its value is in a Kubernetes object.
//!
//! The files, in the order of the work: `input` reads the struct and its attributes, `path` a path, `types` a field's type; `check`
//! holds paths and types against the `table` of built-in kinds; `expand` writes the code.

mod check;
mod expand;
mod input;
mod path;
mod table;
mod types;

use proc_macro::TokenStream;

/// Makes a struct a projection: the part of a kind's objects that an informer keeps.
///
/// ```ignore
/// #[derive(Projection)]
/// #[projection(api_version = "apps/v1", kind = "Deployment")]
/// struct Rollout {
///     #[projection(path = "metadata.name")]
///     name: String,
///     #[projection(path = "spec.replicas", default)]
///     wanted: i32,
///     #[projection(path = "status.conditions[type=Available].status")]
///     available: Option<Arc<str>>,
///     #[projection(path = "spec.template.spec.containers[*].image")]
///     images: Vec<Arc<str>>,
///     #[projection(path = "metadata.annotations[\"example.com/owner\"]")]
///     owner: Option<String>,
///     #[projection(path = "spec.template.spec.affinity")]
///     affinity: Option<Affinity>,
/// }
/// ```
///
/// # The struct
///
/// `#[projection(…)]` on it says which objects it's a part of:
///
/// - `api_version = "apps/v1"` and `kind = "Deployment"`, as manifests write them.
/// - `plural = "sheep"`, if the plural of a custom resource isn't what English makes of its kind.
/// - `cluster_scoped`, if a custom resource has no namespaces; of built-in kinds that's known.
/// - `crate = path`, where the crate `informant-cache` is, if it isn't where the derive was taken from.
///
/// It has named fields and no parameters.
///
/// # Paths
///
/// Each field says where its value is: `path = "…"`.
///
/// - `spec.nodeName`: keys with dots between them.
/// - `metadata.labels["app.kubernetes.io/name"]`: a key with other characters than letters, digits, `-` and `_`, in brackets and quotes.
/// - `spec.containers[*].image`: of every element of a list, into a `Vec`. Elements without a value are left out. More
///   than one `[*]` gives one flat list.
/// - `status.conditions[type=Ready].status`: of the first element that has this text, number or boolean under this key.
/// - `spec.containers[0].image`: of the element at this position.
///
/// A path may end anywhere: at a whole object, if the field's type can take it.
///
/// # Types
///
/// A field may have any type that serde can read, as long as it owns what it holds. Of an `Option`, what's absent or null
/// is `None`; a `Vec` or `BTreeMap` is empty then, as lists and maps that are left out are the same as empty ones to
/// Kubernetes. Another type has its `Default` if the field is marked `default`; if not, an object without the value can't
/// be taken in: the informer's status names the object and the path.
///
/// `Arc<str>` (also in `Option`, `Vec` and `BTreeMap`) is for texts that repeat: they're kept once for all objects of an informer.
/// Within types of your own they aren't.
///
/// # What's checked when
///
/// For kinds that Kubernetes brings, wrong paths are compile errors, as are types that can't hold what's there, as far as
/// the derive knows the type: texts, booleans, numbers, and `Option`, `Vec` and `BTreeMap` of these. For everything else the first
/// object tells: one whose value isn't as the struct says can't be taken in, and is named in the status.
///
/// # Metadata
///
/// The struct's `Metadata` answers with what the struct keeps: `metadata.name`, `namespace`, `uid`, `resourceVersion`,
/// `generation`, `deletionTimestamp` (as an `Option`), `labels` and `annotations` (as maps of texts, or single ones by their key), and
/// `ownerReferences` (as a `Vec<OwnerReference>`).
#[proc_macro_derive(Projection, attributes(projection))]
pub fn projection(input: TokenStream) -> TokenStream {
    expand::expand(input.into(), &["informant_cache"]).into()
}

/// The same for those who depend on the facade: the code refers to `informant::cache`.
#[doc(hidden)]
#[proc_macro_derive(FacadeProjection, attributes(projection))]
pub fn facade_projection(input: TokenStream) -> TokenStream {
    expand::expand(input.into(), &["informant", "cache"]).into()
}
