//! Objects as a cluster holds them, by seed: in Go's order of fields, with the `managedFields` of the writers that a real
//! object has, in the order of their keys.
//!
//! A [`Corpus`] of any size takes little memory: objects that were made of one template (the Pods of one ReplicaSet) differ
//! only in what such objects do differ in, and are rendered when they're sent. See [`template`].

mod kinds;
mod managed_fields;
mod pod;
pub mod template;

pub use self::kinds::{KINDS, Kind};
use self::template::{Object, Template};

/// Kubernetes objects of one kind.
pub struct Corpus {
    /// What they are.
    pub kind: &'static Kind,
    templates: Vec<Template>,
    per_template: usize,
    count: usize,
}

impl Corpus {
    /// `count` objects. With `worst` each is alone of its kind: made of a template of its own, with 4 KB of annotations in
    /// which nothing repeats.
    #[must_use]
    pub fn new(kind: &'static Kind, count: usize, seed: u64, worst: bool) -> Self {
        let per_template = if worst { 1 } else { kind.per_template.min(count.max(1)) };
        let mut templates: Vec<Template> = (0..count.div_ceil(per_template))
            .map(|number| {
                let number = number as u64;
                Template::new(kind, seed.wrapping_add(number), &(kind.text)(seed, number, worst))
            })
            .collect();
        templates.sort_by(|one, other| one.key_prefix.cmp(&other.key_prefix));
        Self { kind, templates, per_template, count }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there's none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The object in the place `index` of the order of keys, in the state that it has after its change number `change`; 0
    /// is the state that it begins with.
    #[must_use]
    pub fn object(&self, index: usize, change: u64) -> (&Template, Object) {
        let template = &self.templates[index / self.per_template];
        let object = Object {
            number: index as u64,
            of_template: (index % self.per_template) as u64,
            per_template: self.per_template as u64,
            change,
        };
        (template, object)
    }
}

#[cfg(test)]
mod tests {
    use super::template::Form;
    use super::*;
    use serde_json::Value;

    fn text(corpus: &Corpus, index: usize, change: u64, form: Form) -> Vec<u8> {
        let (template, object) = corpus.object(index, change);
        let mut out = Vec::new();
        template.render(form, object, &mut out);
        assert_eq!(out.len(), template.len(form));
        out
    }

    #[test]
    fn objects_of_every_kind_are_valid_distinct_in_order_and_repeatable() {
        for kind in KINDS {
            for worst in [false, true] {
                let corpus = Corpus::new(kind, 250, 7, worst);
                let again = Corpus::new(kind, 250, 7, worst);
                let mut last = (String::new(), String::new());
                let mut bytes = 0;
                for index in 0..250 {
                    let json = text(&corpus, index, 0, Form::Json);
                    assert_eq!(json, text(&again, index, 0, Form::Json));
                    bytes += json.len();
                    let object: Value = serde_json::from_slice(&json).unwrap();
                    let field = |name: &str| object["metadata"][name].as_str().unwrap_or("").to_owned();
                    let key = (field("namespace"), field("name"));
                    assert!(key > last, "{key:?} after {last:?}");
                    assert_eq!((field("uid").len(), field("resourceVersion").len()), (36, 10));
                    assert!(!String::from_utf8(json).unwrap().contains('~'), "{object}");
                    last = key;
                }
                println!("{} worst {worst}: {} bytes", kind.name, bytes / 250);
            }
        }
    }

    #[test]
    fn a_change_shows_in_the_version_and_in_the_object() {
        let corpus = Corpus::new(&KINDS[0], 100, 7, false);
        let (old, new): (Value, Value) = (
            serde_json::from_slice(&text(&corpus, 5, 0, Form::Json)).unwrap(),
            serde_json::from_slice(&text(&corpus, 5, 9, Form::Json)).unwrap(),
        );
        assert_eq!(new["metadata"]["resourceVersion"], "2000000009");
        assert_eq!(old["metadata"]["uid"], new["metadata"]["uid"]);
        assert_ne!(old["status"], new["status"]);
    }

    /// The protobuf that a template gives is what the object's JSON gives.
    #[test]
    fn both_forms_are_the_same_object() {
        for kind in KINDS.iter().filter(|kind| kind.protobuf) {
            let corpus = Corpus::new(kind, 250, 7, false);
            for index in [0, 99, 120, 249] {
                let mut object: Value = serde_json::from_slice(&text(&corpus, index, 3, Form::Json)).unwrap();
                object["apiVersion"] = kind.api_version.into();
                object["kind"] = kind.kind.into();
                let whole = informant_apiserver::to_protobuf(&object).unwrap();
                let ours = text(&corpus, index, 3, Form::Protobuf);
                assert!(whole.windows(ours.len()).any(|part| part == ours), "{} {index}", kind.name);
            }
        }
    }

    #[test]
    fn pods_are_what_kubernetes_types_read_and_of_a_usual_size() {
        let corpus = Corpus::new(&KINDS[0], 20_000, 7, false);
        let sizes: Vec<usize> =
            (0..corpus.len()).step_by(100).map(|index| text(&corpus, index, 0, Form::Json).len()).collect();
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        println!("mean {mean}, min {:?}, max {:?}", sizes.iter().min(), sizes.iter().max());
        assert!((9_000..11_500).contains(&mean) && sizes.iter().all(|size| (7_000..20_000).contains(size)));
        let pod: k8s_openapi::api::core::v1::Pod = serde_json::from_slice(&text(&corpus, 0, 0, Form::Json)).unwrap();
        assert_eq!(pod.metadata.managed_fields.unwrap().len(), 2);
        let managed = sizes.len();
        assert!(managed > 0);
    }
}
