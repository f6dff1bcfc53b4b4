//! What happens to an object between its decoding and the store: a filter and a transform of the user's.

use std::fmt;
use std::sync::Arc;

use crate::document::Document;
use crate::error::DecodeError;
use crate::representation::{Held, Representation};

/// Changes an object before it's kept.
pub(crate) type Transform<K> = Arc<dyn Fn(K) -> Result<K, String> + Send + Sync>;
/// Says whether an object is kept at all.
pub(crate) enum Filter<K> {
    /// Looks at the whole object.
    Whole(Arc<dyn Fn(&K) -> bool + Send + Sync>),
    /// Looks at a few fields, read from the document.
    Part(PartFilter),
}

pub(crate) type PartFilter = Arc<dyn Fn(&Document<'_>) -> Result<bool, DecodeError> + Send + Sync>;

/// What an informer does with each object that it receives, whichever way it came: list, stream or watch.
///
/// Both functions are the user's and run in the informer's task, outside any lock. A panic in one of them is an object
/// that can't be decoded, as is an error of the transform. An object that the store has already in the same state isn't
/// taken in again.
pub(crate) struct Intake<K> {
    /// Runs before the transform, on the object as the server sent it; `None` keeps every object. An object in the store
    /// that isn't kept any more is deleted.
    pub(crate) filter: Option<Filter<K>>,
    /// Runs once for each state of an object, also for the last state that a deletion brings. It mustn't change what
    /// identifies the object.
    pub(crate) transform: Option<Transform<K>>,
    /// Whether an object that can't be decoded ends the informer, instead of being skipped, counted and named.
    pub(crate) strict: bool,
}

impl<K> Default for Intake<K> {
    fn default() -> Self {
        Self { filter: None, transform: None, strict: false }
    }
}

impl<K: Send + Sync + 'static> Intake<K> {
    /// The form to keep of a document; `None` if the filter doesn't want it. What's `deleted` isn't filtered: whether it
    /// was wanted, the store knows.
    pub(crate) fn take(
        &self,
        representation: &dyn Representation<K>,
        document: &Document<'_>,
        deleted: bool,
    ) -> Result<Option<Held<K>>, DecodeError> {
        if let Some(Filter::Part(wants)) = &self.filter
            && !deleted
            && !wants(document)?
        {
            return Ok(None);
        }
        if self.transform.is_none() && !matches!(self.filter, Some(Filter::Whole(_))) {
            return representation.hold(document).map(Some);
        }
        let object = representation.object(document)?;
        if let Some(Filter::Whole(wants)) = &self.filter
            && !deleted
            && !wants(&object)
        {
            return Ok(None);
        }
        let Some(transform) = &self.transform else {
            return representation.hold_unchanged(object, document).map(Some);
        };
        let object = transform(object).map_err(|error| DecodeError::new(format!("the transform failed: {error}")))?;
        representation.hold_object(object).map(Some)
    }
}

impl<K> fmt::Debug for Intake<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake")
            .field("filter", &self.filter.is_some())
            .field("transform", &self.transform.is_some())
            .field("strict", &self.strict)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ApiResource;

    use super::*;
    use crate::representation::Full;

    const DOCUMENT: &[u8] = br#"{"metadata":{"name":"a","managedFields":[{"manager":"x"}]},"data":{"a":"1"}}"#;

    fn take(intake: &Intake<ConfigMap>, deleted: bool) -> Result<Option<Arc<ConfigMap>>, DecodeError> {
        let full = Full::new(&ApiResource::erase::<ConfigMap>(&()));
        Ok(intake.take(&full, &Document::json(DOCUMENT), deleted)?.map(|held| held.read()))
    }

    #[test]
    fn a_transform_runs_once_and_its_error_is_an_object_that_cannot_be_decoded() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let trim = move |mut object: ConfigMap| {
            counted.fetch_add(1, Ordering::Relaxed);
            object.data = None;
            Ok(object)
        };
        let intake = Intake { transform: Some(Arc::new(trim)), ..Intake::default() };
        assert_eq!(take(&intake, false).expect("decodes").expect("is kept").data, None);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        let intake = Intake { transform: Some(Arc::new(|_| Err("no".to_owned()))), ..Intake::default() };
        assert_eq!(take(&intake, false).expect_err("fails").to_string(), "the transform failed: no");
    }

    #[test]
    fn a_filter_decides_on_what_is_there_and_not_on_what_is_gone() {
        let intake = Intake {
            filter: Some(Filter::Whole(Arc::new(|object: &ConfigMap| object.data.is_none()))),
            ..Intake::default()
        };
        assert!(take(&intake, false).expect("decodes").is_none());
        assert!(take(&intake, true).expect("decodes").is_some());
    }
}
