//! Human text for the built-in kinds, which this crate doesn't carry: the program that builds the server may bring it.

use std::collections::BTreeMap;

use crate::discovery::content_hash;

/// Text by definition name, for example `io.k8s.api.core.v1.PodSpec`. Empty by default: `kubectl explain` then shows fields
/// and types without prose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descriptions {
    /// The text of each definition.
    pub definitions: BTreeMap<String, Description>,
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
    /// A hash of the whole text; the same text has the same hash.
    pub(crate) fn fingerprint(&self) -> String {
        let mut content = Vec::new();
        for (name, description) in &self.definitions {
            let fields = description.fields.iter().flat_map(|(field, text)| [field.as_str(), text.as_str()]);
            for part in [name.as_str(), description.text.as_str()].into_iter().chain(fields) {
                content.extend_from_slice(part.as_bytes());
                content.push(0);
            }
        }
        content_hash(&content)
    }
}
