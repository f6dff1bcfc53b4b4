//! From the bytes of a response body to JSON documents, as they come.
//!
//! A list is split into its items while it arrives, so a whole list is never in memory: a [`ListDecoder`] holds at most
//! one item and the list's own fields. A watch is split at its newlines by a [`WatchDecoder`]. Both take chunks cut
//! anywhere, pass a document on without copying it if one chunk holds it whole, and keep no document beyond the bound:
//! of a larger one only the beginning is kept, enough to name the object.
//!
//! What's between the documents' brackets isn't checked here; whoever parses a document does.

mod gzip;
mod list;
mod watch;

use bytes::Bytes;

pub(crate) use self::gzip::GzipDecoder;
pub(crate) use self::list::ListDecoder;
pub(crate) use self::watch::WatchDecoder;

/// How much of a document that's too large is kept: its metadata is near its beginning.
const PREFIX_BYTES: usize = 16 << 10;

/// A document, or as much of it as may be kept.
#[derive(Debug, PartialEq, Eq)]
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
    #[error("the fields of the list beside its items are larger than {limit} bytes")]
    TooLarge { limit: usize },
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
