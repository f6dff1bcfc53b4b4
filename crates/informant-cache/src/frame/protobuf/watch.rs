//! A watch: messages with their length before each.

use bytes::{Buf, Bytes};

use crate::frame::{Frame, FrameError, Gather};

/// No event is as long as that; text is, taken for a length.
const LENGTH_MAX: u32 = 1 << 29;

#[derive(Debug)]
pub(crate) struct WatchDecoder {
    chunk: Bytes,
    /// The bytes of a length that comes in several chunks.
    length: Vec<u8>,
    /// How much of a frame is still to come; `None` between two.
    left: Option<usize>,
    frame: Gather,
}

impl WatchDecoder {
    pub(crate) fn new(document_bytes_max: usize) -> Self {
        Self { chunk: Bytes::new(), length: Vec::new(), left: None, frame: Gather::new(document_bytes_max) }
    }

    /// Takes the next chunk. What came before must have been taken with [`next`](Self::next).
    pub(crate) fn push(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    /// The next whole frame.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        while !self.chunk.is_empty() {
            let Some(left) = self.left else {
                self.read_length()?;
                continue;
            };
            let part = self.chunk.split_to(left.min(self.chunk.len()));
            if part.len() == left {
                self.left = None;
                return Ok(Some(self.frame.finish(part)));
            }
            self.left = Some(left - part.len());
            self.frame.push(&part);
        }
        Ok(None)
    }

    /// Whether the body may end here.
    pub(crate) fn finish(&self) -> Result<(), FrameError> {
        if self.left.is_none() && self.length.is_empty() { Ok(()) } else { Err(FrameError::Cut) }
    }

    fn read_length(&mut self) -> Result<(), FrameError> {
        let missing = (4 - self.length.len()).min(self.chunk.len());
        self.length.extend_from_slice(&self.chunk.split_to(missing));
        if self.length.len() < 4 {
            return Ok(());
        }
        let length = self.length.as_slice().get_u32();
        self.length.clear();
        if length > LENGTH_MAX {
            return Err(FrameError::Protobuf(format!("an event of {length} bytes is announced")));
        }
        // An event of no bytes is none.
        self.left = usize::try_from(length).ok().filter(|length| *length > 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::PREFIX_BYTES;

    fn frames(frames: &[&[u8]]) -> Vec<u8> {
        let frame = |frame: &&[u8]| [&u32::try_from(frame.len()).expect("short").to_be_bytes(), *frame].concat();
        frames.iter().flat_map(frame).collect()
    }

    fn decode(chunks: &[&[u8]], limit: usize) -> Result<(Vec<Frame>, Result<(), FrameError>), FrameError> {
        let mut decoder = WatchDecoder::new(limit);
        let mut frames = Vec::new();
        for chunk in chunks {
            decoder.push(Bytes::copy_from_slice(chunk));
            while let Some(frame) = decoder.next()? {
                frames.push(frame);
            }
        }
        Ok((frames, decoder.finish()))
    }

    fn document(bytes: &[u8]) -> Frame {
        Frame::Document(Bytes::copy_from_slice(bytes))
    }

    #[test]
    fn frames_are_whole_wherever_the_chunks_are_cut() {
        let bytes = frames(&[b"first", b"", b"second"]);
        let expected = (vec![document(b"first"), document(b"second")], Ok(()));
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(decode(&[head, tail], 100), Ok(expected.clone()), "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode(&single, 100), Ok(expected));
        assert_eq!(decode(&[], 100), Ok((vec![], Ok(()))));
    }

    #[test]
    fn of_a_frame_beyond_the_bound_only_the_beginning_is_kept_and_the_next_is_whole() {
        let long = vec![b'y'; 50_000];
        let bytes = frames(&[&long, b"next"]);
        for size in [7, 1_000, 100_000] {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            let (frames, end) = decode(&chunks, 20_000).expect("frames");
            assert_eq!(frames, [Frame::TooLarge(Bytes::copy_from_slice(&long[..PREFIX_BYTES])), document(b"next")]);
            assert_eq!(end, Ok(()));
        }
    }

    #[test]
    fn an_end_within_a_frame_is_an_error_and_so_is_text() {
        let bytes = frames(&[b"first"]);
        for end in 1..bytes.len() {
            assert_eq!(decode(&[&bytes[..end]], 100), Ok((vec![], Err(FrameError::Cut))), "end at {end}");
        }
        assert!(matches!(decode(&[b"{\"type\":"], 100), Err(FrameError::Protobuf(_))));
    }
}
