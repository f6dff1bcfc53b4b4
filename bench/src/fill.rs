//! Writes the Pods of the corpus to a real API server, as their controllers and kubelets would: created, then their status.
//!
//! No controller may run there: it would find that their owners don't exist.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::{Value, json};

use crate::Problem;
use crate::client::ClientArgs;
use crate::corpus::template::Form;
use crate::corpus::{Corpus, KINDS};

/// Requests under way at a time.
const AT_ONCE: usize = 16;

/// Writes `--objects` Pods.
///
/// # Errors
/// The first of the server's.
pub async fn run(args: ClientArgs) -> Result<Value, Problem> {
    let client = Client::try_from(args.config().await?)?;
    for number in 0..50 {
        let name = format!("team-{number:02}");
        send(&client, "POST", "/api/v1/namespaces", &json!({"metadata": {"name": name}})).await?;
    }
    let corpus = Arc::new(Corpus::new(&KINDS[0], args.objects, 1, false));
    stream::iter(0..args.objects)
        .map(|index| write(client.clone(), Arc::clone(&corpus), index))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(json!({"client": "fill", "objects": args.objects}))
}

async fn write(client: Client, corpus: Arc<Corpus>, index: usize) -> Result<(), Problem> {
    let (template, object) = corpus.object(index, 0);
    let mut text = Vec::new();
    template.render(Form::Json, object, &mut text);
    let mut pod: Value = serde_json::from_slice(&text)?;
    let status = pod["status"].take();
    let field = |name: &str| pod["metadata"][name].as_str().unwrap_or("").to_owned();
    let (namespace, name) = (field("namespace"), field("name"));
    let strip = |object: &mut Value, names: &[&str]| {
        for name in names {
            object.as_object_mut().map(|object| object.remove(*name));
        }
    };
    strip(&mut pod, &["status"]);
    strip(&mut pod["metadata"], &["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"]);
    // What would have to exist.
    strip(&mut pod["spec"], &["priorityClassName", "priority"]);
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    send(&client, "POST", &format!("{pods}?fieldManager=kube-controller-manager"), &pod).await?;
    let path = format!("{pods}/{name}/status?fieldManager=kubelet");
    send(&client, "PATCH", &path, &json!({"status": status})).await
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<(), Problem> {
    let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content)
        .body(serde_json::to_vec(body)?)?;
    client.request_text(request).await.map_err(|error| format!("{method} {path}: {error}"))?;
    Ok(())
}
