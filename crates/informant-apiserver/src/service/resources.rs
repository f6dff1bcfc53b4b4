//! The verbs on collections, objects and subresources: from a request to a call of the registry, and back.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::list::{self, ListOptions, Page, Selector};
use crate::object;
use crate::protobuf::encode;
use crate::registry::deletion::{self, DeleteOptions};
use crate::registry::scale;
use crate::registry::{Deleted, PatchKind, Registry, Served, Target, Write, Written, read_body};
use crate::review;
use crate::selector::{FieldSelector, LabelSelector};
use crate::service::answer::Answer;
use crate::service::body::{self, Document};
use crate::service::negotiate::{self, Representation, media_type};
use crate::service::render::Renderer;
use crate::service::route::ResourcePath;
use crate::service::{Caller, Shared, watching};
use crate::status::{Details, Reason, Status};
use crate::store::Scope;
use crate::table::IncludeObject;
use crate::watch::Watch;

/// Subresources that reach into running containers; there are none on this server.
const NEEDS_A_KUBELET: &[&str] = &["log", "exec", "attach", "portforward", "proxy"];

/// A request on a resource, with everything but its body.
pub(crate) struct ResourceRequest<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) caller: &'a Caller,
    pub(crate) target: Target,
    renderer: Renderer,
}

/// Which objects a list or watch is about.
struct Selection {
    scope: Scope,
    selector: Option<Selector>,
}

impl<'a> ResourceRequest<'a> {
    /// Finds the resource of a path and checks that the method is served there.
    ///
    /// # Errors
    /// 404, 405 and 406.
    pub(crate) fn new(shared: &'a Shared, caller: &'a Caller, path: &ResourcePath) -> Result<Self, Status> {
        let catalog = shared.registry.catalog();
        let served = catalog.find(&path.group, &path.version, &path.plural).ok_or_else(Status::no_such_path)?;
        let resource = &served.resource;
        let in_namespace = !path.namespace.is_empty();
        let named = !path.name.is_empty();
        let scope_fits = if resource.namespaced { in_namespace || !named } else { !in_namespace };
        let known = path.subresource.is_empty() || resource.has_subresource(&path.subresource);
        if !scope_fits || !known {
            return Err(Status::no_such_path());
        }
        let target = Target {
            served: Arc::clone(served),
            namespace: path.namespace.clone(),
            name: path.name.clone(),
            subresource: path.subresource.clone(),
        };
        let representation = if resource.rules.virtual_only {
            Representation::default()
        } else {
            let protobuf = || !resource.custom && encode::knows(&resource.api_version(), &resource.kind);
            negotiate::representation(&caller.accept, protobuf)?
        };
        let include = IncludeObject::parse(caller.query.text("includeObject"))?;
        let renderer = Renderer { representation, include, clock: shared.registry.clock() };
        Ok(Self { shared, caller, target, renderer })
    }

    fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    fn served(&self) -> &Served {
        &self.target.served
    }

    fn write(&self, options_kind: &str) -> Result<Write, Status> {
        Ok(Write::new(self.caller.query.write_options(options_kind)?, &self.caller.user_agent))
    }

    /// Whether the request is to be answered by a stream.
    pub(crate) fn is_watch(&self, watch_path: bool) -> Result<bool, Status> {
        Ok(self.caller.method == Method::GET && (watch_path || self.caller.query.flag("watch")?.unwrap_or(false)))
    }

    /// Answers the request.
    ///
    /// # Errors
    /// Whatever the verb refuses.
    pub(crate) async fn answer(&self, body: Bytes, watch_path: bool) -> Result<Answer, Status> {
        let named = !self.target.name.is_empty();
        let subresource = self.target.subresource.as_str();
        self.check_verb(watch_path)?;
        if NEEDS_A_KUBELET.contains(&subresource) {
            return Err(Status::new(
                Reason::ServiceUnavailable,
                format!("nothing runs Pods on this server, so there is no {subresource} of \"{}\"", self.target.name),
            ));
        }
        let answer = match &self.caller.method {
            &Method::GET | &Method::HEAD if self.is_watch(watch_path)? => self.watch().await,
            &Method::GET | &Method::HEAD if named => self.get().await,
            &Method::GET | &Method::HEAD => self.list().await,
            &Method::POST if subresource.is_empty() => self.create(&body),
            &Method::POST => self.create_subresource(&body),
            &Method::PUT => self.update(&body),
            &Method::PATCH => self.patch(&body),
            &Method::DELETE if named => self.delete(&body),
            &Method::DELETE => self.delete_collection(&body).await,
            _ => Err(method_not_allowed()),
        }?;
        Ok(match &self.served().resource.deprecation_warning {
            Some(warning) => answer.warnings(std::slice::from_ref(warning)),
            None => answer,
        })
    }

    fn check_verb(&self, watch_path: bool) -> Result<(), Status> {
        let named = !self.target.name.is_empty();
        let verb = match &self.caller.method {
            &Method::GET | &Method::HEAD if self.is_watch(watch_path)? => "watch",
            &Method::GET | &Method::HEAD if named => "get",
            &Method::GET | &Method::HEAD => "list",
            &Method::POST if named && self.target.subresource.is_empty() => return Err(method_not_allowed()),
            &Method::POST => "create",
            &Method::PUT if named => "update",
            &Method::PATCH if named => "patch",
            &Method::DELETE if named => "delete",
            &Method::DELETE => "deletecollection",
            _ => return Err(method_not_allowed()),
        };
        let resource = self.target.resource();
        let somewhere = !resource.namespaced || !self.target.namespace.is_empty();
        let served = match resource.subresource(&self.target.subresource) {
            Some(subresource) => subresource.verbs.iter().any(|served| served == verb),
            // Creating and deleting everywhere at once isn't a request.
            // What is held by finalizers can still be changed while its CRD goes.
            None if self.served().terminating => somewhere || matches!(verb, "list" | "watch"),
            None => resource.has_verb(verb) && (somewhere || matches!(verb, "list" | "watch")),
        };
        if served { Ok(()) } else { Err(method_not_allowed()) }
    }

    async fn get(&self) -> Result<Answer, Status> {
        let store = self.registry().store();
        list::wait_until_fresh(store, self.caller.query.text("resourceVersion")).await?;
        if self.target.subresource == "scale" {
            let scale = self.registry().get_scale(&self.target)?;
            return Ok(self.renderer.object(200, &scale::resource(), &scale));
        }
        let object = self.registry().get(&self.target)?;
        Ok(self.renderer.stored(self.served(), &object))
    }

    async fn list(&self) -> Result<Answer, Status> {
        let page = self.page().await?;
        Ok(self.renderer.list(self.served(), &page))
    }

    async fn page(&self) -> Result<Page, Status> {
        let selection = self.selection()?;
        let storage = &self.target.resource().storage;
        let options = self.list_options()?;
        list::list(self.registry().store(), storage, &selection.scope, &options, selection.selector.as_ref()).await
    }

    async fn watch(&self) -> Result<Answer, Status> {
        let selection = self.selection()?;
        let permit = Arc::clone(&self.shared.watch_permits).try_acquire_owned().map_err(|_| {
            Status::new(Reason::TooManyRequests, "too many watches are open on this server; close some first")
        })?;
        let store = self.registry().store();
        let storage = &self.target.resource().storage;
        let watch = Watch::open(store, storage, selection.scope, &self.list_options()?, selection.selector).await?;
        Ok(watching::answer(Arc::clone(&self.target.served), self.renderer.clone(), watch, permit))
    }

    fn list_options(&self) -> Result<ListOptions, Status> {
        let query = &self.caller.query;
        Ok(ListOptions {
            resource_version: query.text("resourceVersion").to_owned(),
            resource_version_match: query.text("resourceVersionMatch").to_owned(),
            limit: query.count("limit")?,
            continue_token: query.text("continue").to_owned(),
            send_initial_events: query.flag("sendInitialEvents")?,
            allow_watch_bookmarks: query.flag("allowWatchBookmarks")?.unwrap_or(false),
            timeout_seconds: query.count("timeoutSeconds")?,
            watch_list: self.shared.watch_list,
        })
    }

    fn selection(&self) -> Result<Selection, Status> {
        let labels = LabelSelector::parse(self.caller.query.text("labelSelector"))?;
        let fields = FieldSelector::parse(self.caller.query.text("fieldSelector"), self.target.resource())?;
        let namespace = &self.target.namespace;
        let name = if self.target.name.is_empty() { fields.metadata_name() } else { Some(self.target.name.as_str()) };
        let mut scope = Scope { name: name.map(str::to_owned), ..Scope::default() };
        if !namespace.is_empty() {
            scope.namespace = Some(namespace.clone());
        }
        if labels.is_everything() && fields.is_everything() {
            return Ok(Selection { scope, selector: None });
        }
        let served = Arc::clone(&self.target.served);
        let required = labels.clone();
        let selector = Selector::new(move |object| {
            labels.matches(object) && (fields.is_everything() || fields.matches(&served.view(object)))
        });
        Ok(Selection { scope, selector: Some(selector.requiring(required.required_label())) })
    }

    fn create(&self, body: &[u8]) -> Result<Answer, Status> {
        let mut write = self.write("CreateOptions")?;
        let document = self.decode(body)?;
        if self.target.resource().rules.virtual_only {
            return self.create_virtual(document, &mut write);
        }
        let written = self.registry().create(&self.target, document, &mut write)?;
        Ok(self.written(&written, &write))
    }

    /// Answers a create of which nothing is stored.
    fn create_virtual(&self, mut document: Document, write: &mut Write) -> Result<Answer, Status> {
        let resource = self.target.resource();
        read_body(resource, &mut document, write)?;
        let body = document.value;
        if resource.plural == "bindings" {
            let name = object::name(&body).to_owned();
            let pods = self.registry().catalog().find("", "v1", "pods").cloned().ok_or_else(Status::no_such_path)?;
            let pod = Target { served: pods, name, ..self.target.clone() };
            self.registry().bind(&pod, &body, write)?;
            return Ok(self.renderer.value(201, &success(None)));
        }
        let clock = self.registry().clock();
        let known = |token: &str| self.shared.tokens.user_of(token, clock.now());
        let namespace = &self.target.namespace;
        let answer = review::answer(resource, body, namespace, &self.caller.user, known, &clock.now_seconds())?;
        Ok(self.renderer.value(201, &answer).warnings(&write.warnings))
    }

    fn create_subresource(&self, body: &[u8]) -> Result<Answer, Status> {
        let write = self.write("CreateOptions")?;
        let document = self.decode(body)?;
        match self.target.subresource.as_str() {
            "binding" => {
                self.registry().bind(&self.target, &document.value, &write)?;
                Ok(self.renderer.value(201, &success(None)))
            }
            "eviction" => {
                self.registry().evict(&self.target, &document.value, write.options.dry_run)?;
                Ok(self.renderer.value(201, &success(None)))
            }
            "token" => {
                let account = self.registry().get(&self.target)?;
                let now = self.registry().clock().now();
                let token = review::token(&account, &document.value, now, &self.shared.next_audit_id())?;
                Ok(self.renderer.value(201, &token))
            }
            _ => Err(method_not_allowed()),
        }
    }

    fn update(&self, body: &[u8]) -> Result<Answer, Status> {
        let mut write = self.write("UpdateOptions")?;
        let document = self.decode(body)?;
        let written = self.registry().update(&self.target, document, &mut write)?;
        Ok(self.written(&written, &write))
    }

    fn patch(&self, body: &[u8]) -> Result<Answer, Status> {
        let kind = PatchKind::of(&media_type(&self.caller.content_type), self.target.resource())?;
        let mut write = self.write("PatchOptions")?;
        let document = match kind {
            PatchKind::Apply => body::decode_yaml(body)?,
            PatchKind::Json | PatchKind::Merge | PatchKind::Strategic => body::decode_json(body)?,
        };
        let written = self.registry().patch(&self.target, kind, document, &mut write)?;
        Ok(self.written(&written, &write))
    }

    fn written(&self, written: &Written, write: &Write) -> Answer {
        let code = if written.created { 201 } else { 200 };
        let answer = if self.target.subresource == "scale" {
            self.renderer.object(code, &scale::resource(), &written.object)
        } else {
            self.renderer.object(code, self.target.resource(), &written.object)
        };
        answer.warnings(&write.warnings)
    }

    fn delete(&self, body: &[u8]) -> Result<Answer, Status> {
        let options = self.delete_options(body)?;
        let resource = self.target.resource();
        let answer = match self.registry().delete(&self.target, &options)? {
            Deleted::Gone(object) if resource.rules.returns_deleted_object => {
                self.renderer.object(200, resource, &object)
            }
            Deleted::Gone(object) => {
                let details = json!({
                    "name": self.target.name, "kind": resource.plural, "uid": object::uid(&object),
                });
                self.renderer.value(200, &success(Some((details, &resource.group))))
            }
            Deleted::Marked(object) => {
                let code = if options.accepted_code { 202 } else { 200 };
                self.renderer.object(code, resource, &object)
            }
        };
        Ok(answer.warnings(deletion::warning(resource, &options).as_slice()))
    }

    async fn delete_collection(&self, body: &[u8]) -> Result<Answer, Status> {
        let options = self.delete_options(body)?;
        let page = self.page().await?;
        for object in &page.items {
            let target = Target {
                namespace: object::namespace(object).to_owned(),
                name: object::name(object).to_owned(),
                ..self.target.clone()
            };
            match self.registry().delete(&target, &options) {
                Ok(_) => {}
                // Somebody else has deleted it meanwhile.
                Err(status) if status.reason == Reason::NotFound => {}
                Err(status) => return Err(status),
            }
        }
        Ok(self.renderer.list(self.served(), &page))
    }

    fn delete_options(&self, body: &[u8]) -> Result<DeleteOptions, Status> {
        let document = if body.is_empty() { None } else { Some(self.decode(body)?) };
        DeleteOptions::read(&self.caller.query, document.as_ref().map(|document| &document.value))
    }

    fn decode(&self, body: &[u8]) -> Result<Document, Status> {
        if body.is_empty() {
            return Err(Status::bad_request("the body of the request is empty, but an object is needed"));
        }
        body::decode(&self.caller.content_type, body)
    }
}

/// The `Status` of a success.
fn success(details: Option<(Value, &String)>) -> Value {
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    match details {
        Some((mut details, group)) => {
            if !group.is_empty() {
                details["group"] = json!(group);
            }
            status["details"] = details;
        }
        None => status["code"] = json!(201),
    }
    status
}

fn method_not_allowed() -> Status {
    Status::new(Reason::MethodNotAllowed, "the server does not allow this method on the requested resource")
        .with_details(Details::default())
}
