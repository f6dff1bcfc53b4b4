//! Label and field selectors: parsed from a query, matched against objects.
//!
//! Both are conjunctions of requirements, parsed once per request and matched once per object and event, so matching
//! allocates nothing for labels. What doesn't parse is a 400 that shows the piece that wasn't understood.

pub(crate) mod field;
pub(crate) mod label;

pub(crate) use field::FieldSelector;
pub(crate) use label::LabelSelector;
