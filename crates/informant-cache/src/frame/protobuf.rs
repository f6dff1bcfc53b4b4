//! Protobuf: a list is one message in an envelope, a watch is messages with their length before each.

mod list;
mod watch;

pub(crate) use self::list::{ListDecoder, ListEnd};
pub(crate) use self::watch::WatchDecoder;
