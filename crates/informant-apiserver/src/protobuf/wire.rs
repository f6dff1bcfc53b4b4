//! The wire format: tagged fields, one after the other. Every length is checked against the bytes that are there.

use super::Fault;

/// A field's content as it stands on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wire<'b> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'b [u8]),
}

/// Reads the fields of one message.
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

// === impl Wire ===

impl<'b> Wire<'b> {
    pub(super) fn bytes(self) -> Result<&'b [u8], Fault> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            _ => Err(Fault::new("a number stands where text or a message is expected")),
        }
    }

    pub(super) fn varint(self) -> Result<u64, Fault> {
        match self {
            Wire::Varint(number) => Ok(number),
            _ => Err(Fault::new("text or another form of number stands where an integer is expected")),
        }
    }

    pub(super) fn double(self) -> Result<f64, Fault> {
        match self {
            Wire::Fixed64(bits) => Ok(f64::from_bits(bits)),
            Wire::Fixed32(bits) => Ok(f64::from(f32::from_bits(bits))),
            _ => Err(Fault::new("something else stands where a floating-point number is expected")),
        }
    }
}

// === impl Reader ===

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's number and content; `None` at the end of the message.
    pub(super) fn field(&mut self) -> Result<Option<(u32, Wire<'b>)>, Fault> {
        if self.is_at_end() {
            return Ok(None);
        }
        let key = self.varint()?;
        let tag = u32::try_from(key >> 3).map_err(|_| Fault::new("a field number is out of range"))?;
        let wire = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(Fault::new(format!("field {tag} has the unknown wire type {other}"))),
        };
        Ok(Some((tag, wire)))
    }

    /// A number of one to ten bytes, seven bits in each.
    pub(super) fn varint(&mut self) -> Result<u64, Fault> {
        let mut number = 0u64;
        for shift in (0..70).step_by(7) {
            let [byte] = self.array()?;
            // The tenth byte has room for one bit; Go drops what is beyond it too.
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Fault::new("a number is longer than ten bytes"))
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(|| Fault::new("the body ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| Fault::new("the body ends too early"))?;
        self.rest = rest;
        Ok(*taken)
    }
}
