//! Defaulting from the schema.
