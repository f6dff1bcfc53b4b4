//! Lists and watches a resource and brings the store up to date.

use tokio_util::sync::CancellationToken;

use crate::shared_informer::Shared;

pub(crate) async fn run<K: Send + Sync + 'static>(_informer: &Shared<K>, cancel: &CancellationToken) {
    cancel.cancelled().await;
}
