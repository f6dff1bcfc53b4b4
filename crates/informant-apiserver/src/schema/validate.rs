//! Validation by the schema.
