//! Many threads at once: no key with two workers, no addition without a service after it, no hang at the end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use informant_queue::{Backoff, Options, RateLimits, WorkQueue};
use tokio::task::JoinSet;

const KEYS: usize = 16;
const ADDERS: u64 = 4;
const ADDS: u64 = 20_000;

#[derive(Default)]
struct Slot {
    wanted: AtomicU64,
    seen: AtomicU64,
    busy: AtomicBool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_key_is_with_two_workers_and_the_last_state_of_each_is_served() {
    let backoff = Backoff::Exponential { base: Duration::from_micros(10), max: Duration::from_micros(100) };
    let queue: WorkQueue<usize> =
        WorkQueue::with_options("hammer", Options::default().rate_limits(RateLimits::per_key(backoff)));
    let slots: Arc<Vec<Slot>> = Arc::new((0..KEYS).map(|_| Slot::default()).collect());

    let mut workers = JoinSet::new();
    for worker in 0..6 {
        let (queue, slots) = (queue.clone(), Arc::clone(&slots));
        workers.spawn(async move {
            let mut rng = fastrand::Rng::with_seed(worker);
            while let Some(item) = queue.next().await {
                let slot = &slots[*item.key()];
                assert!(!slot.busy.swap(true, Ordering::SeqCst), "key {} is with two workers", item.key());
                let wanted = slot.wanted.load(Ordering::SeqCst);
                if rng.u8(..4) == 0 {
                    tokio::task::yield_now().await;
                }
                let failed = rng.u8(..16) == 0;
                if !failed {
                    slot.seen.fetch_max(wanted, Ordering::SeqCst);
                }
                slot.busy.store(false, Ordering::SeqCst);
                match rng.u8(..3) {
                    _ if failed => drop(item.retry()),
                    0 => item.forget(),
                    1 => item.done(),
                    _ => drop(item),
                }
            }
        });
    }
    let mut adders = JoinSet::new();
    for adder in 0..ADDERS {
        let (queue, slots) = (queue.clone(), Arc::clone(&slots));
        adders.spawn(async move {
            let mut rng = fastrand::Rng::with_seed(1000 + adder);
            for _ in 0..ADDS {
                let key = rng.usize(..KEYS);
                slots[key].wanted.fetch_add(1, Ordering::SeqCst);
                let admission = match rng.u8(..4) {
                    0 => queue.add_after(key, Duration::from_micros(rng.u64(..50))),
                    _ => queue.add(key),
                };
                assert!(admission.is_accepted());
                if rng.u8(..8) == 0 {
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    while let Some(result) = adders.join_next().await {
        result.unwrap();
    }
    // Delayed additions and retries may be under way; a shut down would give them up.
    let settled = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let stats = queue.stats();
            if stats.depth + stats.delayed + stats.in_flight == 0 {
                break stats;
            }
            tokio::task::yield_now().await;
        }
    });
    let stats = settled.await.expect("a wake-up was lost: keys wait and workers sleep");
    for slot in slots.iter() {
        assert_eq!(slot.seen.load(Ordering::SeqCst), slot.wanted.load(Ordering::SeqCst));
    }
    assert_eq!(stats.queue_duration.count(), stats.adds);
    assert_eq!(stats.work_duration.count(), stats.adds);
    assert!(queue.shut_down_with_drain().await.finished);
    while let Some(result) = workers.join_next().await {
        result.unwrap();
    }
}
