//! Owner-reference garbage collection.
