//! The registry: what each verb does to the store.
