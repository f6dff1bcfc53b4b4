//! A watch as a response: its events become lines as they come.

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

use crate::registry::Served;
use crate::service::answer::{Answer, ResponseBody};
use crate::service::render::Renderer;
use crate::watch::Watch;

/// The answer of an open watch. `permit` is given back when the body is dropped, which closes the watch.
pub(crate) fn answer(served: Arc<Served>, renderer: Renderer, watch: Watch, permit: OwnedSemaphorePermit) -> Answer {
    Answer::new(200, "application/json", ResponseBody::frames(lines(served, renderer, watch, permit)))
}

fn lines(
    served: Arc<Served>,
    renderer: Renderer,
    watch: Watch,
    permit: OwnedSemaphorePermit,
) -> impl Stream<Item = Bytes> + Send {
    let mut first = true;
    let batches = watch.into_stream().map(move |events| {
        // Named here so that the closure holds it: the watch counts until its body is dropped.
        let _held = &permit;
        let mut batch = BytesMut::new();
        for event in &events {
            batch.extend_from_slice(&renderer.event(&served, event, first));
            first = false;
        }
        batch.freeze()
    });
    // A panic while one watch is written ends that watch.
    std::panic::AssertUnwindSafe(batches).catch_unwind().filter_map(|batch| std::future::ready(batch.ok()))
}
