//! What others see of a reflector's phase: the informer's state, with a reason and since when.

use jiff::Timestamp;

use super::Reflector;
use super::state::Phase;
use crate::availability::Absence;
use crate::status::{InformerState, LastError};

impl<K: Send + Sync + 'static> Reflector<'_, K> {
    pub(super) fn show_phase(&mut self) {
        self.shown = self.state.phase().clone();
        let status = &self.informer.status;
        let now = || status.clock().now();
        let before = self.part.state(status);
        let since = |kept: Option<Timestamp>| kept.unwrap_or_else(now);
        let state = match self.state.phase() {
            Phase::Starting => InformerState::Starting,
            Phase::Listing => InformerState::Listing,
            Phase::Synced => InformerState::Synced,
            Phase::Missing(absence) => {
                let kept = if let InformerState::Missing { since, .. } = before { Some(since) } else { None };
                let Absence { cause, reason, checked_by, error } = absence.clone();
                let last_error = error.map(|error| LastError { at: now(), kind: error.kind, message: error.message });
                InformerState::Missing { since: since(kept), cause, reason, checked_by, last_error }
            }
            Phase::Forbidden(error) => {
                let kept = if let InformerState::Forbidden { since, .. } = before { Some(since) } else { None };
                InformerState::Forbidden { since: since(kept), reason: error.message.clone() }
            }
            Phase::Retrying(error) => {
                let kept = if let InformerState::Retrying { since, .. } = before { Some(since) } else { None };
                InformerState::Retrying { since: since(kept), kind: error.kind, reason: error.message.clone() }
            }
            Phase::Failed(error) => InformerState::Failed { since: now(), reason: error.message.clone() },
        };
        self.part.set_state(status, state.clone());
        self.tell(&state);
    }

    /// One line for each spell of trouble and one for its end, however many attempts there are between the two.
    fn tell(&mut self, state: &InformerState) {
        let (informer, namespace) = (&self.informer.name, self.part.namespace());
        let news = self.told != Some(state.name());
        match state {
            InformerState::Missing { .. } | InformerState::Forbidden { .. } | InformerState::Retrying { .. }
                if news =>
            {
                tracing::warn!(informer = %informer, namespace, state = %state, "informer can't follow the server; it goes on trying");
            }
            InformerState::Failed { .. } if news => {
                tracing::error!(informer = %informer, namespace, state = %state, "informer has ended");
            }
            InformerState::Synced if news => tracing::info!(informer = %informer, namespace, "informer is synced"),
            // Steps between the two.
            _ => return,
        }
        self.told = Some(state.name());
    }
}
