//! The tower service: route, read the body, act, answer.
