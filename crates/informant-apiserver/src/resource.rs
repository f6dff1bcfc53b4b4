//! A served resource: its names, its scope, and the few rules in which one kind differs from another.
//!
//! Built-in resources come from one checked-in table, custom ones from their CRD; past this type nothing asks which.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::schema::{Definitions, Schema, SchemaView};

/// Where objects live: kinds served in several versions (or groups, as Events) share one place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageId {
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// Plural resource name.
    pub plural: Arc<str>,
}

/// One resource in one version, as it is served.
#[derive(Debug, Clone)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// Version, for example `v1`.
    pub version: String,
    /// Kind, for example `Deployment`.
    pub kind: String,
    /// Kind of a list, for example `DeploymentList`.
    pub list_kind: String,
    /// Plural name, as it stands in paths.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Short names, for example `deploy`.
    pub short_names: Vec<String>,
    /// Categories, for example `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs that discovery lists, for example `create`, `get`, `list`, `watch`.
    pub verbs: Vec<String>,
    /// Subresources below an object.
    pub subresources: Vec<Subresource>,
    /// Where the objects are stored.
    pub storage: StorageId,
    /// The schema of an object.
    pub schema: ResourceSchema,
    /// Whether the kind is defined by a CRD.
    pub custom: bool,
    /// How the kind differs from the ordinary in its life cycle.
    pub rules: Rules,
    /// The columns that a custom kind asks for in tables; empty for the default ones and for built-in kinds.
    pub printer_columns: Vec<PrinterColumn>,
    /// For custom kinds: paths of the fields that field selectors may name, for example `.spec.color`.
    pub selectable_fields: Vec<String>,
    /// What each answer warns of when this version is deprecated.
    pub deprecation_warning: Option<String>,
}

/// A column of a table, read from an object by a JSON path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_name: String,
    /// OpenAPI format, for example `int32`; empty for none.
    pub format: String,
    /// Human text.
    pub description: String,
    /// 0 is always shown, more only in wide output.
    pub priority: i64,
    /// Where the cell's value is, with the leading dot: `.spec.replicas`.
    pub json_path: String,
}

/// A subresource of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    /// Last path segment, for example `status`.
    pub name: String,
    /// Group of the subresource's own kind, when it differs (`autoscaling` for `scale`).
    pub group: String,
    /// Version of the subresource's own kind, when it differs.
    pub version: String,
    /// Kind that the subresource speaks, for example `Scale`.
    pub kind: String,
    /// Verbs that discovery lists.
    pub verbs: Vec<String>,
    /// For `scale`: where the numbers are in the object.
    pub scale: Option<ScalePaths>,
}

/// Where `scale` reads and writes, as paths without the leading dot: `spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// Desired replicas.
    pub spec_replicas: String,
    /// Observed replicas.
    pub status_replicas: String,
    /// The label selector: an object (built-in) or a string (custom); empty when there is none.
    pub label_selector: String,
}

/// An object's schema with its shared definitions, cheap to clone.
#[derive(Debug, Clone)]
pub struct ResourceSchema(Source);

#[derive(Debug, Clone)]
enum Source {
    Ready { root: Arc<Schema>, definitions: Arc<Definitions> },
    Lazy { group: Arc<LazyDefinitions>, id: String },
}

/// The definitions of a group version, read when they are first looked at.
pub struct LazyDefinitions {
    read: Box<dyn Fn() -> Definitions + Send + Sync>,
    loaded: OnceLock<Loaded>,
}

struct Loaded {
    definitions: Definitions,
    /// Definition name by group, version and kind.
    roots: BTreeMap<String, String>,
    /// Stands in for the schema of a kind that the definitions don't have.
    any: Schema,
}

/// When `metadata.generation` rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GenerationRule {
    /// The kind has no generation.
    None,
    /// With a change of `spec`.
    Spec,
    /// With a change of `spec` or of the annotations (Deployments).
    SpecOrAnnotations,
    /// With any change outside `metadata` and, when there is a status subresource, `status` (custom kinds).
    OutsideMetadata,
}

/// The rules in which kinds differ. The default is an ordinary built-in kind with a spec and a status subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// When the generation rises.
    pub generation: GenerationRule,
    /// Whether an update without a resource version is taken.
    pub unconditional_update: bool,
    /// Whether an update of a missing object creates it.
    pub create_on_update: bool,
    /// Whether a delete that takes effect at once answers with the object instead of a `Status`.
    pub returns_deleted_object: bool,
    /// Whether deletion waits for a grace period (Pods).
    pub graceful: bool,
    /// Whether nothing is stored and a create is only answered (reviews).
    pub virtual_only: bool,
    /// Whether a create keeps the `status` that came with it (Nodes), although there is a status subresource.
    pub keeps_status_on_create: bool,
}

// === impl Resource ===

impl Resource {
    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether there is a subresource of that name.
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresource(name).is_some()
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether a verb is served.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| served == verb)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.plural) } else { write!(f, "{}.{}", self.plural, self.group) }
    }
}

// === impl ResourceSchema ===

impl ResourceSchema {
    /// A schema that refers to `definitions`.
    pub fn new(root: Schema, definitions: Arc<Definitions>) -> Self {
        Self(Source::Ready { root: Arc::new(root), definitions })
    }

    /// The schema of a kind among definitions that are read when the schema is first looked at.
    pub fn lazy(group: Arc<LazyDefinitions>, api_group: &str, version: &str, kind: &str) -> Self {
        Self(Source::Lazy { group, id: gvk(api_group, version, kind) })
    }

    /// The view of the whole object.
    pub fn view(&self) -> SchemaView<'_> {
        match &self.0 {
            Source::Ready { root, definitions } => SchemaView::new(root, definitions),
            Source::Lazy { group, id } => group.loaded().view(id),
        }
    }

    /// The definitions that the schema refers to.
    pub fn definitions(&self) -> &Definitions {
        match &self.0 {
            Source::Ready { definitions, .. } => definitions,
            Source::Lazy { group, .. } => &group.loaded().definitions,
        }
    }
}

impl Default for ResourceSchema {
    /// A schema that takes anything.
    fn default() -> Self {
        Self::new(Schema::default(), Arc::default())
    }
}

// === impl LazyDefinitions ===

impl LazyDefinitions {
    /// Definitions that `read` brings; it's called once at most.
    pub fn new(read: impl Fn() -> Definitions + Send + Sync + 'static) -> Self {
        Self { read: Box::new(read), loaded: OnceLock::new() }
    }

    fn loaded(&self) -> &Loaded {
        self.loaded.get_or_init(|| Loaded::new((self.read)()))
    }
}

impl fmt::Debug for LazyDefinitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyDefinitions").field("loaded", &self.loaded.get().is_some()).finish_non_exhaustive()
    }
}

impl Loaded {
    fn new(definitions: Definitions) -> Self {
        let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or("").to_owned();
        let mut roots = BTreeMap::new();
        for (name, schema) in &definitions.by_name {
            for kind in &schema.group_version_kinds {
                roots.insert(gvk(&text(kind, "group"), &text(kind, "version"), &text(kind, "kind")), name.clone());
            }
        }
        Self { definitions, roots, any: Schema::default() }
    }

    fn view(&self, id: &str) -> SchemaView<'_> {
        let root = self.roots.get(id).and_then(|name| self.definitions.by_name.get(name)).unwrap_or(&self.any);
        SchemaView::new(root, &self.definitions)
    }
}

fn gvk(group: &str, version: &str, kind: &str) -> String {
    format!("{group}/{version}/{kind}")
}

// === impl Rules ===

impl Default for Rules {
    fn default() -> Self {
        Self {
            generation: GenerationRule::Spec,
            unconditional_update: true,
            create_on_update: false,
            returns_deleted_object: false,
            graceful: false,
            virtual_only: false,
            keeps_status_on_create: false,
        }
    }
}
