//! Field selectors: `metadata.name=web,status.phase!=Running`.
//!
//! Unlike labels, only a few fields of each kind can be asked for: [`KINDS`] lists those of built-in kinds, a CRD lists its
//! own. A field that an object lacks reads as its zero value (the empty text, `false` or `0`), so it matches that.

use serde_json::Value;

use crate::object;
use crate::resource::Resource;
use crate::status::Status;

/// The two fields that every kind can be asked for (kinds without namespaces and with fields of their own: the first).
const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// A parsed field selector: all requirements hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    /// Where the value is: the first path that holds something wins.
    paths: Vec<String>,
    /// What an object without the field is taken to hold.
    absent: &'static str,
    value: String,
    negated: bool,
}

/// The fields of one kind beyond name and namespace.
struct KindFields {
    group: &'static str,
    kind: &'static str,
    fields: &'static [Field],
}

struct Field {
    label: &'static str,
    paths: &'static [&'static str],
    absent: &'static str,
}

/// A field whose label is its path and whose zero value is the empty text.
const fn text(path: &'static [&'static str; 1]) -> Field {
    Field { label: path[0], paths: path, absent: "" }
}

/// Events are stored once and read in two forms, so both forms' paths are tried.
const EVENT_REASON: Field = text(&["reason"]);
const EVENT_TYPE: Field = text(&["type"]);

macro_rules! event_reference {
    ($form:literal, $field:literal) => {
        Field {
            label: concat!($form, ".", $field),
            paths: &[concat!("involvedObject.", $field), concat!("regarding.", $field)],
            absent: "",
        }
    };
}

/// What a 1.37 server takes.
const KINDS: &[KindFields] = &[
    KindFields {
        group: "",
        kind: "Pod",
        fields: &[
            text(&["spec.nodeName"]),
            Field { label: "spec.host", paths: &["spec.nodeName"], absent: "" },
            text(&["spec.restartPolicy"]),
            text(&["spec.schedulerName"]),
            text(&["spec.serviceAccountName"]),
            Field { label: "spec.hostNetwork", paths: &["spec.hostNetwork"], absent: "false" },
            text(&["status.phase"]),
            text(&["status.podIP"]),
            // Taken, but no object has a value for it.
            Field { label: "status.podIPs", paths: &[], absent: "" },
            text(&["status.nominatedNodeName"]),
        ],
    },
    KindFields {
        group: "",
        kind: "Node",
        fields: &[Field { label: "spec.unschedulable", paths: &["spec.unschedulable"], absent: "false" }],
    },
    KindFields {
        group: "",
        kind: "ReplicationController",
        fields: &[Field { label: "status.replicas", paths: &["status.replicas"], absent: "0" }],
    },
    KindFields { group: "", kind: "Namespace", fields: &[text(&["status.phase"])] },
    KindFields { group: "", kind: "Secret", fields: &[text(&["type"])] },
    KindFields { group: "", kind: "Service", fields: &[text(&["spec.clusterIP"]), text(&["spec.type"])] },
    KindFields {
        group: "",
        kind: "Event",
        fields: &[
            event_reference!("involvedObject", "kind"),
            event_reference!("involvedObject", "namespace"),
            event_reference!("involvedObject", "name"),
            event_reference!("involvedObject", "uid"),
            event_reference!("involvedObject", "apiVersion"),
            event_reference!("involvedObject", "resourceVersion"),
            event_reference!("involvedObject", "fieldPath"),
            EVENT_REASON,
            Field { label: "reportingComponent", paths: &["reportingComponent", "reportingController"], absent: "" },
            Field {
                label: "source",
                paths: &["source.component", "deprecatedSource.component", "reportingComponent", "reportingController"],
                absent: "",
            },
            EVENT_TYPE,
        ],
    },
    KindFields {
        group: "events.k8s.io",
        kind: "Event",
        fields: &[
            event_reference!("regarding", "kind"),
            event_reference!("regarding", "namespace"),
            event_reference!("regarding", "name"),
            event_reference!("regarding", "uid"),
            event_reference!("regarding", "apiVersion"),
            event_reference!("regarding", "resourceVersion"),
            event_reference!("regarding", "fieldPath"),
            EVENT_REASON,
            Field { label: "reportingController", paths: &["reportingController", "reportingComponent"], absent: "" },
            EVENT_TYPE,
        ],
    },
    KindFields {
        group: "batch",
        kind: "Job",
        fields: &[Field { label: "status.successful", paths: &["status.succeeded"], absent: "0" }],
    },
    KindFields {
        group: "certificates.k8s.io",
        kind: "CertificateSigningRequest",
        fields: &[text(&["spec.signerName"])],
    },
    KindFields { group: "certificates.k8s.io", kind: "ClusterTrustBundle", fields: &[text(&["spec.signerName"])] },
    KindFields {
        group: "certificates.k8s.io",
        kind: "PodCertificateRequest",
        fields: &[text(&["spec.signerName"]), text(&["spec.podName"]), text(&["spec.nodeName"])],
    },
    KindFields {
        group: "resource.k8s.io",
        kind: "ResourceSlice",
        fields: &[text(&["spec.nodeName"]), text(&["spec.driver"]), text(&["spec.pool.name"])],
    },
];

// === impl FieldSelector ===

impl FieldSelector {
    /// Parses the text form for objects of `resource`; an empty text selects everything. 400 when it isn't understood or
    /// asks for a field that the kind doesn't offer.
    pub(crate) fn parse(text: &str, resource: &Resource) -> Result<Self, Status> {
        let mut requirements = Vec::new();
        for term in split_terms(text).into_iter().filter(|term| !term.is_empty()) {
            let Some((label, value, negated)) = split_term(&term) else {
                let why = format!("invalid selector: '{text}'; can't understand '{term}'");
                return Err(Status::bad_request(why));
            };
            requirements.push(requirement(label, unescape(value)?, negated, resource)?);
        }
        Ok(Self { requirements })
    }

    /// Whether the object's fields meet every requirement.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(object))
    }

    /// The one name that objects must have, if the selector says so: such a list or watch is of one object.
    pub(crate) fn metadata_name(&self) -> Option<&str> {
        let names_one = |r: &&Requirement| !r.negated && r.paths.first().is_some_and(|path| path == NAME);
        self.requirements.iter().find(names_one).map(|requirement| requirement.value.as_str())
    }

    /// Whether it has no requirement.
    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }
}

// === impl Requirement ===

impl Requirement {
    fn matches(&self, object: &Value) -> bool {
        let found = self.paths.iter().find_map(|path| match object::at_path(object, path)? {
            Value::String(text) => (!text.is_empty()).then(|| *text == self.value),
            Value::Bool(true) => Some(self.value == "true"),
            Value::Bool(false) => Some(self.value == "false"),
            Value::Number(number) => Some(number.to_string() == self.value),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        });
        found.unwrap_or(self.absent == self.value) != self.negated
    }
}

fn requirement(label: &str, value: String, negated: bool, resource: &Resource) -> Result<Requirement, Status> {
    let at = |paths: &[&str], absent| {
        let paths = paths.iter().map(|&path| path.to_owned()).collect();
        Ok(Requirement { paths, absent, value, negated })
    };
    let kind = KINDS.iter().find(|kind| kind.group == resource.group && kind.kind == resource.kind && !resource.custom);
    let unsupported = || Err(Status::bad_request(format!("field label not supported: {label}")));
    match kind {
        _ if label == NAME => at(&[NAME], ""),
        Some(kind) => match kind.fields.iter().find(|field| field.label == label) {
            Some(field) => at(field.paths, field.absent),
            None if label == NAMESPACE && resource.namespaced => at(&[NAMESPACE], ""),
            None if resource.kind == "Job" => {
                Err(Status::bad_request(format!("field label \"{label}\" not supported for Job")))
            }
            None => unsupported(),
        },
        None if label == NAMESPACE && (resource.namespaced || !resource.custom) => at(&[NAMESPACE], ""),
        None if resource.custom => {
            let offered = resource.selectable_fields.iter().find(|path| path.trim_start_matches('.') == label);
            if offered.is_some() { at(&[label], "") } else { unsupported() }
        }
        None => Err(Status::bad_request(format!(
            "\"{label}\" is not a known field selector: only \"{NAME}\", \"{NAMESPACE}\""
        ))),
    }
}

/// Splits at commas; a backslash takes the next character's meaning away and stays for [`unescape`].
fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            terms.push(String::new());
        } else if let Some(term) = terms.last_mut() {
            term.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    terms
}

/// Label, value and whether the value is refused; at the first `!=`, `==` or `=` that no backslash covers.
fn split_term(term: &str) -> Option<(&str, &str, bool)> {
    let mut escaped = false;
    for (index, c) in term.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        escaped = c == '\\';
        let (label, rest) = term.split_at_checked(index)?;
        for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((label, value, negated));
            }
        }
    }
    None
}

/// Takes the backslashes away; only `\`, `,` and `=` can be escaped, and the last two must be.
fn unescape(value: &str) -> Result<String, Status> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    let why = format!("invalid field selector: invalid escape sequence: {sequence}");
                    return Err(Status::bad_request(why));
                }
            },
            ',' | '=' => {
                let why = format!("invalid field selector: unescaped character in value: {c}");
                return Err(Status::bad_request(why));
            }
            _ => plain.push(c),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::resource::{ResourceSchema, Rules, StorageId};

    fn resource(group: &str, kind: &str, plural: &str) -> Resource {
        Resource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            verbs: Vec::new(),
            subresources: Vec::new(),
            storage: StorageId { group: Arc::from(group), plural: Arc::from(plural) },
            schema: ResourceSchema::default(),
            custom: false,
            rules: Rules::default(),
            printer_columns: Vec::new(),
            selectable_fields: Vec::new(),
            deprecation_warning: None,
        }
    }

    fn selects(selector: &str, resource: &Resource, object: &Value) -> bool {
        FieldSelector::parse(selector, resource).unwrap().matches(object)
    }

    fn refusal(selector: &str, resource: &Resource) -> String {
        let error = FieldSelector::parse(selector, resource).unwrap_err();
        assert_eq!(error.code, 400);
        error.message
    }

    #[test]
    fn every_kind_can_be_asked_for_name_and_namespace() {
        let maps = resource("", "ConfigMap", "configmaps");
        let object = json!({"metadata": {"name": "a", "namespace": "ns"}});
        assert!(selects("metadata.name=a", &maps, &object));
        assert!(selects("metadata.name==a,metadata.namespace=ns", &maps, &object));
        assert!(!selects("metadata.name!=a", &maps, &object));
        assert!(!selects("metadata.name=a,metadata.namespace=other", &maps, &object));
        assert!(selects("", &maps, &object));
    }

    #[test]
    fn the_only_possible_name_is_known_beforehand() {
        let pods = resource("", "Pod", "pods");
        let name = |text| FieldSelector::parse(text, &pods).unwrap().metadata_name().map(str::to_owned);
        assert_eq!(name("status.phase=Running,metadata.name=a"), Some("a".to_owned()));
        assert_eq!(name("metadata.name!=a"), None);
        assert_eq!(name(""), None);
        assert!(FieldSelector::parse(",", &pods).unwrap().is_everything());
    }

    #[test]
    fn a_missing_field_reads_as_its_zero_value() {
        let pods = resource("", "Pod", "pods");
        let object = json!({"spec": {}, "status": {"phase": ""}});
        for selector in ["spec.nodeName=", "spec.hostNetwork=false", "status.phase=", "status.phase!=Running"] {
            assert!(selects(selector, &pods, &object), "{selector}");
        }
        assert!(!selects("spec.nodeName!=", &pods, &object));
        assert!(selects("spec.hostNetwork=true", &pods, &json!({"spec": {"hostNetwork": true}})));
        let jobs = resource("batch", "Job", "jobs");
        assert!(selects("status.successful=0", &jobs, &json!({})));
        assert!(selects("status.successful=2", &jobs, &json!({"status": {"succeeded": 2}})));
    }

    #[test]
    fn both_forms_of_an_event_answer_both_selectors() {
        let core = json!({"involvedObject": {"name": "web"}, "source": {"component": "kubelet"}});
        let new = json!({"regarding": {"name": "web"}, "reportingController": "kubelet"});
        for object in [&core, &new] {
            assert!(selects("involvedObject.name=web,source=kubelet", &resource("", "Event", "events"), object));
            assert!(selects("regarding.name=web", &resource("events.k8s.io", "Event", "events"), object));
        }
        assert!(!selects("regarding.name=other", &resource("events.k8s.io", "Event", "events"), &core));
    }

    #[test]
    fn a_custom_kind_offers_the_fields_that_its_definition_names() {
        let mut shirts = resource("shop.example.org", "Shirt", "shirts");
        shirts.custom = true;
        shirts.selectable_fields = vec![".spec.color".to_owned(), "spec.size".to_owned()];
        let object = json!({"spec": {"color": "blue", "size": 4}});
        assert!(selects("spec.color=blue,spec.size=4", &shirts, &object));
        assert!(selects("spec.color=", &shirts, &json!({"spec": {}})));
        assert_eq!(refusal("spec.fit=slim", &shirts), "field label not supported: spec.fit");
    }

    #[test]
    fn other_fields_are_refused_by_name() {
        let maps = resource("", "ConfigMap", "configmaps");
        let only = "only \"metadata.name\", \"metadata.namespace\"";
        assert_eq!(refusal("spec.x=1", &maps), format!("\"spec.x\" is not a known field selector: {only}"));
        assert_eq!(refusal("spec.x=1", &resource("", "Pod", "pods")), "field label not supported: spec.x");
        let jobs = resource("batch", "Job", "jobs");
        assert_eq!(refusal("spec.x=1", &jobs), "field label \"spec.x\" not supported for Job");
        let mut nodes = resource("", "Node", "nodes");
        nodes.namespaced = false;
        assert_eq!(refusal("metadata.namespace=a", &nodes), "field label not supported: metadata.namespace");
    }

    #[test]
    fn commas_equal_signs_and_backslashes_are_escaped() {
        let secrets = resource("", "Secret", "secrets");
        assert!(selects(r"type=a\,b\=c\\d", &secrets, &json!({"type": r"a,b=c\d"})));
        assert!(selects(r"type=a\,b,metadata.name=x", &secrets, &json!({"type": "a,b", "metadata": {"name": "x"}})));
        assert!(refusal(r"type=a\b", &secrets).contains(r"invalid escape sequence: \b"));
        assert!(refusal("type=a=b", &secrets).contains("unescaped character in value: ="));
        assert!(refusal("type", &secrets).contains("can't understand 'type'"));
        assert!(refusal(r"type=a\", &secrets).contains("invalid escape sequence"));
    }
}
