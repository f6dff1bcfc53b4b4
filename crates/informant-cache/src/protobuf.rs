//! Protobuf of built-in kinds: read by the table of their messages ([`table`]), as Go's own JSON would show it.
//!
//! Nothing is made in between: [`deserialize`] presents the bytes to serde as they stand, [`check`] walks them without
//! making anything, [`metadata`] looks at no more than an object's metadata, [`json`] writes JSON.
//!
//! Bytes come from outside: every length is checked, nesting is bounded, and an error names the field, never its value.
//! Of what the wire allows and no server does, this is taken: fields in any order and apart, the last of a repeated plain
//! field counts, unknown tags are skipped. A message that's there twice where it can be once is an error.

mod check;
mod deserialize;
mod envelope;
mod error;
mod json;
mod metadata;
mod scalar;
pub(crate) mod table;
pub(crate) mod wire;

pub(crate) use self::check::check;
pub(crate) use self::deserialize::{Inside, Object, Value};
pub(crate) use self::envelope::{Envelope, MAGIC, MEDIA_TYPE, WatchEvent, content, types};
pub(crate) use self::error::Error;
pub(crate) use self::json::to_json;
pub(crate) use self::metadata::{Metadata, without_managed_fields};
pub(crate) use self::table::{Message, table};

/// How deep messages, lists and maps may nest: as deep as `serde_json` lets JSON.
const DEPTH_MAX: u8 = 127;

#[cfg(test)]
mod cost;
#[cfg(test)]
pub(crate) mod tests;
