//! What's read of an object's metadata without looking at anything else: it stands at tag 1 of every object, and its own
//! fields are the same for all (a test of the table says so).

use super::deserialize::map::entry;
use super::envelope::Fields;
use super::error::Error;
use super::wire::{Reader, Wire, put_varint};
use crate::error::DecodeError;

const METADATA: u32 = 1;
const LABELS: u32 = 11;
const ANNOTATIONS: u32 = 12;
const MANAGED_FIELDS: u32 = 17;

/// The head of an object, borrowed from its bytes. What isn't there is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Metadata<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) resource_version: &'a str,
    /// The bytes from the first label to the last.
    labels: &'a [u8],
    /// The bytes from the first annotation to the last.
    annotations: &'a [u8],
}

impl<'a> Metadata<'a> {
    /// Reads the head of an object; what follows its metadata isn't looked at.
    pub(crate) fn read(object: &'a [u8]) -> Result<Self, Error> {
        Ok(match find(object)? {
            Some(wire) => Self::read_message(wire.bytes()?).map_err(|error| error.below("metadata"))?,
            None => Self::default(),
        })
    }

    /// Reads the head of an object that may be cut off, as far as it's there.
    pub(crate) fn read_start(object: &'a [u8]) -> Result<Self, Error> {
        let mut metadata = Self::default();
        let mut fields = Fields::of_start(object);
        while let Some((tag, wire)) = fields.next()? {
            if tag == METADATA {
                let mut inner = Fields::of_start(wire.bytes()?);
                while let Some((tag, wire)) = inner.next()? {
                    metadata.take(tag, wire).map_err(|error| error.below("metadata"))?;
                }
                break;
            }
        }
        Ok(metadata)
    }

    fn read_message(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut metadata = Self::default();
        let (mut labels, mut annotations) = (None, None);
        let mut reader = Reader::new(bytes);
        let mut start = 0;
        while let Some((tag, wire)) = reader.field()? {
            let end = bytes.len() - reader.rest().len();
            match tag {
                LABELS => labels.get_or_insert((start, end)).1 = end,
                ANNOTATIONS => annotations.get_or_insert((start, end)).1 = end,
                _ => metadata.take(tag, wire)?,
            }
            start = end;
        }
        let part =
            |range: Option<(usize, usize)>| range.and_then(|(start, end)| bytes.get(start..end)).unwrap_or_default();
        (metadata.labels, metadata.annotations) = (part(labels), part(annotations));
        Ok(metadata)
    }

    fn take(&mut self, tag: u32, wire: Wire<'a>) -> Result<(), Error> {
        let (place, name) = match tag {
            1 => (&mut self.name, "name"),
            3 => (&mut self.namespace, "namespace"),
            5 => (&mut self.uid, "uid"),
            6 => (&mut self.resource_version, "resourceVersion"),
            _ => return Ok(()),
        };
        *place = wire.text().map_err(|broken| Error::from(broken).below(name))?;
        Ok(())
    }

    /// Its labels, as far as they can be read.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        entries(self.labels, LABELS)
    }

    /// Its annotations, as far as they can be read.
    pub(crate) fn annotations(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        entries(self.annotations, ANNOTATIONS)
    }
}

/// The object's metadata.
fn find(object: &[u8]) -> Result<Option<Wire<'_>>, Error> {
    let mut reader = Reader::new(object);
    while let Some((tag, wire)) = reader.field()? {
        if tag == METADATA {
            return Ok(Some(wire));
        }
    }
    Ok(None)
}

fn entries(bytes: &[u8], tag: u32) -> impl Iterator<Item = (&str, &str)> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(move || {
        while let Ok(Some((found, wire))) = reader.field() {
            if found == tag {
                let (key, value) = entry(wire.bytes().ok()?).ok()?;
                return Some((key, value.map_or(Some(""), |value| value.text().ok())?));
            }
        }
        None
    })
}

/// Appends an object to `out` without its `metadata.managedFields`. What else there is stays as it is.
///
/// # Errors
/// If the object or its metadata can't be split into fields.
pub(crate) fn without_managed_fields(object: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let mut reader = Reader::new(object);
    let mut start = 0;
    while let Some((tag, wire)) = reader.field().map_err(Error::from)? {
        let end = object.len() - reader.rest().len();
        match wire {
            Wire::Bytes(metadata) if tag == METADATA => trim(metadata, out).map_err(|error| error.below("metadata"))?,
            _ => out.extend_from_slice(object.get(start..end).unwrap_or_default()),
        }
        start = end;
    }
    Ok(())
}

/// Writes the field of the metadata.
fn trim(metadata: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let mut cut = 0;
    for_each_field(metadata, |tag, field| cut += if tag == MANAGED_FIELDS { field.len() } else { 0 })?;
    put_varint(u64::from(METADATA) << 3 | 2, out);
    put_varint((metadata.len() - cut) as u64, out);
    if cut == 0 {
        out.extend_from_slice(metadata);
        return Ok(());
    }
    for_each_field(metadata, |tag, field| {
        if tag != MANAGED_FIELDS {
            out.extend_from_slice(field);
        }
    })
}

/// Shows each field with its tag.
fn for_each_field<'a>(message: &'a [u8], mut show: impl FnMut(u32, &'a [u8])) -> Result<(), Error> {
    let mut reader = Reader::new(message);
    let mut rest = message;
    while let Some((tag, _)) = reader.field()? {
        let (field, after) = rest.split_at(rest.len() - reader.rest().len());
        show(tag, field);
        rest = after;
    }
    Ok(())
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

    fn label(key: &str, value: &str) -> Vec<u8> {
        message(&[(1, key.as_bytes()), (2, value.as_bytes())])
    }

    fn object() -> Vec<u8> {
        let metadata = message(&[
            (1, b"a"),
            (3, b"web"),
            (5, b"u1"),
            (6, b"7"),
            (11, &label("x", "y")),
            (11, &label("z", "")),
            (12, &label("note", "n")),
            (17, &[b'm'; 200]),
            (17, b"n"),
        ]);
        message(&[(1, &metadata), (2, b"spec")])
    }

    #[test]
    fn a_head_is_read_without_what_follows_the_metadata() {
        let bytes = [object(), vec![0xff]].concat();
        let head = Metadata::read(&bytes).expect("a head");
        assert_eq!((head.name, head.namespace, head.uid, head.resource_version), ("a", "web", "u1", "7"));
        assert_eq!(head.labels().collect::<Vec<_>>(), [("x", "y"), ("z", "")]);
        assert_eq!(head.annotations().collect::<Vec<_>>(), [("note", "n")]);
        assert_eq!(Metadata::read(&message(&[(2, b"spec")])).expect("nothing"), Metadata::default());
        let error = Metadata::read(&message(&[(1, &message(&[(1, b"\xff")]))])).expect_err("no text");
        assert_eq!(error.to_string(), "metadata.name: it isn't UTF-8");
    }

    #[test]
    fn of_an_object_that_is_cut_off_the_head_is_read_as_far_as_it_is_there() {
        let object = object();
        let whole = Metadata::read_start(&object).expect("a head");
        assert_eq!((whole.name, whole.resource_version), ("a", "7"));
        for end in 0..object.len() {
            let head = Metadata::read_start(&object[..end]).expect("what's there");
            assert!("a".starts_with(head.name) && "web".starts_with(head.namespace), "cut at {end}");
        }
    }

    #[test]
    fn managed_fields_are_cut_and_nothing_else_is() {
        let mut out = b"before".to_vec();
        without_managed_fields(&object(), &mut out).expect("an object");
        let metadata = message(&[
            (1, b"a"),
            (3, b"web"),
            (5, b"u1"),
            (6, b"7"),
            (11, &label("x", "y")),
            (11, &label("z", "")),
            (12, &label("note", "n")),
        ]);
        let expected = [b"before".to_vec(), message(&[(1, &metadata), (2, b"spec")])].concat();
        assert_eq!(out, expected);
        let mut again = Vec::new();
        without_managed_fields(&expected[6..], &mut again).expect("an object");
        assert_eq!(again, &expected[6..]);
        assert!(without_managed_fields(&[0x0a, 0x05, 1], &mut again).is_err());
    }
}
