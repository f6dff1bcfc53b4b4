//! Watches: from the store's history to a stream of frames.
