//! Reading the answer to a list: each item is decoded and staged as it comes.

use tokio::time::Instant;

use super::ahead::Ahead;
use super::body::Answer;
use super::decoder::Found;
use super::state::{Input, Output};
use super::{Reflector, malformed};
use crate::document::Encoding;
use crate::error::{RequestError, RequestErrorKind};
use crate::frame::protobuf::ListEnd;
use crate::frame::{Frame, ListFrames};
use crate::head::{ListForm, ListHead, ListMetadata};

impl<K: Send + Sync + 'static> Reflector<'_, K> {
    pub(super) async fn read_page(&mut self, mut answer: Answer) -> Output {
        let encoding = answer.encoding();
        let mut decoder = ListFrames::new(encoding, self.informer.settings.document_bytes_max);
        let mut asked = false;
        loop {
            let chunk = match &mut self.ahead {
                Some(ahead) => ahead.meanwhile(answer.chunk()).await,
                None => answer.chunk().await,
            };
            match chunk {
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
                        if !std::mem::replace(&mut asked, true) {
                            self.ask_ahead(&decoder);
                        }
                        self.stage_item(&item, encoding);
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
        match self.list_metadata(decoder) {
            Err(error) => self.fail(error, Input::Failed),
            Ok(metadata) => {
                let resource_version = metadata.resource_version.unwrap_or_default();
                let continue_token = metadata.continue_token.filter(|token| !token.is_empty());
                self.step(Input::Page { resource_version, continue_token })
            }
        }
    }

    /// Asks for the next page, if the one whose items begin to come says that there's one.
    fn ask_ahead(&mut self, decoder: &ListFrames) {
        let token = decoder.metadata().and_then(|metadata| metadata.continue_token).filter(|token| !token.is_empty());
        if let Some(request) = token.and_then(|token| self.state.page_after(&token)) {
            self.ahead = Some(Ahead::ask(self.informer, self.part.namespace(), request));
        }
    }

    /// What the list says of itself, if it's a list.
    fn list_metadata(&self, decoder: ListFrames) -> Result<ListMetadata, RequestError> {
        match decoder {
            ListFrames::Json(decoder) => self.json_list(&decoder.finish().map_err(malformed)?),
            ListFrames::Protobuf(decoder) => match decoder.finish().map_err(malformed)? {
                ListEnd::List(metadata) => Ok(metadata),
                ListEnd::Status(status) => Err(RequestError::from_protobuf(&status)),
                ListEnd::Other => Err(self.no_list("with something that is no list of them")),
            },
        }
    }

    fn json_list(&self, envelope: &[u8]) -> Result<ListMetadata, RequestError> {
        let list = ListHead::parse(envelope).map_err(malformed)?;
        match list.form() {
            ListForm::List => Ok(list.metadata.unwrap_or_default()),
            ListForm::Status => Err(RequestError::from_event(envelope)),
            ListForm::Table => Err(self.no_list("with a Table for people, not with objects")),
            // An empty store must never come of an answer that's about something else.
            ListForm::Other => Err(self.no_list("with something that is no list")),
        }
    }

    fn no_list(&self, complaint: &str) -> RequestError {
        let message = format!("the server answered the list of {} {complaint}", self.informer.name);
        RequestError::new(RequestErrorKind::Malformed, message)
    }

    fn stage_item(&mut self, item: &Frame, encoding: Encoding) {
        match self.decoder.item(item, encoding) {
            Found::Object(object) => self.staging.insert(object),
            Found::Undecodable(key) => self.staging.insert_undecodable(key),
            Found::Unwanted(key) => self.staging.leave(key),
            Found::Unreadable(_) | Found::OtherKind => {}
        }
    }
}
