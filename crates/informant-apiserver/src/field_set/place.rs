//! A place in an object, and how the schema there cuts a value into fields.
//!
//! Server-side apply owns and merges scalars, atomic lists and atomic objects as a whole; it looks into other objects field
//! by field, and into lists of type `set` or `map` item by item. Where no schema says anything, objects are looked into and
//! lists are atomic. `metadata` looks the same in every kind, whatever its schema says of it.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::PathElement;
use crate::schema::{AdditionalProperties, Definitions, ListType, Schema, SchemaView};

/// A place in an object: what the schema says of it, if anything. Cheap to copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    view: Option<SchemaView<'a>>,
    root: bool,
    /// Whether a place further up keeps fields that no schema names.
    open: bool,
}

/// What a value at a place is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'v> {
    /// Owned as a whole: a scalar, an atomic list or an atomic object.
    Whole,
    /// Null, an empty object or an empty list: nothing to look into.
    Empty,
    /// An object that is owned field by field.
    Object(&'v Map<String, Value>),
    /// A list that is owned item by item.
    List(&'v [Value]),
}

/// How the items of a list are told apart.
enum Identity<'a> {
    ByValue,
    ByKeys(Vec<&'a str>),
}

/// The metadata of every kind.
static METADATA: LazyLock<(Schema, Definitions)> = LazyLock::new(|| {
    let text = |_| Schema { type_name: "string".to_owned(), ..Schema::default() };
    let map = || Schema {
        type_name: "object".to_owned(),
        additional_properties: Some(Box::new(AdditionalProperties::Schema(text(())))),
        ..Schema::default()
    };
    let list = |list_type: &str, keys: &[&str], items: Schema| Schema {
        type_name: "array".to_owned(),
        list_type: list_type.to_owned(),
        list_map_keys: keys.iter().map(|&key| key.to_owned()).collect(),
        items: Some(Box::new(items)),
        ..Schema::default()
    };
    let object =
        |map_type: &str| Schema { type_name: "object".to_owned(), map_type: map_type.to_owned(), ..Schema::default() };
    let mut metadata = object("");
    for name in ["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "creationTimestamp"] {
        metadata.properties.insert(name.to_owned(), text(()));
    }
    for name in ["generation", "deletionTimestamp", "deletionGracePeriodSeconds", "clusterName"] {
        metadata.properties.insert(name.to_owned(), Schema::default());
    }
    metadata.properties.insert("labels".to_owned(), map());
    metadata.properties.insert("annotations".to_owned(), map());
    metadata.properties.insert("finalizers".to_owned(), list("set", &[], text(())));
    metadata.properties.insert("ownerReferences".to_owned(), list("map", &["uid"], object("atomic")));
    metadata.properties.insert("managedFields".to_owned(), list("atomic", &[], object("")));
    (metadata, Definitions::default())
});

/// The definition whose values may be numbers although they say they are text.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
/// The definition whose values have no fields of their own, whatever is in them.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

// === impl Place ===

impl<'a> Place<'a> {
    /// The root of an object.
    pub(crate) fn root(view: SchemaView<'a>) -> Self {
        Self { view: Some(view), root: true, open: view.preserves_unknown_fields() }
    }

    fn inner(self, view: Option<SchemaView<'a>>) -> Self {
        let open = self.open || view.is_some_and(SchemaView::preserves_unknown_fields);
        Self { view, root: false, open }
    }

    /// The place of a field below this one.
    pub(crate) fn field(self, name: &str) -> Self {
        if self.root && name == "metadata" {
            return Self { view: Some(SchemaView::new(&METADATA.0, &METADATA.1)), root: false, open: false };
        }
        self.inner(self.view.and_then(|view| view.field(name)))
    }

    /// The place of an item of the list at this one.
    pub(crate) fn item(self) -> Self {
        self.inner(self.view.and_then(SchemaView::items))
    }

    /// The place that a step leads to.
    pub(crate) fn step(self, element: &PathElement) -> Self {
        element.field_name().map_or_else(|| self.item(), |name| self.field(name))
    }

    /// Whether the schema names this field (rather than take it as a key of a map, or not know it).
    pub(crate) fn names_field(self, name: &str) -> bool {
        let standard = self.root && matches!(name, "apiVersion" | "kind" | "metadata");
        standard || self.view.is_some_and(|view| view.property(name).is_some())
    }

    /// Whether an object here may have this field.
    pub(crate) fn allows_field(self, name: &str) -> bool {
        let Some(view) = self.view else { return true };
        let node = view.node();
        let anything = node.properties.is_empty() && node.additional_properties.is_none();
        let keys = !matches!(node.additional_properties.as_deref(), None | Some(AdditionalProperties::Allowed(false)));
        let embedded = node.embedded_resource && matches!(name, "apiVersion" | "kind" | "metadata");
        self.open || anything || keys || embedded || self.names_field(name)
    }

    /// What a value here is made of.
    pub(crate) fn shape(self, value: &Value) -> Shape<'_> {
        match value {
            Value::Null => Shape::Empty,
            Value::Object(_) if self.object_is_atomic() => Shape::Whole,
            Value::Array(_) if self.identity().is_none() => Shape::Whole,
            Value::Object(map) if map.is_empty() => Shape::Empty,
            Value::Array(list) if list.is_empty() => Shape::Empty,
            Value::Object(map) => Shape::Object(map),
            Value::Array(list) => Shape::List(list),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => Shape::Whole,
        }
    }

    /// Whether a list or object here is owned as a whole by what the schema says, whichever value is there.
    pub(crate) fn is_atomic(self) -> bool {
        match self.view.map(|view| view.node().type_name.as_str()) {
            Some("array") => self.identity().is_none(),
            Some("object") => self.object_is_atomic(),
            _ => false,
        }
    }

    /// Whether the text here is just that, rather than the text form of a time, a quantity or a number.
    pub(crate) fn is_plain_text(self) -> bool {
        self.view.is_some_and(|view| {
            let node = view.node();
            matches!(node.format.as_str(), "" | "byte")
                && !node.int_or_string
                && view.definition_name() != Some(QUANTITY)
        })
    }

    /// The `type` that the schema asks for; empty for any.
    pub(crate) fn type_name(self) -> &'a str {
        self.view.map_or("", |view| &view.node().type_name)
    }

    /// The step that leads to an item of the list here; the error says why it can't be told apart.
    pub(crate) fn item_element(self, item: &Value) -> Result<PathElement, String> {
        let keys = match self.identity() {
            Some(Identity::ByKeys(keys)) => keys,
            Some(Identity::ByValue) => {
                return match item {
                    Value::Object(_) => {
                        Err("associative list without keys has an element that's a map type".to_owned())
                    }
                    Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                    Value::Null => {
                        Err("associative list without keys has an element that's an explicit null".to_owned())
                    }
                    scalar => Ok(PathElement::value(scalar)),
                };
            }
            None => return Err("invalid indexing of non-associative list".to_owned()),
        };
        let Some(item) = item.as_object() else {
            return Err("associative list with keys may not have non-map elements".to_owned());
        };
        let place = self.item();
        let of_key = |key: &str| item.get(key).or_else(|| place.field(key).view.and_then(SchemaView::default)).cloned();
        let values: Map<String, Value> = keys.iter().filter_map(|&key| Some((key.to_owned(), of_key(key)?))).collect();
        if values.is_empty() {
            return Err(format!(
                "associative list with keys has an element that omits all key fields {} (and doesn't have default values \
                 for any key fields)",
                json!(keys)
            ));
        }
        Ok(PathElement::key(&values))
    }

    /// What a built-in object of this kind holds before anybody has set anything: the structs and scalars that are always
    /// there, and null for the other fields that are. Custom kinds have nothing of that sort.
    pub(crate) fn blank(self) -> Value {
        let mut blank = Map::new();
        let fields = self.view.filter(|view| view.has_definitions()).into_iter().flat_map(SchemaView::properties);
        for (name, field) in fields {
            let is_struct = field.default().is_some_and(|default| *default == json!({}));
            let required = self.view.is_some_and(|view| view.node().required.iter().any(|required| required == name));
            let container = matches!(field.node().type_name.as_str(), "object" | "array");
            if is_struct {
                blank.insert(name.to_owned(), self.field(name).blank());
            } else if container && required {
                blank.insert(name.to_owned(), Value::Null);
            } else if let Some(zero) = field.default().filter(|default| is_zero(default)) {
                blank.insert(name.to_owned(), zero.clone());
            }
        }
        Value::Object(blank)
    }

    fn object_is_atomic(self) -> bool {
        self.view.is_some_and(|view| view.map_is_atomic() || view.definition_name() == Some(RAW_EXTENSION))
    }

    /// How the items of a list here are told apart; `None` if it's atomic.
    fn identity(self) -> Option<Identity<'a>> {
        let view = self.view?;
        match view.list_type() {
            ListType::Map(keys) => Some(Identity::ByKeys(keys.iter().map(String::as_str).collect())),
            ListType::Set => Some(Identity::ByValue),
            // Kinds that were made before list types say it by their strategic merge rules.
            ListType::Atomic if view.states_list_type() => None,
            ListType::Atomic => match (view.patch_strategy(), view.patch_merge_key()) {
                ("merge" | "merge,retainKeys", Some(key)) => Some(Identity::ByKeys(vec![key])),
                ("merge" | "merge,retainKeys", None) => Some(Identity::ByValue),
                _ => None,
            },
        }
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}
