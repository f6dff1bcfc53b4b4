//! How this crate takes its locks.
//!
//! A std lock is poisoned when a thread panics while holding it. Here no user code runs under a lock, and every write
//! under one is complete before anything that could panic, so a poisoned lock still guards consistent data and is
//! taken as it is.
//!
//! Ranks (take upwards only): 1 factory registry, 2 an informer's handler list, 3 store, 4 a handler's backlog,
//! 5 an informer's status.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
