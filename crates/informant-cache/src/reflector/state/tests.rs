//! The protocol's facts, each as what the state machine says to what happened.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A state machine with its clock, which remembers what it said.
struct Run {
    state: State,
    now: Duration,
    output: Output,
    sent: Vec<String>,
    waited: Vec<Duration>,
}

impl Run {
    fn start(policy: Policy) -> Self {
        let mut state = State::new(policy, 1, String::new());
        let output = state.step(Duration::ZERO, Input::Start);
        let mut run = Self { state, now: Duration::ZERO, output, sent: Vec::new(), waited: Vec::new() };
        run.note();
        run
    }

    fn lists() -> Self {
        Self::start(Policy { watch_list: false, ..policy() })
    }

    fn streams() -> Self {
        Self::start(policy())
    }

    /// Synced by a list at this resource version, its watch opened.
    fn synced_at(resource_version: &str) -> Self {
        let mut run = Self::lists();
        run.page(resource_version, None);
        run.step(Input::Opened);
        run
    }

    /// Something happens; delays run to their end at once.
    fn step(&mut self, input: Input) -> &mut Self {
        self.output = self.state.step(self.now, input);
        self.note();
        self
    }

    fn note(&mut self) {
        match &self.output.next {
            Next::Send(request) => self.sent.push(show(request)),
            Next::Wait(delay) => self.waited.push(*delay),
            Next::Read => {}
        }
    }

    /// Lets the delay run to its end.
    fn after_wait(&mut self) -> &mut Self {
        let Next::Wait(delay) = self.output.next else { panic!("no delay: {:?}", self.output) };
        self.now += delay;
        self.step(Input::WaitOver)
    }

    fn later(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    fn page(&mut self, resource_version: &str, continue_token: Option<&str>) -> &mut Self {
        let continue_token = continue_token.map(str::to_owned);
        self.step(Input::Page { resource_version: resource_version.to_owned(), continue_token })
    }

    fn fail(&mut self, kind: Kind) -> &mut Self {
        self.step(Input::Failed(error(kind)))
    }

    fn change(&mut self, kind: ChangeKind, resource_version: &str) -> &mut Self {
        self.step(Input::Changed { kind, resource_version: resource_version.to_owned() })
    }

    fn end_of_initial_events(&mut self, resource_version: &str) -> &mut Self {
        self.step(Input::Bookmark { resource_version: resource_version.to_owned(), initial_events_end: true })
    }

    fn bookmark(&mut self, resource_version: &str) -> &mut Self {
        self.step(Input::Bookmark { resource_version: resource_version.to_owned(), initial_events_end: false })
    }

    /// Brings it to the next list whatever delays are before it, and says which.
    fn lists_sent(&self) -> Vec<&str> {
        self.sent.iter().map(String::as_str).filter(|sent| sent.starts_with("LIST")).collect()
    }
}

fn policy() -> Policy {
    Policy { page_size: None, watch_list: true, watch_timeout_min: Duration::from_secs(300) }
}

fn error(kind: Kind) -> RequestError {
    RequestError::new(kind, kind.to_string())
}

fn show(request: &Request) -> String {
    match request {
        Request::List { resource_version, limit, continue_token: None } => format!("LIST {resource_version:?} {limit}"),
        Request::List { limit, continue_token: Some(token), .. } => format!("LIST continue {token} {limit}"),
        Request::WatchList { resource_version, .. } => format!("STREAM {resource_version:?}"),
        Request::Watch { resource_version, .. } => format!("WATCH {resource_version:?}"),
    }
}

// --- A: list, resource version, paging ---

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

// --- B: watch ---

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
    assert!(run.output.rewatch);
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

// --- C: streams of initial events ---

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

/// Fact 40.
#[test]
fn a_stream_that_ends_before_its_initial_events_do_starts_over_and_keeps_nothing() {
    let mut run = Run::streams();
    run.step(Input::Opened).change(ChangeKind::Added, "7").later(5 * SECOND).step(Input::Ended);
    assert_eq!(run.output.store, StoreAction::Discard);
    assert_eq!(run.sent, ["STREAM \"\"", "STREAM \"\""]);
}

/// W11: client-go starts over for ever, and at once. Pages make progress where a stream can't.
#[test]
fn a_stream_that_never_gets_to_its_end_gives_way_to_a_list() {
    let mut run = Run::streams();
    for _ in 0..UNFINISHED_STREAMS_MAX {
        run.step(Input::Opened).later(5 * SECOND).step(Input::Ended);
    }
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

// --- missing and forbidden, which client-go has no states for ---

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

/// Whatever happens in whatever order, it goes on: it never stops asking, and never asks twice without a delay for
/// what just failed.
#[test]
fn no_order_of_events_stops_it_or_makes_it_spin() {
    let kinds = [
        Kind::Expired,
        Kind::ResourceVersionTooLarge,
        Kind::TooManyRequests,
        Kind::ConnectionRefused,
        Kind::NotFound,
        Kind::Forbidden,
        Kind::Unauthorized,
        Kind::Invalid,
        Kind::Server,
        Kind::Connection,
        Kind::Malformed,
    ];
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut run = if seed % 2 == 0 { Run::streams() } else { Run::lists() };
        let mut sent_since_wait = 0;
        for _ in 0..200 {
            match &run.output.next {
                Next::Wait(_) => {
                    sent_since_wait = 0;
                    run.after_wait();
                    continue;
                }
                Next::Send(_) => sent_since_wait += 1,
                Next::Read => {}
            }
            assert!(sent_since_wait < 12, "it spins (seed {seed}): {:?}", run.sent);
            let kind = kinds[rng.usize(..kinds.len())];
            let in_list = matches!(run.state.step, Step::Listing(_));
            match rng.u8(..8) {
                0 if in_list => run.page("5", (rng.bool()).then_some("t")),
                1 if in_list => run.page("6", None),
                0 | 1 => run.step(Input::Opened),
                2 if !in_list => run.change(ChangeKind::Modified, "7"),
                3 if !in_list => run.end_of_initial_events("8"),
                4 if !in_list => run.step(Input::Ended),
                5 if !in_list => run.step(Input::ErrorEvent(error(kind))),
                6 if !in_list => run.step(Input::Broken(error(kind))),
                _ => run.fail(kind),
            };
        }
    }
}
