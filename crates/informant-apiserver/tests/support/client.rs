//! A small client of the in-process service, for the tests of this crate.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use informant_apiserver::{ApiServer, ResponseBody};
use serde_json::Value;
use tower::ServiceExt;

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {}", self.text))
    }

    /// `reason` of a `Status`.
    pub(crate) fn reason(&self) -> String {
        self.json()["reason"].as_str().unwrap_or("").to_owned()
    }

    /// `message` of a `Status`.
    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or("").to_owned()
    }

    /// All values of a header.
    pub(crate) fn header(&self, name: &str) -> Vec<String> {
        self.headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    /// The same answer, which must have this code.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Self {
        assert_eq!(self.code, code, "{}", self.text);
        self
    }
}

/// A request to the server in process.
pub(crate) struct Call<'a> {
    server: &'a ApiServer,
    method: Method,
    path: String,
    headers: BTreeMap<&'static str, String>,
    body: Vec<u8>,
}

pub(crate) fn call<'a>(server: &'a ApiServer, method: &str, path: &str) -> Call<'a> {
    Call { server, method: method.parse().unwrap(), path: path.to_owned(), headers: BTreeMap::new(), body: Vec::new() }
}

impl Call<'_> {
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, value.to_owned());
        self
    }

    pub(crate) fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header("content-type", content_type)
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// Sends it and leaves the body open.
    pub(crate) async fn open(self) -> Response<ResponseBody> {
        let mut request = Request::builder().method(self.method).uri(self.path);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(self.body))).unwrap();
        self.server.service().oneshot(request).await.unwrap()
    }

    /// Sends it and reads the whole answer.
    pub(crate) async fn send(self) -> Answer {
        let response = self.open().await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer { code: parts.status.as_u16(), headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }
}

pub(crate) async fn get(server: &ApiServer, path: &str) -> Answer {
    call(server, "GET", path).send().await
}

pub(crate) async fn post(server: &ApiServer, path: &str, body: &Value) -> Answer {
    call(server, "POST", path).json(body).send().await
}

pub(crate) async fn put(server: &ApiServer, path: &str, body: &Value) -> Answer {
    call(server, "PUT", path).json(body).send().await
}

pub(crate) async fn merge(server: &ApiServer, path: &str, body: &Value) -> Answer {
    call(server, "PATCH", path).body("application/merge-patch+json", body.to_string()).send().await
}

pub(crate) async fn delete(server: &ApiServer, path: &str) -> Answer {
    call(server, "DELETE", path).send().await
}

/// An open watch, line by line.
pub(crate) struct Events {
    body: ResponseBody,
    buffer: Vec<u8>,
}

impl Events {
    pub(crate) async fn open(server: &ApiServer, path: &str) -> Self {
        let response = call(server, "GET", path).open().await;
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), buffer: Vec::new() }
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.buffer.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// The type and the object's name of the next event.
    pub(crate) async fn next_short(&mut self) -> Option<(String, String)> {
        let event = self.next().await?;
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        Some((text(&event["type"]), text(&event["object"]["metadata"]["name"])))
    }
}
