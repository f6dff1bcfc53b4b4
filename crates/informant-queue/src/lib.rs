//! A work queue for level-triggered controllers: it carries keys, never objects, and knows nothing of Kubernetes.
//!
//! What it promises, in the order in which a key travels:
//!
//! 1. **Deduplicated.** A key that waits to be handled is there once, however often it is added.
//! 2. **Never with two workers.** A key that is added while a worker has it is served again after that worker is done.
//! 3. **In order.** Keys are served in the order in which they became ready; a delayed key becomes ready at its time.
//! 4. **Earliest wins.** A key has one time at most; adding it again can only make it earlier.
//! 5. **Nothing is lost.** A key that was accepted is handed to a worker, unless the queue is shut down before the
//!    key's time has come: then it is counted as abandoned.
//! 6. **Bounded.** One entry per distinct key, and no more of them than [`Options::limit`] if that is set.
//!
//! The numbers of [`RateLimits::default`] are client-go's: 5 ms doubling to 1000 s for each key, together with ten retries a
//! second (a hundred at once) for all keys.
//!
//! Nothing is spawned and no clock ticks: a delayed key is promoted by whoever looks at the queue next, which is a waiting
//! worker at exactly that moment. The decisions are in `state.rs` and `rate_limits.rs`, plain values that get the time passed in;
//! [`WorkQueue`] adds a lock and a bell. Time is `tokio::time`, so a test under paused time needs no real sleep.
//!
//! ```
//! use informant_queue::WorkQueue;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let queue = WorkQueue::named("apps");
//! queue.add("default/web");
//! queue.add("default/web");
//! queue.shut_down();
//! let mut served = 0;
//! while let Some(item) = queue.next().await {
//!     assert_eq!(item.key(), &"default/web");
//!     served += 1;
//!     item.forget();
//! }
//! assert_eq!(served, 1);
//! # }
//! ```

mod histogram;
mod item;
mod options;
mod rate_limits;
mod state;
mod stats;
mod work_queue;

pub use histogram::Histogram;
pub use item::Item;
pub use options::Options;
pub use rate_limits::{Backoff, Bucket, RateLimits};
pub use state::Admission;
pub use stats::Stats;
pub use work_queue::{Drained, Key, WorkQueue};
