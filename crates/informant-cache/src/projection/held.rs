//! The representation of an informer that keeps a projection.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{Projection, Strings};
use crate::document::Document;
use crate::error::DecodeError;
use crate::heap_size::ARC_COUNTERS;
use crate::representation::{Held, Representation};

/// Keeps of each object what a [`Projection`] asks for, its texts shared between the objects of the informer.
pub struct Projected<V> {
    strings: Strings,
    object: PhantomData<fn() -> V>,
}

impl<V: Projection> Projected<V> {
    /// The representation that keeps a `V`.
    #[must_use]
    pub fn new() -> Self {
        Self { strings: Strings::new(), object: PhantomData }
    }
}

impl<V: Projection> Default for Projected<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Projection> Representation<V> for Projected<V> {
    fn hold(&self, document: &Document<'_>) -> Result<Held<V>, DecodeError> {
        document.project_with(&self.strings).map(|object| Held::Full(Arc::new(object)))
    }

    /// What the object takes, without its shared texts. Of values whose type isn't known, their length in the document.
    fn held_bytes(&self, held: &Held<V>, document: &Document<'_>) -> usize {
        let own = match held {
            Held::Full(object) => object.heap_bytes(),
            Held::Packed(_) => 0,
        };
        size_of::<V>() + ARC_COUNTERS + own + V::plan().opaque_bytes(document)
    }

    fn shared_bytes(&self) -> usize {
        self.strings.bytes()
    }

    fn takes_protobuf(&self) -> bool {
        true
    }
}

impl<V> fmt::Debug for Projected<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Projected").field("strings", &self.strings).finish()
    }
}
