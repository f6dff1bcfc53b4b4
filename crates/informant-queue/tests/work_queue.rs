//! The queue as workers see it: waiting, waking, shutting down. Time is paused, so every wait is exact and none is real.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{future::Future, time::Duration};

use informant_queue::{Admission, Options, WorkQueue};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Lets all other tasks run until each waits for something.
async fn settle() {
    sleep(Duration::from_nanos(1)).await;
}

async fn is_pending(future: impl Future) -> bool {
    timeout(Duration::from_nanos(1), future).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_is_woken_at_exactly_the_keys_time() {
    let queue = WorkQueue::named("test");
    let start = Instant::now();
    queue.add_after("late", ms(1000));
    let mut workers = JoinSet::new();
    let worker = queue.clone();
    workers.spawn(async move { worker.next().await.map(|item| (*item.key(), start.elapsed())) });
    settle().await;
    queue.add_after("early", ms(50));
    let (key, after) = workers.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(key, "early");
    assert!(after >= ms(50) && after < ms(52), "{after:?}");
    assert_eq!(queue.next().await.unwrap().key(), &"late");
    assert!(start.elapsed() < ms(1002));
}

#[tokio::test(start_paused = true)]
async fn every_waiting_worker_gets_one_of_as_many_keys() {
    let queue = WorkQueue::named("test");
    let mut workers = JoinSet::new();
    for _ in 0..8 {
        let queue = queue.clone();
        workers.spawn(async move {
            let item = queue.next().await.unwrap();
            // Holds the key, so a worker that was not woken would show.
            sleep(ms(10)).await;
            let key = *item.key();
            item.forget();
            key
        });
    }
    settle().await;
    let start = Instant::now();
    for key in 0..8 {
        queue.add(key);
    }
    let mut keys: Vec<i32> = workers.join_all().await;
    keys.sort_unstable();
    assert_eq!(keys, (0..8).collect::<Vec<_>>());
    assert!(start.elapsed() < ms(20), "they worked side by side");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_takes_no_key_and_swallows_no_wake_up() {
    let queue = WorkQueue::named("test");
    for _ in 0..3 {
        assert!(is_pending(queue.next()).await);
    }
    let mut workers = JoinSet::new();
    let worker = queue.clone();
    workers.spawn(async move { worker.next().await.map(|item| *item.key()) });
    {
        let cancelled = queue.next();
        tokio::pin!(cancelled);
        assert!(is_pending(&mut cancelled).await);
        queue.add("a");
        // Dropped after it may have been the one that the bell rang for.
    }
    assert_eq!(workers.join_next().await.unwrap().unwrap(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn retries_wait_as_client_go_does() {
    let queue = WorkQueue::named("test");
    queue.add("a");
    let mut last = Instant::now();
    let mut waits = Vec::new();
    for _ in 0..6 {
        let item = queue.next().await.unwrap();
        waits.push(last.elapsed().as_millis());
        last = Instant::now();
        item.retry();
    }
    assert_eq!(waits[0], 0);
    for (wait, expected) in waits[1..].iter().zip([5, 10, 20, 40, 80]) {
        assert!((expected..=expected + 1).contains(wait), "{waits:?}");
    }
    let item = queue.next().await.unwrap();
    assert_eq!(item.num_requeues(), 6);
    item.forget();
    assert_eq!(queue.num_requeues(&"a"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_item_is_done_and_keeps_its_failures() {
    let queue = WorkQueue::named("test");
    queue.add_rate_limited("a");
    drop(queue.next().await.unwrap());
    assert_eq!(queue.num_requeues(&"a"), 1);
    queue.add("a");
    assert_eq!(queue.next().await.unwrap().key(), &"a", "it isn't held by the dropped item");
    assert!(is_pending(queue.next()).await);
}

#[tokio::test(start_paused = true)]
async fn an_item_dropped_by_a_panic_is_retried() {
    let queue = WorkQueue::named("test");
    queue.add("a");
    let mut workers = JoinSet::new();
    let worker = queue.clone();
    workers.spawn(async move {
        let _item = worker.next().await.unwrap();
        panic!("the worker's own");
    });
    assert!(workers.join_next().await.unwrap().unwrap_err().is_panic());
    let item = queue.next().await.unwrap();
    assert_eq!((*item.key(), item.num_requeues()), ("a", 1));
}

#[tokio::test(start_paused = true)]
async fn an_aborted_worker_blocks_nothing() {
    let queue = WorkQueue::named("test");
    queue.add("a");
    let mut workers = JoinSet::new();
    let worker = queue.clone();
    workers.spawn(async move {
        let _item = worker.next().await.unwrap();
        sleep(Duration::from_secs(3600)).await;
    });
    settle().await;
    queue.add("a");
    assert!(is_pending(queue.next()).await);
    workers.shutdown().await;
    assert_eq!(queue.next().await.unwrap().key(), &"a");
}

/// client-go fact 124.
#[tokio::test(start_paused = true)]
async fn shutting_down_wakes_every_waiting_worker() {
    let queue: WorkQueue<u32> = WorkQueue::named("test");
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let queue = queue.clone();
        workers.spawn(async move { queue.next().await.is_none() });
    }
    settle().await;
    queue.add_after(1, ms(10));
    assert_eq!(queue.shut_down(), 1);
    assert_eq!(workers.join_all().await, [true; 4]);
    assert_eq!(queue.add(2), Admission::ShutDown);
    assert!(queue.is_shut_down());
}

/// client-go fact 125.
#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_workers_and_serves_what_was_added_again() {
    let queue = WorkQueue::named("test");
    queue.add("a");
    queue.add("b");
    let a = queue.next().await.unwrap();
    queue.add("a");
    queue.add_after("c", ms(1));
    let drain = queue.shut_down_with_drain();
    tokio::pin!(drain);
    assert!(is_pending(&mut drain).await);
    a.forget();
    assert!(is_pending(&mut drain).await);
    let b = queue.next().await.unwrap();
    let again = queue.next().await.unwrap();
    assert_eq!((*b.key(), *again.key()), ("b", "a"));
    assert!(queue.next().await.is_none());
    b.forget();
    assert!(is_pending(&mut drain).await);
    assert_eq!(again.retry(), None);
    let drained = drain.await;
    assert!(drained.finished);
    assert_eq!(drained.abandoned, 1);
}

/// client-go fact 125.
#[tokio::test(start_paused = true)]
async fn a_shut_down_ends_a_drain() {
    let queue = WorkQueue::named("test");
    queue.add("a");
    let item = queue.next().await.unwrap();
    let drain = queue.shut_down_with_drain();
    tokio::pin!(drain);
    assert!(is_pending(&mut drain).await);
    queue.shut_down();
    assert!(!drain.await.finished);
    item.forget();
    assert!(queue.shut_down_with_drain().await.finished);
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_not_take_a_workers_wake_up() {
    let queue = WorkQueue::named("test");
    let mut workers = JoinSet::new();
    let worker = queue.clone();
    workers.spawn(async move {
        let mut served = Vec::new();
        while let Some(item) = worker.next().await {
            served.push(*item.key());
            sleep(ms(5)).await;
            item.forget();
        }
        served
    });
    settle().await;
    queue.add("a");
    queue.add("b");
    assert!(timeout(ms(100), queue.shut_down_with_drain()).await.unwrap().finished);
    assert_eq!(workers.join_next().await.unwrap().unwrap(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn without_workers_a_drain_of_an_empty_queue_ends_at_once() {
    let queue: WorkQueue<u8> = WorkQueue::with_options("test", Options::default().limit(1));
    assert!(queue.shut_down_with_drain().await.finished);
    assert!(queue.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn requeue_after_serves_again_then_and_an_addition_makes_it_earlier() {
    let queue = WorkQueue::named("test");
    queue.add("a");
    queue.next().await.unwrap().requeue_after(ms(100));
    let start = Instant::now();
    let item = queue.next().await.unwrap();
    assert!(start.elapsed() >= ms(100) && start.elapsed() < ms(102));
    item.requeue_after(ms(100));
    queue.add("a");
    let start = Instant::now();
    queue.next().await.unwrap().forget();
    assert!(start.elapsed() < ms(1));
    sleep(ms(200)).await;
    assert!(queue.is_empty(), "the earlier time took the place of the later");
}
