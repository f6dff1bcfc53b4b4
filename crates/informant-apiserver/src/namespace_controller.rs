//! Deletion of a namespace's content.
