//! Workers without informers: keys come in by hand, and time is paused.

use std::{
    future::Future,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::future::BoxFuture;
use informant_queue::WorkQueue;
use tokio::{task::JoinSet, time::sleep};

use super::*;
use crate::{ReconcileError, controller::Numbers, lock::lock};

type Calls = Arc<Mutex<Vec<(u128, u32)>>>;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn key() -> ObjectKey {
    ObjectKey::namespaced("default", "web")
}

fn shared(workers: usize) -> Arc<Shared> {
    Arc::new(Shared {
        name: "apps".into(),
        resource: "apps.example.com".into(),
        workers,
        queue: WorkQueue::named("apps"),
        numbers: Mutex::default(),
    })
}

fn reconcile<F>(function: impl Fn(Request) -> F + Send + Sync + 'static) -> Reconcile
where
    F: Future<Output = Result<Action, ReconcileError>> + Send + 'static,
{
    Arc::new(move |request| -> BoxFuture<'static, _> { function(request).boxed() })
}

/// Runs workers for a time and stops them; gives the controller's account.
async fn run_for(time: Duration, shared: &Arc<Shared>, reconcile: Reconcile, limit: Option<Duration>) -> Numbers {
    let stop = CancellationToken::new();
    let end = async {
        sleep(time).await;
        stop.cancel();
    };
    let (result, ()) = tokio::join!(run(shared, &reconcile, limit, &stop), end);
    result.unwrap();
    shared.numbers_mut(|numbers| numbers.clone())
}

/// A reconcile that notes when it's called and as which attempt, and answers by the number of the call.
fn scripted(answer: impl Fn(usize) -> Result<Action, ReconcileError> + Send + Sync + 'static) -> (Calls, Reconcile) {
    let calls = Calls::default();
    let noted = Arc::clone(&calls);
    let start = Instant::now();
    let reconcile = reconcile(move |request| {
        let number = {
            let mut calls = lock(&noted);
            calls.push((start.elapsed().as_millis(), request.attempt));
            calls.len() - 1
        };
        let answer = answer(number);
        async move { answer }
    });
    (calls, reconcile)
}

/// controller-runtime fact 40, with client-go's default numbers.
#[tokio::test(start_paused = true)]
async fn errors_are_retried_after_5_ms_doubled_each_time_until_a_success_forgets_them() {
    let shared = shared(1);
    shared.queue.add(key());
    let (calls, reconcile) = scripted(|number| match number {
        0..=4 => Err(ReconcileError::new("not yet")),
        _ => Ok(Action::done()),
    });
    let numbers = run_for(ms(10_000), &shared, reconcile, None).await;
    let attempts: Vec<u32> = lock(&calls).iter().map(|call| call.1).collect();
    assert_eq!(attempts, [0, 1, 2, 3, 4, 5]);
    let times: Vec<u128> = lock(&calls).iter().map(|call| call.0).collect();
    for (pair, wait) in times.windows(2).zip([5, 10, 20, 40, 80]) {
        assert!((wait..=wait + 1).contains(&(pair[1] - pair[0])), "{times:?}");
    }
    assert_eq!((numbers.counts.error, numbers.counts.success), (5, 1));
    assert_eq!(shared.queue.num_requeues(&key()), 0);
    assert_eq!(numbers.last_error.unwrap().message, "not yet");
}

/// controller-runtime fact 41.
#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_not_retried_and_the_next_event_is_served() {
    let shared = shared(1);
    shared.queue.add(key());
    let (calls, reconcile) = scripted(|_| Err(ReconcileError::terminal("no such region")));
    let numbers = run_for(ms(100_000), &shared, Arc::clone(&reconcile), None).await;
    assert_eq!(lock(&calls).len(), 1);
    assert_eq!((numbers.counts.error, numbers.counts.terminal_errors), (1, 1));
    shared.queue.add(key());
    run_for(ms(1), &shared, reconcile, None).await;
    assert_eq!(lock(&calls).len(), 2);
}

/// controller-runtime fact 31.
#[tokio::test(start_paused = true)]
async fn a_panic_before_or_within_the_future_is_counted_and_retried_with_backoff() {
    let shared = shared(1);
    shared.queue.add(key());
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let reconcile = reconcile(move |_| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        assert!(number != 0, "at the call");
        async move {
            tokio::task::yield_now().await;
            assert!(number != 1, "in the future");
            Ok(Action::done())
        }
    });
    let numbers = run_for(ms(1000), &shared, reconcile, None).await;
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert_eq!((numbers.counts.panics, numbers.counts.error, numbers.counts.success), (2, 2, 1));
    assert_eq!(numbers.last_error.unwrap().message, "panic: in the future [recovered]");
    assert_eq!(numbers.time.count(), 3);
    assert_eq!(shared.queue.stats().retries, 2);
}

/// controller-runtime facts 42 and 43.
#[tokio::test(start_paused = true)]
async fn requeue_keeps_the_backoff_growing_and_requeue_after_starts_it_anew() {
    let shared = shared(1);
    shared.queue.add(key());
    let (calls, reconcile) = scripted(|number| match number {
        0 => Err(ReconcileError::new("not yet")),
        1 | 2 => Ok(Action::requeue()),
        3 => Ok(Action::requeue_after(ms(500))),
        4 => Err(ReconcileError::new("not yet")),
        _ => Ok(Action::done()),
    });
    let numbers = run_for(ms(10_000), &shared, reconcile, None).await;
    let calls = lock(&calls).clone();
    let attempts: Vec<u32> = calls.iter().map(|call| call.1).collect();
    assert_eq!(attempts, [0, 1, 2, 3, 0, 1]);
    for (pair, wait) in calls.windows(2).zip([5, 10, 20, 500, 5]) {
        assert!((wait..=wait + 1).contains(&(pair[1].0 - pair[0].0)), "{calls:?}");
    }
    let counts = numbers.counts;
    assert_eq!((counts.requeue, counts.requeue_after, counts.error, counts.success), (2, 1, 2, 1));
}

/// controller-runtime fact 32.
#[tokio::test(start_paused = true)]
async fn a_reconcile_that_takes_too_long_is_dropped_and_retried() {
    let shared = shared(1);
    shared.queue.add(key());
    let dropped = Arc::new(());
    let held = Arc::clone(&dropped);
    let reconcile = reconcile(move |request| {
        let held = Arc::clone(&held);
        async move {
            if request.attempt == 0 {
                sleep(ms(1_000_000)).await;
            }
            drop(held);
            Ok(Action::done())
        }
    });
    let numbers = run_for(ms(5_000), &shared, Arc::clone(&reconcile), Some(ms(1000))).await;
    assert_eq!((numbers.counts.timeouts, numbers.counts.success), (1, 1));
    assert_eq!(numbers.last_error.unwrap().message, "took longer than the allowed 1s");
    drop(reconcile);
    assert_eq!(Arc::strong_count(&dropped), 1, "the first future was dropped");
}

#[tokio::test(start_paused = true)]
async fn as_many_keys_as_workers_are_reconciled_at_a_time_and_no_key_twice() {
    let shared = shared(3);
    for number in 0..7 {
        shared.queue.add(ObjectKey::cluster(&format!("key-{number}")));
    }
    let running = Arc::new(Mutex::new(Vec::<ObjectKey>::new()));
    let most = Arc::new(AtomicUsize::new(0));
    let (seen, peak, again) = (Arc::clone(&running), Arc::clone(&most), shared.queue.clone());
    let reconcile = reconcile(move |request| {
        let (seen, peak, again) = (Arc::clone(&seen), Arc::clone(&peak), again.clone());
        async move {
            {
                let mut running = lock(&seen);
                assert!(!running.contains(&request.key), "{} is reconciled twice at a time", request.key);
                running.push(request.key.clone());
                peak.fetch_max(running.len(), Ordering::Relaxed);
            }
            again.add(request.key.clone());
            sleep(ms(10)).await;
            lock(&seen).retain(|key| *key != request.key);
            Ok(Action::done())
        }
    });
    let numbers = run_for(ms(1000), &shared, reconcile, None).await;
    assert_eq!(most.load(Ordering::Relaxed), 3);
    assert_eq!((numbers.counts.panics, numbers.active()), (0, 0));
    assert!(numbers.counts.success > 100);
}

/// What controller-runtime's users asked for: a stop lets a running reconcile end.
#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_running_reconciles_and_leaves_waiting_keys() {
    let shared = shared(1);
    shared.queue.add(key());
    shared.queue.add(ObjectKey::cluster("waits"));
    let ended = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&ended);
    let reconcile = reconcile(move |request| {
        let noted = Arc::clone(&noted);
        async move {
            sleep(ms(100)).await;
            lock(&noted).push(request.key);
            Ok(Action::done())
        }
    });
    let start = Instant::now();
    run_for(ms(50), &shared, reconcile, None).await;
    assert_eq!(*lock(&ended), [key()]);
    assert!(start.elapsed() >= ms(100) && start.elapsed() < ms(110));
    assert_eq!(shared.queue.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn aborted_workers_leave_nothing_behind() {
    let shared = shared(2);
    shared.queue.add(key());
    let reconcile = reconcile(|_| async {
        sleep(ms(1_000_000)).await;
        Ok(Action::done())
    });
    let mut tasks = JoinSet::new();
    let running = Arc::clone(&shared);
    tasks.spawn(async move { run(&running, &reconcile, None, &CancellationToken::new()).await });
    sleep(ms(10)).await;
    assert_eq!(shared.describe(), "controller \"apps\" (at default/web)");
    tasks.shutdown().await;
    // The workers are the set's, which aborts them when it's dropped; they end at their next turn.
    sleep(ms(1)).await;
    assert_eq!(shared.numbers_mut(|numbers| numbers.active()), 0);
    assert_eq!(shared.queue.stats().in_flight, 0);
    assert_eq!(shared.describe(), "controller \"apps\"");
}
