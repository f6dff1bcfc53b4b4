//! The life of a CRD: accepted, established, terminating.
