//! Whole informers against a scripted server: the tests play the server and say each of its answers, byte by byte where
//! that matters. Time is paused, so delays cost nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod factory;
mod failures;
mod faults;
mod forms;
mod handlers;
mod hostile;
mod index;
mod initial_state;
mod leaks;
mod lists;
mod live_reads;
mod namespaces;
mod options;
mod own_handlers;
mod projection;
mod protobuf;
mod reading;
mod relists;
mod reports;
mod representation;
mod scripted;
mod sockets;
mod stopping;
mod streams;
mod sync;
mod transforms;
mod watches;
