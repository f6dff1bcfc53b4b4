//! How much memory the fields of a projection take.

use std::collections::BTreeMap;
use std::mem::size_of;
use std::sync::Arc;

use super::strings::LONGEST;
use crate::heap_size::ARC_COUNTERS;

/// What a value holds beyond its own size.
pub trait HeapBytes {
    /// In bytes.
    fn heap_bytes(&self) -> usize;
}

impl HeapBytes for String {
    fn heap_bytes(&self) -> usize {
        self.capacity()
    }
}

impl HeapBytes for Box<str> {
    fn heap_bytes(&self) -> usize {
        self.len()
    }
}

impl HeapBytes for Arc<str> {
    /// A shared one is counted with the table that it's in.
    fn heap_bytes(&self) -> usize {
        if self.len() > LONGEST { self.len() + ARC_COUNTERS } else { 0 }
    }
}

impl<T: HeapBytes> HeapBytes for Option<T> {
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, HeapBytes::heap_bytes)
    }
}

impl<T: HeapBytes> HeapBytes for Vec<T> {
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<T>() + self.iter().map(HeapBytes::heap_bytes).sum::<usize>()
    }
}

impl<K: HeapBytes, V: HeapBytes> HeapBytes for BTreeMap<K, V> {
    /// A map's nodes have room for eleven entries each, and are filled in order to about half when there are several.
    fn heap_bytes(&self) -> usize {
        const ROOM: usize = 11;
        let nodes = if self.len() <= ROOM { self.len().min(1) } else { self.len().div_ceil(ROOM / 2 + 1) };
        let entries = self.iter().map(|(key, value)| key.heap_bytes() + value.heap_bytes()).sum::<usize>();
        nodes * (ROOM * (size_of::<K>() + size_of::<V>()) + 2 * size_of::<usize>()) + entries
    }
}

macro_rules! nothing {
    ($($type:ty),*) => {
        $(impl HeapBytes for $type {
            fn heap_bytes(&self) -> usize {
                0
            }
        })*
    };
}

nothing!(bool, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);
