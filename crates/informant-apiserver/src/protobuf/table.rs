//! The table of messages, read once from its compressed text. `peers/protobuf-table` writes it and describes its lines.

use std::collections::HashMap;
use std::sync::LazyLock;

const TEXT: &[u8] = include_bytes!("../../data/protobuf.zst");

/// Every known kind and the messages that they are made of.
#[derive(Debug, Default)]
pub(super) struct Table {
    kinds: HashMap<String, usize>,
    messages: Vec<Message>,
}

/// The fields of one message, in the order of the Go type.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) fields: Vec<Field>,
    /// Positions in `fields` by rising tag, the order in which they're written.
    by_tag: Vec<usize>,
}

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) tag: u32,
    /// The JSON name; empty when embedded.
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) kind: Kind,
    /// Go's `omitempty`: left out when it's a zero scalar, a nil pointer, or an empty list or map.
    pub(super) omit_empty: bool,
    /// Go's `omitzero`, used for times only.
    pub(super) omit_zero: bool,
}

/// How often a field may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    Pointer,
    List,
    /// With string keys.
    Map,
    /// A message whose fields JSON shows in the place of the message.
    Embedded,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    String,
    Bool,
    Integer,
    Double,
    Bytes,
    /// A list of strings that is a message of its own.
    Strings,
    Message(usize),
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrString,
    Raw,
    SchemaOrArray(usize),
    SchemaOrBool(usize),
    SchemaOrStrings(usize),
}

/// The table, read at the first call (a few milliseconds).
pub(super) fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        // The text is part of the program and read whole by a test; were it broken, every kind would be unknown.
        let text = zstd::decode_all(TEXT).unwrap_or_default();
        Table::parse(&String::from_utf8_lossy(&text))
    });
    &TABLE
}

// === impl Table ===

impl Table {
    /// The message of a kind.
    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        self.message(*self.kinds.get(&format!("{api_version} {kind}"))?)
    }

    /// Whether there's a kind of this version.
    pub(super) fn knows_version(&self, api_version: &str) -> bool {
        self.kinds.keys().any(|kind| kind.rsplit_once(' ').is_some_and(|(version, _)| version == api_version))
    }

    /// The message of that number.
    pub(super) fn message(&self, number: usize) -> Option<&Message> {
        self.messages.get(number)
    }

    fn parse(text: &str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            if let Some((kind, number)) = line.strip_prefix("K ").and_then(|line| line.rsplit_once(' ')) {
                if let Ok(number) = number.parse() {
                    table.kinds.insert(kind.to_owned(), number);
                }
            } else if let Some(fields) = line.strip_prefix("M ") {
                table.messages.push(Message::new(fields.split(';').filter_map(Field::parse).collect()));
            }
        }
        table
    }
}

// === impl Message ===

impl Message {
    fn new(fields: Vec<Field>) -> Self {
        let mut by_tag: Vec<usize> = (0..fields.len()).collect();
        by_tag.sort_by_key(|at| fields.get(*at).map(|field| field.tag));
        Self { fields, by_tag }
    }

    /// The fields by rising tag.
    pub(super) fn by_tag(&self) -> impl Iterator<Item = &Field> {
        self.by_tag.iter().filter_map(|at| self.fields.get(*at))
    }
}

// === impl Field ===

impl Field {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (tag, name, flags, kind) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let shape = match flags.trim_start_matches(['o', 'z']) {
            "*" => Shape::Pointer,
            "[" => Shape::List,
            "{" => Shape::Map,
            "e" | "eo" => Shape::Embedded,
            _ => Shape::One,
        };
        Some(Self {
            tag: tag.parse().ok()?,
            name: name.to_owned(),
            shape,
            kind: Kind::parse(kind)?,
            omit_empty: flags.contains('o'),
            omit_zero: flags.contains('z'),
        })
    }
}

// === impl Kind ===

impl Kind {
    /// Whether Go's `omitempty` looks at the value itself.
    pub(super) fn is_scalar(self) -> bool {
        matches!(self, Self::String | Self::Bool | Self::Integer | Self::Double | Self::Bytes | Self::Strings)
    }

    fn parse(text: &str) -> Option<Self> {
        let (letter, number) = text.split_at_checked(1)?;
        Some(match letter {
            "s" => Self::String,
            "b" => Self::Bool,
            "i" | "n" => Self::Integer,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read_and_every_reference_leads_somewhere() {
        let text = String::from_utf8(zstd::decode_all(TEXT).unwrap()).unwrap();
        let table = table();
        assert_eq!(table.kinds.len() + table.messages.len(), text.lines().count());
        assert!(table.kinds.values().all(|number| table.message(*number).is_some()));
        for (line, message) in text.lines().filter(|line| line.starts_with('M')).zip(&table.messages) {
            let fields =
                line.trim_start_matches("M ").trim_start_matches('M').split(';').filter(|field| !field.is_empty());
            assert_eq!(message.fields.len(), fields.count(), "{line}");
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
    fn the_table_knows_which_fields_are_pointers() {
        let deployment = table().kind("apps/v1", "Deployment").unwrap();
        let spec = deployment.fields.iter().find(|field| field.name == "spec").unwrap();
        let Kind::Message(number) = spec.kind else { panic!("{spec:?}") };
        let field =
            |name: &str| table().message(number).unwrap().fields.iter().find(|field| field.name == name).unwrap();
        assert_eq!((field("replicas").shape, field("replicas").kind), (Shape::Pointer, Kind::Integer));
        assert_eq!((field("minReadySeconds").shape, field("minReadySeconds").omit_empty), (Shape::One, true));
        assert_eq!((field("selector").shape, field("selector").omit_empty), (Shape::Pointer, false));
    }
}
