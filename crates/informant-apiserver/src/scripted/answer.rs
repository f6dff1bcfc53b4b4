//! An answer as parts, and a response body made of them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame};
use tokio::sync::mpsc;
use tokio::time::Sleep;

/// One thing that an answer does next. Its end is the end of the parts.
#[derive(Debug)]
pub(super) enum Part {
    Bytes(Bytes),
    Pause(Duration),
    Reset,
    /// Nothing more, for ever.
    Silence,
}

/// What goes around the bytes.
#[derive(Debug)]
pub(super) enum Framing {
    Http { status: StatusCode, headers: HeaderMap },
    Raw,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) framing: Framing,
    pub(super) parts: mpsc::UnboundedReceiver<Part>,
}

/// The body of an answer in process: one frame for each chunk that the test sends.
#[derive(Debug)]
pub struct ScriptBody {
    parts: mpsc::UnboundedReceiver<Part>,
    pause: Option<Pin<Box<Sleep>>>,
    state: State,
}

#[derive(Debug, PartialEq)]
enum State {
    Going,
    Silent,
    Over,
}

// === impl Answer ===

impl Answer {
    pub(super) async fn into_response(mut self) -> io::Result<Response<ScriptBody>> {
        let Framing::Http { status, headers } = self.framing else { return Err(self.no_wire().await) };
        let mut response = Response::new(ScriptBody { parts: self.parts, pause: None, state: State::Going });
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// Raw bytes have no place in process; pauses and silence before them have.
    async fn no_wire(&mut self) -> io::Error {
        loop {
            match self.parts.recv().await {
                Some(Part::Pause(time)) => tokio::time::sleep(time).await,
                Some(Part::Silence) => return std::future::pending().await,
                Some(Part::Reset) => return io::Error::from(io::ErrorKind::ConnectionReset),
                Some(Part::Bytes(_)) => return io::Error::new(io::ErrorKind::InvalidData, "raw bytes need a socket"),
                None => return io::Error::from(io::ErrorKind::UnexpectedEof),
            }
        }
    }
}

// === impl ScriptBody ===

impl Body for ScriptBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            match self.state {
                State::Going => {}
                State::Silent => return Poll::Pending,
                State::Over => return Poll::Ready(None),
            }
            if let Some(pause) = &mut self.pause {
                match pause.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(()) => self.pause = None,
                }
            }
            match self.parts.poll_recv(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => self.state = State::Over,
                Poll::Ready(Some(Part::Bytes(bytes))) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Poll::Ready(Some(Part::Pause(time))) => self.pause = Some(Box::pin(tokio::time::sleep(time))),
                Poll::Ready(Some(Part::Silence)) => self.state = State::Silent,
                Poll::Ready(Some(Part::Reset)) => {
                    self.state = State::Over;
                    return Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::ConnectionReset))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.state == State::Over
    }
}
