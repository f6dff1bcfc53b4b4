//! Lists: snapshots, resource-version rules, pages and continue tokens.
