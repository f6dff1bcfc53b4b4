//! Missing and forbidden, which client-go has no states for.

use super::*;
use crate::status::{AvailabilityCheck, MissingCause};

fn absent(cause: MissingCause, checked_by: AvailabilityCheck) -> Verdict {
    Verdict::Absent(Absence { cause, reason: "gone".into(), checked_by, error: None })
}

pub(super) fn no_such_kind() -> Verdict {
    absent(MissingCause::NoSuchKind, AvailabilityCheck::Discovery)
}

fn missing(run: &Run) -> Option<&MissingCause> {
    if let Phase::Missing(absence) = run.state.phase() { Some(&absence.cause) } else { None }
}

#[test]
fn a_kind_that_was_never_there_is_missing_at_the_first_answer_and_looked_for_until_it_appears() {
    let mut run = Run::streams();
    run.refuse(no_such_kind());
    for _ in 0..8 {
        assert_eq!((missing(&run), run.output.store), (Some(&MissingCause::NoSuchKind), StoreAction::Discard));
        run.look(no_such_kind());
    }
    assert_eq!(run.sent.len(), 1, "discovery is asked, not the kind: {:?}", run.sent);
    assert!(run.waited.iter().all(|delay| *delay <= Duration::from_secs(30)), "{:?}", run.waited);
    assert!(run.waited.last().is_some_and(|delay| *delay >= MISSING.max), "{:?}", run.waited);
    run.look(Verdict::Served);
    assert_eq!(run.sent.len(), 2, "{:?}", run.sent);
    run.step(Input::Opened).end_of_initial_events("20");
    assert_eq!((run.state.phase(), run.output.relist), (&Phase::Synced, None));
}

#[test]
fn a_kind_that_vanishes_empties_the_store_only_when_discovery_says_so_twice() {
    let mut run = Run::synced_at("10");
    run.later(SECOND).step(Input::Ended).refuse(no_such_kind());
    assert!(matches!(run.state.phase(), Phase::Retrying(_)));
    assert_eq!((run.output.store, &run.output.next), (StoreAction::Discard, &Next::Wait(MISSING_RECHECK)));
    run.look(no_such_kind());
    assert_eq!((missing(&run), run.output.store), (Some(&MissingCause::Deleted), StoreAction::Clear));
    // It's emptied once.
    run.look(no_such_kind());
    assert_eq!((missing(&run), run.output.store), (Some(&MissingCause::Deleted), StoreAction::Discard));
    // It returns, and its resource versions have nothing to do with those before.
    run.look(Verdict::Served).page("3", None);
    assert_eq!(run.output.relist, Some(RelistReason::Returned));
    assert_eq!(run.lists_sent().last(), Some(&"LIST \"0\" 500"));
    assert_eq!(run.state.phase(), &Phase::Synced);
}

#[test]
fn a_kind_whose_crd_is_gone_empties_the_store_at_once() {
    let mut run = Run::synced_at("10");
    let gone = absent(MissingCause::NoSuchKind, AvailabilityCheck::CrdWatch);
    run.later(SECOND).step(Input::Ended).refuse(gone);
    assert_eq!((missing(&run), run.output.store), (Some(&MissingCause::Deleted), StoreAction::Clear));
}

#[test]
fn a_server_that_does_not_know_a_kind_for_a_moment_empties_nothing() {
    let mut run = Run::synced_at("10");
    run.later(SECOND).step(Input::Ended).refuse(no_such_kind()).look(Verdict::Served).page("11", None);
    assert_eq!((run.output.store, run.state.phase()), (StoreAction::Commit, &Phase::Synced));
    // And the count starts over.
    run.step(Input::Opened).later(SECOND).step(Input::Ended).refuse(no_such_kind());
    assert_eq!(run.output.store, StoreAction::Discard);
}

#[test]
fn while_discovery_fails_or_says_that_all_is_well_nothing_is_emptied() {
    let mut run = Run::synced_at("10");
    run.later(SECOND).step(Input::Ended);
    for _ in 0..5 {
        run.refuse(Verdict::Unknown(error(Kind::Server)));
        assert!(matches!(run.state.phase(), Phase::Retrying(error) if error.kind == Kind::Server));
        assert_eq!(run.output.store, StoreAction::Discard);
        run.after_wait();
        run.refuse(Verdict::Served);
        assert!(matches!(run.state.phase(), Phase::Retrying(error) if error.message.contains("not found")));
        assert_eq!(run.output.store, StoreAction::Discard);
        run.after_wait();
    }
    // A CRD that looks well while the kind isn't there says that the two are about to agree.
    for _ in 0..3 {
        run.refuse(absent(MissingCause::NotEstablished, AvailabilityCheck::Discovery));
        assert!(matches!(run.state.phase(), Phase::Retrying(_)));
        assert_eq!(run.output.store, StoreAction::Discard);
        run.look(Verdict::Served);
    }
}

#[test]
fn while_discovery_fails_at_the_start_the_state_says_so_and_the_kind_itself_is_asked_for() {
    let mut run = Run::streams();
    run.refuse(Verdict::Unknown(error(Kind::Forbidden)));
    assert_eq!(missing(&run), Some(&MissingCause::DiscoveryFailing));
    run.look(Verdict::Unknown(error(Kind::Forbidden)));
    assert_eq!(run.sent.len(), 2);
    run.step(Input::Opened).end_of_initial_events("20");
    assert_eq!(run.state.phase(), &Phase::Synced);
}

#[test]
fn another_version_that_will_do_is_taken_in_at_once_and_from_nothing() {
    let mut run = Run::synced_at("10");
    run.later(SECOND).step(Input::Ended).refuse(Verdict::ServedAs("v2".into()));
    assert_eq!(run.output.store, StoreAction::Clear);
    assert_eq!(run.lists_sent().last(), Some(&"LIST \"0\" 500"));
    // Two versions that send us to each other don't make it spin.
    run.refuse(Verdict::ServedAs("v1".into()));
    assert!(matches!(run.output.next, Next::Wait(_)), "{:?}", run.output);
}

#[test]
fn what_is_forbidden_is_said_so_and_tried_again_and_what_was_in_the_store_stays() {
    let mut run = Run::synced_at("10");
    run.later(SECOND).step(Input::Ended).fail(Kind::Forbidden);
    assert!(matches!(run.state.phase(), Phase::Forbidden(error) if error.message == "forbidden"));
    assert_eq!(run.output.store, StoreAction::Nothing);
    run.after_wait().step(Input::Opened);
    assert_eq!((run.lists_sent().len(), run.state.phase()), (1, &Phase::Synced));

    let mut run = Run::streams();
    run.fail(Kind::Forbidden).fail(Kind::Forbidden);
    assert!(matches!(run.state.phase(), Phase::Forbidden(_)));
    assert_eq!(run.sent, ["STREAM \"\"", "LIST \"0\" 500"]);
}
