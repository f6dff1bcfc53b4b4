//! A place in JSON that moves on token by token.

use super::block::{self, BLOCK, Stops};
use super::nesting::Nesting;

/// A place in a text. What it steps over is looked at only as far as its methods say.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    pub(super) at: usize,
    /// The block whose stops are known, by number; none at the beginning.
    block: usize,
    stops: u64,
    foreign: bool,
}

/// What's between two quotes, as it's written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quoted<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) escaped: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, block: usize::MAX, stops: 0, foreign: false }
    }

    /// Whether a text that it went through held anything but ASCII.
    pub(super) fn foreign(&self) -> bool {
        self.foreign
    }

    /// The byte at the place, white space skipped.
    #[inline(always)]
    pub(super) fn peek(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        if byte > b' ' { Some(byte) } else { self.peek_behind_blank() }
    }

    #[cold]
    fn peek_behind_blank(&mut self) -> Option<u8> {
        loop {
            match *self.text.get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Goes past this byte and white space before it; `None` if there's another.
    #[inline(always)]
    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Whether only white space is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek().is_none() && self.at == self.text.len()
    }

    /// What's from the place on.
    #[inline(always)]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Goes past these bytes; `None` if there are others.
    #[inline(always)]
    pub(super) fn word(&mut self, word: &[u8]) -> Option<()> {
        self.rest().starts_with(word).then(|| self.at += word.len())
    }

    /// Goes to the next quote, backslash or control character, and gives it.
    #[inline(always)]
    pub(super) fn stop(&mut self) -> Option<u8> {
        if self.at / BLOCK != self.block {
            self.enter(self.at / BLOCK)?;
        }
        let mut stops = self.stops & (u64::MAX << (self.at % BLOCK));
        while stops == 0 {
            self.enter(self.block + 1)?;
            stops = self.stops;
        }
        self.at = self.block * BLOCK + stops.trailing_zeros() as usize;
        self.text.get(self.at).copied()
    }

    #[inline(always)]
    fn enter(&mut self, number: usize) -> Option<()> {
        let Stops { stops, foreign } = Stops::of(&block::at(self.text, number * BLOCK)?);
        self.block = number;
        self.stops = stops;
        self.foreign |= foreign;
        Some(())
    }

    /// Goes past a text, whose opening quote comes next. Of escapes only the end is looked for.
    #[inline(always)]
    pub(super) fn quoted(&mut self) -> Option<Quoted<'a>> {
        self.quoted_by(|cursor| {
            cursor.at += 2;
            Some(())
        })
    }

    /// The same, with something that goes past an escape.
    #[inline(always)]
    pub(super) fn quoted_by(&mut self, escape: impl Fn(&mut Self) -> Option<()>) -> Option<Quoted<'a>> {
        self.take(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.stop()? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    escape(self)?;
                }
                _ => return None,
            }
        }
        let bytes = self.text.get(start..self.at)?;
        self.at += 1;
        Some(Quoted { bytes, escaped })
    }

    /// Goes past a value, of which only brackets and quotes are looked at.
    pub(super) fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.quoted().map(|_| ()),
            b'{' | b'[' => {
                self.at += Nesting::default().close(self.rest())?;
                Some(())
            }
            _ => {
                let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                let length = self.rest().iter().take_while(|byte| plain(byte)).count();
                self.at += length;
                (length > 0).then_some(())
            }
        }
    }
}
