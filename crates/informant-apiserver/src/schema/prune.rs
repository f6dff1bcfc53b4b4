//! Pruning: fields that the schema doesn't name are dropped, or reported.
