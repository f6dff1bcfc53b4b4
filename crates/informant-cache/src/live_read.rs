//! Reading one object from the server instead of from the cache, when that's asked for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::error::{DecodeError, RequestError, RequestErrorKind};
use crate::head::Head;
use crate::key::ObjectKey;
use crate::reflector::answer;
use crate::request::object_path;
use crate::shared_informer::{Shared, SharedInformer};

/// Why a live read brought no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LiveReadError {
    /// The server has no such object, or doesn't serve the kind.
    #[error("{informer}: the server has no {key}: {message}")]
    NotFound {
        /// The object.
        key: ObjectKey,
        /// The informer.
        informer: String,
        /// What the server said.
        message: String,
    },
    /// The credentials don't allow reading it.
    #[error("{informer}: {key} may not be read: {message}")]
    Forbidden {
        /// The object.
        key: ObjectKey,
        /// The informer.
        informer: String,
        /// What the server said.
        message: String,
    },
    /// It's in a namespace that the informer doesn't cover. Nothing was asked.
    #[error("{key} is out of the scope of {informer}")]
    OutOfScope {
        /// The object.
        key: ObjectKey,
        /// The informer.
        informer: String,
    },
    /// The object is there and can't be decoded or transformed.
    #[error("{informer}: {key} can't be decoded: {reason}")]
    Undecodable {
        /// The object.
        key: ObjectKey,
        /// The informer.
        informer: String,
        /// What's wrong with it.
        reason: DecodeError,
    },
    /// The request failed in another way.
    #[error("{informer}: {key} can't be read")]
    Request {
        /// The object.
        key: ObjectKey,
        /// The informer.
        informer: String,
        /// How.
        #[source]
        source: RequestError,
    },
}

impl<K: Send + Sync + 'static> SharedInformer<K> {
    /// Asks the server for one object: its newest state, whatever the cache holds.
    ///
    /// One GET, through the informer's own source and with its credentials, decoded, and transformed if it's set up so,
    /// as the cache's objects are. Nothing is retried, and the cache doesn't change. Label and field selectors and
    /// filters don't count: they say what's worth keeping, and this is the way to an object that isn't kept. The
    /// namespaces of the scope do: they say where to look. It works before the start and after the stop too.
    ///
    /// # Errors
    /// [`NotFound`](LiveReadError::NotFound) and [`Forbidden`](LiveReadError::Forbidden) as the server says;
    /// [`OutOfScope`](LiveReadError::OutOfScope) without a request for a namespace that the informer doesn't cover.
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn get_live(&self, key: &ObjectKey) -> Result<Arc<K>, LiveReadError> {
        read(self.shared_parts(), key).await
    }

    /// The object from the cache, or, if the cache doesn't hold it, [live](Self::get_live).
    ///
    /// Each object that's really absent costs a request, so it's for those who rarely miss: for all others
    /// [`Lister::lookup`](crate::Lister::lookup) says whether the cache knows.
    ///
    /// # Errors
    /// As [`get_live`](Self::get_live).
    ///
    /// # Cancel safety
    /// Nothing is lost; it may be used in `select!`.
    pub async fn get_or_live(&self, key: &ObjectKey) -> Result<Arc<K>, LiveReadError> {
        match self.lister().get(key) {
            Some(object) => Ok(object),
            None => self.get_live(key).await,
        }
    }
}

async fn read<K: Send + Sync + 'static>(informer: &Shared<K>, key: &ObjectKey) -> Result<Arc<K>, LiveReadError> {
    let (key, name) = (key.clone(), informer.name.clone());
    if !informer.scope.may_hold(&key) || !informer.store.shows(&key) {
        return Err(LiveReadError::OutOfScope { key, informer: name });
    }
    let document = match document(informer, &key).await {
        Ok(document) => document,
        Err(RequestError { kind: RequestErrorKind::NotFound, message, .. }) => {
            return Err(LiveReadError::NotFound { key, informer: name, message });
        }
        Err(RequestError { kind: RequestErrorKind::Forbidden, message, .. }) => {
            return Err(LiveReadError::Forbidden { key, informer: name, message });
        }
        Err(source) => return Err(LiveReadError::Request { key, informer: name, source }),
    };
    decode(informer, &key, &document).map_err(|reason| LiveReadError::Undecodable { key, informer: name, reason })
}

/// The whole body of the answer, up to the bound for a document.
async fn document<K: Send + Sync + 'static>(informer: &Shared<K>, key: &ObjectKey) -> Result<Vec<u8>, RequestError> {
    let mut answer = answer(informer, http::Request::get(object_path(&informer.followed_resource(), key))).await?;
    let (limit, mut document) = (informer.settings.document_bytes_max, Vec::new());
    while let Some(chunk) = answer.chunk().await? {
        if chunk.len() > limit.saturating_sub(document.len()) {
            let message = format!("the object is larger than {limit} bytes");
            return Err(RequestError::new(RequestErrorKind::Malformed, message));
        }
        document.extend_from_slice(&chunk);
    }
    Ok(document)
}

fn decode<K: Send + Sync + 'static>(
    informer: &Shared<K>,
    key: &ObjectKey,
    document: &[u8],
) -> Result<Arc<K>, DecodeError> {
    let (head, document) = Head::open(document)?;
    if head.key()? != *key {
        return Err(DecodeError::new("the server answered with another object"));
    }
    let document = document.document()?;
    // Representation and transform may be the user's.
    let take = || informer.intake.take(&*informer.representation, &document, true);
    let held = catch_unwind(AssertUnwindSafe(take))
        .unwrap_or_else(|_| Err(DecodeError::new("taking in the object panicked")))?;
    // What isn't to be filtered is always kept.
    held.map(crate::representation::Held::into_object).ok_or_else(|| DecodeError::new("the object wasn't kept"))
}
