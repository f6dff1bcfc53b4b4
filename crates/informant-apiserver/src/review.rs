//! Kinds that store nothing: access reviews, self subject reviews, token reviews, and tokens of service accounts.
//!
//! Everybody may do everything on this server, so access reviews are always allowed; the checks of their form are real.
//! Tokens have the shape of JSON web tokens and say who they are for and when they end, but they aren't signed: a server
//! that lets everybody in has nothing to protect with a signature.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

use crate::object::{self, at_path};
use crate::resource::Resource;
use crate::service::user::User;
use crate::status::{Cause, Status};

/// Who issues tokens, and for whom they are by default.
const ISSUER: &str = "https://kubernetes.default.svc";
/// What stands in the place of a token's signature: some clients want three parts that aren't empty.
const UNSIGNED: &str = "unsigned";
/// An hour, as upstream.
const DEFAULT_LIFETIME: i64 = 3600;
const LEAST_LIFETIME: i64 = 600;
const GREATEST_LIFETIME: i64 = 1 << 32;

/// The answer to the creation of a review, as the object with its status.
///
/// `namespace` is that of the path, `authenticate` tells who a token belongs to, `now` is an RFC 3339 time.
///
/// # Errors
/// 400 and 422 for a review that doesn't say what it asks; 405 for a resource that isn't a review.
pub(crate) fn answer(
    resource: &Resource,
    mut review: Value,
    namespace: &str,
    user: &User,
    authenticate: impl Fn(&str) -> Option<User>,
    now: &str,
) -> Result<Value, Status> {
    let status = match resource.kind.as_str() {
        "SelfSubjectAccessReview" => access(&review)?,
        "SubjectAccessReview" => {
            check_subject(&review)?;
            access(&review)?
        }
        "LocalSubjectAccessReview" => {
            check_subject(&review)?;
            check_namespace(&review, namespace)?;
            access(&review)?
        }
        "SelfSubjectRulesReview" => rules(&review)?,
        "SelfSubjectReview" => {
            object::set_meta(&mut review, "creationTimestamp", json!(now));
            json!({"userInfo": user_info(user)})
        }
        "TokenReview" => token_review(&review, authenticate)?,
        _ => return Err(Status::internal(format!("{resource} isn't a review, so it can't be answered as one"))),
    };
    let api_version = resource.api_version();
    let Some(root) = review.as_object_mut() else { return Err(Status::bad_request("a review is a JSON object")) };
    root.insert("apiVersion".to_owned(), json!(api_version));
    root.insert("kind".to_owned(), json!(resource.kind));
    root.entry("metadata").or_insert_with(|| json!({}));
    root.insert("status".to_owned(), status);
    Ok(review)
}

/// The answer to a `TokenRequest` for `account`. `id` is an id for the token that is never used again.
///
/// # Errors
/// 422 for a lifetime out of range.
pub(crate) fn token(account: &Value, request: &Value, now: jiff::Timestamp, id: &str) -> Result<Value, Status> {
    let lifetime = at_path(request, "spec.expirationSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_LIFETIME);
    let refused = |why: &str| {
        let cause = Cause::invalid("spec.expirationSeconds", &json!(lifetime), why);
        Err(Status::invalid("authentication.k8s.io", "TokenRequest", "", vec![cause]))
    };
    if lifetime < LEAST_LIFETIME {
        return refused("may not specify a duration less than 10 minutes");
    }
    if lifetime > GREATEST_LIFETIME {
        return refused("may not specify a duration larger than 2^32 seconds");
    }
    let audiences = match at_path(request, "spec.audiences").and_then(Value::as_array) {
        Some(audiences) if !audiences.is_empty() => json!(audiences),
        _ => json!([ISSUER]),
    };
    let (name, namespace, uid) = (object::name(account), object::namespace(account), object::uid(account));
    let issued = now.as_second();
    let claims = json!({
        "aud": audiences, "exp": issued + lifetime, "iat": issued, "iss": ISSUER, "jti": id, "nbf": issued,
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
    });
    let encode = |part: &Value| BASE64.encode(part.to_string());
    let token = format!("{}.{}.{UNSIGNED}", encode(&json!({"alg": "none", "typ": "JWT"})), encode(&claims));
    let end = jiff::Timestamp::from_second(issued + lifetime).unwrap_or(jiff::Timestamp::MAX);
    Ok(json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "metadata": {
            "name": name, "namespace": namespace, "uid": uid,
            "creationTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        },
        "spec": {
            "audiences": audiences, "expirationSeconds": lifetime,
            "boundObjectRef": at_path(request, "spec.boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()},
    }))
}

/// The service account that a token of [`token`] is for, unless it has ended.
pub(crate) fn service_account(token: &str, now: jiff::Timestamp) -> Option<User> {
    let mut parts = token.split('.');
    let (_, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
    if signature != UNSIGNED || parts.next().is_some() {
        return None;
    }
    let claims: Value = serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()?;
    if claims.get("exp")?.as_i64()? <= now.as_second() {
        return None;
    }
    let account = claims.get("kubernetes.io")?;
    let (namespace, name) = (account.get("namespace")?.as_str()?, at_path(account, "serviceaccount.name")?.as_str()?);
    let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    let mut user = User::new(
        format!("system:serviceaccount:{namespace}:{name}"),
        groups.into_iter().chain(["system:authenticated".to_owned()]),
    );
    user.uid = at_path(account, "serviceaccount.uid").and_then(Value::as_str).unwrap_or("").to_owned();
    Some(user)
}

/// Allowed, whatever is asked, when one thing is asked.
fn access(review: &Value) -> Result<Value, Status> {
    let asks = |field: &str| at_path(review, &format!("spec.{field}")).is_some_and(|asked| !asked.is_null());
    if asks("resourceAttributes") == asks("nonResourceAttributes") {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        return Err(refused(Cause::invalid("spec", &Value::Null, why)));
    }
    Ok(json!({"allowed": true}))
}

fn check_subject(review: &Value) -> Result<(), Status> {
    let user = at_path(review, "spec.user").and_then(Value::as_str).unwrap_or("");
    let groups = at_path(review, "spec.groups").and_then(Value::as_array).map_or(0, Vec::len);
    if user.is_empty() && groups == 0 {
        let cause = Cause::invalid("spec.user", &json!(""), "at least one of user or group must be specified");
        return Err(refused(cause));
    }
    Ok(())
}

fn check_namespace(review: &Value, namespace: &str) -> Result<(), Status> {
    let asked = at_path(review, "spec.resourceAttributes.namespace").and_then(Value::as_str).unwrap_or("");
    if asked == namespace {
        return Ok(());
    }
    let why = format!("must match metadata.namespace: {namespace}");
    Err(refused(Cause::invalid("spec.resourceAttributes.namespace", &json!(asked), why)))
}

/// Upstream names no kind here.
fn refused(cause: Cause) -> Status {
    Status::invalid("", "", "", vec![cause])
}

fn rules(review: &Value) -> Result<Value, Status> {
    if at_path(review, "spec.namespace").and_then(Value::as_str).unwrap_or("").is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    Ok(json!({
        "incomplete": false,
        "resourceRules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
        "nonResourceRules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}],
    }))
}

fn token_review(review: &Value, authenticate: impl Fn(&str) -> Option<User>) -> Result<Value, Status> {
    let token = at_path(review, "spec.token").and_then(Value::as_str).unwrap_or("");
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    Ok(match authenticate(token) {
        Some(user) => {
            let asked = at_path(review, "spec.audiences").and_then(Value::as_array).filter(|list| !list.is_empty());
            let audiences = asked.map_or_else(|| json!([ISSUER]), |list| json!(list));
            json!({"authenticated": true, "audiences": audiences, "user": user_info(&user)})
        }
        None => json!({"error": "invalid bearer token", "user": {}}),
    })
}

fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    fn ask(plural: &str, review: Value) -> Result<Value, Status> {
        let resource = builtin::resources().into_iter().find(|resource| resource.plural == plural).unwrap();
        let known = |token: &str| (token == "alice").then(|| User::new("alice", ["team"]));
        answer(&resource, review, "default", &User::admin(), known, "2026-12-01T00:00:00Z")
    }

    #[test]
    fn access_is_allowed_to_everybody_who_asks_one_thing() {
        let pods = json!({"verb": "get", "resource": "pods", "namespace": "default"});
        let own = ask("selfsubjectaccessreviews", json!({"spec": {"resourceAttributes": pods}})).unwrap();
        assert_eq!(own["status"], json!({"allowed": true}));
        assert_eq!((own["kind"].as_str(), &own["metadata"]), (Some("SelfSubjectAccessReview"), &json!({})));
        let other = json!({"spec": {"user": "bob", "resourceAttributes": pods}});
        assert_eq!(ask("subjectaccessreviews", other.clone()).unwrap()["status"]["allowed"], json!(true));
        assert_eq!(ask("localsubjectaccessreviews", other).unwrap()["status"]["allowed"], json!(true));
    }

    #[test]
    fn a_review_that_asks_nothing_or_of_nobody_is_invalid() {
        let refused = ask("selfsubjectaccessreviews", json!({"spec": {}})).unwrap_err();
        assert_eq!(refused.code, 422);
        assert!(
            refused.message.ends_with("exactly one of nonResourceAttributes or resourceAttributes must be specified")
        );
        let path = json!({"nonResourceAttributes": {"path": "/healthz"}});
        let refused = ask("subjectaccessreviews", json!({"spec": path})).unwrap_err();
        assert!(refused.message.contains("at least one of user or group must be specified"), "{refused}");
        let elsewhere = json!({"user": "bob", "resourceAttributes": {"namespace": "other"}});
        assert_eq!(ask("localsubjectaccessreviews", json!({"spec": elsewhere})).unwrap_err().code, 422);
        assert_eq!(ask("selfsubjectrulesreviews", json!({"spec": {}})).unwrap_err().message, "no namespace on request");
    }

    #[test]
    fn everybody_learns_who_they_are_and_what_they_may_do() {
        let me = ask("selfsubjectreviews", json!({})).unwrap();
        assert_eq!(me["status"]["userInfo"]["username"], json!("system:admin"));
        assert_eq!(me["metadata"]["creationTimestamp"], json!("2026-12-01T00:00:00Z"));
        let rules = ask("selfsubjectrulesreviews", json!({"spec": {"namespace": "default"}})).unwrap();
        assert_eq!(rules["status"]["resourceRules"][0]["verbs"], json!(["*"]));
    }

    #[test]
    fn a_token_review_names_the_user_of_a_known_token_only() {
        let known = ask("tokenreviews", json!({"spec": {"token": "alice"}})).unwrap();
        assert_eq!(known["status"]["authenticated"], json!(true));
        assert_eq!(known["status"]["user"], json!({"username": "alice", "groups": ["team"]}));
        let unknown = ask("tokenreviews", json!({"spec": {"token": "nope"}})).unwrap();
        assert_eq!(unknown["status"], json!({"error": "invalid bearer token", "user": {}}));
        assert_eq!(ask("tokenreviews", json!({"spec": {}})).unwrap_err().code, 400);
    }

    #[test]
    fn a_service_accounts_token_says_whose_it_is_until_it_ends() {
        let account = json!({"metadata": {"name": "robot", "namespace": "shop", "uid": "u1"}});
        let now: jiff::Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        let answer = token(&account, &json!({"spec": {"audiences": [], "boundObjectRef": null}}), now, "t1").unwrap();
        assert_eq!(answer["status"]["expirationTimestamp"], json!("2026-12-01T01:00:00Z"));
        assert_eq!(answer["spec"]["audiences"], json!([ISSUER]));
        let text = answer["status"]["token"].as_str().unwrap();
        assert_eq!(text.split('.').count(), 3);
        let user = service_account(text, now).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:shop:robot", "u1"));
        assert_eq!(service_account(text, now + jiff::SignedDuration::from_hours(1)), None);
        assert_eq!(service_account("a.b.c", now), None);
    }

    #[test]
    fn a_token_lives_ten_minutes_at_least() {
        let short = json!({"spec": {"expirationSeconds": 300}});
        let refused = token(&json!({}), &short, jiff::Timestamp::UNIX_EPOCH, "t").unwrap_err();
        let expected = "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 300: may \
                        not specify a duration less than 10 minutes";
        assert_eq!(refused.message, expected);
    }
}
