//! The table of built-in kinds, as `cargo xtask protobuf write` writes it; `peers/protobuf-table` describes its lines.

use std::collections::HashMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("../data/protobuf.txt");

/// Kinds without namespaces. A test compares them with the embedded server's table of resources.
const CLUSTER_SCOPED: &[&str] = &[
    "v1 Namespace",
    "v1 Node",
    "v1 PersistentVolume",
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding",
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding",
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
    "apiextensions.k8s.io/v1 CustomResourceDefinition",
    "apiregistration.k8s.io/v1 APIService",
    "certificates.k8s.io/v1 CertificateSigningRequest",
    "certificates.k8s.io/v1 ClusterTrustBundle",
    "flowcontrol.apiserver.k8s.io/v1 FlowSchema",
    "flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration",
    "networking.k8s.io/v1 IPAddress",
    "networking.k8s.io/v1 IngressClass",
    "networking.k8s.io/v1 ServiceCIDR",
    "node.k8s.io/v1 RuntimeClass",
    "rbac.authorization.k8s.io/v1 ClusterRole",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
    "resource.k8s.io/v1 DeviceClass",
    "resource.k8s.io/v1 DeviceTaintRule",
    "resource.k8s.io/v1 ResourceSlice",
    "scheduling.k8s.io/v1 PriorityClass",
    "storage.k8s.io/v1 CSIDriver",
    "storage.k8s.io/v1 CSINode",
    "storage.k8s.io/v1 StorageClass",
    "storage.k8s.io/v1 VolumeAttachment",
    "storage.k8s.io/v1 VolumeAttributesClass",
    "storagemigration.k8s.io/v1 StorageVersionMigration",
];

/// Every built-in kind, and the messages that they're made of.
#[derive(Debug, Default)]
pub(crate) struct Table {
    kinds: HashMap<&'static str, usize>,
    messages: Vec<Vec<Field>>,
}

/// One field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// The JSON name; empty when embedded.
    pub(crate) name: &'static str,
    pub(crate) place: Place,
}

/// What's to be found somewhere in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Text,
    /// A text that means something: a time, a quantity, bytes in base64.
    TextOf(&'static str),
    Boolean,
    Integer,
    Number,
    IntegerOrText,
    /// The message of that number.
    Object(usize),
    /// A message whose fields are shown in its place.
    Embedded(usize),
    List(Box<Place>),
    Map(Box<Place>),
    /// Anything.
    Any,
}

/// The table, read at the first call.
pub(crate) fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(TEXT));
    &TABLE
}

impl Table {
    /// The number of a kind's message.
    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Option<usize> {
        self.kinds.get(format!("{api_version} {kind}").as_str()).copied()
    }

    /// The versions and names of all kinds.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.kinds.keys().filter_map(|kind| kind.split_once(' '))
    }

    /// The fields of a message, with those of embedded messages in their place.
    pub(crate) fn fields(&self, message: usize) -> Vec<&Field> {
        let mut fields = Vec::new();
        for field in self.messages.get(message).into_iter().flatten() {
            match field.place {
                Place::Embedded(inner) => fields.extend(self.fields(inner)),
                _ => fields.push(field),
            }
        }
        fields
    }

    fn parse(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            if let Some((kind, number)) = line.strip_prefix("K ").and_then(|line| line.rsplit_once(' ')) {
                if let Ok(number) = number.parse() {
                    table.kinds.insert(kind, number);
                }
            } else if let Some(fields) = line.strip_prefix("M ") {
                table.messages.push(fields.split(';').filter_map(Field::parse).collect());
            }
        }
        table
    }
}

/// Whether a built-in kind has no namespaces.
pub(crate) fn is_cluster_scoped(api_version: &str, kind: &str) -> bool {
    CLUSTER_SCOPED.iter().any(|known| known.split_once(' ') == Some((api_version, kind)))
}

impl Field {
    fn parse(text: &'static str) -> Option<Self> {
        let mut words = text.split(' ');
        let (_tag, name, flags, kind) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let place = Place::parse(kind)?;
        let place = match (flags.trim_start_matches(['o', 'z']), place) {
            ("[", place) => Place::List(Box::new(place)),
            ("{", place) => Place::Map(Box::new(place)),
            ("e" | "eo", Place::Object(message)) => Place::Embedded(message),
            (_, place) => place,
        };
        Some(Self { name, place })
    }
}

impl Place {
    fn parse(kind: &str) -> Option<Self> {
        let (letter, number) = kind.split_at_checked(1)?;
        Some(match letter {
            "s" => Self::Text,
            "b" => Self::Boolean,
            "i" | "n" => Self::Integer,
            "d" => Self::Number,
            "y" => Self::TextOf("bytes, as a text in base64"),
            "l" => Self::List(Box::new(Self::Text)),
            "t" | "u" => Self::TextOf("a time, as a text"),
            "D" => Self::TextOf("a duration, as a text"),
            "q" => Self::TextOf("a quantity, as a text"),
            "x" => Self::IntegerOrText,
            "m" => Self::Object(number.parse().ok()?),
            "r" | "A" | "B" | "S" => Self::Any,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let table = table();
        assert_eq!(table.kinds.len() + table.messages.len(), TEXT.lines().count());
        for (line, fields) in TEXT.lines().filter(|line| line.starts_with('M')).zip(&table.messages) {
            let written = line.trim_start_matches("M ").trim_start_matches('M').split(';');
            assert_eq!(fields.len(), written.filter(|field| !field.is_empty()).count(), "{line}");
        }
        assert!(table.kinds.values().all(|number| *number < table.messages.len()));
    }

    #[test]
    fn the_table_of_resources_agrees_on_which_kinds_have_no_namespaces() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../informant-apiserver/data/resources.tsv");
        let resources = std::fs::read_to_string(path).expect("the server's table of resources");
        let mut found: Vec<String> = Vec::new();
        for line in resources.lines().filter(|line| !line.starts_with(['#', '/'])) {
            let columns: Vec<&str> = line.split('\t').collect();
            let [version, _, kind, _, _, _, scope, verbs] = *columns.as_slice() else { panic!("{line}") };
            if scope == "cluster" && verbs.contains("watch") {
                assert!(table().kind(version, kind).is_some(), "{version} {kind}");
                found.push(format!("{version} {kind}"));
            }
        }
        found.sort_unstable();
        let mut known = CLUSTER_SCOPED.to_vec();
        known.sort_unstable();
        assert_eq!(found, known);
    }
}
