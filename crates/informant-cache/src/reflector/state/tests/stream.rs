//! Streams of initial events.

use super::*;

/// Facts 36, 37 and 46.
#[test]
fn the_present_state_is_streamed_and_the_same_stream_goes_on() {
    let mut run = Run::streams();
    assert_eq!(run.sent, ["STREAM \"\""]);
    run.step(Input::Opened).change(ChangeKind::Added, "7");
    assert_eq!((run.output.store, run.state.resource_version()), (StoreAction::Stage, ""));
    run.end_of_initial_events("20");
    assert_eq!((run.output.store, &run.output.next), (StoreAction::Commit, &Next::Read));
    assert_eq!(run.state.resource_version(), "20");
    run.change(ChangeKind::Modified, "21");
    assert_eq!(run.output.store, StoreAction::Apply);
    assert_eq!(run.lists_sent(), Vec::<&str>::new());
}

/// Fact 38.
#[test]
fn a_bookmark_without_the_mark_does_not_end_the_initial_events() {
    let mut run = Run::streams();
    run.step(Input::Opened).change(ChangeKind::Added, "7").bookmark("9");
    assert_eq!(run.state.phase(), &Phase::Listing);
    assert!(run.state.awaits_initial_events_end());
}

/// Fact 39: all three kinds of change belong to the state being taken in.
#[test]
fn changes_before_the_end_of_the_initial_events_are_staged() {
    let mut run = Run::streams();
    run.step(Input::Opened);
    for kind in [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Deleted] {
        run.change(kind, "7");
        assert_eq!(run.output.store, StoreAction::Stage);
    }
}

/// Fact 40, where client-go starts over at once.
#[test]
fn a_stream_that_ends_before_its_initial_events_do_starts_over_after_a_delay_and_keeps_nothing() {
    let mut run = Run::streams();
    run.step(Input::Opened).change(ChangeKind::Added, "7").later(5 * SECOND).step(Input::Ended);
    assert_eq!(run.output.store, StoreAction::Discard);
    run.after_wait();
    assert_eq!(run.sent, ["STREAM \"\"", "STREAM \"\""]);
}

/// W11: client-go starts over for ever, and at once. Pages make progress where a stream can't.
#[test]
fn a_stream_that_never_gets_to_its_end_gives_way_to_a_list() {
    let mut run = Run::streams();
    for cut in 1..=UNFINISHED_STREAMS_MAX {
        run.step(Input::Opened).later(5 * SECOND).step(Input::Broken(error(Kind::Connection)));
        if cut < UNFINISHED_STREAMS_MAX {
            run.after_wait();
        }
    }
    assert!(run.waited.is_sorted() && run.waited.len() == 2, "{:?}", run.waited);
    assert_eq!(run.sent, ["STREAM \"\"", "STREAM \"\"", "STREAM \"\"", "LIST \"0\" 500"]);
    let mut run = Run::streams();
    run.step(Input::Opened).step(Input::Broken(error(Kind::Connection)));
    assert!(matches!(run.output.next, Next::Wait(_)), "one that ends at once isn't opened again at once");
}

/// Fact 41.
#[test]
fn a_stream_that_ends_after_its_initial_events_is_followed_by_a_plain_watch() {
    let mut run = Run::streams();
    run.step(Input::Opened).end_of_initial_events("20").change(ChangeKind::Added, "22");
    run.later(300 * SECOND).step(Input::Ended);
    assert_eq!(run.sent, ["STREAM \"\"", "WATCH \"22\""]);
}

/// Fact 42. A 404 says the same of a list, so none is tried (client-go does).
#[test]
fn a_stream_that_is_refused_gives_way_to_a_list() {
    for kind in [Kind::Invalid, Kind::Forbidden, Kind::Server, Kind::Connection] {
        let mut run = Run::streams();
        run.fail(kind).page("10", None);
        assert_eq!(run.sent, ["STREAM \"\"", "LIST \"0\" 500", "WATCH \"10\""]);
        run.step(Input::Opened).later(60 * SECOND).step(Input::ErrorEvent(error(Kind::Expired)));
        // A server that doesn't understand it isn't asked again; any other is.
        let next = if kind == Kind::Invalid { "LIST \"10\" 0" } else { "STREAM \"10\"" };
        assert_eq!(run.sent.last().map(String::as_str), Some(next), "{kind}");
    }
}

/// Fact 43.
#[test]
fn too_many_requests_at_the_opening_of_a_stream_asks_for_the_same_again_later() {
    let mut run = Run::streams();
    run.fail(Kind::TooManyRequests).after_wait().fail(Kind::ConnectionRefused).after_wait();
    assert_eq!(run.sent, ["STREAM \"\"", "STREAM \"\"", "STREAM \"\""]);
}

/// Fact 44: the store's content isn't touched, and the new state is streamed from the last resource version.
#[test]
fn changes_that_are_gone_when_a_watch_is_opened_again_leave_the_store_alone() {
    let mut run = Run::streams();
    run.step(Input::Opened).end_of_initial_events("20").later(300 * SECOND).step(Input::Ended).fail(Kind::Expired);
    assert_eq!(run.output.store, StoreAction::Discard);
    assert_eq!(run.sent, ["STREAM \"\"", "WATCH \"20\"", "STREAM \"20\""]);
}

/// Fact 45.
#[test]
fn a_stream_at_a_resource_version_that_the_server_cannot_use_is_asked_for_at_the_newest() {
    for kind in [Kind::Expired, Kind::ResourceVersionTooLarge] {
        let mut run = Run::streams();
        run.step(Input::Opened).end_of_initial_events("20").later(60 * SECOND);
        run.step(Input::ErrorEvent(error(Kind::Expired))).fail(kind);
        assert_eq!(run.sent, ["STREAM \"\"", "STREAM \"20\"", "STREAM \"\""]);
        assert!(run.waited.is_empty(), "{:?}", run.waited);
    }
}

/// Fact 47, where client-go warns every 10 s and waits for ever.
#[test]
fn initial_events_that_go_quiet_without_their_end_give_way_to_lists_for_good() {
    let mut run = Run::streams();
    run.step(Input::Opened).change(ChangeKind::Added, "7").step(Input::InitialEventsOverdue);
    assert_eq!(run.output.store, StoreAction::Discard);
    run.page("10", None).step(Input::Opened).later(60 * SECOND).step(Input::ErrorEvent(error(Kind::Expired)));
    assert_eq!(run.sent, ["STREAM \"\"", "LIST \"0\" 500", "WATCH \"10\"", "LIST \"10\" 0"]);
}

/// Not on a stream alone: an error within the initial events is answered like one at its opening.
#[test]
fn an_error_within_the_initial_events_gives_way_to_a_list() {
    let mut run = Run::streams();
    run.step(Input::Opened).step(Input::ErrorEvent(error(Kind::Server)));
    assert_eq!((run.output.store, run.lists_sent()), (StoreAction::Discard, vec!["LIST \"0\" 500"]));
}

#[test]
fn streams_that_always_end_early_or_are_always_expired_are_never_hot() {
    for cut in [Input::Ended, Input::Broken(error(Kind::Connection)), Input::ErrorEvent(error(Kind::Expired))] {
        let requests = Run::streams().requests_within(3600 * SECOND, |run| {
            match run.state.step {
                Step::Listing(_) => run.fail(Kind::Connection),
                _ => run.step(Input::Opened).step(cut.clone()),
            };
        });
        assert!((60..700).contains(&requests), "{requests} requests in an hour after {cut:?}");
    }
    // After its initial events, too.
    let requests = Run::streams().requests_within(3600 * SECOND, |run| {
        run.step(Input::Opened).end_of_initial_events("20").step(Input::ErrorEvent(error(Kind::Expired)));
    });
    assert!((60..200).contains(&requests), "{requests} requests in an hour");
}
