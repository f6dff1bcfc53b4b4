//! Whether a CRD's schema is structural.
