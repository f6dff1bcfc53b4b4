//! The store: objects under one store-wide resource version, with a bounded history.
