//! A watch: one document per line.

use bytes::Bytes;

use super::{Frame, FrameError, Gather};

#[derive(Debug)]
pub(crate) struct WatchDecoder {
    chunk: Bytes,
    line: Gather,
}

impl WatchDecoder {
    pub(crate) fn new(document_bytes_max: usize) -> Self {
        Self { chunk: Bytes::new(), line: Gather::new(document_bytes_max) }
    }

    /// Takes the next chunk. What came before must have been taken with [`next`](Self::next).
    pub(crate) fn push(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    /// The next whole line that isn't blank.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        while !self.chunk.is_empty() {
            let Some(end) = memchr::memchr(b'\n', &self.chunk) else {
                self.line.push(&std::mem::take(&mut self.chunk));
                return None;
            };
            let rest = self.chunk.split_off(end + 1);
            let line = std::mem::replace(&mut self.chunk, rest).slice(..end);
            if let Some(frame) = self.finish_line(line) {
                return Some(frame);
            }
        }
        None
    }

    /// What's left after the body's end: a last line without its newline, if it's whole.
    pub(crate) fn finish(&mut self) -> Result<Option<Frame>, FrameError> {
        if self.line.is_empty() {
            return Ok(None);
        }
        match self.finish_line(Bytes::new()) {
            None => Ok(None),
            Some(Frame::Document(line)) if serde_json::from_slice::<serde::de::IgnoredAny>(&line).is_ok() => {
                Ok(Some(Frame::Document(line)))
            }
            Some(_) => Err(FrameError::Cut),
        }
    }

    fn finish_line(&mut self, last: Bytes) -> Option<Frame> {
        match self.line.finish(last) {
            Frame::Document(line) if line.iter().all(u8::is_ascii_whitespace) => None,
            frame => Some(frame),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]], limit: usize) -> (Vec<Frame>, Result<Option<Frame>, FrameError>) {
        let mut decoder = WatchDecoder::new(limit);
        let mut frames = Vec::new();
        for chunk in chunks {
            decoder.push(Bytes::copy_from_slice(chunk));
            frames.extend(std::iter::from_fn(|| decoder.next()));
        }
        (frames, decoder.finish())
    }

    fn document(text: &str) -> Frame {
        Frame::Document(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn lines_are_whole_wherever_the_chunks_are_cut() {
        let text = "{\"a\":\"é\\u00e9\"}\n\r\n{\"b\":2}\n{\"c\":3}";
        for cut in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(cut);
            let (frames, last) = decode(&[head, tail], 100);
            assert_eq!(frames, [document("{\"a\":\"é\\u00e9\"}"), document("{\"b\":2}")], "cut at {cut}");
            assert_eq!(last, Ok(Some(document("{\"c\":3}"))));
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(decode(&bytes, 100).0.len(), 2);
    }

    #[test]
    fn blank_lines_and_an_empty_stream_are_no_documents() {
        assert_eq!(decode(&[b"\n", b"\r\n", b"  "], 100), (vec![], Ok(None)));
        assert_eq!(decode(&[], 100), (vec![], Ok(None)));
    }

    #[test]
    fn of_a_line_beyond_the_bound_only_the_beginning_is_kept_and_the_next_line_is_whole() {
        let long = format!("{{\"x\":\"{}\"}}", "y".repeat(50_000));
        let text = format!("{long}\n{{\"b\":2}}\n");
        for size in [7, 1_000, 100_000] {
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let (frames, last) = decode(&chunks, 20_000);
            let [Frame::TooLarge(prefix), second] = frames.as_slice() else { panic!("{frames:?}") };
            assert_eq!(prefix.len(), super::super::PREFIX_BYTES);
            assert!(long.as_bytes().starts_with(prefix));
            assert_eq!((second, last), (&document("{\"b\":2}"), Ok(None)));
        }
    }

    #[test]
    fn an_end_within_a_document_is_an_error() {
        assert_eq!(decode(&[b"{\"a\":1}\n{\"b\":"], 100).1, Err(FrameError::Cut));
    }
}
