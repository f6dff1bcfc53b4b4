//! Label and field selectors: parsed from a query, matched against objects.
