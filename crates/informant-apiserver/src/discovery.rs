//! Discovery documents, legacy and aggregated.
