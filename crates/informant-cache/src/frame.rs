//! From the bytes of a response body to documents, JSON or protobuf, as they come.
//!
//! A list is split into its items while it arrives, so a whole list is never in memory: a [`ListDecoder`] holds at most
//! one item and the list's own fields. A watch is split into its events by a [`WatchDecoder`]: at newlines, or by the
//! lengths before them. They take chunks cut anywhere, pass a document on without copying it if one chunk holds it whole,
//! and keep no document beyond the bound: of a larger one only the beginning is kept, enough to name the object.
//!
//! What's between the documents' brackets isn't checked here; whoever parses a document does.

mod gzip;
mod list;
pub(crate) mod protobuf;
mod watch;

use bytes::Bytes;

pub(crate) use self::gzip::GzipDecoder;
pub(crate) use self::list::ListDecoder;
pub(crate) use self::watch::WatchDecoder;
use crate::document::Encoding;
use crate::head::{ListHead, ListMetadata};

/// The decoder of a list in the form in which it comes.
#[derive(Debug)]
pub(crate) enum ListFrames {
    Json(ListDecoder),
    Protobuf(protobuf::ListDecoder),
}

/// The decoder of a watch in the form in which it comes.
#[derive(Debug)]
pub(crate) enum WatchFrames {
    Json(WatchDecoder),
    Protobuf(protobuf::WatchDecoder),
}

/// How much of a document that's too large is kept: its metadata is near its beginning.
const PREFIX_BYTES: usize = 16 << 10;

/// A document, or as much of it as may be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A whole document.
    Document(Bytes),
    /// The beginning of a document that's larger than the bound.
    TooLarge(Bytes),
}

/// Bytes that can't be split into documents. It ends the response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the answer ends within a document")]
    Cut,
    #[error("the answer isn't the JSON of a list: {expected} expected at {found:?}")]
    NotAList { expected: &'static str, found: String },
    #[error("the answer can't be decompressed: {0}")]
    Gzip(&'static str),
    #[error("the answer can't be read as protobuf: {0}")]
    Protobuf(String),
    #[error("the fields of the list beside its items are larger than {limit} bytes")]
    TooLarge { limit: usize },
}

// === impl ListFrames ===

impl ListFrames {
    pub(crate) fn new(encoding: Encoding, document_bytes_max: usize) -> Self {
        match encoding {
            Encoding::Json => Self::Json(ListDecoder::new(document_bytes_max)),
            Encoding::Protobuf(message) => Self::Protobuf(protobuf::ListDecoder::new(message, document_bytes_max)),
        }
    }

    /// Takes the next chunk. What came before must have been taken with [`next`](Self::next).
    pub(crate) fn push(&mut self, chunk: Bytes) {
        match self {
            Self::Json(decoder) => decoder.push(chunk),
            Self::Protobuf(decoder) => decoder.push(chunk),
        }
    }

    /// The next whole item.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        match self {
            Self::Json(decoder) => decoder.next(),
            Self::Protobuf(decoder) => decoder.next(),
        }
    }

    /// What the list says of itself, if that came before its items, as it does from every API server.
    pub(crate) fn metadata(&self) -> Option<ListMetadata> {
        match self {
            Self::Json(decoder) => decoder.fields().and_then(|fields| ListHead::parse(&fields).ok())?.metadata,
            Self::Protobuf(decoder) => decoder.metadata().cloned(),
        }
    }
}

// === impl WatchFrames ===

impl WatchFrames {
    pub(crate) fn new(encoding: Encoding, document_bytes_max: usize) -> Self {
        match encoding {
            Encoding::Json => Self::Json(WatchDecoder::new(document_bytes_max)),
            Encoding::Protobuf(_) => Self::Protobuf(protobuf::WatchDecoder::new(document_bytes_max)),
        }
    }

    /// Takes the next chunk. What came before must have been taken with [`next`](Self::next).
    pub(crate) fn push(&mut self, chunk: Bytes) {
        match self {
            Self::Json(decoder) => decoder.push(chunk),
            Self::Protobuf(decoder) => decoder.push(chunk),
        }
    }

    /// The next whole event.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        match self {
            Self::Json(decoder) => Ok(decoder.next()),
            Self::Protobuf(decoder) => decoder.next(),
        }
    }

    /// What's left after the body's end, if that's whole.
    pub(crate) fn finish(&mut self) -> Result<Option<Frame>, FrameError> {
        match self {
            Self::Json(decoder) => decoder.finish(),
            Self::Protobuf(decoder) => decoder.finish().map(|()| None),
        }
    }
}

/// Gathers a document that comes in several chunks, within a bound.
#[derive(Debug)]
struct Gather {
    bytes: bytes::BytesMut,
    limit: usize,
    overflowed: bool,
}

impl Gather {
    fn new(limit: usize) -> Self {
        Self { bytes: bytes::BytesMut::new(), limit, overflowed: false }
    }

    /// Adds a part of the document whose end isn't there yet.
    fn push(&mut self, part: &[u8]) {
        if self.overflowed {
            return;
        }
        if self.bytes.len() + part.len() <= self.limit {
            self.bytes.extend_from_slice(part);
            return;
        }
        self.overflowed = true;
        let missing = PREFIX_BYTES.saturating_sub(self.bytes.len()).min(part.len());
        self.bytes.extend_from_slice(part.get(..missing).unwrap_or(part));
        self.bytes.truncate(PREFIX_BYTES);
    }

    /// Adds the last part and gives the document.
    fn finish(&mut self, last: Bytes) -> Frame {
        if self.bytes.is_empty() && !self.overflowed && last.len() <= self.limit {
            return Frame::Document(last);
        }
        self.push(&last);
        let bytes = std::mem::take(&mut self.bytes).freeze();
        if std::mem::take(&mut self.overflowed) { Frame::TooLarge(bytes) } else { Frame::Document(bytes) }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.overflowed
    }
}

/// The beginning of some bytes as text, for an error. Only of what isn't from the API may more than a character be shown.
fn excerpt(bytes: &[u8], length: usize) -> String {
    let text = String::from_utf8_lossy(bytes.get(..length).unwrap_or(bytes));
    text.chars().filter(|char| !char.is_control()).collect()
}
