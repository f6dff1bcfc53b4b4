//! Lists: their resource versions, their pages, and what follows when they fail.

use super::*;

/// Facts 1 and 35.
#[test]
fn the_first_list_is_at_0_in_pages_of_500_and_the_watch_is_at_the_list_s_resource_version() {
    let mut run = Run::lists();
    run.page("10", None);
    assert_eq!(run.output.store, StoreAction::Commit);
    assert_eq!(run.sent, ["LIST \"0\" 500", "WATCH \"10\""]);
    assert_eq!(run.state.phase(), &Phase::Synced);
}

/// Facts 2 and 5.
#[test]
fn a_relist_is_at_the_last_resource_version_and_unpaged_so_that_the_server_s_cache_can_answer() {
    let mut run = Run::synced_at("10");
    run.later(60 * SECOND).step(Input::ErrorEvent(error(Kind::Expired)));
    assert_eq!(run.sent, ["LIST \"0\" 500", "WATCH \"10\"", "LIST \"10\" 0"]);
}

/// Facts 3 and 11 (a page's request carries the token only; `request.rs` shows the URL).
#[test]
fn a_page_size_that_was_set_holds_for_every_page_of_every_list() {
    let mut run = Run::start(Policy { page_size: Some(4), watch_list: false, ..policy() });
    run.page("10", Some("a")).page("10", Some("b")).page("10", None).step(Input::Opened);
    run.later(60 * SECOND).step(Input::ErrorEvent(error(Kind::Expired))).page("12", Some("c"));
    let lists = ["LIST \"0\" 4", "LIST continue a 4", "LIST continue b 4", "LIST \"10\" 4", "LIST continue c 4"];
    assert_eq!(run.lists_sent(), lists);
}

/// Fact 4.
#[test]
fn a_server_whose_list_at_0_came_in_pages_is_asked_in_pages_for_ever() {
    let mut run = Run::lists();
    run.page("10", Some("a")).page("10", None).step(Input::Opened);
    run.later(60 * SECOND).step(Input::ErrorEvent(error(Kind::Expired)));
    assert_eq!(run.lists_sent().last(), Some(&"LIST \"10\" 500"));
}

/// Facts 6 and 10.
#[test]
fn a_list_at_an_expired_resource_version_is_followed_at_once_by_one_for_the_newest_state() {
    let mut run = Run::synced_at("10");
    run.later(60 * SECOND).step(Input::ErrorEvent(error(Kind::Expired))).fail(Kind::Expired);
    assert_eq!(run.lists_sent(), ["LIST \"0\" 500", "LIST \"10\" 0", "LIST \"\" 500"]);
    run.page("30", None).step(Input::Opened);
    run.later(60 * SECOND).step(Input::ErrorEvent(error(Kind::Expired)));
    assert_eq!(run.lists_sent().last(), Some(&"LIST \"30\" 0"));
    assert!(run.waited.is_empty(), "{:?}", run.waited);
}

/// Fact 7.
#[test]
fn a_token_that_expires_between_pages_is_answered_by_the_whole_list_at_the_same_resource_version() {
    let mut run = Run::lists();
    run.page("10", Some("a")).fail(Kind::Expired);
    assert_eq!(run.output.store, StoreAction::Discard, "nothing of half a list is kept");
    assert_eq!(run.sent, ["LIST \"0\" 500", "LIST continue a 500", "LIST \"0\" 0"]);
    // If that fails too, then the newest state is asked for, and then it's a failure.
    run.fail(Kind::Expired).fail(Kind::Expired);
    assert_eq!(run.lists_sent().last(), Some(&"LIST \"\" 500"));
    assert_eq!(run.waited.len(), 1);
}

/// Facts 8 and 9: too large is answered like expired, on the first page at once by the newest state.
#[test]
fn a_resource_version_that_the_server_has_not_reached_is_not_asked_for_twice() {
    let mut run = Run::synced_at("500");
    run.later(60 * SECOND).step(Input::ErrorEvent(error(Kind::Expired))).fail(Kind::ResourceVersionTooLarge);
    assert_eq!(run.lists_sent(), ["LIST \"0\" 500", "LIST \"500\" 0", "LIST \"\" 500"]);
    assert!(run.waited.is_empty(), "{:?}", run.waited);
}

/// Fact 12.
#[test]
fn a_failed_list_is_shown_and_no_watch_follows_it() {
    let mut run = Run::lists();
    run.fail(Kind::Server);
    assert!(matches!(run.state.phase(), Phase::Retrying(error) if error.message == "server error"));
    run.after_wait();
    assert_eq!(run.sent, ["LIST \"0\" 500", "LIST \"0\" 500"]);
    assert!((800..1600).contains(&run.waited[0].as_millis()), "{:?}", run.waited);
}

/// A list that ends early (cut in the middle of its body) is a failed list.
#[test]
fn a_list_that_breaks_off_is_asked_for_again_from_its_beginning() {
    let mut run = Run::lists();
    run.page("10", Some("a")).step(Input::Broken(error(Kind::Connection)));
    assert_eq!(run.output.store, StoreAction::Discard);
    run.after_wait();
    assert_eq!(run.sent.last().map(String::as_str), Some("LIST \"0\" 500"));
}

// --- unless the server's cache is to be read ---

/// Public reports C-040 (cert-manager/cert-manager#3748) and C-003 (kubernetes/kubernetes#91073): no answer holds more
/// than a page, and no list goes out with a resource version that a server might not have reached.
#[test]
fn every_list_asks_for_the_newest_state_in_pages() {
    let mut run = Run::newest();
    run.page("10", Some("a")).page("10", None).step(Input::Opened);
    run.later(60 * SECOND)
        .step(Input::ErrorEvent(error(Kind::Expired)))
        .page("30", None)
        .fail(Kind::Server)
        .after_wait();
    assert_eq!(
        run.sent,
        ["LIST \"\" 500", "LIST continue a 500", "WATCH \"10\"", "LIST \"\" 500", "WATCH \"30\"", "WATCH \"30\""]
    );
    let mut run = Run::start(Policy { page_size: Some(7), read_from_cache: false, ..policy() });
    run.fail(Kind::Invalid);
    assert_eq!(run.sent, ["STREAM \"\"", "LIST \"\" 7"]);
}

/// Public reports C-036 (folio-pro/kdashboard#70) and C-038 (gardener/dashboard#3271), where client-go asks for
/// everything at once (fact 7).
#[test]
fn a_list_whose_token_expires_starts_over_in_pages_three_times_and_then_waits() {
    let mut run = Run::newest();
    for _ in 0..LIST_RESTARTS_MAX {
        run.page("10", Some("a")).fail(Kind::Expired);
        assert_eq!(run.output.store, StoreAction::Discard, "nothing of half a list is kept");
        assert_eq!(run.sent.last().map(String::as_str), Some("LIST \"\" 500"));
    }
    assert!(run.waited.is_empty(), "{:?}", run.waited);
    run.page("10", Some("a")).fail(Kind::Expired);
    assert!(matches!(run.output.next, Next::Wait(_)));
    assert!(matches!(run.state.phase(), Phase::Retrying(_)));
    // What comes at last is used, and the count starts over.
    run.after_wait().page("20", Some("b")).fail(Kind::Expired);
    assert_eq!(run.sent.last().map(String::as_str), Some("LIST \"\" 500"));
    run.page("20", Some("b")).page("20", None);
    assert_eq!((run.output.store, run.sent.last().map(String::as_str)), (StoreAction::Commit, Some("WATCH \"20\"")));
}

#[test]
fn lists_that_are_always_expired_are_never_hot() {
    for start in [Run::newest, Run::lists, Run::streams] {
        let requests = start().requests_within(3600 * SECOND, |run| {
            run.fail(Kind::Expired);
        });
        // The longest delay is 30 to 60 s; a stream is followed by up to three lists.
        assert!((60..700).contains(&requests), "{requests} requests in an hour");
        let mut page = false;
        let requests = start().requests_within(3600 * SECOND, |run| {
            page = !page;
            if page && matches!(run.state.step, Step::Listing(_)) {
                run.page("10", Some("a"))
            } else {
                run.fail(Kind::Expired)
            };
        });
        assert!((60..1500).contains(&requests), "{requests} requests in an hour");
    }
}

#[test]
fn an_object_that_ends_a_strict_informer_ends_it() {
    let mut run = Run::newest();
    run.page("10", Some("a")).step(Input::Refused(error(Kind::Malformed)));
    assert_eq!((run.output.store, &run.output.next), (StoreAction::Discard, &Next::Stop));
    assert!(matches!(run.state.phase(), Phase::Failed(_)));
}
