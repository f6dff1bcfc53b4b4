//! A front before the embedded server: it writes down what's asked, and refuses what the test says.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use informant_apiserver::ApiServer;
use informant_cache::{InformerFactory, InformerFactoryBuilder};
use kube::client::Body;
use tower::{ServiceExt, service_fn};

/// The status and text to answer a path with; `None` to let the request through.
pub(crate) type Rule = fn(path: &str) -> Option<(u16, &'static str)>;

#[derive(Clone)]
pub(crate) struct Front {
    client: kube::Client,
    rule: Arc<Mutex<Rule>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Front {
    pub(crate) fn new(server: &ApiServer, rule: Rule) -> Self {
        let (rule, asked) = (Arc::new(Mutex::new(rule)), Arc::new(Mutex::new(Vec::new())));
        let (service, rules, log) = (server.service(), Arc::clone(&rule), Arc::clone(&asked));
        let front = service_fn(move |request: http::Request<Body>| {
            let path = request.uri().path().to_owned();
            let refusal = rules.lock().unwrap()(&path);
            log.lock().unwrap().push(path);
            let service = service.clone();
            async move {
                if let Some((code, text)) = refusal {
                    let body =
                        Full::new(Bytes::from_static(text.as_bytes())).map_err(std::io::Error::other).boxed_unsync();
                    return Ok::<_, std::io::Error>(http::Response::builder().status(code).body(body).unwrap());
                }
                let answer = service.oneshot(request).await.map_err(std::io::Error::other)?;
                Ok(answer.map(|body| body.map_err(std::io::Error::other).boxed_unsync()))
            }
        });
        Self { client: kube::Client::new(front, "default"), rule, asked }
    }

    pub(crate) fn builder(&self) -> InformerFactoryBuilder {
        InformerFactory::builder(self.client.clone()).seed(1)
    }

    pub(crate) fn set(&self, rule: Rule) {
        *self.rule.lock().unwrap() = rule;
    }

    /// What was asked since the last call.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// Discovery requests since the last call.
    pub(crate) fn discoveries(&self) -> usize {
        self.asked().iter().filter(|path| path.starts_with("/api") && path.split('/').count() <= 4).count()
    }
}

pub(crate) const OPEN: Rule = |_| None;
