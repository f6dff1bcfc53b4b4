//! What a delete does to an object: remove it, mark it, or leave it as it is. A pure decision over values.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::clock::format_seconds;
use crate::crd::CLEANUP_FINALIZER;
use crate::object::{self, meta_mut, meta_str};
use crate::registry::{is_crd, is_namespace, metadata};
use crate::resource::Resource;
use crate::service::query::{Query, check_dry_run};
use crate::status::{Cause, Status};

/// The finalizer under which dependents go first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer under which dependents lose their owner reference and stay.
pub(crate) const ORPHAN: &str = "orphan";
/// Seconds that a Pod gets when it doesn't say.
const DEFAULT_POD_GRACE: i64 = 30;

/// What becomes of dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They stay, without their owner reference.
    Orphan,
    /// They go afterwards.
    Background,
    /// They go first.
    Foreground,
}

/// `DeleteOptions`, from the query and the body.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    /// Seconds until the object is to be gone.
    pub(crate) grace_period_seconds: Option<i64>,
    /// What becomes of dependents; the kind decides when it isn't said.
    pub(crate) propagation: Option<Propagation>,
    /// The deprecated `orphanDependents: false`, which alone is answered with 202.
    pub(crate) accepted_code: bool,
    /// Only an object with this uid is deleted.
    pub(crate) uid: Option<String>,
    /// Only an object at this resource version is deleted.
    pub(crate) resource_version: Option<String>,
    /// Whether nothing is to be stored.
    pub(crate) dry_run: bool,
}

/// What a delete does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// The object goes at once; the answer shows it like this.
    Remove(Value),
    /// The object stays for now, marked like this.
    Mark(Value),
    /// Nothing changes: the object is being deleted already.
    Unchanged,
}

// === impl DeleteOptions ===

impl DeleteOptions {
    /// Reads the options; what the body says wins over the query.
    ///
    /// # Errors
    /// 400 for a malformed value, 422 for one that isn't known.
    pub(crate) fn read(query: &Query, body: Option<&Value>) -> Result<Self, Status> {
        let mut causes = Vec::new();
        let body = body.filter(|body| !body.is_null());
        if let Some(body) = body {
            check_body(body)?;
        }
        let field = |name: &str| body.and_then(|body| body.get(name)).filter(|value| !value.is_null());
        let text = |name: &str| field(name).and_then(Value::as_str).or_else(|| query.get(name));
        let grace_period_seconds = match field("gracePeriodSeconds") {
            Some(value) => Some(value.as_i64().ok_or_else(|| malformed("gracePeriodSeconds", "a whole number"))?),
            None => query.get("gracePeriodSeconds").filter(|text| !text.is_empty()).map(parse_seconds).transpose()?,
        };
        let mut dry_run: Vec<String> = query.all("dryRun").map(str::to_owned).collect();
        if let Some(values) = field("dryRun") {
            let values = values.as_array().ok_or_else(|| malformed("dryRun", "a list of strings"))?;
            for value in values {
                dry_run.push(value.as_str().ok_or_else(|| malformed("dryRun", "a list of strings"))?.to_owned());
            }
        }
        causes.extend(check_dry_run(&dry_run));
        let orphan = match field("orphanDependents") {
            Some(value) => Some(value.as_bool().ok_or_else(|| malformed("orphanDependents", "true or false"))?),
            None => query.flag("orphanDependents")?,
        };
        if field("propagationPolicy").is_some_and(|value| !value.is_string()) {
            return Err(malformed("propagationPolicy", "a string"));
        }
        let propagation = match (text("propagationPolicy").unwrap_or(""), orphan) {
            ("", None) => None,
            ("", Some(true)) => Some(Propagation::Orphan),
            ("", Some(false)) => Some(Propagation::Background),
            ("Orphan", None) => Some(Propagation::Orphan),
            ("Background", None) => Some(Propagation::Background),
            ("Foreground", None) => Some(Propagation::Foreground),
            (_, Some(_)) => {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                causes.push(Cause::invalid("propagationPolicy", &json!(text("propagationPolicy")), why));
                None
            }
            (other, None) => {
                let message = format!(
                    "Unsupported value: \"{other}\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                );
                causes.push(Cause::new("FieldValueNotSupported", message, "propagationPolicy"));
                None
            }
        };
        if !causes.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", causes));
        }
        // A guard that can't be read is no reason to delete without it.
        let preconditions = field("preconditions")
            .map(|value| value.as_object().ok_or_else(|| malformed("preconditions", "an object")));
        let preconditions = preconditions.transpose()?;
        let precondition = |name: &str| {
            let value = preconditions.and_then(|map| map.get(name)).filter(|value| !value.is_null());
            let text = |value: &Value| value.as_str().map(str::to_owned);
            value.map(|value| text(value).ok_or_else(|| malformed("preconditions", "an object of strings"))).transpose()
        };
        Ok(Self {
            grace_period_seconds,
            propagation,
            accepted_code: orphan == Some(false),
            uid: precondition("uid")?,
            resource_version: precondition("resourceVersion")?,
            dry_run: dry_run.iter().any(|value| value == "All"),
        })
    }

    /// Checks the preconditions.
    ///
    /// # Errors
    /// 409 when the object isn't the one that the client has seen.
    pub(crate) fn check(&self, resource: &Resource, object: &Value) -> Result<(), Status> {
        let conflict = |why: String| Err(Status::conflict(&resource.group, &resource.kind, object::name(object), why));
        if let Some(uid) = self.uid.as_deref().filter(|uid| *uid != object::uid(object)) {
            return conflict(format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). \
                 The object might have been deleted and then recreated",
                object::uid(object)
            ));
        }
        match self.resource_version.as_deref().filter(|version| *version != object::resource_version(object)) {
            Some(version) => conflict(format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
                 The object might have been modified",
                object::resource_version(object)
            )),
            None => Ok(()),
        }
    }
}

/// What a delete of `object` does at the time `now`.
pub(crate) fn decide(resource: &Resource, object: &Value, options: &DeleteOptions, now: Timestamp) -> Outcome {
    let grace = if resource.rules.graceful { pod_grace(object, options) } else { 0 };
    let mut marked = object.clone();
    set_finalizers(&mut marked, propagation_finalizers(resource, object, options));
    let was_terminating = object::is_terminating(object);
    if was_terminating {
        let left = object::at_path(object, "metadata.deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
        // A second delete can only shorten the wait.
        if grace < left {
            let earlier = now.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(now);
            metadata::mark_deleted(resource, &mut marked, &format_seconds(earlier), grace);
        }
    } else {
        let at = now.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(now);
        metadata::mark_deleted(resource, &mut marked, &format_seconds(at), grace);
    }
    if let Some(root) = marked.as_object_mut().filter(|_| is_namespace(resource)) {
        let status = root.entry("status").or_insert_with(|| json!({}));
        if let Some(status) = status.as_object_mut() {
            status.insert("phase".into(), json!("Terminating"));
        }
    }
    if metadata::may_vanish(&marked) {
        // A kind with a grace period shows that it had none, others their last state.
        Outcome::Remove(if resource.rules.graceful { marked } else { object.clone() })
    } else if marked == *object {
        Outcome::Unchanged
    } else {
        Outcome::Mark(marked)
    }
}

/// Whether a namespace may be deleted at all.
///
/// # Errors
/// 403 for the namespaces that every cluster has.
pub(crate) fn check_allowed(resource: &Resource, name: &str) -> Result<(), Status> {
    if is_namespace(resource) && matches!(name, "default" | "kube-system" | "kube-public") {
        return Err(Status::forbidden("", "namespaces", name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Seconds until a Pod is gone: what the options say, else what the Pod says; none for one that isn't running anywhere.
fn pod_grace(object: &Value, options: &DeleteOptions) -> i64 {
    let own = object::at_path(object, "spec.terminationGracePeriodSeconds").and_then(Value::as_i64);
    let mut grace = options.grace_period_seconds.or(own).unwrap_or(DEFAULT_POD_GRACE);
    let scheduled =
        object::at_path(object, "spec.nodeName").and_then(Value::as_str).is_some_and(|node| !node.is_empty());
    let phase = object::at_path(object, "status.phase").and_then(Value::as_str).unwrap_or("");
    if !scheduled || matches!(phase, "Succeeded" | "Failed") {
        grace = 0;
    }
    // A negative period means at once, with one second of grace.
    if grace < 0 { 1 } else { grace }
}

/// The finalizers after the propagation policy has been written into them.
fn propagation_finalizers(resource: &Resource, object: &Value, options: &DeleteOptions) -> Vec<String> {
    let has = |name: &str| object::finalizers(object).any(|finalizer| finalizer == name);
    let (orphan, foreground) = match options.propagation {
        Some(Propagation::Orphan) => (true, false),
        Some(Propagation::Foreground) => (false, true),
        Some(Propagation::Background) => (false, false),
        None if has(ORPHAN) || has(FOREGROUND) => (has(ORPHAN), has(FOREGROUND)),
        None => (orphans_by_default(resource), false),
    };
    let others = object::finalizers(object).filter(|name| *name != ORPHAN && *name != FOREGROUND);
    let mut finalizers: Vec<String> = others.map(str::to_owned).collect();
    finalizers.extend(orphan.then(|| ORPHAN.to_owned()));
    finalizers.extend(foreground.then(|| FOREGROUND.to_owned()));
    let cleans_up =
        is_crd(resource) && !object::is_terminating(object) && finalizers.iter().all(|name| name != CLEANUP_FINALIZER);
    finalizers.extend(cleans_up.then(|| CLEANUP_FINALIZER.to_owned()));
    finalizers
}

/// What the answer to a delete warns of, if anything.
pub(crate) fn warning(resource: &Resource, options: &DeleteOptions) -> Option<String> {
    let surprising = resource.group == "batch" && resource.plural == "jobs" && options.propagation.is_none();
    surprising.then(|| {
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
         set propagationPolicy=Orphan to suppress this warning"
            .to_owned()
    })
}

/// The two kinds that keep the behaviour from before there was garbage collection.
fn orphans_by_default(resource: &Resource) -> bool {
    matches!((resource.group.as_str(), resource.plural.as_str()), ("batch", "jobs") | ("", "replicationcontrollers"))
}

fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    if let Some(meta) = meta_mut(object) {
        if finalizers.is_empty() {
            meta.remove("finalizers");
        } else {
            meta.insert("finalizers".into(), json!(finalizers));
        }
    }
}

/// Takes an empty body and `DeleteOptions` of any group, nothing else.
fn check_body(body: &Value) -> Result<(), Status> {
    if !body.is_object() {
        return Err(Status::bad_request("the body of a delete must be DeleteOptions"));
    }
    match body.get("kind").and_then(Value::as_str) {
        None | Some("" | "DeleteOptions") => Ok(()),
        Some(other) => Err(Status::bad_request(format!("the body of a delete must be DeleteOptions, not {other}"))),
    }
}

fn parse_seconds(text: &str) -> Result<i64, Status> {
    text.parse().map_err(|_| malformed("gracePeriodSeconds", "a whole number"))
}

fn malformed(field: &str, wanted: &str) -> Status {
    Status::bad_request(format!("the delete options can't be read: {field} must be {wanted}"))
}

/// When the grace period of a marked object is over; `None` when it isn't marked.
pub(crate) fn grace_ends(object: &Value) -> Option<Timestamp> {
    meta_str(object, "deletionTimestamp").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::testing::resource;
    use crate::resource::Rules;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn pod(spec: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": spec})
    }

    #[track_caller]
    fn marked(outcome: Outcome) -> Value {
        match outcome {
            Outcome::Mark(marked) => marked,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_object_without_finalizers_goes_at_once() {
        let resource = resource("", "v1", "ConfigMap", "configmaps");
        let outcome = decide(&resource, &pod(json!({})), &DeleteOptions::default(), now());
        assert_eq!(outcome, Outcome::Remove(pod(json!({}))));
    }

    #[test]
    fn finalizers_hold_it_and_raise_the_generation() {
        let resource = resource("", "v1", "ConfigMap", "configmaps");
        let object = json!({"metadata": {"name": "a", "generation": 3, "finalizers": ["example.com/x"]}});
        let held = marked(decide(&resource, &object, &DeleteOptions::default(), now()));
        assert_eq!(meta_str(&held, "deletionTimestamp"), "2026-01-02T03:04:05Z");
        assert_eq!(metadata::generation(&held), 4);
        assert_eq!(decide(&resource, &held, &DeleteOptions::default(), now()), Outcome::Unchanged);
    }

    #[test]
    fn only_scheduled_pods_wait_for_their_grace_period() {
        let mut pods = resource("", "v1", "Pod", "pods");
        pods.rules = Rules { graceful: true, ..Rules::default() };
        let unscheduled = decide(&pods, &pod(json!({})), &DeleteOptions::default(), now());
        let Outcome::Remove(gone) = unscheduled else { panic!("{unscheduled:?}") };
        assert_eq!(gone["metadata"]["deletionGracePeriodSeconds"], 0);
        let running = pod(json!({"nodeName": "n1", "terminationGracePeriodSeconds": 10}));
        let leaving = marked(decide(&pods, &running, &DeleteOptions::default(), now()));
        assert_eq!(meta_str(&leaving, "deletionTimestamp"), "2026-01-02T03:04:15Z");
        let force = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        assert!(matches!(decide(&pods, &leaving, &force, now()), Outcome::Remove(_)));
        let longer = DeleteOptions { grace_period_seconds: Some(60), ..DeleteOptions::default() };
        assert_eq!(decide(&pods, &leaving, &longer, now()), Outcome::Unchanged);
    }

    #[test]
    fn propagation_becomes_a_finalizer() {
        let with = |propagation| DeleteOptions { propagation, ..DeleteOptions::default() };
        let deployments = resource("apps", "v1", "Deployment", "deployments");
        let held = marked(decide(&deployments, &pod(json!({})), &with(Some(Propagation::Foreground)), now()));
        assert_eq!(object::finalizers(&held).collect::<Vec<_>>(), [FOREGROUND]);
        let jobs = resource("batch", "v1", "Job", "jobs");
        let outcome = decide(&jobs, &pod(json!({})), &with(Some(Propagation::Background)), now());
        assert!(matches!(outcome, Outcome::Remove(_)));
        let held = marked(decide(&jobs, &pod(json!({})), &with(None), now()));
        assert_eq!(object::finalizers(&held).collect::<Vec<_>>(), [ORPHAN]);
    }

    #[test]
    fn options_come_from_the_query_and_the_body_and_the_body_wins() {
        let query = Query::parse("gracePeriodSeconds=5&propagationPolicy=Foreground").unwrap();
        let options = DeleteOptions::read(&query, None).unwrap();
        assert_eq!((options.grace_period_seconds, options.propagation), (Some(5), Some(Propagation::Foreground)));
        let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan",
            "preconditions": {"uid": "other"}, "dryRun": ["All"]});
        let options = DeleteOptions::read(&query, Some(&body)).unwrap();
        assert_eq!(options.propagation, Some(Propagation::Orphan));
        assert!(options.dry_run);
        let refused = options.check(&resource("", "v1", "Pod", "pods"), &pod(json!({})));
        assert_eq!(refused.map_err(|status| status.code), Err(409));
        let bad = Query::parse("propagationPolicy=Never").unwrap();
        assert_eq!(DeleteOptions::read(&bad, None).map_err(|status| status.code).err(), Some(422));
    }
}
