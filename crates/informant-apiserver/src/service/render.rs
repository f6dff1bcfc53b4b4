//! From objects, lists and watch events to bytes, in the form that the client takes.

use bytes::{BufMut, Bytes, BytesMut};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::list::Page;
use crate::protobuf::encode;
use crate::registry::Served;
use crate::resource::Resource;
use crate::service::answer::{Answer, ResponseBody};
use crate::service::negotiate::{Form, Format, PROTOBUF, Representation};
use crate::status::Status;
use crate::store::Object;
use crate::table::{IncludeObject, Table, partial_metadata};
use crate::watch::WatchEvent;

/// How the objects of one request are written.
#[derive(Debug, Clone)]
pub(crate) struct Renderer {
    /// What the client takes.
    pub(crate) representation: Representation,
    /// How much of each object goes with its row in a table.
    pub(crate) include: IncludeObject,
    /// What the ages in tables are counted by.
    pub(crate) clock: Clock,
}

impl Renderer {
    /// An object of `resource`, in its version.
    pub(crate) fn object(&self, code: u16, resource: &Resource, object: &Value) -> Answer {
        match self.representation.form {
            Form::Object => self.value(code, object),
            Form::Table => self.value(code, &self.table(resource).single(object, true)),
            Form::PartialMetadata => self.value(code, &partial_metadata(object)),
        }
    }

    /// A stored object; its JSON text is made once for all readers.
    pub(crate) fn stored(&self, served: &Served, object: &Object) -> Answer {
        if self.representation == Representation::default() && !served.converts() {
            return Answer::new(200, "application/json", ResponseBody::whole(object.json()));
        }
        self.object(200, &served.resource, &served.view(object))
    }

    /// A value that has one form only (a `Status`, a `Scale`, a review).
    pub(crate) fn value(&self, code: u16, value: &Value) -> Answer {
        match self.representation.format {
            Format::Json => Answer::json(code, value),
            Format::Protobuf => match encode::object(value) {
                Some(bytes) => Answer::new(code, PROTOBUF, ResponseBody::whole(bytes)),
                // A Table or a review of a kind without this form.
                None => Answer::json(code, value),
            },
            Format::Yaml => match serde_saphyr::to_string(value) {
                Ok(text) => Answer::new(code, "application/yaml", ResponseBody::whole(text)),
                Err(error) => {
                    Answer::failure(&Status::internal(format!("the answer can't be written as YAML: {error}")))
                }
            },
        }
    }

    /// A page of a list.
    pub(crate) fn list(&self, served: &Served, page: &Page) -> Answer {
        let resource = &served.resource;
        let meta = list_meta(page);
        match (self.representation.form, self.representation.format) {
            (Form::Object, Format::Json) => {
                let list = List { served, meta: &meta, items: &page.items };
                match serde_json::to_vec(&list) {
                    Ok(bytes) => Answer::new(200, "application/json", ResponseBody::whole(bytes)),
                    Err(error) => Answer::failure(&Status::internal(format!("the list can't be written: {error}"))),
                }
            }
            (Form::Object, Format::Yaml | Format::Protobuf) => {
                match serde_json::to_value(List { served, meta: &meta, items: &page.items }) {
                    Ok(list) => self.value(200, &list),
                    Err(error) => Answer::failure(&Status::internal(format!("the list can't be written: {error}"))),
                }
            }
            (Form::PartialMetadata, _) => {
                let items: Vec<Value> = page.items.iter().map(|item| partial_metadata(&served.view(item))).collect();
                let list = json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "items": items,
                });
                self.value(200, &list)
            }
            (Form::Table, _) => {
                let items: Vec<_> = page.items.iter().map(|item| served.view(item)).collect();
                let items = items.iter().map(AsRef::as_ref);
                self.value(200, &self.table(resource).list(items, Value::Object(meta)))
            }
        }
    }

    /// The media type of a watch.
    pub(crate) fn stream_type(&self) -> String {
        match self.representation.format {
            Format::Protobuf => format!("{PROTOBUF};stream=watch"),
            // YAML documents have no frames of their own.
            Format::Json | Format::Yaml => "application/json".to_owned(),
        }
    }

    /// Writes one event of a watch as a frame. `first` tells whether it's the first one, whose table names the columns.
    pub(crate) fn event(&self, out: &mut BytesMut, served: &Served, event: &WatchEvent, first: bool) {
        let kind = match event {
            WatchEvent::Added(_) => "ADDED",
            WatchEvent::Modified(_) => "MODIFIED",
            WatchEvent::Deleted(_) => "DELETED",
            WatchEvent::Bookmark { .. } => "BOOKMARK",
            WatchEvent::Error(_) => "ERROR",
        };
        if self.representation.format == Format::Protobuf {
            // What has no such form can't get here: the kind has, and a Status has.
            let object = encode::object(&self.event_value(served, event)).unwrap_or_default();
            return encode::frame(kind, &object, out);
        }
        let object = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                self.event_object(served, object, first)
            }
            WatchEvent::Bookmark { .. } | WatchEvent::Error(_) => self.event_value(served, event).to_string().into(),
        };
        out.reserve(object.len() + 40);
        out.put_slice(b"{\"type\":\"");
        out.put_slice(kind.as_bytes());
        out.put_slice(b"\",\"object\":");
        out.put(object);
        out.put_slice(b"}\n");
    }

    fn event_value(&self, served: &Served, event: &WatchEvent) -> Value {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                let shown = served.view(object);
                match self.representation.form {
                    Form::PartialMetadata => partial_metadata(&shown),
                    Form::Object | Form::Table => shown.into_owned(),
                }
            }
            WatchEvent::Bookmark { resource_version, initial_events_end } => {
                self.bookmark(&served.resource, *resource_version, *initial_events_end)
            }
            WatchEvent::Error(status) => status.to_value(),
        }
    }

    fn event_object(&self, served: &Served, object: &Object, first: bool) -> Bytes {
        match self.representation.form {
            Form::Object if !served.converts() => object.json(),
            Form::Object => served.view(object).to_string().into(),
            Form::Table => self.table(&served.resource).single(&served.view(object), first).to_string().into(),
            Form::PartialMetadata => partial_metadata(&served.view(object)).to_string().into(),
        }
    }

    fn table<'r>(&self, resource: &'r Resource) -> Table<'r> {
        Table::new(resource, &self.clock.now_seconds(), self.include)
    }

    fn bookmark(&self, resource: &Resource, resource_version: u64, initial_events_end: bool) -> Value {
        let (kind, api_version) = match self.representation.form {
            Form::PartialMetadata => ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned()),
            Form::Object | Form::Table => (resource.kind.as_str(), resource.api_version()),
        };
        let mut meta = json!({"resourceVersion": resource_version.to_string()});
        if initial_events_end {
            meta["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        json!({"kind": kind, "apiVersion": api_version, "metadata": meta})
    }
}

/// A list as it's written: items of built-in kinds leave out what the list says already.
struct List<'a> {
    served: &'a Served,
    meta: &'a Map<String, Value>,
    items: &'a [Object],
}

struct Items<'a>(&'a List<'a>);

/// An object without the two fields that the list says.
struct Untyped<'a>(&'a Value);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let resource = &self.served.resource;
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("kind", &resource.list_kind)?;
        map.serialize_entry("apiVersion", &resource.api_version())?;
        map.serialize_entry("metadata", self.meta)?;
        map.serialize_entry("items", &Items(self))?;
        map.end()
    }
}

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(list) = self;
        let mut items = serializer.serialize_seq(Some(list.items.len()))?;
        for item in list.items {
            let shown = list.served.view(item);
            if list.served.resource.custom {
                items.serialize_element(shown.as_ref())?;
            } else {
                items.serialize_element(&Untyped(&shown))?;
            }
        }
        items.end()
    }
}

impl Serialize for Untyped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.as_object().into_iter().flatten();
        serializer.collect_map(fields.filter(|(field, _)| !matches!(field.as_str(), "kind" | "apiVersion")))
    }
}

/// The metadata of a list.
pub(crate) fn list_meta(page: &Page) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert("resourceVersion".into(), json!(page.resource_version.to_string()));
    if !page.continue_token.is_empty() {
        meta.insert("continue".into(), json!(page.continue_token));
    }
    if let Some(count) = page.remaining_item_count {
        meta.insert("remainingItemCount".into(), json!(count));
    }
    meta
}
