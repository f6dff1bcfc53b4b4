//! Human text for the built-in kinds, which this crate doesn't carry: the program that builds the server may bring it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where the text of a group version's definitions comes from.
type Source = dyn Fn(&str) -> BTreeMap<String, Description> + Send + Sync;

/// Text for what `kubectl explain` says of built-in kinds, by group version. Without any it shows fields and types only.
///
/// The text of a group version is asked for when its document is made, so a server that nobody explains never makes it.
#[derive(Clone, Default)]
pub struct Descriptions {
    source: Option<Arc<Source>>,
}

/// What is said of one definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// About the definition itself.
    pub text: String,
    /// About its fields, by JSON name.
    pub fields: BTreeMap<String, String>,
}

// === impl Descriptions ===

impl Descriptions {
    /// Texts by definition name (`io.k8s.api.core.v1.PodSpec`) for a group version (`apps/v1`, and `v1` for the core group).
    ///
    /// The function has to give the same for the same group version each time: clients cache what they have read.
    pub fn by_group_version(source: impl Fn(&str) -> BTreeMap<String, Description> + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)) }
    }

    pub(super) fn of(&self, group_version: &str) -> BTreeMap<String, Description> {
        self.source.as_ref().map(|source| source(group_version)).unwrap_or_default()
    }

    /// What tells documents with text from documents without, for their hash.
    pub(super) fn marker(&self) -> &'static str {
        if self.source.is_some() { "described" } else { "plain" }
    }
}

impl fmt::Debug for Descriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Descriptions").field(&self.marker()).finish()
    }
}
