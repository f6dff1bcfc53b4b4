//! The table of messages, read once from its compressed text. `peers/protobuf-table` writes it and describes its lines.
//!
//! A message whose fields JSON shows in the place of another field ("embedded") is flattened into the one around it, so
//! that a message here has the fields that its JSON has, in the order of Go's JSON.

use std::collections::HashMap;
use std::sync::OnceLock;

const TEXT: &[u8] = include_bytes!("../../data/protobuf.zst");

/// How many fields a message has at most, those of embedded ones included: a set of them fits a word.
pub(crate) const FIELDS_MAX: usize = 64;

/// Every known kind and the messages that they are made of. It's constant, and lives as long as the program.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// By `apiVersion kind`.
    kinds: HashMap<&'static str, u32>,
    messages: Box<[Message]>,
}

/// One message: the form of an object or of a part of one.
#[derive(Debug)]
pub(crate) struct Message {
    /// `apiVersion` and `kind`, if it's the form of a kind.
    types: Option<(&'static str, &'static str)>,
    fields: Box<[Field]>,
    /// What each tag means: of the message itself, then of those that are embedded.
    tags: Box<[Tags]>,
    /// The fields that Go's JSON shows also when they aren't set, a bit for each.
    shown: u64,
}

/// One field.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its number in the message that it's a field of: of an embedded one, perhaps.
    pub(crate) tag: u32,
    /// Its name in JSON.
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) kind: Kind,
    /// Go's `omitempty`: left out when it's a zero scalar, a nil pointer, or an empty list or map.
    pub(crate) omit_empty: bool,
    /// Go's `omitzero`, used for times only.
    pub(crate) omit_zero: bool,
}

/// How often a field may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    Pointer,
    List,
    /// With string keys.
    Map,
}

/// What a field holds, or each of its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    /// Shown as base64.
    Bytes,
    /// A list of strings that is a message of its own.
    Strings,
    Message(u32),
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrString,
    /// An object of any kind as JSON text, or in an envelope of its own.
    Raw,
    SchemaOrArray(u32),
    SchemaOrBool(u32),
    SchemaOrStrings(u32),
}

/// What the tags of one message mean; the tag is the position.
type Tags = Box<[Target]>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Unknown,
    /// A position in the message's fields.
    Field(u8),
    /// A position in the message's `tags`.
    Embedded(u8),
}

/// The table, read at the first call (a few milliseconds).
pub(crate) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        // The text is part of the program and read whole by a test; were it broken, every kind would be unknown.
        let text = zstd::decode_all(TEXT).unwrap_or_default();
        Table::parse(String::from_utf8_lossy(&text).into_owned().leak())
    })
}

// === impl Table ===

impl Table {
    /// The message of a kind.
    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        self.message(*self.kinds.get(format!("{api_version} {kind}").as_str())?)
    }

    /// The message of that number.
    pub(crate) fn message(&self, number: u32) -> Option<&Message> {
        self.messages.get(number as usize)
    }

    fn parse(text: &'static str) -> Self {
        let mut kinds = HashMap::new();
        let mut types = HashMap::new();
        let mut lines = Vec::new();
        for line in text.lines() {
            if let Some((name, number)) = line.strip_prefix("K ").and_then(|line| line.rsplit_once(' ')) {
                if let Ok(number) = number.parse::<u32>() {
                    kinds.insert(name, number);
                    types.entry(number).or_insert(name);
                }
            } else if let Some(fields) = line.strip_prefix("M ") {
                lines.push(fields.split(';').filter_map(Line::parse).collect::<Vec<_>>());
            }
        }
        let message = |(number, own): (u32, &Vec<Line>)| {
            let types = types.get(&number).and_then(|name| name.split_once(' '));
            let mut message = Flat { lines: &lines, fields: Vec::new(), tags: Vec::new() };
            message.add(own);
            message.finish(types)
        };
        let messages = (0_u32..).zip(&lines).map(message).collect();
        Self { kinds, messages }
    }
}

// === impl Message ===

/// There's one of each.
impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Message {}

impl Message {
    /// `apiVersion` and `kind`, if it's the form of a kind.
    pub(crate) fn types(&self) -> Option<(&'static str, &'static str)> {
        self.types
    }

    /// Its fields in the order of Go's JSON.
    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of this name in JSON.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// What a tag means, in the message itself (0) or in an embedded one.
    #[inline]
    pub(crate) fn target(&self, tags: u8, tag: u32) -> Target {
        let tags = self.tags.get(usize::from(tags));
        tags.and_then(|tags| tags.get(tag as usize)).copied().unwrap_or(Target::Unknown)
    }

    /// The fields that Go's JSON shows also when they aren't set, a bit for each.
    pub(crate) fn shown(&self) -> u64 {
        self.shown
    }
}

// === impl Field ===

impl Field {
    /// Whether Go's JSON shows it though it isn't set.
    fn is_shown_unset(&self) -> bool {
        let empty = match self.shape {
            Shape::One => self.kind.is_scalar(),
            Shape::Pointer | Shape::List | Shape::Map => true,
        };
        // What has no bytes is the zero time, which is null.
        !(self.omit_empty && empty || self.omit_zero)
    }
}

// === impl Kind ===

impl Kind {
    /// Whether Go's `omitempty` looks at the value itself.
    pub(crate) fn is_scalar(self) -> bool {
        matches!(
            self,
            Self::String | Self::Bool | Self::Int32 | Self::Int64 | Self::Double | Self::Bytes | Self::Strings
        )
    }

    fn parse(text: &str) -> Option<Self> {
        let (letter, number) = text.split_at_checked(1)?;
        Some(match letter {
            "s" => Self::String,
            "b" => Self::Bool,
            "i" => Self::Int32,
            "n" => Self::Int64,
            "d" => Self::Double,
            "y" => Self::Bytes,
            "l" => Self::Strings,
            "t" => Self::Time,
            "u" => Self::MicroTime,
            "D" => Self::Duration,
            "q" => Self::Quantity,
            "x" => Self::IntOrString,
            "r" => Self::Raw,
            "m" => Self::Message(number.parse().ok()?),
            "A" => Self::SchemaOrArray(number.parse().ok()?),
            "B" => Self::SchemaOrBool(number.parse().ok()?),
            "S" => Self::SchemaOrStrings(number.parse().ok()?),
            _ => return None,
        })
    }
}

/// A field as its line says it.
struct Line {
    tag: u32,
    name: &'static str,
    flags: &'static str,
    kind: Kind,
}

impl Line {
    fn parse(text: &'static str) -> Option<Self> {
        let mut words = text.split(' ');
        let (tag, name, flags, kind) = (words.next()?, words.next()?, words.next()?, words.next()?);
        Some(Self { tag: tag.parse().ok()?, name, flags, kind: Kind::parse(kind)? })
    }

    fn embedded(&self) -> Option<u32> {
        match self.kind {
            Kind::Message(number) if self.flags.contains('e') => Some(number),
            _ => None,
        }
    }

    fn field(&self) -> Field {
        let shape = match self.flags.trim_start_matches(['o', 'z']) {
            "*" => Shape::Pointer,
            "[" => Shape::List,
            "{" => Shape::Map,
            _ => Shape::One,
        };
        Field {
            tag: self.tag,
            name: self.name,
            shape,
            kind: self.kind,
            omit_empty: self.flags.contains('o'),
            omit_zero: self.flags.contains('z'),
        }
    }
}

/// A message that's being flattened.
struct Flat<'l> {
    lines: &'l [Vec<Line>],
    fields: Vec<Field>,
    tags: Vec<Vec<Target>>,
}

impl Flat<'_> {
    /// Adds the fields of a message; gives the position of its tags.
    fn add(&mut self, own: &[Line]) -> usize {
        let position = self.tags.len();
        self.tags.push(Vec::new());
        for line in own {
            let target = match line.embedded().and_then(|number| self.lines.get(number as usize)) {
                Some(inner) => {
                    let inner = self.add(inner);
                    u8::try_from(inner).map_or(Target::Unknown, Target::Embedded)
                }
                None if self.fields.len() >= FIELDS_MAX => Target::Unknown,
                None => {
                    self.fields.push(line.field());
                    u8::try_from(self.fields.len() - 1).map_or(Target::Unknown, Target::Field)
                }
            };
            let tag = line.tag as usize;
            if let Some(tags) = self.tags.get_mut(position) {
                tags.resize(tags.len().max(tag + 1), Target::Unknown);
                tags.splice(tag..=tag, [target]);
            }
        }
        position
    }

    fn finish(self, types: Option<(&'static str, &'static str)>) -> Message {
        let shown = self.fields.iter().zip(0..).filter(|(field, _)| field.is_shown_unset());
        let shown = shown.fold(0, |set, (_, position)| set | 1_u64 << position);
        let tags = self.tags.into_iter().map(Vec::into_boxed_slice).collect();
        Message { types, fields: self.fields.into(), tags, shown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read_and_every_reference_leads_somewhere() {
        let text = String::from_utf8(zstd::decode_all(TEXT).expect("zstd")).expect("text");
        let table = table();
        assert_eq!(table.kinds.len() + table.messages.len(), text.lines().count());
        assert!(table.kinds.values().all(|number| table.message(*number).is_some()));
        for (line, message) in text.lines().filter_map(|line| line.strip_prefix("M")).zip(&table.messages) {
            let own = line
                .trim()
                .split(';')
                .filter(|field| !field.is_empty() && field.split(' ').nth(2) != Some("e"))
                .count();
            let found = message.tags[0].iter().filter(|target| matches!(target, Target::Field(_))).count();
            assert_eq!(found, own, "{line}");
            assert!(message.fields.len() <= FIELDS_MAX);
            for field in &message.fields {
                if let Kind::Message(number)
                | Kind::SchemaOrArray(number)
                | Kind::SchemaOrBool(number)
                | Kind::SchemaOrStrings(number) = field.kind
                {
                    assert!(table.message(number).is_some(), "{line}: {}", field.name);
                }
            }
        }
    }

    #[test]
    fn the_table_knows_which_fields_are_pointers_and_which_are_embedded() {
        let inner = |message: &Message, name: &str| match message.field(name).expect(name).kind {
            Kind::Message(number) => table().message(number).expect(name),
            other => panic!("{name} is {other:?}"),
        };
        let deployment = table().kind("apps/v1", "Deployment").expect("a kind");
        assert_eq!(deployment.types(), Some(("apps/v1", "Deployment")));
        let spec = inner(deployment, "spec");
        let field = |name: &str| spec.field(name).expect(name);
        assert_eq!((field("replicas").shape, field("replicas").kind), (Shape::Pointer, Kind::Int32));
        assert_eq!((field("minReadySeconds").shape, field("minReadySeconds").omit_empty), (Shape::One, true));
        assert_eq!(spec.target(0, field("replicas").tag), Target::Field(0));
        let pod = inner(inner(spec, "template"), "spec");
        let volume = inner(pod, "volumes");
        assert_eq!((volume.target(0, 1), volume.target(0, 2)), (Target::Field(0), Target::Embedded(1)));
        let secret = volume.field("secret").expect("a source");
        assert!(matches!(volume.target(1, secret.tag), Target::Field(_)));
    }

    /// What's read of the metadata of any kind relies on it.
    #[test]
    fn objects_have_their_metadata_and_lists_their_items_at_the_same_tags() {
        let table = table();
        for (name, number) in &table.kinds {
            let Some((api_version, kind)) = name.split_once(' ') else { panic!("{name}") };
            let Some(list) = table.kind(api_version, &format!("{kind}List")) else { continue };
            let object = table.message(*number).expect(name);
            let Some(metadata) = object.field("metadata") else { continue };
            assert_eq!(metadata.tag, 1, "{name}");
            let Kind::Message(number) = metadata.kind else { panic!("{name}") };
            let metadata = table.message(number).expect(name);
            for (field, tag) in [
                ("name", 1),
                ("namespace", 3),
                ("uid", 5),
                ("resourceVersion", 6),
                ("labels", 11),
                ("annotations", 12),
                ("managedFields", 17),
            ] {
                assert_eq!(metadata.field(field).expect(field).tag, tag, "{name} {field}");
            }
            assert_eq!(list.field("items").map(|field| field.tag), Some(2), "{name}");
            assert_eq!(list.field("metadata").map(|field| field.tag), Some(1), "{name}");
        }
    }
}
