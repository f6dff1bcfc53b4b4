//! Validation that built-in kinds get beyond their schema.
