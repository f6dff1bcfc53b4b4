//! The place of a value within an object, as messages write it: `spec.containers[0].image`.
//!
//! A path is a chain of borrowed segments on the stack: walking a valid object builds no string at all.

use std::fmt;

/// One segment and the path before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    segment: Segment<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Segment<'a> {
    /// The start of a path: text of its own, or nothing for the object itself.
    Root(&'a str),
    /// `.name`
    Field(&'a str),
    /// `[3]`
    Index(usize),
    /// `[key]`
    Key(&'a str),
}

// === impl FieldPath ===

impl<'a> FieldPath<'a> {
    /// The path of the object itself: empty.
    pub(crate) const ROOT: FieldPath<'static> = FieldPath::root("");

    /// A path that starts with a text, for example `spec.validation.openAPIV3Schema`.
    pub(crate) const fn root(text: &'a str) -> Self {
        Self { parent: None, segment: Segment::Root(text) }
    }

    /// The path of a field.
    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), segment: Segment::Field(name) }
    }

    /// The path of a list's item.
    pub(crate) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), segment: Segment::Index(index) }
    }

    /// The path of a map's entry.
    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), segment: Segment::Key(key) }
    }

    fn is_empty(&self) -> bool {
        matches!(self.segment, Segment::Root(""))
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.segment {
            Segment::Root(text) => f.write_str(text),
            Segment::Field(name) if self.parent.is_none_or(FieldPath::is_empty) => f.write_str(name),
            Segment::Field(name) => write!(f, ".{name}"),
            Segment::Index(index) => write!(f, "[{index}]"),
            Segment::Key(key) => write!(f, "[{key}]"),
        }
    }
}

impl From<&FieldPath<'_>> for String {
    fn from(path: &FieldPath<'_>) -> Self {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_messages_write_it() {
        let spec = FieldPath::ROOT.field("spec");
        let list = spec.field("list");
        let item = list.index(3);
        assert_eq!(FieldPath::ROOT.to_string(), "");
        assert_eq!(spec.to_string(), "spec");
        assert_eq!(item.field("name").to_string(), "spec.list[3].name");
        assert_eq!(FieldPath::root("spec.names").field("kind").to_string(), "spec.names.kind");
        assert_eq!(spec.key("a b").to_string(), "spec[a b]");
    }
}
