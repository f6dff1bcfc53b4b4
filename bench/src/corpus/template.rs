//! One text of which many objects are made: the places that differ are known, and are of fixed width.
//!
//! A template's text holds marks. What stands for a mark is written over it, in JSON and in protobuf alike, so an object
//! costs a copy. Widths are fixed because protobuf has lengths of what's around.

use serde_json::Value;

use super::Kind;

/// Second 0 of the times that objects have: 2026-11-30T00:00:00Z.
const DAY: u64 = 1_795_996_800;
/// The times that stand in a template for those of an object, in seconds since 1970 and as text.
const TIME_MARKS: [(u64, &str); 3] = [
    (1_500_000_000, "2017-07-14T02:40:00Z"),
    (1_500_000_001, "2017-07-14T02:40:01Z"),
    (1_500_000_002, "2017-07-14T02:40:02Z"),
];
/// Resource versions of objects that never changed begin here.
const FIRST_VERSION: u64 = 1_000_000_000;
/// The resource version of change number 0; all have ten digits.
pub const CHANGED_VERSION: u64 = 2_000_000_000;

/// The marks in a text, other than times. Each begins with a tilde, which objects have nowhere else.
pub mod mark {
    /// The end of a name: five characters, in the order of the objects.
    pub const NAME: &str = "~nnnn";
    /// A uid.
    pub const UID: &str = "~uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu";
    /// A resource version.
    pub const VERSION: &str = "~vvvvvvvvv";
    /// Five characters in no order.
    pub const TOKEN: &str = "~tttt";
    /// The number of a node.
    pub const NODE: &str = "~oooo";
    /// The address of the node.
    pub const HOST_IP: &str = "~hhhhhhhhhhhhh";
    /// An address of the object's own.
    pub const IP: &str = "~iiiiiiiiiiiii";
    /// 64 hexadecimal digits that change with the object.
    pub const DIGEST: &str = "~ddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";
    /// Time of creation.
    pub const CREATED: &str = super::TIME_MARKS[0].1;
    /// A moment later.
    pub const STARTED: &str = super::TIME_MARKS[1].1;
    /// When the object last changed.
    pub const CHANGED: &str = super::TIME_MARKS[2].1;
}

/// In which form an object is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON, as an item of a list.
    Json,
    /// Its metadata alone, as a `PartialObjectMetadata` in JSON without `kind` and `apiVersion`.
    Metadata,
    /// The protobuf message without an envelope.
    Protobuf,
}

/// Which object of a template it is, and in which state.
#[derive(Debug, Clone, Copy)]
pub struct Object {
    /// Its place among all objects.
    pub number: u64,
    /// Its place among those of its template.
    pub of_template: u64,
    /// How many those are.
    pub per_template: u64,
    /// The number of its last change; 0 for none.
    pub change: u64,
}

/// See the module.
pub struct Template {
    /// What its objects' keys begin with.
    pub key_prefix: String,
    seed: u64,
    json: Text,
    metadata: Text,
    protobuf: Text,
}

#[derive(Default)]
struct Text {
    bytes: Box<[u8]>,
    slots: Box<[Slot]>,
}

#[derive(Clone, Copy)]
struct Slot {
    at: u32,
    what: What,
    /// Tells slots of one sort in one object from each other.
    salt: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Name,
    Uid,
    Version,
    Token,
    Node,
    HostIp,
    Ip,
    Digest,
    Time(u8),
    /// A time as the five bytes of a varint.
    WireTime(u8),
}

const TEXTS: [(&str, What); 11] = [
    (mark::NAME, What::Name),
    (mark::UID, What::Uid),
    (mark::VERSION, What::Version),
    (mark::TOKEN, What::Token),
    (mark::NODE, What::Node),
    (mark::HOST_IP, What::HostIp),
    (mark::IP, What::Ip),
    (mark::DIGEST, What::Digest),
    (mark::CREATED, What::Time(0)),
    (mark::STARTED, What::Time(1)),
    (mark::CHANGED, What::Time(2)),
];

// === impl Template ===

impl Template {
    /// `text` is one object of the kind as JSON with marks, as an item of a list has it.
    #[must_use]
    pub fn new(kind: &Kind, seed: u64, text: &str) -> Self {
        let mut object: Value = serde_json::from_str(text).unwrap_or_default();
        let field = |name: &str| object["metadata"][name].as_str().unwrap_or("").to_owned();
        let key_prefix = format!("{}/{}", field("namespace"), field("name").replace(mark::NAME, ""));
        // An item's metadata is its first field, or follows the type in what has no Go type.
        let start = text.find("\"metadata\":").unwrap_or(0);
        let mut depth = 0;
        let end = text[start..].find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == '}' && depth == 0
        });
        let metadata = end.map_or(String::new(), |end| format!("{{{}}}", &text[start..=start + end]));
        object["apiVersion"] = kind.api_version.into();
        object["kind"] = kind.kind.into();
        let protobuf = kind.protobuf.then(|| informant_apiserver::to_protobuf(&object)).flatten();
        let protobuf = protobuf.map_or(Text::default(), |whole| Text::protobuf(without_envelope(&whole)));
        Self { key_prefix, seed, json: Text::json(text), metadata: Text::json(&metadata), protobuf }
    }

    /// How many bytes its objects have.
    #[must_use]
    pub fn len(&self, form: Form) -> usize {
        self.text(form).bytes.len()
    }

    /// Whether it has no such form.
    #[must_use]
    pub fn is_empty(&self, form: Form) -> bool {
        self.len(form) == 0
    }

    /// Appends one object.
    pub fn render(&self, form: Form, object: Object, out: &mut Vec<u8>) {
        let Text { bytes, slots } = self.text(form);
        let start = out.len();
        out.extend_from_slice(bytes);
        for slot in slots {
            let at = start + slot.at as usize;
            slot.write(self.seed, object, &mut out[at..]);
        }
    }

    fn text(&self, form: Form) -> &Text {
        match form {
            Form::Json => &self.json,
            Form::Metadata => &self.metadata,
            Form::Protobuf => &self.protobuf,
        }
    }
}

/// The resource version of an object in a state.
#[must_use]
pub fn version(object: Object) -> u64 {
    if object.change == 0 { FIRST_VERSION + object.number } else { CHANGED_VERSION + object.change }
}

/// The message in an envelope: field 2 of what follows the magic bytes.
fn without_envelope(whole: &[u8]) -> &[u8] {
    let mut rest = whole.get(4..).unwrap_or_default();
    while let Some((&tag, after)) = rest.split_first() {
        let (mut length, mut shift, mut after) = (0_usize, 0, after);
        while let Some((&byte, more)) = after.split_first() {
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            after = more;
            if byte < 0x80 {
                break;
            }
        }
        let (value, more) = after.split_at(length.min(after.len()));
        if tag == 0x12 {
            return value;
        }
        rest = more;
    }
    &[]
}

// === impl Text ===

impl Text {
    fn json(text: &str) -> Self {
        Self::new(text.as_bytes(), &[])
    }

    fn protobuf(bytes: &[u8]) -> Self {
        let times: Vec<(Vec<u8>, What)> = TIME_MARKS
            .iter()
            .enumerate()
            .map(|(index, (seconds, _))| ([&[8], &varint(*seconds)[..]].concat(), What::WireTime(index as u8)))
            .collect();
        Self::new(bytes, &times)
    }

    fn new(bytes: &[u8], more: &[(Vec<u8>, What)]) -> Self {
        let texts = TEXTS.iter().map(|(mark, what)| (mark.as_bytes(), *what));
        let marks: Vec<(&[u8], What)> = texts.chain(more.iter().map(|(mark, what)| (&mark[..], *what))).collect();
        let mut slots = Vec::new();
        let mut digests = 0;
        for at in 0..bytes.len() {
            if !matches!(bytes[at], b'~' | b'2' | 8) {
                continue;
            }
            let Some((_, what)) = marks.iter().find(|(mark, _)| bytes[at..].starts_with(mark)) else { continue };
            let skipped = usize::from(matches!(what, What::WireTime(_)));
            // Of the places that hold digests each has its own; a name is the same wherever it stands.
            let salt = if *what == What::Digest { digests } else { 0 };
            digests += u8::from(*what == What::Digest);
            slots.push(Slot { at: (at + skipped) as u32, what: *what, salt });
        }
        Self { bytes: bytes.into(), slots: slots.into() }
    }
}

// === impl Slot ===

impl Slot {
    fn write(self, seed: u64, object: Object, out: &mut [u8]) {
        let own = mix(seed ^ mix(object.of_template + 1));
        let random = mix(own ^ mix(self.what.order() ^ u64::from(self.salt) << 8));
        match self.what {
            What::Name => {
                const ALL: u64 = 27_u64.pow(5);
                let width = ALL / object.per_template.min(ALL);
                letters(object.of_template * width + random % width, out);
            }
            What::Token => letters(random, out),
            What::Uid => {
                hex(random, &mut out[..36]);
                for dash in [8, 13, 18, 23] {
                    out[dash] = b'-';
                }
            }
            What::Version => digits(version(object), &mut out[..10]),
            What::Node => digits(node(own), &mut out[..5]),
            What::HostIp => address(10, node(own), out),
            What::Ip => address(10, (1 << 16) + object.number, out),
            What::Digest => hex(mix(random ^ object.change), &mut out[..64]),
            What::Time(which) => {
                let second = second(which, own, object.change);
                out[..11].copy_from_slice(b"2026-11-30T");
                for (at, part) in [(11, second / 3600), (14, second / 60 % 60), (17, second % 60)] {
                    digits(part, &mut out[at..at + 2]);
                }
            }
            What::WireTime(which) => out[..5].copy_from_slice(&varint(DAY + second(which, own, object.change))),
        }
    }
}

impl What {
    fn order(self) -> u64 {
        match self {
            Self::Name => 1,
            Self::Uid => 2,
            Self::Version => 3,
            Self::Token => 4,
            Self::Node => 5,
            Self::HostIp => 6,
            Self::Ip => 7,
            Self::Digest => 8,
            Self::Time(which) | Self::WireTime(which) => 16 + u64::from(which),
        }
    }
}

/// Pods are spread over 5,000 nodes.
fn node(own: u64) -> u64 {
    own % 5_000
}

/// A second of the day: created, started a little later, and the last change.
fn second(which: u8, own: u64, change: u64) -> u64 {
    let created = own % 40_000;
    match which {
        0 => created,
        1 => created + 1 + own % 3,
        _ => created + 4 + own % 7 + change % 40_000,
    }
}

fn varint(value: u64) -> [u8; 5] {
    std::array::from_fn(|index| {
        let more = if index < 4 { 0x80 } else { 0 };
        (value >> (7 * index) & 0x7f) as u8 | more
    })
}

fn digits(mut value: u64, out: &mut [u8]) {
    for byte in out.iter_mut().rev() {
        *byte = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

fn hex(mut random: u64, out: &mut [u8]) {
    for part in out.chunks_mut(16) {
        random = mix(random);
        for (index, byte) in part.iter_mut().enumerate() {
            *byte = b"0123456789abcdef"[(random >> (4 * index) & 15) as usize];
        }
    }
}

/// Five of the 27 characters that the ends of Kubernetes' names are made of.
fn letters(mut value: u64, out: &mut [u8]) {
    for byte in out[..5].iter_mut().rev() {
        *byte = b"2456789bcdfghjklmnpqrstvwxz"[(value % 27) as usize];
        value /= 27;
    }
}

/// An address in which each part has as many digits as any other of its place: `10.1dd.1dd.1dd`.
fn address(first: u64, number: u64, out: &mut [u8]) {
    out[..14].copy_from_slice(b"00.100.100.100");
    digits(first, &mut out[..2]);
    for (at, part) in [(4, number / 10_000), (8, number / 100), (12, number)] {
        digits(part % 100, &mut out[at..at + 2]);
    }
}

/// A well mixed function of a number (splitmix64).
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
