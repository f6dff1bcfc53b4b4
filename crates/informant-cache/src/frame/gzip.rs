//! A gzip body, decoded as it comes.
//!
//! A body may have any number of members: servers write one per watch event, so that each can be sent at once. What a
//! chunk decodes to is handed on piece by piece, so however well it was compressed, one piece is in memory at a time.

use bytes::{Buf, Bytes};
use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::FrameError;

/// The largest piece.
const PIECE_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;

// Flags in a member's header.
const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;

/// Decodes a gzip body. As the other decoders here: push a chunk, then take what there is until there's no more.
pub(crate) struct GzipDecoder {
    chunk: Bytes,
    place: Place,
    /// A header or trailer that comes in several chunks.
    gathered: Vec<u8>,
    inflate: Decompress,
    crc: Crc,
    /// The last piece was full, so there may be more without another chunk.
    full: bool,
}

/// Where in a member the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Header,
    /// The length of the extra field.
    ExtraLength(u8),
    /// So many bytes to skip.
    Extra(u8, usize),
    /// A text that ends with a zero byte.
    Text(u8),
    Checksum,
    Data,
    Trailer,
}

impl GzipDecoder {
    pub(crate) fn new() -> Self {
        Self {
            chunk: Bytes::new(),
            place: Place::Header,
            gathered: Vec::new(),
            inflate: Decompress::new(false),
            crc: Crc::new(),
            full: false,
        }
    }

    /// Takes the next chunk. What came before must have been taken with [`next`](Self::next).
    pub(crate) fn push(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    /// The next piece; `None` if it takes another chunk.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        while !self.chunk.is_empty() || self.full {
            match self.place {
                Place::Data => {
                    if let Some(piece) = self.inflate()? {
                        return Ok(Some(piece));
                    }
                }
                Place::Trailer => self.read_trailer()?,
                Place::Header | Place::ExtraLength(_) | Place::Extra(..) | Place::Text(_) | Place::Checksum => {
                    self.read_header()?;
                }
            }
        }
        Ok(None)
    }

    /// The body has ended; an error if that was within a member.
    pub(crate) fn finish(&self) -> Result<(), FrameError> {
        let between = self.place == Place::Header && self.gathered.is_empty();
        if between { Ok(()) } else { Err(FrameError::Cut) }
    }

    fn inflate(&mut self) -> Result<Option<Bytes>, FrameError> {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let before = self.inflate.total_in();
        let status = self.inflate.decompress_vec(&self.chunk, &mut piece, FlushDecompress::Sync);
        let status = status.map_err(|_| FrameError::Gzip("its data is broken"))?;
        let taken = usize::try_from(self.inflate.total_in() - before).unwrap_or(usize::MAX);
        self.chunk.advance(taken.min(self.chunk.len()));
        self.crc.update(&piece);
        self.full = piece.len() == PIECE_BYTES && status != Status::StreamEnd;
        if status == Status::StreamEnd {
            self.place = Place::Trailer;
        } else if piece.is_empty() && taken == 0 && !self.chunk.is_empty() {
            // Neither in nor out: it would go on like that for ever.
            return Err(FrameError::Gzip("its data is broken"));
        }
        Ok(if piece.is_empty() { None } else { Some(piece.into()) })
    }

    fn read_trailer(&mut self) -> Result<(), FrameError> {
        let Some(trailer) = self.gather(TRAILER_BYTES) else { return Ok(()) };
        let word = |at: usize| trailer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        if word(0) != Some(self.crc.sum()) || word(4) != Some(self.crc.amount()) {
            return Err(FrameError::Gzip("its checksum is wrong"));
        }
        self.crc.reset();
        self.inflate.reset(false);
        self.place = Place::Header;
        Ok(())
    }

    fn read_header(&mut self) -> Result<(), FrameError> {
        match self.place {
            Place::Header => {
                let Some(header) = self.gather(HEADER_BYTES) else { return Ok(()) };
                // Two magic bytes, and deflate as the only method there is.
                if !header.starts_with(&[0x1f, 0x8b, 8]) {
                    return Err(FrameError::Gzip("it has no header"));
                }
                self.place = after_header(header.get(3).copied().unwrap_or_default());
            }
            Place::ExtraLength(flags) => {
                let Some(length) = self.gather(2) else { return Ok(()) };
                let length = length.iter().rev().fold(0, |length, byte| (length << 8) | usize::from(*byte));
                self.place = Place::Extra(flags & !HAS_EXTRA, length);
            }
            Place::Extra(flags, left) => {
                let taken = left.min(self.chunk.len());
                self.chunk.advance(taken);
                self.place = if taken == left { after_header(flags) } else { Place::Extra(flags, left - taken) };
            }
            Place::Text(flags) => {
                let end = memchr::memchr(0, &self.chunk);
                self.chunk.advance(end.map_or(self.chunk.len(), |end| end + 1));
                if end.is_some() {
                    let first = if flags & HAS_NAME != 0 { HAS_NAME } else { HAS_COMMENT };
                    self.place = after_header(flags & !first);
                }
            }
            Place::Checksum => {
                if self.gather(2).is_some() {
                    self.place = Place::Data;
                }
            }
            Place::Data | Place::Trailer => {}
        }
        Ok(())
    }

    /// So many bytes, once they're there.
    fn gather(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let missing = bytes.saturating_sub(self.gathered.len()).min(self.chunk.len());
        self.gathered.extend_from_slice(&self.chunk.split_to(missing));
        (self.gathered.len() == bytes).then(|| std::mem::take(&mut self.gathered))
    }
}

/// What follows in a header of which these flags are still to come.
fn after_header(flags: u8) -> Place {
    if flags & HAS_EXTRA != 0 {
        Place::ExtraLength(flags)
    } else if flags & (HAS_NAME | HAS_COMMENT) != 0 {
        Place::Text(flags)
    } else if flags & HAS_CHECKSUM != 0 {
        Place::Checksum
    } else {
        Place::Data
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;
    use flate2::{Compression, GzBuilder};

    use super::*;

    fn member(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    fn decode(chunks: &[&[u8]]) -> Result<Vec<Vec<u8>>, FrameError> {
        let mut decoder = GzipDecoder::new();
        // What came of each chunk.
        let mut pieces = Vec::new();
        for chunk in chunks {
            decoder.push(Bytes::copy_from_slice(chunk));
            let mut got = Vec::new();
            while let Some(piece) = decoder.next()? {
                assert!(piece.len() <= PIECE_BYTES);
                got.extend_from_slice(&piece);
            }
            pieces.push(got);
        }
        decoder.finish().map(|()| pieces)
    }

    #[test]
    fn each_member_is_there_as_soon_as_its_bytes_are() {
        let members = [member(b"one\n"), member(b""), member(b"two\n")];
        let chunks: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
        assert_eq!(decode(&chunks).expect("gzip"), [&b"one\n"[..], b"", b"two\n"]);
    }

    #[test]
    fn what_is_flushed_within_a_member_is_there_too() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"one\n").expect("memory");
        encoder.flush().expect("memory");
        let flushed = encoder.get_ref().len();
        encoder.write_all(b"two\n").expect("memory");
        let all = encoder.finish().expect("memory");
        let (head, tail) = all.split_at(flushed);
        assert_eq!(decode(&[head, tail]).expect("gzip"), [b"one\n", b"two\n"]);
    }

    #[test]
    fn members_are_whole_wherever_the_chunks_are_cut() {
        let mut named =
            GzBuilder::new().filename("f").comment("c").extra(vec![1, 2, 3]).write(Vec::new(), Compression::best());
        named.write_all(b"first ").expect("memory");
        let body = [named.finish().expect("memory"), member(b"second")].concat();
        for cut in 0..=body.len() {
            let (head, tail) = body.split_at(cut);
            assert_eq!(decode(&[head, tail]).expect("gzip").concat(), b"first second", "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(decode(&bytes).expect("gzip").concat(), b"first second");
    }

    #[test]
    fn a_body_that_swells_comes_in_small_pieces() {
        let body = member(&vec![b'x'; 50 << 20]);
        assert!(body.len() < 60 << 10);
        assert_eq!(decode(&[&body]).expect("gzip").concat().len(), 50 << 20);
    }

    #[test]
    fn a_body_that_ends_within_a_member_or_is_broken_is_an_error() {
        let body = member(b"some text that is long enough to be cut");
        for end in 1..body.len() {
            assert_eq!(decode(&[&body[..end]]), Err(FrameError::Cut), "end at {end}");
        }
        let mut broken = body.clone();
        let last = broken.len() - 6;
        broken[last] ^= 1;
        assert_eq!(decode(&[&broken]), Err(FrameError::Gzip("its checksum is wrong")));
        assert_eq!(decode(&[b"{\"plain\":true}"]), Err(FrameError::Gzip("it has no header")));
        assert_eq!(decode(&[]), Ok(vec![]));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_fail_otherwise_than_by_an_error(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300), size in 1..40_usize) {
            let start = member(b"x");
            let mut decoder = GzipDecoder::new();
            for chunk in [&start[..10]].into_iter().chain(bytes.chunks(size)) {
                decoder.push(Bytes::copy_from_slice(chunk));
                while let Ok(Some(_)) = decoder.next() {}
            }
        }
    }
}
