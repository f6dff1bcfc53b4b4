//! What an informer holds in memory, in bytes.

use serde::Serialize;

/// What an informer holds in memory, part by part, in bytes as its allocations ask for them. What an allocator takes
/// beside that (rounding, its own tables: 5 to 15 % with usual ones) isn't in it.
///
/// Objects kept as structs are estimated from their documents; everything else is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Memory {
    /// The objects in the form in which they're kept, with their keys, uids and resource versions. Those of namespaces
    /// that aren't selected now are held too, and count.
    pub objects: u64,
    /// The tables that find objects by key and by namespace.
    pub tables: u64,
    /// The indexes.
    pub indexes: u64,
    /// What the form needs for all objects together: dictionaries, buffers, shared texts, the few objects that packed
    /// forms keep decoded.
    pub shared: u64,
    /// The handlers' backlogs, with states of objects that nobody but they hold.
    pub backlogs: u64,
}

impl Memory {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { objects, tables, indexes, shared, backlogs } = self;
        objects + tables + indexes + shared + backlogs
    }
}
