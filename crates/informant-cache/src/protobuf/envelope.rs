//! What objects travel in: `runtime.Unknown` behind four magic bytes, and in a watch an event around that.

use super::error::Error;
use super::table::{Message, table};
use super::wire::{Reader, Wire};

/// What every envelope begins with.
pub(crate) const MAGIC: &[u8] = b"k8s\0";
/// The media type of protobuf.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// An object in its envelope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Envelope<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    /// The object's message.
    pub(crate) raw: &'a [u8],
}

/// A watch event, its object still in its envelope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WatchEvent<'a> {
    pub(crate) kind: &'a str,
    pub(crate) object: &'a [u8],
}

// === impl Envelope ===

impl<'a> Envelope<'a> {
    /// Opens an envelope.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::read(bytes, false)
    }

    /// Opens an envelope that may be cut off: its message is there as far as it goes.
    pub(crate) fn open_start(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::read(bytes, true)
    }

    fn read(bytes: &'a [u8], cut: bool) -> Result<Self, Error> {
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| Error::new("it doesn't begin with the bytes 'k8s\\0'"))?;
        let mut envelope = Self::default();
        let mut fields = Fields { reader: Reader::new(rest), cut };
        while let Some((tag, wire)) = fields.next()? {
            match tag {
                1 => (envelope.api_version, envelope.kind) = types(wire.bytes()?)?,
                2 => envelope.raw = wire.bytes()?,
                3 | 4 => content(tag, wire.bytes()?)?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// The form of what's in it.
    pub(crate) fn message(&self) -> Result<&'static Message, Error> {
        let Self { api_version, kind, .. } = self;
        table().kind(api_version, kind).ok_or_else(|| Error::new("its kind isn't known in protobuf form"))
    }
}

/// `apiVersion` and `kind`.
pub(crate) fn types(bytes: &[u8]) -> Result<(&str, &str), Error> {
    let (mut api_version, mut kind) = ("", "");
    let mut reader = Reader::new(bytes);
    while let Some((tag, wire)) = reader.field()? {
        match tag {
            1 => api_version = wire.text()?,
            2 => kind = wire.text()?,
            _ => {}
        }
    }
    Ok((api_version, kind))
}

/// Looks whether the encoding (3) and the type (4) of an envelope's content are what can be read.
pub(crate) fn content(tag: u32, bytes: &[u8]) -> Result<(), Error> {
    match (tag, bytes) {
        (3, b"") => Ok(()),
        (3, _) => Err(Error::new("the content encoding of its envelope isn't supported")),
        (4, bytes) if !bytes.is_empty() && bytes != MEDIA_TYPE.as_bytes() => {
            Err(Error::new("the content of its envelope isn't protobuf"))
        }
        _ => Ok(()),
    }
}

// === impl WatchEvent ===

impl<'a> WatchEvent<'a> {
    /// Reads the message of an event.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::read_fields(bytes, false)
    }

    /// Reads an event that may be cut off.
    pub(crate) fn read_start(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::read_fields(bytes, true)
    }

    fn read_fields(bytes: &'a [u8], cut: bool) -> Result<Self, Error> {
        let mut event = Self::default();
        let mut fields = Fields { reader: Reader::new(bytes), cut };
        while let Some((tag, wire)) = fields.next()? {
            match tag {
                1 => event.kind = wire.text()?,
                2 => {
                    let mut extension = Fields { reader: Reader::new(wire.bytes()?), cut };
                    while let Some((tag, wire)) = extension.next()? {
                        if tag == 1 {
                            event.object = wire.bytes()?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(event)
    }
}

/// The fields of a message that may be cut off: then the last is as long as it's there.
pub(crate) struct Fields<'a> {
    reader: Reader<'a>,
    cut: bool,
}

impl<'a> Fields<'a> {
    /// The fields of the beginning of a message.
    pub(crate) fn of_start(bytes: &'a [u8]) -> Self {
        Self { reader: Reader::new(bytes), cut: true }
    }

    pub(crate) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Error> {
        let mut whole = self.reader;
        match whole.field() {
            Err(_) if self.cut => {
                let mut rest = std::mem::replace(&mut self.reader, Reader::new(&[]));
                let bytes_follow = |reader: &mut Reader<'a>| {
                    let (tag, wire_type) = reader.key().ok()?;
                    reader.varint().ok().filter(|_| wire_type == 2).map(|_| tag)
                };
                Ok(bytes_follow(&mut rest).map(|tag| (tag, Wire::Bytes(rest.rest()))))
            }
            field => {
                self.reader = whole;
                Ok(field?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::wire::put_bytes;

    fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        fields.iter().for_each(|(tag, content)| put_bytes(*tag, content, &mut bytes));
        bytes
    }

    fn envelope() -> Vec<u8> {
        let types = message(&[(1, b"v1"), (2, b"Pod")]);
        [MAGIC, &message(&[(1, &types), (2, b"\x0a\x03\x0a\x01a"), (3, b""), (4, b"")])].concat()
    }

    #[test]
    fn an_envelope_says_what_is_in_it() {
        let bytes = envelope();
        let open = Envelope::open(&bytes).expect("an envelope");
        assert_eq!(open, Envelope { api_version: "v1", kind: "Pod", raw: b"\x0a\x03\x0a\x01a" });
        assert_eq!(open.message().expect("a kind").types(), Some(("v1", "Pod")));
        let event = message(&[(1, b"ADDED"), (2, &message(&[(1, &bytes)]))]);
        assert_eq!(WatchEvent::read(&event).expect("an event"), WatchEvent { kind: "ADDED", object: &bytes });
    }

    #[test]
    fn of_one_that_is_cut_off_there_is_what_is_there() {
        let event = message(&[(1, b"ADDED"), (2, &message(&[(1, &envelope())]))]);
        for end in 0..event.len() {
            let start = WatchEvent::read_start(&event[..end]).expect("what's there");
            assert!(envelope().starts_with(start.object), "cut at {end}");
        }
        let start = WatchEvent::read_start(&event[..event.len() - 6]).expect("what's there");
        assert_eq!(Envelope::open_start(start.object).expect("an envelope").kind, "Pod");
        assert_eq!(Envelope::open_start(start.object).expect("an envelope").raw, b"\x0a\x03\x0a");
        assert!(WatchEvent::read(&event[..event.len() - 6]).is_err());
    }

    #[test]
    fn what_is_no_envelope_or_holds_something_else_is_an_error() {
        for (bytes, shown) in [
            (b"{}".to_vec(), "doesn't begin"),
            ([MAGIC, &message(&[(3, b"gzip")])].concat(), "encoding"),
            ([MAGIC, &message(&[(4, b"application/json")])].concat(), "isn't protobuf"),
        ] {
            let error = Envelope::open(&bytes).expect_err(shown).to_string();
            assert!(error.contains(shown), "{error}");
        }
        assert!(Envelope::open(MAGIC).expect("an empty one").message().is_err());
    }
}
