//! The labels of an object in 64 bits: enough to tell at a glance, for nearly every change, that a reader of one label needn't
//! look at it.

use serde_json::Value;

use crate::object;

/// One bit for each label; different labels may share one. So a missing bit proves that the label is missing, and a set one
/// proves nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LabelBits(u64);

// === impl LabelBits ===

impl LabelBits {
    /// The bit of one label.
    pub(super) fn of(key: &str, value: &str) -> Self {
        // FNV-1a, with a byte between the two that can't be in either.
        let bytes = key.bytes().chain([0]).chain(value.bytes());
        let hash =
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        // The last bytes stir the low bits only; a multiplication carries them to the top.
        Self(1 << (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58))
    }

    /// These bits and those of the object's labels.
    pub(super) fn with_labels_of(self, object: &Value) -> Self {
        let labels = object::at_path(object, "metadata.labels").and_then(Value::as_object);
        let bits = labels.into_iter().flatten().filter_map(|(key, value)| Some(Self::of(key, value.as_str()?)));
        Self(bits.fold(self.0, |all, bit| all | bit.0))
    }

    /// Whether all of `wanted` may be there.
    pub(super) fn may_have(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_label_that_is_there_is_never_denied_and_most_others_are() {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        let bits = LabelBits::default().with_labels_of(&object);
        assert!(bits.may_have(LabelBits::of("app", "web")) && bits.may_have(LabelBits::of("tier", "front")));
        assert!(bits.may_have(LabelBits::default()));
        let wrong = (0..1000).filter(|index| bits.may_have(LabelBits::of("shard", &index.to_string()))).count();
        assert!(wrong < 100, "{wrong} of 1000");
    }
}
