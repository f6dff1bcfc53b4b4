//! Missing and forbidden, which client-go has no states for.

use super::*;

#[test]
fn a_kind_that_was_never_there_is_missing_at_the_first_answer_and_asked_for_until_it_appears() {
    let mut run = Run::streams();
    for _ in 0..6 {
        run.fail(Kind::NotFound);
        assert!(matches!(run.state.phase(), Phase::Missing(_)));
        assert_eq!(run.output.store, StoreAction::Discard);
        run.after_wait();
    }
    assert_eq!(run.sent.len(), 7);
    assert!(run.waited.iter().all(|delay| *delay <= MISSING.max.mul_f64(1.5)), "{:?}", run.waited);
    run.step(Input::Opened).end_of_initial_events("20");
    assert_eq!((run.state.phase(), run.output.relist), (&Phase::Synced, None));
}

#[test]
fn a_kind_that_vanishes_empties_the_store_only_when_the_server_says_so_twice() {
    let mut run = Run::synced_at("10");
    run.later(SECOND).step(Input::Ended).fail(Kind::NotFound);
    assert!(matches!(run.state.phase(), Phase::Retrying(_)));
    assert_eq!((run.output.store, &run.output.next), (StoreAction::Discard, &Next::Wait(MISSING_RECHECK)));
    run.after_wait().fail(Kind::NotFound);
    assert!(matches!(run.state.phase(), Phase::Missing(_)));
    assert_eq!(run.output.store, StoreAction::Clear);
    // It's emptied once.
    run.after_wait().fail(Kind::NotFound);
    assert_eq!(run.output.store, StoreAction::Discard);
    // It returns, and its resource versions have nothing to do with those before.
    run.after_wait().page("3", None);
    assert_eq!(run.output.relist, Some(RelistReason::Returned));
    assert_eq!(run.lists_sent().last(), Some(&"LIST \"0\" 500"));
    assert_eq!(run.state.phase(), &Phase::Synced);
}

#[test]
fn a_server_that_does_not_know_a_kind_for_a_moment_empties_nothing() {
    let mut run = Run::synced_at("10");
    run.later(SECOND).step(Input::Ended).fail(Kind::NotFound).after_wait().page("11", None);
    assert_eq!((run.output.store, run.state.phase()), (StoreAction::Commit, &Phase::Synced));
    // And the count starts over.
    run.step(Input::Opened).later(SECOND).step(Input::Ended).fail(Kind::NotFound);
    assert_eq!(run.output.store, StoreAction::Discard);
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
