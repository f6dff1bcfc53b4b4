//! Reading the answer to a list: each item is decoded and staged as it comes.

use tokio::time::Instant;

use super::body::Answer;
use super::decoder::Found;
use super::state::{Input, Output};
use super::{Reflector, malformed};
use crate::error::{RequestError, RequestErrorKind};
use crate::frame::{Frame, ListDecoder};
use crate::head::{ListForm, ListHead};

impl<K: Send + Sync + 'static> Reflector<'_, K> {
    pub(super) async fn read_page(&mut self, mut answer: Answer) -> Output {
        let mut decoder = ListDecoder::new(self.informer.settings.document_bytes_max);
        loop {
            match answer.chunk().await {
                Err(error) => return self.fail(error, Input::Failed),
                Ok(None) => break,
                Ok(Some(chunk)) => {
                    self.arrived = Instant::now();
                    decoder.push(chunk);
                }
            }
            loop {
                match decoder.next() {
                    Ok(Some(item)) => {
                        self.stage_item(&item);
                        if let Some(error) = self.decoder.refused.take() {
                            return self.fail(error, Input::Refused);
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return self.fail(malformed(error), Input::Failed),
                }
            }
            self.settle().await;
        }
        match decoder.finish().map_err(malformed).and_then(|envelope| self.list_head(&envelope)) {
            Err(error) => self.fail(error, Input::Failed),
            Ok(list) => {
                let metadata = list.metadata.unwrap_or_default();
                let resource_version = metadata.resource_version.unwrap_or_default();
                let continue_token = metadata.continue_token.filter(|token| !token.is_empty());
                self.step(Input::Page { resource_version, continue_token })
            }
        }
    }

    /// The list's own fields, if it's a list.
    fn list_head(&self, envelope: &[u8]) -> Result<ListHead, RequestError> {
        let list = ListHead::parse(envelope).map_err(malformed)?;
        let name = &self.informer.name;
        let complaint = match list.form() {
            ListForm::List => return Ok(list),
            ListForm::Status => return Err(RequestError::from_event(envelope)),
            ListForm::Table => "with a Table for people, not with objects",
            // An empty store must never come of an answer that's about something else.
            ListForm::Other => "with something that is no list",
        };
        let message = format!("the server answered the list of {name} {complaint}");
        Err(RequestError::new(RequestErrorKind::Malformed, message))
    }

    fn stage_item(&mut self, item: &Frame) {
        match self.decoder.item(item) {
            Found::Object(object) => self.staging.insert(object),
            Found::Undecodable(key) => self.staging.insert_undecodable(key),
            Found::Unwanted(key) => self.staging.leave(key),
            Found::Unreadable(_) | Found::OtherKind => {}
        }
    }
}
