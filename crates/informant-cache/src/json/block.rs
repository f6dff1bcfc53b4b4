//! Sixty-four bytes of JSON at a time: which of them are quotes, backslashes, brackets.
//!
//! A byte is one bit of a word, the first byte the lowest, so that a handful of instructions answers for all of them.

use wide::u8x32;

/// Bytes in a block.
pub(super) const BLOCK: usize = 64;

/// Bytes at even positions.
const EVEN: u64 = 0x5555_5555_5555_5555;

/// What a search for brackets must know of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Brackets {
    pub(super) quotes: u64,
    pub(super) backslashes: u64,
    pub(super) opens: u64,
    pub(super) closes: u64,
}

/// What may end or interrupt a text in a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stops {
    /// Quotes, backslashes and control characters.
    pub(super) stops: u64,
    /// Whether a byte isn't ASCII.
    pub(super) foreign: bool,
}

/// The block that begins at `start`, filled up with zeros if the text ends within it. `None` if there's none.
#[inline]
pub(super) fn at(text: &[u8], start: usize) -> Option<[u8; BLOCK]> {
    let rest = text.get(start..)?;
    if let Some(block) = rest.first_chunk() {
        return Some(*block);
    }
    if rest.is_empty() {
        return None;
    }
    let mut block = [0; BLOCK];
    for (to, from) in block.iter_mut().zip(rest) {
        *to = *from;
    }
    Some(block)
}

impl Brackets {
    #[inline]
    pub(super) fn of(block: &[u8; BLOCK]) -> Self {
        let lanes = lanes(block);
        // `[` and `{`, and so `]` and `}`, differ in one bit only.
        let folded = lanes.map(|lane| lane | u8x32::splat(0x20));
        Self {
            quotes: equal(lanes, b'"'),
            backslashes: equal(lanes, b'\\'),
            opens: equal(folded, b'{'),
            closes: equal(folded, b'}'),
        }
    }
}

impl Stops {
    #[inline]
    pub(super) fn of(block: &[u8; BLOCK]) -> Self {
        let lanes = lanes(block);
        let (quote, backslash, last_control) = (u8x32::splat(b'"'), u8x32::splat(b'\\'), u8x32::splat(0x1f));
        let stops =
            lanes.map(|lane| lane.simd_eq(quote) | lane.simd_eq(backslash) | lane.min(last_control).simd_eq(lane));
        let [a, b] = lanes;
        Self { stops: bits(stops), foreign: (a | b).to_bitmask() != 0 }
    }
}

/// The bytes that are escaped by a backslash before them. `carry` says it of the first byte, and afterwards of the
/// first byte of the next block.
#[inline]
pub(super) fn escaped(backslashes: u64, carry: &mut bool) -> u64 {
    let first = u64::from(*carry);
    if backslashes == 0 {
        *carry = false;
        return first;
    }
    // A backslash that's escaped escapes nothing. In a run of backslashes the second, fourth … are escaped, and so is
    // the byte after a run of odd length: all at the other parity than the run's first.
    let runs = backslashes & !first;
    let starts = runs & !(runs << 1);
    // Added to a run, its first bit moves to the place after its end, and the run's own bits become zero.
    let from_odd = runs & !runs.wrapping_add(starts & !EVEN);
    let from_even = runs & !from_odd;
    *carry = from_odd >> 63 == 1;
    ((from_even << 1) & !EVEN) | ((from_odd << 1) & EVEN) | first
}

/// Each bit becomes the parity of the bits up to it: of quotes, it's set from an opening one to before the closing one.
#[inline]
pub(super) fn parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// The halves of a block: a register each where the program is built for such wide ones, else two.
#[inline]
fn lanes(block: &[u8; BLOCK]) -> [u8x32; 2] {
    let (lanes, _) = block.as_chunks::<32>();
    std::array::from_fn(|lane| u8x32::new(lanes.get(lane).copied().unwrap_or_default()))
}

#[inline]
fn equal(lanes: [u8x32; 2], byte: u8) -> u64 {
    let byte = u8x32::splat(byte);
    bits(lanes.map(|lane| lane.simd_eq(byte)))
}

#[inline]
fn bits([a, b]: [u8x32; 2]) -> u64 {
    u64::from(a.to_bitmask()) | u64::from(b.to_bitmask()) << 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn positions(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
        block.iter().enumerate().filter(|(_, byte)| is(**byte)).map(|(at, _)| 1 << at).sum()
    }

    #[test]
    fn every_byte_is_what_it_is() {
        for first in 0..=3_u8 {
            let block = std::array::from_fn(|at| first * 64 + u8::try_from(at).expect("below 64"));
            let brackets = Brackets::of(&block);
            assert_eq!(brackets.quotes, positions(&block, |byte| byte == b'"'));
            assert_eq!(brackets.backslashes, positions(&block, |byte| byte == b'\\'));
            assert_eq!(brackets.opens, positions(&block, |byte| byte == b'{' || byte == b'['));
            assert_eq!(brackets.closes, positions(&block, |byte| byte == b'}' || byte == b']'));
            let stops = Stops::of(&block);
            assert_eq!(stops.stops, positions(&block, |byte| byte < 0x20 || byte == b'"' || byte == b'\\'));
            assert_eq!(stops.foreign, first >= 2);
        }
    }

    proptest! {
        #[test]
        fn what_follows_an_escaping_backslash_is_escaped(text in r"[\\a]{0,200}", runs in r"(a{0,3}\\{60,70}){1,3}") {
            for text in [text, runs] {
                let mut carry = false;
                let mut escaping = false;
                for start in (0..text.len()).step_by(BLOCK) {
                    let block = at(text.as_bytes(), start).expect("there's a block");
                    let found = escaped(Brackets::of(&block).backslashes, &mut carry);
                    for (at, byte) in block.iter().enumerate() {
                        prop_assert_eq!(found >> at & 1 == 1, escaping, "{} in {}", start + at, text);
                        escaping = *byte == b'\\' && !escaping;
                    }
                }
            }
        }

        #[test]
        fn parity_is_the_count_so_far(bits in any::<u64>()) {
            for at in 0..64 {
                let so_far = (bits << (63 - at)).count_ones();
                prop_assert_eq!(parity(bits) >> at & 1 == 1, so_far % 2 == 1);
            }
        }
    }
}
