//! The server's clock: every timestamp and every deadline comes from here.
