//! Table columns and cells of built-in kinds.
