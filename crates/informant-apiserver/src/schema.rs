//! The schema of an object: one type for built-in kinds and for custom ones, and the view through which it is read.
//!
//! A built-in kind's schema comes from a checked-in table and refers to shared definitions by name; a custom one is the
//! `openAPIV3Schema` of a CRD and refers to nothing. [`SchemaView`] hides the difference: every algorithm (pruning,
//! defaulting, validation, strategic merge, server-side apply, strict field checks) walks views only.

pub(crate) mod default;
#[cfg(test)]
mod laws;
pub(crate) mod object_meta;
pub(crate) mod path;
pub(crate) mod pattern;
pub(crate) mod prune;
#[cfg(test)]
mod recorded;
pub(crate) mod structural;
pub(crate) mod validate;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::pattern::Pattern;

/// One node of an OpenAPI v3 schema, with the `x-kubernetes-*` extensions. Field names are those of the JSON form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Schema {
    /// Name of a shared definition; the other fields of this node then only describe the place where it is used.
    #[serde(rename = "$ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// `object`, `array`, `string`, `integer`, `number`, `boolean`; empty for "any".
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_name: String,
    /// For example `int32`, `int64`, `date-time`, `int-or-string`, `byte`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub format: String,
    /// A heading for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Human text, fed in by the program for built-in kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Fields of an object.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, Schema>,
    /// The value schema of a map, or whether unknown keys are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_properties: Option<Box<AdditionalProperties>>,
    /// The schema of a list's items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<Schema>>,
    /// Names of the fields that must be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// The only values allowed.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub enumeration: Vec<Value>,
    /// The value that stands in for a missing one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Whether null is a value.
    #[serde(skip_serializing_if = "is_false")]
    pub nullable: bool,
    /// A regular expression that strings match somewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// Lower bound of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    /// Upper bound of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
    /// Whether the lower bound itself is excluded.
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_minimum: bool,
    /// Whether the upper bound itself is excluded.
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_maximum: bool,
    /// Numbers are multiples of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiple_of: Option<f64>,
    /// Least length of a string, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Greatest length of a string, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// Least number of items of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Greatest number of items of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// Whether items differ from each other.
    #[serde(skip_serializing_if = "is_false")]
    pub unique_items: bool,
    /// Least number of fields of an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_properties: Option<u64>,
    /// Greatest number of fields of an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_properties: Option<u64>,
    /// All of these hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<Schema>,
    /// At least one of these holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Schema>,
    /// Exactly one of these holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<Schema>,
    /// This doesn't hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<Schema>>,
    /// Fields that the schema doesn't name are kept.
    #[serde(rename = "x-kubernetes-preserve-unknown-fields", skip_serializing_if = "is_false")]
    pub preserve_unknown_fields: bool,
    /// The value is a whole object with apiVersion, kind and metadata.
    #[serde(rename = "x-kubernetes-embedded-resource", skip_serializing_if = "is_false")]
    pub embedded_resource: bool,
    /// The value is an integer or a string.
    #[serde(rename = "x-kubernetes-int-or-string", skip_serializing_if = "is_false")]
    pub int_or_string: bool,
    /// `atomic`, `set` or `map`; empty for the default, which is `atomic`.
    #[serde(rename = "x-kubernetes-list-type", skip_serializing_if = "String::is_empty")]
    pub list_type: String,
    /// The key fields of a list of type `map`.
    #[serde(rename = "x-kubernetes-list-map-keys", skip_serializing_if = "Vec::is_empty")]
    pub list_map_keys: Vec<String>,
    /// `granular` or `atomic`; empty for the default, which is `granular`.
    #[serde(rename = "x-kubernetes-map-type", skip_serializing_if = "String::is_empty")]
    pub map_type: String,
    /// Strategic merge: comma list of `merge`, `replace`, `retainKeys`.
    #[serde(rename = "x-kubernetes-patch-strategy", skip_serializing_if = "String::is_empty")]
    pub patch_strategy: String,
    /// Strategic merge: the field that identifies an item of the list.
    #[serde(rename = "x-kubernetes-patch-merge-key", skip_serializing_if = "String::is_empty")]
    pub patch_merge_key: String,
    /// CEL rules, as they stand in the CRD.
    #[serde(rename = "x-kubernetes-validations", skip_serializing_if = "Vec::is_empty")]
    pub validations: Vec<Value>,
    /// The kinds that a definition describes.
    #[serde(rename = "x-kubernetes-group-version-kind", skip_serializing_if = "Vec::is_empty")]
    pub group_version_kinds: Vec<Value>,
}

/// What may stand under keys that `properties` doesn't name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "a node holds it in a box")]
pub enum AdditionalProperties {
    /// Anything, or nothing.
    Allowed(bool),
    /// Values of this schema: the node is a map.
    Schema(Schema),
}

/// Shared definitions that a node's `$ref` names. Empty for custom kinds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Definitions {
    /// Schema by definition name, for example `io.k8s.api.core.v1.PodSpec`.
    pub by_name: BTreeMap<String, Schema>,
}

/// A node in its place: the node itself, the definition behind it, and where definitions are found. Copy, two words each.
#[derive(Debug, Clone, Copy)]
pub struct SchemaView<'a> {
    site: &'a Schema,
    node: &'a Schema,
    definitions: &'a Definitions,
}

// === impl SchemaView ===

impl<'a> SchemaView<'a> {
    /// A view of `schema`; a reference to an unknown definition reads as "any".
    pub fn new(schema: &'a Schema, definitions: &'a Definitions) -> Self {
        let node = match &schema.reference {
            Some(name) => definitions.by_name.get(name).unwrap_or(schema),
            None => schema,
        };
        Self { site: schema, node, definitions }
    }

    /// The resolved node. Place-bound facts (default, nullable, list and patch rules) are to be read by the methods below.
    pub fn node(self) -> &'a Schema {
        self.node
    }

    /// Whether there are shared definitions, as only built-in kinds have them.
    pub fn has_definitions(self) -> bool {
        !self.definitions.by_name.is_empty()
    }

    /// The name of the shared definition that the place refers to.
    pub fn definition_name(self) -> Option<&'a str> {
        self.site.reference.as_deref()
    }

    /// The schema of the field `name`: a named property, or the value schema of a map.
    pub fn field(self, name: &str) -> Option<Self> {
        self.property(name).or_else(|| self.map_value())
    }

    /// The schema of a named property.
    pub fn property(self, name: &str) -> Option<Self> {
        self.node.properties.get(name).map(|schema| self.at(schema))
    }

    /// Every named property, in order of name.
    pub fn properties(self) -> impl Iterator<Item = (&'a str, Self)> {
        self.node.properties.iter().map(move |(name, schema)| (name.as_str(), self.at(schema)))
    }

    /// The schema of a map's values.
    pub fn map_value(self) -> Option<Self> {
        match self.node.additional_properties.as_deref() {
            Some(AdditionalProperties::Schema(schema)) => Some(self.at(schema)),
            Some(AdditionalProperties::Allowed(_)) | None => None,
        }
    }

    /// The schema of a list's items.
    pub fn items(self) -> Option<Self> {
        self.node.items.as_deref().map(|schema| self.at(schema))
    }

    /// A view of another node under the same definitions (a branch of `allOf`, for example).
    pub fn at(self, schema: &'a Schema) -> Self {
        Self::new(schema, self.definitions)
    }

    /// The default at this place; the place wins over the definition.
    pub fn default(self) -> Option<&'a Value> {
        self.site.default.as_ref().or(self.node.default.as_ref())
    }

    /// Whether null is a value at this place.
    pub fn nullable(self) -> bool {
        self.site.nullable || self.node.nullable
    }

    /// Whether unknown fields are kept at this place.
    pub fn preserves_unknown_fields(self) -> bool {
        self.site.preserve_unknown_fields || self.node.preserve_unknown_fields
    }

    /// How the list at this place is owned and merged by server-side apply.
    pub fn list_type(self) -> ListType<'a> {
        let holder = if self.site.list_type.is_empty() { self.node } else { self.site };
        match holder.list_type.as_str() {
            "map" => ListType::Map(&holder.list_map_keys),
            "set" => ListType::Set,
            _ => ListType::Atomic,
        }
    }

    /// Whether the list at this place says how it is owned at all; if not, it's atomic unless its patch strategy is to merge.
    pub fn states_list_type(self) -> bool {
        !self.site.list_type.is_empty() || !self.node.list_type.is_empty()
    }

    /// Whether the object or map at this place is owned as a whole by server-side apply.
    pub fn map_is_atomic(self) -> bool {
        self.site.map_type == "atomic" || self.node.map_type == "atomic"
    }

    /// Strategic merge: the strategies of this place.
    pub fn patch_strategy(self) -> &'a str {
        if self.site.patch_strategy.is_empty() { &self.node.patch_strategy } else { &self.site.patch_strategy }
    }

    /// Strategic merge: the key field of this list's items, when it is merged by key.
    pub fn patch_merge_key(self) -> Option<&'a str> {
        let key =
            if self.site.patch_merge_key.is_empty() { &self.node.patch_merge_key } else { &self.site.patch_merge_key };
        (!key.is_empty()).then_some(key)
    }
}

/// How server-side apply sees a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType<'a> {
    /// Owned and replaced as a whole.
    Atomic,
    /// Items are scalars and their own keys.
    Set,
    /// Items are objects identified by these key fields.
    Map(&'a [String]),
}

fn is_false(value: &bool) -> bool {
    !value
}
