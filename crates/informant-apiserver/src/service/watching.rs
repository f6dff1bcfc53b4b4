//! A watch as a response: its events become frames as they come: lines of JSON, or protobuf with its length before it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use tokio::sync::OwnedSemaphorePermit;

use crate::registry::Served;
use crate::service::answer::{Answer, ResponseBody};
use crate::service::render::Renderer;
use crate::watch::{Watch, WatchEvent};

/// How long a frame may get before it's handed over; the line that goes past it is its last.
const FRAME_BYTES: usize = 64 * 1024;

/// The answer of an open watch. `permit` is given back when the body is dropped, which closes the watch.
pub(crate) fn answer(served: Arc<Served>, renderer: Renderer, watch: Watch, permit: OwnedSemaphorePermit) -> Answer {
    let media_type = renderer.stream_type();
    let lines =
        Lines { served, renderer, watch, pending: Vec::new().into_iter(), first: true, _permit: permit }.into_stream();
    Answer::new(200, media_type, ResponseBody::frames(lines))
}

/// A watch that is being written.
struct Lines {
    served: Arc<Served>,
    renderer: Renderer,
    watch: Watch,
    /// Events that the watch has handed over and that aren't written yet.
    pending: std::vec::IntoIter<WatchEvent>,
    /// Whether nothing has been written yet.
    first: bool,
    _permit: OwnedSemaphorePermit,
}

// === impl Lines ===

impl Lines {
    fn into_stream(self) -> impl Stream<Item = Bytes> + Send {
        let frames = futures::stream::unfold(self, |mut lines| async move {
            let frame = lines.next().await?;
            Some((frame, lines))
        });
        // A panic while one watch is written ends that watch.
        std::panic::AssertUnwindSafe(frames).catch_unwind().filter_map(|frame| std::future::ready(frame.ok()))
    }

    async fn next(&mut self) -> Option<Bytes> {
        while self.pending.len() == 0 {
            self.pending = self.watch.next().await?.into_iter();
        }
        let mut frame = BytesMut::new();
        while frame.len() < FRAME_BYTES
            && let Some(event) = self.pending.next()
        {
            self.renderer.event(&mut frame, &self.served, &event, self.first);
            self.first = false;
        }
        Some(frame.freeze())
    }
}
