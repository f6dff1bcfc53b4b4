//! Reading a watch or a stream of the present state, event by event, and noticing when nothing comes any more.

use std::time::Duration;

use tokio::time::Instant;

use super::body::Answer;
use super::decoder::Found;
use super::state::{ChangeKind, Input, Next, Output, StoreAction};
use super::{Reflector, malformed};
use crate::delta::Delta;
use crate::document::Encoding;
use crate::error::{RequestError, RequestErrorKind};
use crate::frame::{Frame, WatchFrames};
use crate::head::{Bookmark, WatchEvent};
use crate::protobuf;

/// A watch whose end is this much overdue is taken for dead: the server was asked to end it.
const WATCH_MARGIN: Duration = Duration::from_secs(30);
/// Initial events that pause this long without their end are taken for a server that doesn't know of the end.
const INITIAL_EVENTS_PATIENCE: Duration = Duration::from_secs(15);
/// So are initial events that haven't ended after this long, though something always comes.
const INITIAL_EVENTS_MAX: Duration = Duration::from_secs(180);

/// What it means if nothing comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    /// The initial events have no end.
    InitialEvents,
    /// The connection is dead: not even bookmarks come.
    NoBookmarks,
    /// The connection is dead: not even the end comes that was asked for.
    NoEnd,
}

impl<K: Send + Sync + 'static> Reflector<'_, K> {
    pub(super) async fn read_stream(&mut self, mut answer: Answer, timeout: Duration) -> Output {
        let opened = self.step(Input::Opened);
        if opened.next != Next::Read {
            return opened;
        }
        let encoding = answer.encoding();
        let mut decoder = WatchFrames::new(encoding, self.informer.settings.document_bytes_max);
        self.bookmarked = false;
        let opened = Instant::now();
        loop {
            let (until, silence) = self.patience(opened, timeout);
            if silence == Silence::InitialEvents && until <= Instant::now() {
                // They are never quiet, so the timeout below would never be over.
                return self.step(Input::InitialEventsOverdue);
            }
            match tokio::time::timeout_at(until, answer.stream_chunk()).await {
                Err(_) if silence == Silence::InitialEvents => return self.step(Input::InitialEventsOverdue),
                Err(_) => return self.fail(self.silent(silence, timeout), Input::Idle),
                Ok(Err(error)) => return self.fail(error, Input::Broken),
                Ok(Ok(None)) => return self.end_of_stream(&mut decoder, encoding),
                Ok(Ok(Some(chunk))) => {
                    self.arrived = Instant::now();
                    decoder.push(chunk);
                }
            }
            loop {
                let frame = match decoder.next() {
                    Ok(Some(frame)) => frame,
                    Ok(None) => break,
                    Err(error) => {
                        self.flush();
                        return self.fail(malformed(error), Input::Broken);
                    }
                };
                let output = self.event(&frame, encoding);
                if output.next != Next::Read {
                    self.flush();
                    return output;
                }
            }
            self.flush();
            self.settle().await;
        }
    }

    /// Until when the next chunk must come, and what it means if it doesn't.
    fn patience(&self, opened: Instant, timeout: Duration) -> (Instant, Silence) {
        let now = Instant::now();
        let end = (opened + timeout + WATCH_MARGIN, Silence::NoEnd);
        let sooner = if self.state.awaits_initial_events_end() {
            let until = (now + INITIAL_EVENTS_PATIENCE).min(opened + INITIAL_EVENTS_MAX);
            Some((until, Silence::InitialEvents))
        } else if self.bookmarked {
            Some((now + self.informer.settings.idle_timeout, Silence::NoBookmarks))
        } else {
            None
        };
        sooner.filter(|(until, _)| *until < end.0).unwrap_or(end)
    }

    fn silent(&self, silence: Silence, timeout: Duration) -> RequestError {
        let message = if silence == Silence::NoBookmarks {
            let seconds = self.informer.settings.idle_timeout.as_secs();
            format!("the server had sent bookmarks, and then was silent for {seconds} s")
        } else {
            let (seconds, margin) = (timeout.as_secs(), WATCH_MARGIN.as_secs());
            format!("the server was asked to end the watch after {seconds} s and was silent for {margin} s more")
        };
        RequestError::new(RequestErrorKind::Connection, message)
    }

    fn end_of_stream(&mut self, decoder: &mut WatchFrames, encoding: Encoding) -> Output {
        match decoder.finish() {
            Err(error) => self.fail(malformed(error), Input::Broken),
            Ok(None) => self.step(Input::Ended),
            Ok(Some(frame)) => {
                let output = self.event(&frame, encoding);
                self.flush();
                if output.next == Next::Read { self.step(Input::Ended) } else { output }
            }
        }
    }

    /// Handles one event of a stream.
    fn event(&mut self, frame: &Frame, encoding: Encoding) -> Output {
        let event = match (frame, encoding) {
            (Frame::Document(line), Encoding::Json) => WatchEvent::parse(line).map_err(malformed),
            (Frame::Document(frame), Encoding::Protobuf(_)) => WatchEvent::from_protobuf(frame).map_err(malformed),
            (Frame::TooLarge(prefix), _) => return self.large_event(prefix, encoding),
        };
        let event = match (event, frame) {
            (Ok(event), _) => event,
            // Some write an error's status as it is, not as an event.
            (Err(_), Frame::Document(line)) if RequestError::is_status(line) => {
                return self.fail(RequestError::from_event(line), Input::ErrorEvent);
            }
            (Err(error), _) => return self.fail(error, Input::Unreadable),
        };
        let kind = match &*event.kind {
            "ADDED" => ChangeKind::Added,
            "MODIFIED" => ChangeKind::Modified,
            "DELETED" => ChangeKind::Deleted,
            "BOOKMARK" => return self.bookmark(&event.object),
            "ERROR" => return self.fail(RequestError::from_event(&event.object), Input::ErrorEvent),
            _ => {
                self.informer.status.count(|counters| counters.unexpected += 1);
                let resource_version = Bookmark::parse(&event.object).unwrap_or_default().resource_version;
                return self.step(Input::Unknown { resource_version });
            }
        };
        let (found, resource_version) = self.decoder.event(&event.object, kind == ChangeKind::Deleted);
        self.change(kind, found, resource_version)
    }

    /// Handles an event that's larger than the bound, of which only the beginning is there.
    fn large_event(&mut self, prefix: &[u8], encoding: Encoding) -> Output {
        let limit = self.informer.settings.document_bytes_max;
        let start = match encoding {
            Encoding::Json => WatchEvent::split_start(prefix),
            Encoding::Protobuf(_) => {
                protobuf::WatchEvent::read_start(prefix).ok().map(|event| (event.kind, event.object))
            }
        };
        let kind = start.and_then(|(kind, object)| match kind {
            "ADDED" => Some((ChangeKind::Added, object)),
            "MODIFIED" => Some((ChangeKind::Modified, object)),
            "DELETED" => Some((ChangeKind::Deleted, object)),
            _ => None,
        });
        let Some((kind, object)) = kind else {
            let message = format!("a watch event is larger than {limit} bytes and names no object at its beginning");
            return self.fail(RequestError::new(RequestErrorKind::Malformed, message), Input::Unreadable);
        };
        let (found, resource_version) = self.decoder.large_event(object);
        self.change(kind, found, resource_version)
    }

    fn change(&mut self, kind: ChangeKind, found: Found<K>, resource_version: String) -> Output {
        if let Some(error) = self.decoder.refused.take() {
            return self.fail(error, Input::Refused);
        }
        let delta = match (kind, found) {
            (_, Found::Unreadable(error)) => return self.fail(malformed(error), Input::Unreadable),
            (_, Found::OtherKind) => {
                self.informer.status.count(|counters| counters.unexpected += 1);
                // Whatever it is, it isn't about our objects, so it doesn't say how far we are.
                return self.step(Input::Unknown { resource_version: String::new() });
            }
            (ChangeKind::Deleted, Found::Object(object)) => {
                Delta::Delete { key: object.key().clone(), last: Some(object) }
            }
            (ChangeKind::Deleted, Found::Undecodable(key)) => {
                self.decoder.forget(&key);
                Delta::Delete { key, last: None }
            }
            // To those who want other objects only, one that they no longer want is gone.
            (_, Found::Unwanted(key)) => Delta::Leave { key },
            (ChangeKind::Added | ChangeKind::Modified, Found::Object(object)) => Delta::Upsert(object),
            (ChangeKind::Added | ChangeKind::Modified, Found::Undecodable(key)) => {
                let output = self.step(Input::Changed { kind, resource_version });
                if output.store == StoreAction::Stage {
                    self.staging.insert_undecodable(key);
                }
                return output;
            }
        };
        let output = self.step(Input::Changed { kind, resource_version });
        match (output.store, delta) {
            (StoreAction::Stage, Delta::Upsert(object)) => self.staging.insert(object),
            (StoreAction::Stage, Delta::Delete { key, .. }) => self.staging.remove(key),
            (StoreAction::Stage, Delta::Leave { key }) => self.staging.leave(key),
            (_, delta) => self.batch.push(delta),
        }
        output
    }

    fn bookmark(&mut self, object: &[u8]) -> Output {
        match Bookmark::parse(object) {
            Ok(Bookmark { resource_version, initial_events_end }) => {
                self.bookmarked = true;
                self.step(Input::Bookmark { resource_version, initial_events_end })
            }
            // A bookmark is only an optimisation.
            Err(_) => {
                self.informer.status.count(|counters| counters.unexpected += 1);
                self.step(Input::Unknown { resource_version: String::new() })
            }
        }
    }
}
