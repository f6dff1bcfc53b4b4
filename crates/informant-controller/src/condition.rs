//! Conditions in a status: what is the case, since when, and why.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The condition of a type.
#[must_use]
pub fn find_condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether there is a condition of a type and its status is `True`.
#[must_use]
pub fn is_condition_true(conditions: &[Condition], type_: &str) -> bool {
    find_condition(conditions, type_).is_some_and(|condition| condition.status == "True")
}

/// A condition for [`set_condition`], which sees to its time. `status` is `True`, `False` or `Unknown`; `reason` one word in
/// CamelCase; `generation` the `metadata.generation` that the statement is about.
#[must_use]
pub fn condition(
    type_: impl Into<String>,
    status: impl Into<String>,
    reason: impl Into<String>,
    message: impl Into<String>,
    generation: Option<i64>,
) -> Condition {
    Condition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        message: message.into(),
        observed_generation: generation,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// Puts a condition in its place: replaces the one of its type or comes last. `lastTransitionTime` becomes `now` if the status is
/// new or another one, and stays otherwise, so that writing the same again changes nothing. Returns whether anything changed.
///
/// [`now`](crate::now) gives the present; a test passes what it likes.
pub fn set_condition(conditions: &mut Vec<Condition>, mut condition: Condition, now: Timestamp) -> bool {
    let Some(existing) = conditions.iter_mut().find(|existing| existing.type_ == condition.type_) else {
        condition.last_transition_time = Time(now);
        conditions.push(condition);
        return true;
    };
    condition.last_transition_time =
        if existing.status == condition.status { existing.last_transition_time.clone() } else { Time(now) };
    if *existing == condition {
        return false;
    }
    *existing = condition;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: &str, message: &str) -> Condition {
        condition("Ready", status, "Because", message, Some(1))
    }

    #[test]
    fn the_time_of_transition_moves_with_the_status_only() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut conditions = vec![condition("Other", "True", "Because", "", None)];
        assert!(set_condition(&mut conditions, ready("False", "no Pods yet"), at(1)));
        assert!(!set_condition(&mut conditions, ready("False", "no Pods yet"), at(2)), "nothing is new");
        assert!(set_condition(&mut conditions, ready("False", "one Pod"), at(3)));
        assert_eq!(conditions[1].last_transition_time, Time(at(1)), "the status is the same");
        assert!(!is_condition_true(&conditions, "Ready"));
        assert!(set_condition(&mut conditions, ready("True", "all Pods"), at(4)));
        assert_eq!(conditions[1].last_transition_time, Time(at(4)));
        assert!(is_condition_true(&conditions, "Ready"));
        assert_eq!((conditions.len(), conditions[0].type_.as_str()), (2, "Other"));
    }
}
