//! Tells what happens as it happens, and counts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use informant::cache::{EventKind, HandlerHandle, HandlerOptions, Metadata, SharedInformer};
use informant::prelude::Event;
use serde::Serialize;

use crate::changes::changed_paths;
use crate::{clock, output};

/// Prints a line for each event of the informers that it listens to.
#[derive(Debug, Default)]
pub struct Narrator {
    events: Arc<AtomicU64>,
    handlers: Vec<HandlerHandle>,
}

impl Narrator {
    /// Listens to an informer too; `what` is how its objects are called, for example `deployment`.
    pub fn listen<K>(&mut self, what: &'static str, informer: &SharedInformer<K>)
    where
        K: Metadata + Serialize + Send + Sync + 'static,
    {
        let events = Arc::clone(&self.events);
        self.handlers.push(informer.on_change_with(HandlerOptions::named("narrator"), move |event| {
            events.fetch_add(1, Ordering::Relaxed);
            tell(&format!("{what} {} {}", event.key(), what_happened(&event)));
        }));
    }

    /// Events told so far.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }
}

/// Prints one line with the time. A reader that has gone away doesn't end the demo: it has a cluster to tidy up.
pub fn tell(text: &str) {
    drop(output::line(&format!("{}  {text}", clock::now())));
}

fn what_happened<K: Serialize>(event: &Event<K>) -> String {
    let changed = || {
        let (old, new) = (event.old()?, event.object());
        Some(changed_paths(&serde_json::to_value(&*old).ok()?, &serde_json::to_value(&*new).ok()?))
    };
    match event.kind() {
        EventKind::Added if event.is_initial() => "is there".to_owned(),
        EventKind::Added => "added".to_owned(),
        EventKind::Updated => format!("updated: {}", changed().unwrap_or_default().join(" ")),
        EventKind::Deleted => "deleted".to_owned(),
    }
}
