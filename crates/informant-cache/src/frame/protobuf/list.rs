//! A list: one message whose items are split off while it arrives.
//!
//! `k8s\0`, then the envelope's fields: the types (1), the list's message (2), what its content is (3, 4). In the list's
//! message: its metadata (1), its items (2). Each has its length before it, so nothing is looked at but those.

use bytes::{Buf, Bytes};

use crate::frame::{Frame, FrameError, Gather};
use crate::head::ListMetadata;
use crate::protobuf::wire::{Broken, Reader};
use crate::protobuf::{self, MAGIC, Message};

/// A field's key, and the number or the length that follows it, of ten bytes each.
const HEADER_MAX: usize = 20;

/// Splits a list of one kind into its items.
#[derive(Debug)]
pub(crate) struct ListDecoder {
    chunk: Bytes,
    place: Place,
    /// The beginning of a field, or the magic bytes, that comes in several chunks.
    header: Vec<u8>,
    /// How much of the list's message is still to come; `None` outside of it.
    left: Option<u64>,
    /// Whether the list's message has come, or begun to.
    entered: bool,
    item: Gather,
    /// A field of the envelope or the list that's kept whole.
    kept: Vec<u8>,
    limit: usize,
    /// `apiVersion` and `kind` of the objects.
    expected: Option<(&'static str, &'static str)>,
    form: Form,
    metadata: Option<ListMetadata>,
    status: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Magic,
    BetweenFields,
    Item(u64),
    /// So much is to come of a field that's kept.
    Kept(Keep, u64),
    Skipped(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Types,
    /// What the content is, by its tag.
    Content(u32),
    Status,
    Metadata,
}

/// What the envelope says it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Unknown,
    List,
    Status,
    Other,
}

/// What an answer was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListEnd {
    List(ListMetadata),
    /// The message of an error.
    Status(Vec<u8>),
    Other,
}

impl ListDecoder {
    /// A decoder of lists of objects of this form.
    pub(crate) fn new(message: &Message, document_bytes_max: usize) -> Self {
        Self {
            chunk: Bytes::new(),
            place: Place::Magic,
            header: Vec::new(),
            left: None,
            entered: false,
            item: Gather::new(document_bytes_max),
            kept: Vec::new(),
            limit: document_bytes_max,
            expected: message.types(),
            form: Form::Unknown,
            metadata: None,
            status: None,
        }
    }

    /// Takes the next chunk. What came before must have been taken with [`next`](Self::next).
    pub(crate) fn push(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    /// What the list says of itself, once that has come: before its items.
    pub(crate) fn metadata(&self) -> Option<&ListMetadata> {
        self.metadata.as_ref()
    }

    /// The next whole item.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            match self.place {
                // They take no bytes, so they may end with a chunk.
                Place::Kept(keep, 0) => self.keep(keep)?,
                Place::Skipped(0) => self.place = Place::BetweenFields,
                Place::Item(0) => {
                    self.place = Place::BetweenFields;
                    return Ok(Some(self.item.finish(Bytes::new())));
                }
                _ if self.chunk.is_empty() => return Ok(None),
                Place::Magic => self.read_magic()?,
                Place::BetweenFields => self.enter_field()?,
                Place::Item(left) => {
                    let part = self.take(left);
                    let left = left - part.len() as u64;
                    if left == 0 {
                        self.place = Place::BetweenFields;
                        return Ok(Some(self.item.finish(part)));
                    }
                    self.place = Place::Item(left);
                    self.item.push(&part);
                }
                Place::Kept(keep, left) => {
                    let part = self.take(left);
                    self.kept.extend_from_slice(&part);
                    self.place = Place::Kept(keep, left - part.len() as u64);
                }
                Place::Skipped(left) => {
                    let part = self.take(left);
                    self.place = Place::Skipped(left - part.len() as u64);
                }
            }
        }
    }

    /// What the answer was, once the body has ended.
    pub(crate) fn finish(self) -> Result<ListEnd, FrameError> {
        let within = self.left.is_some_and(|left| left > 0);
        if self.place != Place::BetweenFields || !self.header.is_empty() || within {
            return Err(FrameError::Cut);
        }
        match (self.form, self.status) {
            (Form::List, _) if self.entered => Ok(ListEnd::List(self.metadata.unwrap_or_default())),
            (Form::Status, Some(status)) => Ok(ListEnd::Status(status)),
            (Form::Other, _) => Ok(ListEnd::Other),
            // Without its message it's no empty list.
            (Form::Unknown | Form::List | Form::Status, _) => Err(FrameError::Cut),
        }
    }

    fn read_magic(&mut self) -> Result<(), FrameError> {
        let missing = (MAGIC.len() - self.header.len()).min(self.chunk.len());
        self.header.extend_from_slice(&self.chunk.split_to(missing));
        if !MAGIC.starts_with(&self.header) {
            return Err(FrameError::Protobuf("it doesn't begin with the bytes 'k8s\\0'".to_owned()));
        }
        if self.header.len() == MAGIC.len() {
            self.header.clear();
            self.place = Place::BetweenFields;
        }
        Ok(())
    }

    /// Reads a field's key and length, if they're there.
    fn enter_field(&mut self) -> Result<(), FrameError> {
        if self.left == Some(0) {
            self.left = None;
        }
        let before = self.header.len();
        let start = self.chunk.get(..HEADER_MAX - before).unwrap_or(&self.chunk);
        self.header.extend_from_slice(start);
        let mut reader = Reader::new(&self.header);
        let (tag, length, is_bytes) = match header(&mut reader) {
            Ok(header) => header,
            Err(Broken::Cut) if start.len() == self.chunk.len() => {
                self.chunk.clear();
                return Ok(());
            }
            Err(broken) => return Err(FrameError::Protobuf(broken.to_string())),
        };
        let read = self.header.len() - reader.rest().len();
        self.header.clear();
        self.chunk.advance(read - before);
        self.spend(read as u64)?;
        let in_list = self.left.is_some();
        if in_list {
            self.spend(length)?;
        }
        self.place = match (in_list, tag) {
            (true, 1) if is_bytes => self.begin(Keep::Metadata, length)?,
            (true, 2) if is_bytes => Place::Item(length),
            (false, 1) if is_bytes => self.begin(Keep::Types, length)?,
            (false, 2) if is_bytes => self.enter_message(length)?,
            (false, 3 | 4) if is_bytes => self.begin(Keep::Content(tag), length)?,
            _ => Place::Skipped(length),
        };
        Ok(())
    }

    fn enter_message(&mut self, length: u64) -> Result<Place, FrameError> {
        match self.form {
            Form::List if self.entered => Err(FrameError::Protobuf("the list's message is there twice".to_owned())),
            Form::List => {
                self.left = Some(length);
                self.entered = true;
                Ok(Place::BetweenFields)
            }
            Form::Status => self.begin(Keep::Status, length),
            Form::Unknown | Form::Other => Ok(Place::Skipped(length)),
        }
    }

    fn begin(&mut self, keep: Keep, length: u64) -> Result<Place, FrameError> {
        if length > self.limit as u64 {
            return Err(FrameError::TooLarge { limit: self.limit });
        }
        self.kept.clear();
        Ok(Place::Kept(keep, length))
    }

    /// A field that's kept is there.
    fn keep(&mut self, keep: Keep) -> Result<(), FrameError> {
        self.place = Place::BetweenFields;
        let kept = std::mem::take(&mut self.kept);
        let broken = |error: protobuf::Error| FrameError::Protobuf(error.to_string());
        match keep {
            Keep::Types => {
                let (api_version, kind) = protobuf::types(&kept).map_err(broken)?;
                let list = self.expected.is_some_and(|(version, name)| {
                    api_version == version && kind.strip_suffix("List").is_some_and(|kind| kind == name)
                });
                self.form = match (api_version, kind) {
                    _ if list => Form::List,
                    ("v1", "Status") => Form::Status,
                    _ => Form::Other,
                };
            }
            Keep::Content(tag) => protobuf::content(tag, &kept).map_err(broken)?,
            Keep::Status => self.status = Some(kept),
            Keep::Metadata => {
                let metadata = ListMetadata::from_protobuf(&kept).map_err(|error| broken(error.below("metadata")))?;
                self.metadata = Some(metadata);
            }
        }
        Ok(())
    }

    /// What the chunk holds of the next so many bytes.
    fn take(&mut self, left: u64) -> Bytes {
        let there = usize::try_from(left).unwrap_or(usize::MAX).min(self.chunk.len());
        self.chunk.split_to(there)
    }

    /// Counts bytes of the list's message.
    fn spend(&mut self, length: u64) -> Result<(), FrameError> {
        let Some(left) = &mut self.left else { return Ok(()) };
        let less = left.checked_sub(length);
        *left = less.ok_or_else(|| FrameError::Protobuf("a field of the list is longer than the list".to_owned()))?;
        Ok(())
    }
}

/// A field's tag, how many bytes follow, and whether those are bytes or a message.
fn header(reader: &mut Reader<'_>) -> Result<(u32, u64, bool), Broken> {
    let (tag, wire_type) = reader.key()?;
    Ok(match wire_type {
        0 => {
            reader.varint()?;
            (tag, 0, false)
        }
        1 => (tag, 8, false),
        2 => (tag, reader.varint()?, true),
        5 => (tag, 4, false),
        other => return Err(Broken::WireType(other)),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::PREFIX_BYTES;
    use crate::protobuf::table;
    use crate::protobuf::wire::put_bytes;

    fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        fields.iter().for_each(|(tag, content)| put_bytes(*tag, content, &mut bytes));
        bytes
    }

    fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = message(&[(1, b"v1"), (2, kind.as_bytes())]);
        [MAGIC, &message(&[(1, &types), (2, raw), (3, b""), (4, b"")])].concat()
    }

    fn list(items: &[&[u8]]) -> Vec<u8> {
        let metadata = message(&[(1, b""), (2, b"7"), (3, b"more")]);
        let mut raw = message(&[(1, &metadata)]);
        items.iter().for_each(|item| put_bytes(2, item, &mut raw));
        // What nobody knows yet: a number, and bytes.
        raw.extend_from_slice(&[0x48, 0x96, 0x01]);
        put_bytes(15, b"unknown", &mut raw);
        envelope("PodList", &raw)
    }

    fn decode(chunks: &[&[u8]], limit: usize) -> Result<(Vec<Frame>, ListEnd), FrameError> {
        let mut decoder = ListDecoder::new(table().kind("v1", "Pod").expect("a kind"), limit);
        let mut items = Vec::new();
        for chunk in chunks {
            decoder.push(Bytes::copy_from_slice(chunk));
            while let Some(frame) = decoder.next()? {
                assert_eq!(decoder.metadata().and_then(|metadata| metadata.continue_token.as_deref()), Some("more"));
                items.push(frame);
            }
        }
        Ok((items, decoder.finish()?))
    }

    fn document(bytes: &[u8]) -> Frame {
        Frame::Document(Bytes::copy_from_slice(bytes))
    }

    fn metadata() -> ListEnd {
        ListEnd::List(ListMetadata { resource_version: Some("7".to_owned()), continue_token: Some("more".to_owned()) })
    }

    #[test]
    fn items_are_whole_wherever_the_chunks_are_cut() {
        let long = [b'x'; 300];
        let list = list(&[b"first", b"", &long]);
        let items = vec![document(b"first"), document(b""), document(&long)];
        for cut in 0..=list.len() {
            let (head, tail) = list.split_at(cut);
            assert_eq!(decode(&[head, tail], 1000), Ok((items.clone(), metadata())), "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = list.chunks(1).collect();
        assert_eq!(decode(&bytes, 1000), Ok((items, metadata())));
    }

    #[test]
    fn of_an_item_beyond_the_bound_only_the_beginning_is_kept_and_the_next_is_whole() {
        let long = vec![b'y'; 50_000];
        let list = list(&[&long, b"next"]);
        for size in [11, 1_000, 100_000] {
            let chunks: Vec<&[u8]> = list.chunks(size).collect();
            let (items, _) = decode(&chunks, 20_000).expect("a list");
            assert_eq!(items, [Frame::TooLarge(Bytes::copy_from_slice(&long[..PREFIX_BYTES])), document(b"next")]);
        }
    }

    #[test]
    fn an_end_within_a_list_is_an_error_at_every_byte() {
        let list = list(&[b"first", b"second"]);
        let fields_after = message(&[(3, b""), (4, b"")]).len();
        for end in 0..list.len() - fields_after {
            assert_eq!(decode(&[&list[..end]], 1000), Err(FrameError::Cut), "end at {end}");
        }
    }

    #[test]
    fn what_is_no_list_of_the_kind_gives_no_items() {
        let status = message(&[(2, b"Failure")]);
        assert_eq!(decode(&[&envelope("Status", &status)], 1000), Ok((vec![], ListEnd::Status(status))));
        for other in ["Pod", "NodeList", "Table", ""] {
            assert_eq!(decode(&[&envelope(other, &message(&[(2, b"x")]))], 1000), Ok((vec![], ListEnd::Other)));
        }
        for (bytes, shown) in [
            (b"<html>".to_vec(), "doesn't begin"),
            (envelope("PodList", &[0x12, 0x7f, 1, 2]), "longer than the list"),
            (envelope("PodList", &[0x13]), "wire type"),
            (envelope("PodList", &message(&[(1, &message(&[(2, b"\xff")]))])), "metadata.resourceVersion"),
            ([envelope("PodList", b""), message(&[(2, b"")])].concat(), "twice"),
            ([MAGIC, &message(&[(3, b"gzip")])].concat(), "encoding"),
        ] {
            let error = decode(&[&bytes], 1000).expect_err(shown).to_string();
            assert!(error.contains(shown), "{error}");
        }
        let large = envelope("PodList", &message(&[(1, &[0; 2_000])]));
        assert_eq!(decode(&[&large], 1_000), Err(FrameError::TooLarge { limit: 1_000 }));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail_otherwise_than_by_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            size in 1..20_usize,
            inside in any::<bool>(),
        ) {
            let whole = if inside { envelope("PodList", &bytes) } else { [MAGIC, &bytes].concat() };
            let mut decoder = ListDecoder::new(table().kind("v1", "Pod").expect("a kind"), 64);
            for chunk in whole.chunks(size) {
                decoder.push(Bytes::copy_from_slice(chunk));
                while let Ok(Some(_)) = decoder.next() {}
            }
        }
    }
}
