//! Where an object or array ends: brackets are counted outside of texts, a block of bytes at a time.

use super::block::{self, BLOCK, Brackets};

/// Where in nested JSON a byte is. Bytes may be cut anywhere.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Nesting {
    /// Brackets that are open.
    pub(crate) depth: usize,
    pub(crate) in_string: bool,
    /// Whether the next byte, in a text, is escaped.
    escaped: bool,
}

impl Nesting {
    /// Goes past one byte.
    pub(crate) fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    /// Goes on to the bracket that closes the outermost one; returns the position after it, `None` if it isn't there.
    ///
    /// The first byte must be the opening one, unless it was gone past already.
    pub(crate) fn close(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut state = self.clone();
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        for (number, block) in blocks.iter().enumerate() {
            if let Some(end) = state.close_in(block, BLOCK) {
                *self = Self::default();
                return Some(number * BLOCK + end);
            }
        }
        let end = block::at(rest, 0).and_then(|block| state.close_in(&block, rest.len()));
        *self = state;
        end.map(|end| blocks.len() * BLOCK + end)
    }

    /// The same in one block, of which the first `length` bytes count; the others must be zero.
    #[inline(always)]
    fn close_in(&mut self, block: &[u8; BLOCK], length: usize) -> Option<usize> {
        let Brackets { quotes, backslashes, opens, closes } = Brackets::of(block);
        let mut carry = self.escaped;
        let escaped = block::escaped(backslashes, &mut carry);
        let in_string = block::parity(quotes & !escaped) ^ if self.in_string { u64::MAX } else { 0 };
        if backslashes & !in_string != 0 {
            // Outside of a text a backslash escapes nothing. No JSON has one there.
            return self.close_slowly(block, length);
        }
        let (opens, closes) = (opens & !in_string, closes & !in_string);
        // Of `{}` nothing is left to count. managedFields are full of them.
        let empty = if self.depth > 0 { opens & (closes >> 1) } else { 0 };
        let (opens, closes) = (opens ^ empty, closes ^ (empty << 1));
        let closed = closes.count_ones() as usize;
        if self.depth > closed {
            self.depth += opens.count_ones() as usize;
            self.depth -= closed;
        } else if let Some(end) = self.close_among(opens, closes) {
            return Some(end);
        }
        self.in_string = in_string >> (BLOCK - 1) == 1;
        self.escaped = if length < BLOCK { escaped >> length & 1 == 1 } else { carry };
        None
    }

    /// Goes from bracket to bracket.
    #[cold]
    fn close_among(&mut self, opens: u64, closes: u64) -> Option<usize> {
        let mut brackets = opens | closes;
        while brackets != 0 {
            let bracket = brackets & brackets.wrapping_neg();
            brackets ^= bracket;
            if opens & bracket != 0 {
                self.depth += 1;
                continue;
            }
            self.depth = self.depth.saturating_sub(1);
            if self.depth == 0 {
                *self = Self::default();
                return Some(bracket.trailing_zeros() as usize + 1);
            }
        }
        None
    }

    #[cold]
    fn close_slowly(&mut self, block: &[u8; BLOCK], length: usize) -> Option<usize> {
        let bytes = block.get(..length).unwrap_or(block);
        let end = bytes.iter().position(|byte| {
            self.step(*byte);
            self.depth == 0 && !self.in_string
        });
        end.map(|end| end + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close_naively(nesting: &mut Nesting, bytes: &[u8]) -> Option<usize> {
        let end = bytes.iter().position(|byte| {
            nesting.step(*byte);
            nesting.depth == 0 && !nesting.in_string
        });
        end.map(|end| end + 1)
    }

    /// Goes on through chunks; the position of the end, and the state there or after the last chunk.
    fn through(chunks: &[&[u8]], close: impl Fn(&mut Nesting, &[u8]) -> Option<usize>) -> (Option<usize>, Nesting) {
        let mut nesting = Nesting::default();
        let mut before = 0;
        for chunk in chunks {
            if let Some(end) = close(&mut nesting, chunk) {
                return (Some(before + end), nesting);
            }
            before += chunk.len();
        }
        (None, nesting)
    }

    fn assert_found(text: &[u8], sizes: &[usize]) {
        let mut chunks = Vec::new();
        let mut rest = text;
        for size in sizes.iter().cycle() {
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let shown = String::from_utf8_lossy(text);
        assert_eq!(through(&chunks, Nesting::close), through(&[text], close_naively), "{shown} in {sizes:?}");
    }

    #[test]
    fn brackets_that_never_close_are_counted_on() {
        let mut nesting = Nesting::default();
        assert_eq!(nesting.close(&[b'['; 1000]), None);
        assert_eq!(nesting.depth, 1000);
        assert_eq!(nesting.close(&[b']'; 1000]), Some(1000));
    }

    proptest! {
        #[test]
        fn the_end_is_where_a_look_at_each_byte_finds_it(
            text in r#"\{([\[\]{}a"\\]|\\{2,9}"|[a-z]{60,70}|"[^"]{0,100}"){0,60}"#,
            sizes in prop::collection::vec(1..150_usize, 1..4),
        ) {
            assert_found(text.as_bytes(), &sizes);
        }

        #[test]
        fn any_bytes_are_gone_past_as_one_by_one(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'\\'), Just(b'{'), Just(b'}')], 0..300),
            sizes in prop::collection::vec(1..150_usize, 1..4),
        ) {
            let mut text = b"{".to_vec();
            text.extend(bytes);
            assert_found(&text, &sizes);
        }
    }
}
