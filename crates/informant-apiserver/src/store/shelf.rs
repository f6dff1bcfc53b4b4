//! The objects of one kind in key order, with their history.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::history::History;
use super::news::News;
use super::{Change, Object, StoreOptions, WriteError};
use crate::object;
use crate::signal::Signal;

/// Which objects of a kind a read is about. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Only this namespace; empty for "objects of a cluster-scoped kind".
    pub(crate) namespace: Option<String>,
    /// Only objects of this name.
    pub(crate) name: Option<String>,
}

/// One kind's objects, history and open watches.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    objects: BTreeMap<Arc<str>, Object>,
    pub(super) history: History,
    /// Each open watch is one reader.
    pub(super) news: News,
    pub(super) ending: Ending,
}

/// The last time that the kind's watches were ended from outside.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ending {
    /// How often they were: a watch from before has seen a smaller number.
    pub(super) number: u64,
    /// The last version that those watches still deliver.
    pub(super) version: u64,
}

// === impl Scope ===

impl Scope {
    /// One namespace.
    pub(crate) fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), name: None }
    }

    /// Whether an object of that key is meant.
    pub(crate) fn contains(&self, key: &str) -> bool {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        self.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
            && self.name.as_deref().is_none_or(|wanted| wanted == name)
    }

    /// What the keys of the scope's objects begin with; those objects lie side by side.
    fn prefix(&self) -> String {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => object_key(namespace, name).to_string(),
            (Some(namespace), None) if !namespace.is_empty() => format!("{namespace}/"),
            (Some(_) | None, _) => String::new(),
        }
    }
}

// === impl Shelf ===

impl Shelf {
    pub(super) fn get(&self, key: &str) -> Option<&Object> {
        self.objects.get(key)
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Puts a change into effect, and gives the signals of those whom it concerns.
    pub(super) fn apply(&mut self, change: Change, options: &StoreOptions) -> Vec<Signal> {
        match change.new_object() {
            Some(new) => {
                self.objects.insert(change.shared_key(), new.clone());
            }
            None => {
                self.objects.remove(change.key());
            }
        }
        let concerned = self.news.concerned(&change, options);
        self.history.push(Arc::new(change), options, self.news.heard_through());
        concerned
    }

    pub(super) fn end_watches(&mut self, version: u64) {
        self.ending = Ending { number: self.ending.number + 1, version };
    }

    /// The objects of `scope` as they were at `version`, from key `start` on: the present with the newer changes undone.
    /// The caller has made sure that the history reaches back to `version`. O(newer changes + objects taken).
    pub(super) fn at_version<'a>(
        &'a self,
        version: u64,
        scope: &'a Scope,
        start: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Object)> {
        let prefix = scope.prefix();
        // The first change after `version` knows what was there at `version`; later changes of the same key don't matter.
        let mut undone: BTreeMap<&str, Option<&Object>> = BTreeMap::new();
        for change in self.history.after(version) {
            let key = change.key();
            if key >= start && scope.contains(key) {
                undone.entry(key).or_insert(change.old());
            }
        }
        let present = self.objects_from(&prefix, start).map(|(key, object)| (key, Some(object)));
        merge(undone.into_iter(), present)
            .filter_map(|(key, object)| Some((key, object?)))
            .filter(|(key, _)| scope.contains(key))
    }

    fn objects_from(&self, prefix: &str, start: &str) -> impl Iterator<Item = (&str, &Object)> + use<'_> {
        let first = Bound::Included(prefix.max(start));
        let prefix = prefix.to_owned();
        self.objects
            .range::<str, _>((first, Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(&prefix))
            .map(|(key, object)| (&**key, object))
    }
}

/// Merges two sequences in order of key; where both have a key, `first` has it.
fn merge<'a, T>(
    first: impl Iterator<Item = (&'a str, T)>,
    second: impl Iterator<Item = (&'a str, T)>,
) -> impl Iterator<Item = (&'a str, T)> {
    let (mut first, mut second) = (first.peekable(), second.peekable());
    std::iter::from_fn(move || match (key(&mut first), key(&mut second)) {
        (Some(one), Some(two)) if two < one => second.next(),
        (Some(one), Some(two)) => {
            if one == two {
                second.next();
            }
            first.next()
        }
        (Some(_), None) => first.next(),
        (None, _) => second.next(),
    })
}

fn key<'a, T>(items: &mut Peekable<impl Iterator<Item = (&'a str, T)>>) -> Option<&'a str> {
    items.peek().map(|(key, _)| *key)
}

/// The key that an object is stored under: `namespace/name`, or `name` alone for cluster-scoped kinds.
///
/// Keys are ordered bytewise, as in etcd; so namespace `a-b` comes before namespace `a`, because `-` comes before `/`.
pub(super) fn object_key(namespace: &str, name: &str) -> Arc<str> {
    if namespace.is_empty() { Arc::from(name) } else { Arc::from(format!("{namespace}/{name}")) }
}

pub(super) fn key_of(object: &Value) -> Result<Arc<str>, WriteError> {
    match object::name(object) {
        "" => Err(WriteError::Unnamed),
        name => Ok(object_key(object::namespace(object), name)),
    }
}
