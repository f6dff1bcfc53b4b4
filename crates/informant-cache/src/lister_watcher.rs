//! Where an informer's lists and watches go: the cluster, or something of the user's own.

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;

use crate::cluster::Cluster;
use crate::error::RequestError;

/// Answers an informer's two requests, its lists and its watches, as an API server would.
///
/// A [`Cluster`] and a [`kube::Client`] do. Your own can send them elsewhere (another server, a recording, a cache),
/// change or refuse them. It sees each request as it would go over the wire: a GET with path, query and `Accept`, and
/// without a body; whatever it answers is read as it comes, chunk by chunk, with the same bounds and the same distrust as
/// a server's answer. It needn't retry: the informer does, as it would with a server.
///
/// ```
/// use futures::future::BoxFuture;
/// use http::{Request, Response};
/// use informant_cache::{InformerFactory, ListerWatcher, RequestError, RequestErrorKind};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::client::Body;
///
/// struct Fixed;
///
/// impl ListerWatcher for Fixed {
///     fn request(&self, request: Request<()>) -> BoxFuture<'_, Result<Response<Body>, RequestError>> {
///         Box::pin(async move {
///             if request.uri().query().unwrap_or_default().contains("watch=true") {
///                 return Err(RequestError::new(RequestErrorKind::Connection, "there are no news here"));
///             }
///             let list = r#"{"metadata": {"resourceVersion": "1"}, "items": []}"#;
///             Ok(Response::new(Body::from(list.as_bytes().to_vec())))
///         })
///     }
/// }
///
/// # fn make(factory: InformerFactory) {
/// let informer = factory.informer::<ConfigMap>().from(Fixed).full();
/// # }
/// ```
pub trait ListerWatcher: Send + Sync + 'static {
    /// Sends a request and gives the answer, whose body may still be coming.
    ///
    /// An answer with a status other than success is an answer, not an error. The future is dropped when the informer
    /// stops or loses patience.
    ///
    /// # Errors
    /// If there's no answer. The kind of the error decides how the informer goes on; without a reason for another one it
    /// should be [`Connection`](crate::RequestErrorKind::Connection).
    fn request(&self, request: Request<()>) -> BoxFuture<'_, Result<Response<Body>, RequestError>>;
}

impl ListerWatcher for Cluster {
    fn request(&self, request: Request<()>) -> BoxFuture<'_, Result<Response<Body>, RequestError>> {
        let answer = self.send(request);
        async { answer.await.map_err(|error| RequestError::from_connection(&error)) }.boxed()
    }
}

impl ListerWatcher for kube::Client {
    fn request(&self, request: Request<()>) -> BoxFuture<'_, Result<Response<Body>, RequestError>> {
        let answer = self.send(request.map(|()| Body::empty()));
        async { answer.await.map_err(|error| RequestError::from_connection(&error)) }.boxed()
    }
}
