//! The schemas of the built-in kinds: a checked-in blob of one compressed table a group version.
//!
//! Reading the index is cheap; a group's table is decompressed and parsed when a schema of it is first looked at (a few
//! milliseconds). `cargo xtask schemas` writes the blob and describes its form.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::discovery::content_hash;
use crate::resource::LazyDefinitions;
use crate::schema::Definitions;

const BLOB: &[u8] = include_bytes!("../../data/schemas.bin");

/// Each group version's definitions, none of them read yet.
pub(super) fn groups() -> HashMap<String, Arc<LazyDefinitions>> {
    let lazy = |(name, [offset, length]): (String, [usize; 2])| {
        let group = LazyDefinitions::new(move || read(offset, length).unwrap_or_default());
        (name, Arc::new(group))
    };
    // The blob is part of the program and read whole by a test; were it broken, built-in kinds would take anything.
    index().unwrap_or_default().into_iter().map(lazy).collect()
}

/// A hash of the blob.
pub(super) fn fingerprint() -> String {
    content_hash(BLOB)
}

/// Splits the blob into its index and the frames behind it.
fn parts() -> Option<(&'static [u8], &'static [u8])> {
    let (length, rest) = BLOB.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

fn index() -> Option<BTreeMap<String, [usize; 2]>> {
    serde_json::from_slice(parts()?.0).ok()
}

fn read(offset: usize, length: usize) -> Option<Definitions> {
    let frame = parts()?.1.get(offset..offset.checked_add(length)?)?;
    serde_json::from_slice(&zstd::decode_all(frame).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_version_is_read() {
        let index = index().unwrap();
        assert!(index.len() > 20, "{index:?}");
        for (name, [offset, length]) in index {
            let definitions = read(offset, length).unwrap_or_else(|| panic!("{name} can't be read"));
            assert!(definitions.by_name.len() > 5, "{name}");
            for (definition, schema) in &definitions.by_name {
                for (field, schema) in &schema.properties {
                    if let Some(target) = &schema.reference {
                        assert!(definitions.by_name.contains_key(target), "{name}: {definition}.{field}: {target}");
                    }
                }
            }
        }
    }
}
