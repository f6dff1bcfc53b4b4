//! What becomes of an object, from what has become of its owners. A pure decision.

use super::OwnerReference;

/// What has become of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// It's there.
    Present,
    /// It's being deleted and waits for its dependents.
    Waiting,
    /// It's gone, or another object has its name.
    Absent,
    /// Nobody can tell, because its kind isn't served; counts as there.
    Unknown,
}

/// What becomes of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stays as it is.
    Keep,
    /// It stays, without the references to these owners.
    DropOwners(Vec<String>),
    /// It goes.
    Delete,
    /// It goes, after its own dependents.
    DeleteInForeground,
}

/// Decides about an object that isn't being deleted yet.
pub(super) fn verdict(owners: &[(&OwnerReference, OwnerState)], has_dependents: bool) -> Verdict {
    let is_kept = |state: OwnerState| matches!(state, OwnerState::Present | OwnerState::Unknown);
    let lost: Vec<String> =
        owners.iter().filter(|(_, state)| !is_kept(*state)).map(|(owner, _)| owner.uid.clone()).collect();
    if lost.is_empty() {
        return Verdict::Keep;
    }
    if lost.len() < owners.len() {
        return Verdict::DropOwners(lost);
    }
    let awaited = owners.iter().any(|(_, state)| *state == OwnerState::Waiting);
    if awaited && has_dependents { Verdict::DeleteInForeground } else { Verdict::Delete }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OwnerState::{Absent, Present, Unknown, Waiting};

    fn decide(states: &[OwnerState], has_dependents: bool) -> Verdict {
        let owners: Vec<OwnerReference> = (0..states.len())
            .map(|index| OwnerReference {
                api_version: "v1".to_owned(),
                kind: "ConfigMap".to_owned(),
                name: "a".to_owned(),
                uid: index.to_string(),
                blocks: true,
            })
            .collect();
        let pairs: Vec<_> = owners.iter().zip(states.iter().copied()).collect();
        verdict(&pairs, has_dependents)
    }

    #[test]
    fn one_owner_that_is_there_or_may_be_keeps_the_object() {
        assert_eq!(decide(&[], false), Verdict::Keep);
        assert_eq!(decide(&[Present], false), Verdict::Keep);
        assert_eq!(decide(&[Unknown], false), Verdict::Keep);
        assert_eq!(decide(&[Absent, Unknown], false), Verdict::DropOwners(vec!["0".to_owned()]));
        assert_eq!(
            decide(&[Absent, Present, Waiting], true),
            Verdict::DropOwners(vec!["0".to_owned(), "2".to_owned()])
        );
    }

    #[test]
    fn without_any_it_goes_and_in_the_foreground_when_its_owner_waits_and_it_has_dependents() {
        assert_eq!(decide(&[Absent, Absent], true), Verdict::Delete);
        assert_eq!(decide(&[Waiting], false), Verdict::Delete);
        assert_eq!(decide(&[Waiting, Absent], true), Verdict::DeleteInForeground);
    }
}
