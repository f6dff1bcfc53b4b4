//! The next page of a list, asked for while the one at hand is still coming.
//!
//! Its answer isn't read before its turn, so there's never more than one page on the way beyond the one at hand, and of
//! that no more than the connection holds.

use std::pin::Pin;

use futures::FutureExt;
use futures::future::{BoxFuture, MaybeDone, maybe_done};

use super::body::{self, Answer};
use crate::error::{RequestError, RequestErrorKind};
use crate::request::Request;
use crate::shared_informer::Shared;

pub(super) struct Ahead<'a> {
    request: Request,
    answer: MaybeDone<BoxFuture<'a, Result<Answer, RequestError>>>,
}

impl<'a> Ahead<'a> {
    /// Sends a request.
    pub(super) fn ask<K: Send + Sync + 'static>(
        informer: &'a Shared<K>,
        part: Option<&'a str>,
        request: Request,
    ) -> Self {
        let asked = request.clone();
        let answer = async move { body::send(informer, part, &asked).await }.boxed();
        let mut ahead = Self { request, answer: maybe_done(answer) };
        // What doesn't get done by this does while the page at hand is awaited.
        let _ = (&mut ahead.answer).now_or_never();
        ahead
    }

    /// Whether it's this request.
    pub(super) fn is(&self, request: &Request) -> bool {
        self.request == *request
    }

    /// Goes on with the request while something else is awaited.
    pub(super) async fn meanwhile<T>(&mut self, other: impl Future<Output = T>) -> T {
        tokio::pin!(other);
        if let MaybeDone::Future(_) = self.answer {
            tokio::select! {
                biased;
                () = &mut self.answer => {}
                output = &mut other => return output,
            }
        }
        other.await
    }

    /// The answer.
    pub(super) async fn answer(mut self) -> Result<Answer, RequestError> {
        (&mut self.answer).await;
        Pin::new(&mut self.answer).take_output().unwrap_or_else(|| {
            // It's taken once.
            Err(RequestError::new(RequestErrorKind::Connection, "the answer was taken already"))
        })
    }
}
