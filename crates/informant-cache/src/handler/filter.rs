//! A handler's own filter: it's told of the objects only that pass.
//!
//! What counts is what the handler was told, not what the filter would say of an old state. So its history is
//! consistent also when events were merged, when the filter panicked, or when it judges by something that changes.

use crate::event::{Event, FinalState};
use crate::object::Cached;
use crate::store::Table;

type Pass<K> = Box<dyn Fn(&K) -> bool + Send + Sync>;

pub(super) struct HandlerFilter<K> {
    pass: Pass<K>,
    /// The objects that the handler knows of, in the state that it was told last.
    told: Table<K>,
}

impl<K> HandlerFilter<K> {
    pub(super) fn new(pass: Pass<K>) -> Self {
        Self { pass, told: Table::default() }
    }

    /// What to tell the handler of an event. It calls the user's function.
    pub(super) fn apply(&mut self, event: Event<K>) -> Option<Event<K>> {
        let (object, initial) = match event {
            Event::Deleted { object, final_state } => {
                let told = self.told.remove(object.key().as_str())?;
                drop(told);
                return Some(Event::Deleted { object, final_state });
            }
            Event::Added { object, initial } => (object, initial),
            Event::Updated { new, .. } => (new, false),
        };
        if (self.pass)(&object.object()) {
            return Some(match self.tell(object.clone()) {
                None => Event::Added { object, initial },
                Some(old) => Event::Updated { old, new: object },
            });
        }
        let old = self.told.remove(object.key().as_str())?;
        Some(Event::Deleted { object: old, final_state: FinalState::Known })
    }

    fn tell(&mut self, object: Cached<K>) -> Option<Cached<K>> {
        self.told.insert(object)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::key::ObjectKey;
    use crate::representation::Held;

    fn object(version: u64) -> Cached<u64> {
        Cached::new(ObjectKey::cluster("a"), "uid", &version.to_string(), Held::Full(Arc::new(version)), 0)
    }

    fn show(event: Option<Event<u64>>) -> String {
        match event {
            None => String::new(),
            Some(Event::Added { object, .. }) => format!("+{object:?}"),
            Some(Event::Updated { old, new }) => format!("{old:?}>{}", new.resource_version()),
            Some(Event::Deleted { object, final_state }) => format!("-{object:?} {final_state:?}"),
        }
    }

    /// client-go fact 111: both pass, only the new, only the old, neither; a delete goes by what was told.
    #[test]
    fn what_a_handler_is_told_follows_from_what_it_was_told_before() {
        let mut filter = HandlerFilter::new(Box::new(|version: &u64| !version.is_multiple_of(10)));
        let added = |version| Event::Added { object: object(version), initial: true };
        let updated = |old, new| Event::Updated { old: object(old), new: object(new) };
        let deleted = |version| Event::Deleted { object: object(version), final_state: FinalState::Unknown };
        assert_eq!(show(filter.apply(added(10))), "");
        assert_eq!(show(filter.apply(updated(10, 20))), "");
        assert_eq!(show(filter.apply(updated(20, 21))), "+a@21");
        assert_eq!(show(filter.apply(updated(21, 22))), "a@21>22");
        assert_eq!(show(filter.apply(updated(22, 30))), "-a@22 Known");
        assert_eq!(show(filter.apply(deleted(31))), "", "it knows already");
        assert_eq!(show(filter.apply(added(41))), "+a@41");
        assert_eq!(show(filter.apply(deleted(50))), "-a@50 Unknown", "the last state needn't pass");
        assert_eq!(show(filter.apply(updated(1, 2))), "+a@2", "what wasn't told before is new");
    }
}
