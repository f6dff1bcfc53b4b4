//! The built-in kinds, from one checked-in table.

pub(crate) mod columns;
pub(crate) mod defaults;
pub(crate) mod validate;
