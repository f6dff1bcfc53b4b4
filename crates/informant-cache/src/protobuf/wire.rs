//! The wire format: tagged fields, one after the other. Every length is checked against the bytes that are there.

/// A field's content as it stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire<'b> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'b [u8]),
}

/// Bytes that aren't what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("it ends too early")]
    Cut,
    #[error("a number is longer than ten bytes")]
    LongNumber,
    #[error("a field number is out of range")]
    Tag,
    #[error("a field has the unknown wire type {0}")]
    WireType(u8),
    #[error("a number stands where text or a message is expected")]
    NoBytes,
    #[error("text or another form of number stands where an integer is expected")]
    NoInteger,
    #[error("something else stands where a floating-point number is expected")]
    NoDouble,
    #[error("it isn't UTF-8")]
    Utf8,
}

/// Reads the fields of one message, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'b> {
    rest: &'b [u8],
}

// === impl Wire ===

impl<'b> Wire<'b> {
    #[inline]
    pub(crate) fn bytes(self) -> Result<&'b [u8], Broken> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Varint(_) | Self::Fixed64(_) | Self::Fixed32(_) => Err(Broken::NoBytes),
        }
    }

    #[inline]
    pub(crate) fn text(self) -> Result<&'b str, Broken> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Broken::Utf8)
    }

    #[inline]
    pub(crate) fn varint(self) -> Result<u64, Broken> {
        match self {
            Self::Varint(number) => Ok(number),
            Self::Bytes(_) | Self::Fixed64(_) | Self::Fixed32(_) => Err(Broken::NoInteger),
        }
    }

    pub(crate) fn double(self) -> Result<f64, Broken> {
        match self {
            Self::Fixed64(bits) => Ok(f64::from_bits(bits)),
            Self::Fixed32(bits) => Ok(f64::from(f32::from_bits(bits))),
            Self::Bytes(_) | Self::Varint(_) => Err(Broken::NoDouble),
        }
    }
}

// === impl Reader ===

impl<'b> Reader<'b> {
    #[inline]
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What hasn't been read yet.
    #[inline]
    pub(crate) fn rest(&self) -> &'b [u8] {
        self.rest
    }

    /// The next field's tag and content; `None` at the end of the message.
    #[inline]
    pub(crate) fn field(&mut self) -> Result<Option<(u32, Wire<'b>)>, Broken> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (tag, wire_type) = self.key()?;
        let wire = match wire_type {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => Wire::Bytes(self.counted()?),
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(Broken::WireType(other)),
        };
        Ok(Some((tag, wire)))
    }

    /// The last field of this tag.
    pub(crate) fn last(mut self, tag: u32) -> Result<Option<Wire<'b>>, Broken> {
        let mut last = None;
        while let Some((found, wire)) = self.field()? {
            if found == tag {
                last = Some(wire);
            }
        }
        Ok(last)
    }

    /// A field's tag and the type of its content.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<(u32, u8), Broken> {
        let key = self.varint()?;
        match u32::try_from(key >> 3) {
            Ok(tag) if tag > 0 => Ok((tag, (key & 7) as u8)),
            _ => Err(Broken::Tag),
        }
    }

    /// A number of one to ten bytes, seven bits in each.
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Broken> {
        match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Broken> {
        let mut number = 0_u64;
        for (position, byte) in (0_u32..10).zip(self.rest) {
            // The tenth byte has room for one bit; what's beyond it is dropped, as others do.
            number |= u64::from(byte & 0x7f).checked_shl(7 * position).unwrap_or(0);
            if *byte < 0x80 {
                self.rest = self.rest.get(position as usize + 1..).unwrap_or_default();
                return Ok(number);
            }
        }
        Err(if self.rest.len() < 10 { Broken::Cut } else { Broken::LongNumber })
    }

    /// Bytes that are preceded by their number.
    #[inline]
    fn counted(&mut self) -> Result<&'b [u8], Broken> {
        let length = usize::try_from(self.varint()?).map_err(|_| Broken::Cut)?;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Broken::Cut)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Broken::Cut)?;
        self.rest = rest;
        Ok(*taken)
    }
}

/// Writes a number as the wire has it.
pub(crate) fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        // The low seven bits, and that more follow.
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a field that holds text, bytes or a message.
#[cfg(test)]
pub(crate) fn put_bytes(tag: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(u64::from(tag) << 3 | 2, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(number, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!((reader.varint(), reader.rest()), (Ok(number), &[][..]));
            for end in 0..bytes.len() {
                assert_eq!(Reader::new(&bytes[..end]).varint(), Err(Broken::Cut), "{number} cut at {end}");
            }
        }
        assert_eq!(Reader::new(&[0xff; 11]).varint(), Err(Broken::LongNumber));
    }

    #[test]
    fn fields_are_read_one_after_the_other_and_what_is_broken_is_said() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0];
        let mut reader = Reader::new(&bytes);
        let fields: Vec<_> = std::iter::from_fn(|| reader.field().expect("whole")).collect();
        let expected = [(1, Wire::Varint(150)), (2, Wire::Bytes(b"hi")), (3, Wire::Fixed32(1)), (4, Wire::Fixed64(2))];
        assert_eq!(fields, expected);
        for (bytes, broken) in [
            (&[0x0a, 0x05, b'a'][..], Broken::Cut),
            (&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], Broken::Cut),
            (&[0x0b], Broken::WireType(3)),
            (&[0x00, 0x00], Broken::Tag),
            (&[0x0d, 0, 0], Broken::Cut),
        ] {
            assert_eq!(Reader::new(bytes).field(), Err(broken), "{bytes:?}");
        }
    }
}
