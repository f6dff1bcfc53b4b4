//! Whatever goes wrong on the way: in the end every cache holds what the server has, and every handler was told a true
//! history of it.
//!
//! A **history** is made of one seed: an embedded server, objects that come, change and go in it, informers of different
//! scopes, handlers early and late, and a [`way`] between informers and server that loses, breaks, delays and refuses. It
//! runs in this process under paused time. Afterwards it's held against a plain [`truth`], which is made of nothing but
//! what the server answered to the writes.
//!
//! `cargo xtask sim` runs many, and replays one with a trace of everything that happened.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod history;
mod observer;
mod settings;
mod trace;
mod truth;
mod way;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::trace::Trace;

/// How many histories `cargo test` runs; `cargo xtask ci` runs many more.
const HISTORIES: u64 = 100;
/// After so many failures there's enough to look at.
const FAILURES_MAX: usize = 5;

/// How often each thing happened in the histories of a run.
type Counts = BTreeMap<String, u64>;

#[derive(Default)]
struct Outcome {
    counts: Counts,
    failures: Vec<(u64, String)>,
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is to be a number, not {text:?}")))
}

/// Runs one history; a panic in it is a failure of it.
fn run(seed: u64, trace: &Trace) -> Result<Counts, String> {
    let ran = catch_unwind(AssertUnwindSafe(|| history::run(seed, trace)));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

/// Runs the histories of many seeds on all processors.
fn run_many(from: u64, histories: u64) -> Outcome {
    let (next, outcome) = (AtomicU64::new(from), Mutex::new(Outcome::default()));
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= from + histories || outcome.lock().unwrap().failures.len() >= FAILURES_MAX {
            return;
        }
        let ran = run(seed, &Trace::off());
        let mut outcome = outcome.lock().unwrap();
        match ran {
            Ok(counts) => {
                for (what, count) in counts {
                    *outcome.counts.entry(what).or_default() += count;
                }
            }
            Err(why) => {
                eprintln!("seed {seed}: {why}\n  replay it with: cargo xtask sim --seed {seed}");
                outcome.failures.push((seed, why));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    outcome.into_inner().unwrap()
}

#[test]
fn every_cache_ends_with_what_the_server_has_and_every_handler_with_a_true_history() {
    if let Some(seed) = setting("INFORMANT_SIM_SEED") {
        let ran = run(seed, &Trace::printing());
        println!("seed {seed}: {}", ran.as_ref().map_or_else(String::clone, |_| "as it should be".to_owned()));
        assert!(ran.is_ok(), "seed {seed} failed");
        return;
    }
    let histories = setting("INFORMANT_SIM_HISTORIES").unwrap_or(HISTORIES);
    let from = setting("INFORMANT_SIM_FROM").unwrap_or(0);
    let outcome = run_many(from, histories);
    println!("{histories} histories from seed {from}");
    for (what, count) in &outcome.counts {
        println!("{count:>10}  {what}");
    }
    assert!(outcome.failures.is_empty(), "failed: {:?}", outcome.failures);
    if histories >= HISTORIES {
        let never: Vec<_> =
            way::FAULTS.iter().chain(history::HAPPENINGS).filter(|what| !outcome.counts.contains_key(**what)).collect();
        assert!(never.is_empty(), "the histories are too tame: none had {never:?}");
    }
}

/// Else a seed would say nothing.
#[test]
fn a_seed_makes_the_same_history_each_time() {
    for seed in [3, 11] {
        let (first, again) = (Trace::keeping(), Trace::keeping());
        assert_eq!(run(seed, &first), run(seed, &again));
        let (first, again) = (first.lines(), again.lines());
        assert!(first.len() > 20, "{first:?}");
        for (line, same) in first.iter().zip(&again) {
            assert_eq!(line, same);
        }
        assert_eq!(first.len(), again.len());
    }
}
