//! managedFields: who owns which field.
