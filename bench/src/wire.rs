//! The way to the server, with the encoding that's measured: it holds an informer to JSON, and notes what was answered.

use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, header};
use informant_cache::{Cluster, ListerWatcher, RequestError};
use kube::client::Body;

/// A cluster of which one encoding is asked.
#[derive(Clone)]
pub(crate) struct Wire {
    cluster: Cluster,
    json: bool,
    answered: Arc<Mutex<String>>,
}

impl Wire {
    /// With `json` protobuf isn't asked for; otherwise the informer decides.
    #[must_use]
    pub(crate) fn new(cluster: &Cluster, json: bool) -> Self {
        Self { cluster: cluster.clone(), json, answered: Arc::default() }
    }

    /// The type of the last answer.
    #[must_use]
    pub(crate) fn answered(&self) -> String {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ListerWatcher for Wire {
    fn request(&self, mut request: Request<()>) -> BoxFuture<'_, Result<Response<Body>, RequestError>> {
        let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        let json: Vec<&str> = accept.split(',').filter(|form| !form.contains("protobuf")).map(str::trim).collect();
        if self.json
            && let Ok(accept) = HeaderValue::from_str(&json.join(", "))
        {
            request.headers_mut().insert(header::ACCEPT, accept);
        }
        async move {
            let answer = self.cluster.request(request).await?;
            let form =
                answer.headers().get(header::CONTENT_TYPE).and_then(|form| form.to_str().ok()).unwrap_or_default();
            form.clone_into(&mut self.answered.lock().unwrap_or_else(PoisonError::into_inner));
            Ok(answer)
        }
        .boxed()
    }
}
