//! Protobuf request bodies of built-in kinds, decoded by a checked-in table.
