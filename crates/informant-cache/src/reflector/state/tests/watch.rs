//! Watches: how they end, and where they go on.

use super::*;

/// Facts 16 and 31: what's skipped doesn't move the resume point, what's good does.
#[test]
fn an_event_that_is_skipped_does_not_say_how_far_we_are() {
    let mut run = Run::synced_at("10");
    run.change(ChangeKind::Added, "11").step(Input::Unknown { resource_version: String::new() });
    assert_eq!(run.state.resource_version(), "11");
}

/// Fact 18, where client-go lists again: a short empty watch is opened again where it was, after a delay. Only if that
/// goes on, the present state is taken in again.
#[test]
fn a_watch_that_ends_at_once_without_an_event_is_opened_again_after_a_delay() {
    let mut run = Run::synced_at("10");
    for _ in 1..FAILED_WATCHES_MAX {
        run.step(Input::Ended).after_wait().step(Input::Opened);
        assert_eq!(run.sent.last().map(String::as_str), Some("WATCH \"10\""));
    }
    run.step(Input::Ended);
    assert_eq!(run.output.relist, Some(RelistReason::WatchError));
    run.after_wait();
    assert_eq!(run.lists_sent(), ["LIST \"0\" 500", "LIST \"10\" 0"]);
    assert!(run.waited.is_sorted(), "delays grow: {:?}", run.waited);
}

/// Fact 19.
#[test]
fn a_watch_that_ends_as_it_should_is_opened_again_at_once_where_it_ended() {
    let mut run = Run::synced_at("10");
    run.change(ChangeKind::Modified, "11").later(SECOND).step(Input::Ended);
    assert_eq!(run.sent, ["LIST \"0\" 500", "WATCH \"10\"", "WATCH \"11\""]);
    assert_eq!(run.output.rewatch, Some(WatchRestartReason::Ended));
    assert!(run.waited.is_empty(), "{:?}", run.waited);
}

/// W11: client-go opens such a watch again without any delay.
#[test]
fn a_watch_that_ends_within_a_second_is_opened_again_when_the_second_is_over() {
    let mut run = Run::synced_at("10");
    run.change(ChangeKind::Modified, "11").later(SECOND / 4).step(Input::Ended);
    assert_eq!(run.output.next, Next::Wait(SECOND * 3 / 4));
    run.after_wait();
    assert_eq!(run.sent.last().map(String::as_str), Some("WATCH \"11\""));
}

/// A connection that's cut is no reason for a list: the server still has what came since.
#[test]
fn a_watch_that_breaks_is_opened_again_where_it_was() {
    let mut run = Run::synced_at("10");
    run.bookmark("12").later(9 * SECOND).step(Input::Broken(error(Kind::Connection)));
    assert_eq!(run.sent.last().map(String::as_str), Some("WATCH \"12\""));
    assert_eq!(run.output.relist, None);
}

/// Fact 20.
#[test]
fn too_many_requests_at_the_opening_of_a_watch_is_no_reason_for_a_list() {
    let mut run = Run::lists();
    run.page("10", None);
    for _ in 0..4 {
        run.fail(Kind::TooManyRequests).after_wait();
    }
    run.step(Input::Opened);
    assert_eq!(run.lists_sent().len(), 1);
    assert_eq!(run.sent.len(), 1 + 5);
    assert_eq!(run.state.phase(), &Phase::Synced);
}

/// Fact 21.
#[test]
fn too_many_requests_in_a_stream_is_no_reason_for_a_list_either() {
    let mut run = Run::lists();
    run.page("10", None).fail(Kind::TooManyRequests).after_wait().step(Input::Opened);
    run.step(Input::ErrorEvent(error(Kind::TooManyRequests))).after_wait();
    assert_eq!(run.waited.len(), 2);
    assert_eq!(run.sent, ["LIST \"0\" 500", "WATCH \"10\"", "WATCH \"10\"", "WATCH \"10\""]);
}

/// W12: client-go ignores the server's wish.
#[test]
fn a_delay_is_at_least_as_long_as_the_server_asks() {
    let mut run = Run::synced_at("10");
    let wish = RequestError { retry_after: Some(7 * SECOND), ..error(Kind::TooManyRequests) };
    run.step(Input::ErrorEvent(wish));
    assert_eq!(run.output.next, Next::Wait(7 * SECOND));
    let wish = RequestError { retry_after: Some(Duration::from_secs(86_400)), ..error(Kind::TooManyRequests) };
    run.after_wait().fail(wish.kind).after_wait().step(Input::Failed(wish));
    assert_eq!(run.output.next, Next::Wait(RETRY_AFTER_MAX));
}

/// Fact 22's state side: a refused connection at the opening of a watch needs no list. Also a broken one, where
/// client-go lists again.
#[test]
fn a_server_that_is_down_is_asked_for_the_watch_again_until_it_is_back() {
    let mut run = Run::synced_at("10");
    run.later(SECOND).step(Input::Broken(error(Kind::Connection)));
    for kind in [
        Kind::ConnectionRefused,
        Kind::Connection,
        Kind::ConnectionRefused,
        Kind::Connection,
        Kind::Unauthorized,
        Kind::Connection,
    ] {
        run.fail(kind);
        assert!(matches!(run.state.phase(), Phase::Retrying(_)));
        run.after_wait();
    }
    run.step(Input::Opened);
    assert_eq!(run.lists_sent().len(), 1);
    assert_eq!(run.sent.last().map(String::as_str), Some("WATCH \"10\""));
    assert_eq!(run.state.phase(), &Phase::Synced);
}

/// Fact 24 with client-go's default (no retries of internal errors): the present state is taken in again, later.
#[test]
fn an_internal_error_in_a_stream_leads_to_a_list_after_a_delay() {
    let mut run = Run::synced_at("10");
    run.later(SECOND).step(Input::ErrorEvent(error(Kind::Server)));
    assert_eq!(run.output.relist, Some(RelistReason::WatchError));
    run.after_wait();
    assert_eq!(run.lists_sent(), ["LIST \"0\" 500", "LIST \"10\" 0"]);
}

/// An error at the opening of a watch may pass; only if it stays, the present state is taken in again.
#[test]
fn a_watch_that_keeps_failing_at_its_opening_leads_to_a_list() {
    let mut run = Run::lists();
    run.page("10", None);
    for _ in 1..FAILED_WATCHES_MAX {
        run.fail(Kind::Server).after_wait();
    }
    assert_eq!(run.lists_sent().len(), 1);
    run.fail(Kind::Server).after_wait();
    assert_eq!(run.lists_sent(), ["LIST \"0\" 500", "LIST \"10\" 0"]);
}

/// Fact 25.
#[test]
fn the_server_is_asked_to_end_a_watch_between_the_minimum_and_twice_that() {
    for minimum in [300, 1800] {
        let watch_timeout_min = Duration::from_secs(minimum);
        let mut state = State::new(Policy { watch_timeout_min, ..policy() }, 3, String::new());
        let drawn: Vec<u64> = (0..100).map(|_| state.watch_timeout().as_secs()).collect();
        assert!(drawn.iter().all(|seconds| (minimum..=2 * minimum).contains(seconds)), "{drawn:?}");
        let spread = drawn.iter().max().expect("some") - drawn.iter().min().expect("some");
        assert!(spread > minimum / 2, "they don't end in step: {drawn:?}");
    }
}

/// Fact 26.
#[test]
fn each_event_moves_the_resume_point() {
    let mut run = Run::synced_at("1");
    run.change(ChangeKind::Added, "10");
    assert_eq!(run.state.resource_version(), "10");
    run.change(ChangeKind::Modified, "20");
    assert_eq!(run.state.resource_version(), "20");
    run.bookmark("30");
    assert_eq!(run.state.resource_version(), "30");
    run.change(ChangeKind::Deleted, "40");
    assert_eq!(run.state.resource_version(), "40");
}

/// Fact 27, and a list without a resource version: its watch starts anywhere, so what it adds says nothing of how far
/// we are, and if nothing else came there's nothing to resume from.
#[test]
fn a_watch_from_anywhere_says_how_far_we_are_only_by_what_is_not_an_add() {
    let mut run = Run::lists();
    run.page("", None).step(Input::Opened);
    assert_eq!(run.sent.last().map(String::as_str), Some("WATCH \"\""));
    run.change(ChangeKind::Added, "3");
    assert_eq!(run.output.store, StoreAction::Apply);
    assert_eq!(run.state.resource_version(), "");
    run.change(ChangeKind::Modified, "9").change(ChangeKind::Added, "12");
    assert_eq!(run.state.resource_version(), "12");

    let mut run = Run::lists();
    run.page("", None).step(Input::Opened).change(ChangeKind::Added, "3").later(9 * SECOND).step(Input::Ended);
    assert_eq!(run.output.relist, Some(RelistReason::Incomplete));
}

/// Fact 28 (what the new list then removes is shown in the tests of the whole informer).
#[test]
fn a_store_read_error_of_the_server_leads_to_a_list() {
    let mut run = Run::synced_at("10");
    run.step(Input::ErrorEvent(RequestError::new(Kind::Server, "StoreReadError"))).after_wait();
    assert_eq!(run.lists_sent().len(), 2);
}

/// Fact 29. client-go waits its whole backoff before the list; here it follows at once, unless the last was just now.
#[test]
fn changes_that_are_gone_lead_to_a_list_at_the_last_resource_version() {
    for gone in [Input::ErrorEvent(error(Kind::Expired)), Input::Failed(error(Kind::Expired))] {
        let mut run = Run::synced_at("10");
        run.bookmark("20").later(60 * SECOND).step(gone.clone());
        assert_eq!(run.output.relist, Some(RelistReason::Expired));
        assert_eq!(run.sent.last().map(String::as_str), Some("LIST \"20\" 0"));
        assert_eq!(run.state.phase(), &Phase::Listing);
        // A server that says so again and again is asked less often.
        run.page("21", None).step(gone);
        assert!(matches!(run.output.next, Next::Wait(_)));
    }
}

/// Fact 34.
#[test]
fn an_event_of_an_unknown_type_still_says_how_far_we_are() {
    let mut run = Run::synced_at("10");
    run.step(Input::Unknown { resource_version: "14".to_owned() });
    assert_eq!((run.state.resource_version(), run.output.store), ("14", StoreAction::Nothing));
}

#[test]
fn something_that_names_no_object_leads_to_a_list() {
    let mut run = Run::synced_at("10");
    run.step(Input::Unreadable(error(Kind::Malformed)));
    assert_eq!(run.output.relist, Some(RelistReason::Unreadable));
    run.after_wait();
    assert_eq!(run.lists_sent().len(), 2);
}

/// Public report C-011 (kubernetes/kubernetes#100878).
#[test]
fn a_server_under_load_is_asked_for_the_watch_only_and_as_late_as_it_wishes() {
    for in_stream in [false, true] {
        let mut run = Run::newest();
        run.page("40", None);
        for _ in 0..3 {
            let wish = RequestError { retry_after: Some(2 * SECOND), ..error(Kind::TooManyRequests) };
            if in_stream {
                run.step(Input::Opened).step(Input::ErrorEvent(wish));
            } else {
                run.step(Input::Failed(wish));
            }
            run.after_wait();
        }
        run.step(Input::Opened);
        assert!(run.waited.iter().all(|delay| *delay >= 2 * SECOND), "{:?}", run.waited);
        assert_eq!(run.sent, ["LIST \"\" 500", "WATCH \"40\"", "WATCH \"40\"", "WATCH \"40\"", "WATCH \"40\""]);
    }
}

/// Public report C-008 (kubernetes-client/python-base#199).
#[test]
fn an_error_event_says_nothing_of_how_far_we_are() {
    for kind in [Kind::Expired, Kind::TooManyRequests, Kind::Server, Kind::Unauthorized] {
        let mut run = Run::synced_at("10");
        run.change(ChangeKind::Modified, "12").step(Input::ErrorEvent(error(kind)));
        assert_eq!(run.state.resource_version(), "12");
    }
}

/// Credentials that expire while a watch is open: what came since is still there.
#[test]
fn a_watch_that_ends_for_want_of_rights_is_opened_again_where_it_was() {
    for kind in [Kind::Unauthorized, Kind::Forbidden] {
        let mut run = Run::synced_at("10");
        run.change(ChangeKind::Modified, "12")
            .step(Input::ErrorEvent(error(kind)))
            .after_wait()
            .fail(kind)
            .after_wait();
        run.step(Input::Opened);
        assert_eq!((run.lists_sent().len(), run.sent.last().map(String::as_str)), (1, Some("WATCH \"12\"")));
        assert_eq!(run.state.phase(), &Phase::Synced);
    }
}

/// Public report C-007 (kubernetes-client/python#819): a server that says 410 whatever it's asked.
#[test]
fn watches_that_are_always_expired_are_never_hot_and_each_starts_at_its_list() {
    for in_stream in [false, true] {
        for start in [Run::newest, Run::lists] {
            let mut version = 100;
            let mut run = start();
            let requests = run.requests_within(3600 * SECOND, |run| {
                match run.state.step {
                    Step::Listing(_) => {
                        version += 1;
                        run.page(&version.to_string(), None)
                    }
                    _ if in_stream => run.step(Input::Opened).step(Input::ErrorEvent(error(Kind::Expired))),
                    _ => run.fail(Kind::Expired),
                };
            });
            assert!((60..300).contains(&requests), "{requests} requests in an hour");
            assert!(run.sent.contains(&format!("WATCH \"{version}\"")));
        }
    }
}

#[test]
fn a_server_that_lost_its_history_in_a_crash_is_listed_at_once_however_often_it_crashes() {
    let mut run = Run::synced_at("10");
    for crash in 0..5 {
        run.later(6 * SECOND)
            .step(Input::Broken(error(Kind::Connection)))
            .step(Input::Failed(error(Kind::ConnectionRefused)));
        run.after_wait().step(Input::Opened).step(Input::ErrorEvent(error(Kind::Expired)));
        assert_eq!(run.lists_sent().len(), 2 + crash, "{:?}", run.output);
        run.page("20", None).step(Input::Opened);
    }
}

#[test]
fn delays_start_over_after_a_watch_that_lasted() {
    let mut run = Run::synced_at("10");
    for _ in 0..6 {
        run.step(Input::Failed(error(Kind::ConnectionRefused))).after_wait();
    }
    run.step(Input::Opened)
        .later(2 * SECOND)
        .step(Input::Broken(error(Kind::Connection)))
        .step(Input::Failed(error(Kind::ConnectionRefused)));
    assert!(matches!(run.output.next, Next::Wait(delay) if delay < 2 * SECOND), "{:?}", run.output);
}

#[test]
fn a_watch_that_is_opened_again_says_how_the_last_one_ended() {
    use WatchRestartReason as Reason;
    for (end, reason) in [
        (Input::Ended, Reason::Ended),
        (Input::Broken(error(Kind::Connection)), Reason::Broken),
        (Input::Idle(error(Kind::Connection)), Reason::Idle),
        (Input::Failed(error(Kind::ConnectionRefused)), Reason::Refused),
        (Input::Failed(error(Kind::TooManyRequests)), Reason::TooManyRequests),
        (Input::Failed(error(Kind::Server)), Reason::Failed),
        (Input::ErrorEvent(error(Kind::Unauthorized)), Reason::Denied),
        (Input::ErrorEvent(error(Kind::TooManyRequests)), Reason::TooManyRequests),
    ] {
        let mut run = Run::synced_at("10");
        run.later(9 * SECOND).step(end);
        if run.output.rewatch.is_none() {
            run.later(9 * SECOND).step(Input::WaitOver);
        }
        assert_eq!(run.output.rewatch, Some(reason));
    }
    let mut run = Run::synced_at("10");
    run.change(ChangeKind::Added, "11").step(Input::Ended);
    run.later(SECOND).step(Input::WaitOver);
    assert_eq!(run.output.rewatch, Some(Reason::Short));
}
