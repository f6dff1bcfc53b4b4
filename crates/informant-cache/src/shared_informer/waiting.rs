//! Waiting until an informer is synced, or won't be.

use crate::error::NotSynced;
use crate::status::{InformerState, StatusCell};

pub(crate) async fn wait_synced(name: &str, status: &StatusCell) -> Result<(), NotSynced> {
    let mut synced = status.watch_synced();
    let mut state = status.watch_state();
    let hopeless = state.wait_for(is_hopeless);
    tokio::select! {
        // An informer that was synced is synced, whatever happened since.
        biased;
        _ = synced.wait_for(|synced| *synced) => Ok(()),
        _ = hopeless => Err(NotSynced { informer: name.to_owned(), state: status.state() }),
    }
}

/// As [`wait_synced`], and also over once the kind is known to be absent. True if it's synced.
pub(crate) async fn wait_synced_or_absent(name: &str, status: &StatusCell) -> Result<bool, NotSynced> {
    let mut state = status.watch_state();
    let absent = state.wait_for(InformerState::is_absent);
    tokio::select! {
        biased;
        synced = wait_synced(name, status) => synced.map(|()| true),
        _ = absent => Ok(false),
    }
}

/// Whether an informer that isn't synced won't be without somebody's help.
fn is_hopeless(state: &InformerState) -> bool {
    use InformerState as State;
    matches!(state, State::NotStarted | State::Forbidden { .. } | State::Failed { .. } | State::Stopped)
}
