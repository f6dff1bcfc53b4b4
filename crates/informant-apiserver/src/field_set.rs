//! Sets of field paths: what a manager owns, and what a write changed.
//!
//! A path is a list of [`PathElement`]s from the root of an object; a set holds paths as a tree. A path in the set says
//! nothing about the paths below it: a manager may own an object's fields without the object itself, and the other way
//! round. The algebra (union, intersection, difference) works on exact paths. The root itself is never in a set.
//!
//! [`fields_v1`] is the JSON form; [`place`] says how a schema cuts a value into fields; [`object`] lists the fields of an
//! object, and [`compare`] those in which two objects differ.

pub(crate) mod compare;
pub(crate) mod fields_v1;
pub(crate) mod object;
pub(crate) mod place;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// One step of a path, in its FieldsV1 form: `f:name`, `k:{"name":"web"}`, `v:"x"` or `i:0`. Equal text is an equal step.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PathElement(String);

/// A set of field paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// No node is empty: each is a member, or has children, or both.
    nodes: BTreeMap<PathElement, Node>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    /// Whether the path that ends here is in the set.
    member: bool,
    children: FieldSet,
}

// === impl PathElement ===

impl PathElement {
    /// A field of an object.
    pub(crate) fn field(name: &str) -> Self {
        Self(format!("f:{name}"))
    }

    /// An item of a list of type `map`, by the values of its keys.
    pub(crate) fn key(keys: &Map<String, Value>) -> Self {
        // The map is ordered by name, so equal keys have equal text.
        Self(format!("k:{}", Value::Object(keys.clone())))
    }

    /// An item of a list of type `set`.
    pub(crate) fn value(value: &Value) -> Self {
        Self(format!("v:{value}"))
    }

    /// The name, if it's a field.
    pub(crate) fn field_name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }
}

/// As messages show a step: `.name`, `[name="web"]`, `[="x"]` or `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, text) = self.0.split_at_checked(2).unwrap_or(("", &self.0));
        match kind {
            "f:" => write!(f, ".{text}"),
            "k:" => {
                let keys: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", keys.join(","))
            }
            "v:" => write!(f, "[={text}]"),
            _ => write!(f, "[{text}]"),
        }
    }
}

/// A path as messages show it: `.spec.containers[name="web"].image`.
pub(crate) fn path_text(path: &[PathElement]) -> String {
    path.iter().map(PathElement::to_string).collect()
}

// === impl FieldSet ===

impl FieldSet {
    /// A set of these paths, each given by field names only.
    pub(crate) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<PathElement> = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Adds a path; the root can't be added.
    pub(crate) fn insert(&mut self, path: &[PathElement]) {
        if let Some((first, rest)) = path.split_first() {
            let node = self.nodes.entry(first.clone()).or_default();
            if rest.is_empty() {
                node.member = true;
            } else {
                node.children.insert(rest);
            }
        }
    }

    /// Whether there is no path.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether the path of this one step is in the set.
    pub(crate) fn has_member(&self, element: &PathElement) -> bool {
        self.nodes.get(element).is_some_and(|node| node.member)
    }

    /// Whether a path is in the set.
    pub(crate) fn has(&self, path: &[PathElement]) -> bool {
        match path.split_first() {
            None => false,
            Some((last, [])) => self.has_member(last),
            Some((first, rest)) => self.below(first).is_some_and(|below| below.has(rest)),
        }
    }

    /// The paths that begin with this step and go on, without it; `None` if there is none.
    pub(crate) fn below(&self, element: &PathElement) -> Option<&Self> {
        self.nodes.get(element).map(|node| &node.children).filter(|children| !children.is_empty())
    }

    /// The first steps of the paths.
    pub(crate) fn elements(&self) -> impl Iterator<Item = &PathElement> {
        self.nodes.keys()
    }

    /// Every path that is in either set.
    #[must_use]
    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for (element, theirs) in &other.nodes {
            let node = union.nodes.entry(element.clone()).or_default();
            node.member |= theirs.member;
            node.children = node.children.union(&theirs.children);
        }
        union
    }

    /// Every path that is in both sets.
    #[must_use]
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine(|element, ours| {
            let theirs = other.nodes.get(element)?;
            Some(Node { member: ours.member && theirs.member, children: ours.children.intersection(&theirs.children) })
        })
    }

    /// Every path that is in this set and not in the other.
    #[must_use]
    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.combine(|element, ours| match other.nodes.get(element) {
            None => Some(ours.clone()),
            Some(theirs) => Some(Node {
                member: ours.member && !theirs.member,
                children: ours.children.difference(&theirs.children),
            }),
        })
    }

    /// This set with the path `element` alone and nothing below it.
    pub(crate) fn collapse(&mut self, element: &PathElement) {
        if let Some(node) = self.nodes.get_mut(element) {
            *node = Node { member: true, children: Self::default() };
        }
    }

    /// This set, each node below a step replaced by what `change` makes of it.
    #[must_use]
    pub(crate) fn map_below(&self, mut change: impl FnMut(&PathElement, &Self) -> Self) -> Self {
        self.combine(|element, node| Some(Node { member: node.member, children: change(element, &node.children) }))
    }

    /// Every path, those that end at a level before those that go on, each group in order.
    pub(crate) fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, into: &mut Vec<Vec<PathElement>>) {
        for (element, _) in self.nodes.iter().filter(|(_, node)| node.member) {
            let mut path = prefix.clone();
            path.push(element.clone());
            into.push(path);
        }
        for (element, node) in &self.nodes {
            prefix.push(element.clone());
            node.children.collect_paths(prefix, into);
            prefix.pop();
        }
    }

    /// Builds a set from what `keep` makes of each node, leaving empty nodes out.
    fn combine(&self, mut keep: impl FnMut(&PathElement, &Node) -> Option<Node>) -> Self {
        let kept = self.nodes.iter().filter_map(|(element, node)| {
            let node = keep(element, node).filter(|node| node.member || !node.children.is_empty())?;
            Some((element.clone(), node))
        });
        Self { nodes: kept.collect() }
    }
}

/// One path to a line, as in [`path_text`].
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.paths().iter().map(|path| path_text(path)).collect();
        f.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    type Model = BTreeSet<Vec<PathElement>>;

    fn element() -> impl Strategy<Value = PathElement> {
        prop_oneof![
            "[ab]".prop_map(|name| PathElement::field(&name)),
            (0..2).prop_map(|number| PathElement::value(&json!(number))),
            "[ab]".prop_map(|name| PathElement::key(json!({"name": name, "port": 1}).as_object().unwrap())),
        ]
    }

    fn model() -> impl Strategy<Value = Model> {
        prop::collection::btree_set(prop::collection::vec(element(), 1..4), 0..8)
    }

    fn set(model: &Model) -> FieldSet {
        let mut set = FieldSet::default();
        model.iter().for_each(|path| set.insert(path));
        set
    }

    proptest! {
        #[test]
        fn the_algebra_is_that_of_plain_sets(a in model(), b in model()) {
            let (x, y) = (set(&a), set(&b));
            prop_assert_eq!(x.union(&y), set(&a.union(&b).cloned().collect()));
            prop_assert_eq!(x.intersection(&y), set(&a.intersection(&b).cloned().collect()));
            prop_assert_eq!(x.difference(&y), set(&a.difference(&b).cloned().collect()));
            prop_assert_eq!(x.paths().into_iter().collect::<Model>(), a.clone());
            prop_assert_eq!(x.is_empty(), a.is_empty());
            prop_assert!(a.iter().all(|path| x.has(path)));
            prop_assert!(b.iter().all(|path| x.has(path) == a.contains(path)));
        }

        #[test]
        fn fields_v1_round_trips(paths in model()) {
            let set = set(&paths);
            prop_assert_eq!(fields_v1::decode(&fields_v1::encode(&set)).unwrap(), set);
        }
    }

    #[test]
    fn paths_are_shown_as_real_servers_show_them() {
        let path = [
            PathElement::field("spec"),
            PathElement::field("ports"),
            PathElement::key(json!({"protocol": "TCP", "port": 80}).as_object().unwrap()),
            PathElement::field("finalizers"),
            PathElement::value(&json!("a")),
        ];
        assert_eq!(path_text(&path), ".spec.ports[port=80,protocol=\"TCP\"].finalizers[=\"a\"]");
    }
}
