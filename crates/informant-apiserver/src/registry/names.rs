//! Which names objects may have, and the names and uids that the server makes up.

use serde_json::json;

use crate::name_rules;
use crate::resource::Resource;
use crate::status::Cause;

/// The characters of generated suffixes: no vowels, no look-alikes.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters of a generated suffix.
const SUFFIX_LENGTH: usize = 5;
/// Longest base of a generated name that still leaves room for the suffix.
const MAX_GENERATED_BASE: usize = 63 - SUFFIX_LENGTH;

/// What is wrong with an object's name, if anything.
pub(crate) fn check(resource: &Resource, name: &str) -> Option<Cause> {
    let why = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") => name_rules::dns1123_label(name),
        ("", "services") => name_rules::dns1035_label(name),
        ("rbac.authorization.k8s.io", _) => name_rules::path_segment(name),
        _ => name_rules::dns1123_subdomain(name),
    };
    why.map(|why| Cause::invalid("metadata.name", &json!(name), why))
}

/// A name from `base` and a random suffix. The base is cut so that the whole fits in a label.
pub(crate) fn generate(base: &str, rng: &mut fastrand::Rng) -> String {
    let mut name: String = base.chars().take(MAX_GENERATED_BASE).collect();
    for _ in 0..SUFFIX_LENGTH {
        name.extend(rng.choice(SUFFIX_ALPHABET).map(|byte| char::from(*byte)));
    }
    name
}

/// A random (version 4) UUID.
pub(crate) fn uid(rng: &mut fastrand::Rng) -> String {
    let bits = rng.u128(..);
    let bits = bits & !(0xf << 76) | (0x4 << 76);
    let bits = bits & !(0b11 << 62) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or("");
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::testing::resource;

    #[test]
    fn each_kind_has_its_rule() {
        let check =
            |group: &str, plural: &str, name: &str| check(&resource(group, "v1", "Kind", plural), name).is_none();
        assert!(check("", "configmaps", "a.b-c") && !check("", "configmaps", "A"));
        assert!(check("", "namespaces", "1a") && !check("", "namespaces", "a.b"));
        assert!(check("", "services", "a1") && !check("", "services", "1a"));
        assert!(
            check("rbac.authorization.k8s.io", "roles", "system:a B")
                && !check("rbac.authorization.k8s.io", "roles", "a/b")
        );
    }

    #[test]
    fn generated_names_fit_in_a_label_and_differ_by_seed_only() {
        let name = generate("web-", &mut fastrand::Rng::with_seed(7));
        assert_eq!(name, generate("web-", &mut fastrand::Rng::with_seed(7)));
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert_eq!(generate(&"x".repeat(100), &mut fastrand::Rng::with_seed(7)).len(), 63);
    }

    #[test]
    fn uids_are_version_four() {
        let uid = uid(&mut fastrand::Rng::with_seed(1));
        assert_eq!(uid.len(), 36);
        assert_eq!(uid.get(14..15), Some("4"), "{uid}");
        assert!(matches!(uid.get(19..20), Some("8" | "9" | "a" | "b")), "{uid}");
    }
}
