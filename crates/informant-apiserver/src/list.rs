//! Lists: snapshots, resource-version rules, pages and continue tokens.
//!
//! A list is one state of one kind at one store-wide version, in order of key; all pages of a paged list are cut from the
//! same state. What the request asks for is decided in [`options`], where it fails before anything is read.

mod continue_token;
mod options;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use self::continue_token::ContinueToken;
use self::options::At;
pub use self::options::WatchListSupport;
pub(crate) use self::options::{ListOptions, WatchStart};
use crate::resource::StorageId;
use crate::status::Status;
use crate::store::{Expired, Object, Scope, Store};

/// How long a request for a version from the future waits for it.
const PATIENCE: Duration = Duration::from_secs(3);

/// Which objects are selected. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Selector {
    matches: Arc<dyn Fn(&Value) -> bool + Send + Sync>,
    label: Option<(String, String)>,
}

/// One answer to a list.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// The store-wide version of the state; the same on all pages.
    pub(crate) resource_version: u64,
    /// The objects in order of key.
    pub(crate) items: Vec<Object>,
    /// What to ask for the next page with; empty on the last one.
    pub(crate) continue_token: String,
    /// How many objects come after this page; told only when there's a further page and no selector.
    pub(crate) remaining_item_count: Option<usize>,
}

// === impl Selector ===

impl Selector {
    /// The objects that `matches` says yes to. It's pure and quick, since it's asked for every object and, by watches, for
    /// every change.
    pub(crate) fn new(matches: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        Self { matches: Arc::new(matches), label: None }
    }

    /// The same selector, whose objects all have a label with this key and value: watches then sleep through the rest.
    pub(crate) fn requiring(mut self, label: Option<(&str, &str)>) -> Self {
        self.label = label.map(|(key, value)| (key.to_owned(), value.to_owned()));
        self
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        (self.matches)(object)
    }

    /// The label that all selected objects have, where one is known.
    pub(crate) fn label(&self) -> Option<&(String, String)> {
        self.label.as_ref()
    }
}

/// Lists objects of a kind. `selector` narrows by labels and fields; `None` means all.
///
/// # Errors
///
/// 400, 410, 422 or 504, each with the reason and cause that clients branch on.
///
/// # Cancel safety
///
/// It only reads.
pub(crate) async fn list(
    store: &Store,
    storage: &StorageId,
    scope: &Scope,
    options: &ListOptions,
    selector: Option<&Selector>,
) -> Result<Page, Status> {
    let plan = options.plan_list()?;
    let at = match plan.at {
        At::Latest => None,
        At::NotOlderThan(version) => {
            wait_for(store, version).await?;
            None
        }
        At::Exactly(version) => {
            wait_for(store, version).await?;
            Some(version)
        }
    };
    // With a selector nobody knows beforehand how many objects make a page.
    let take = if selector.is_some() { usize::MAX } else { plan.limit };
    let snapshot = store
        .snapshot(storage, scope, at, &plan.start, take)
        .map_err(|expired| too_old(at.unwrap_or(0), expired, &plan.start))?;
    let mut found =
        snapshot.objects.into_iter().filter(|object| selector.is_none_or(|selector| selector.matches(object)));
    let items: Vec<Object> = found.by_ref().take(plan.limit).collect();
    let more = snapshot.rest > 0 || found.next().is_some();
    let next = items.last().filter(|_| more).map(|last| ContinueToken::after(&last.key(), snapshot.version));
    Ok(Page {
        resource_version: snapshot.version,
        items,
        continue_token: next.map(|token| token.encode()).unwrap_or_default(),
        remaining_item_count: (more && selector.is_none()).then_some(snapshot.rest),
    })
}

/// Holds a get with a resource version until the store is at least there; unset and `0` never wait.
///
/// # Errors
///
/// 504 with the cause `ResourceVersionTooLarge` after three seconds; 400 when it isn't a number.
pub(crate) async fn wait_until_fresh(store: &Store, resource_version: &str) -> Result<(), Status> {
    match options::parse_version(resource_version)? {
        Some(version) => wait_for(store, version).await,
        None => Ok(()),
    }
}

pub(crate) async fn wait_for(store: &Store, version: u64) -> Result<(), Status> {
    match store.wait_for_rv(version, PATIENCE).await {
        Ok(_) => Ok(()),
        Err(current) => Err(Status::resource_version_too_large(version, current)),
    }
}

/// 410 for a list. The middle of a paged list gets a token to go on with, at the price of consistency.
fn too_old(version: u64, expired: Expired, start: &str) -> Status {
    if start.is_empty() {
        return Status::expired(format!("too old resource version: {version} ({})", expired.oldest));
    }
    let mut status = Status::expired(format!(
        "the continue token is from resource version {version}, and the history reaches back to {} only: list again from \
         the start, or go on from the present with the token in this answer, which may miss or repeat what has changed",
        expired.oldest
    ));
    status.continue_token = ContinueToken::inconsistent(start).encode();
    status
}

#[cfg(test)]
mod tests;
