//! Patches: JSON, merge and strategic merge. Pure functions over values.

pub(crate) mod json;
pub(crate) mod merge;
pub(crate) mod strategic;
