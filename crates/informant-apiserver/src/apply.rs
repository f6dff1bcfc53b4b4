//! Server-side apply.
