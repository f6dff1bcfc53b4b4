//! The few requests that xtask sends to a server on loopback, over HTTP or HTTPS.
//!
//! HTTP/1.0 on purpose: the server then sends no chunks and closes the connection at the end of the body.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(10);
/// Larger answers than any that is asked for here: a list of every object of a small cluster.
const BODY_LIMIT: u64 = 64 * 1024 * 1024;

/// A server on 127.0.0.1.
pub(crate) struct Server {
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    token: Option<String>,
}

/// What a server answered.
pub(crate) struct Answer {
    /// The HTTP status code.
    pub(crate) status: u16,
    /// The body, whole.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as JSON; an error if the status isn't 2xx.
    pub(crate) fn json(self) -> io::Result<Value> {
        if !(200..300).contains(&self.status) {
            let text = String::from_utf8_lossy(&self.body);
            return Err(io::Error::other(format!("status {}: {text}", self.status)));
        }
        serde_json::from_slice(&self.body).map_err(io::Error::other)
    }
}

impl Server {
    /// A server without TLS.
    pub(crate) fn plain(port: u16) -> Self {
        Self { port, tls: None, token: None }
    }

    /// A server whose certificate is signed by a CA in the PEM file `authority`; `token` goes with every request.
    pub(crate) fn tls(port: u16, authority: &Path, token: &str) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(authority).map_err(io::Error::other)? {
            roots.add_parsable_certificates([certificate.map_err(io::Error::other)?]);
        }
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { port, tls: Some(Arc::new(config)), token: Some(token.to_owned()) })
    }

    /// `GET path`.
    pub(crate) fn get(&self, path: &str) -> io::Result<Answer> {
        self.request("GET", path, None)
    }

    /// `POST path` with a JSON body.
    pub(crate) fn post(&self, path: &str, body: &Value) -> io::Result<Answer> {
        self.request("POST", path, Some(body))
    }

    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let message = self.message(method, path, body);
        match &self.tls {
            None => exchange(&mut stream, &message),
            Some(config) => {
                let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
                let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
                exchange(&mut StreamOwned::new(connection, stream), &message)
            }
        }
    }

    fn message(&self, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let authorization =
            self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nAccept: application/json\r\n{authorization}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .into_bytes()
    }
}

fn exchange(stream: &mut (impl Read + Write), message: &[u8]) -> io::Result<Answer> {
    stream.write_all(message)?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.take(BODY_LIMIT).read_to_end(&mut answer) {
        Ok(_) => {}
        // A server that closes without TLS's goodbye: the body's length is checked by whoever parses it.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !answer.is_empty() => {}
        Err(error) => return Err(error),
    }
    parse(answer)
}

fn parse(mut answer: Vec<u8>) -> io::Result<Answer> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "the answer isn't HTTP");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(broken)?;
    let body = answer.split_off(end + 4);
    let head = String::from_utf8(answer).map_err(|_| broken())?;
    let status = head.split_ascii_whitespace().nth(1).and_then(|code| code.parse().ok()).ok_or_else(broken)?;
    Ok(Answer { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_split_into_status_and_body() {
        let answer = parse(b"HTTP/1.0 201 Created\r\nContent-Type: a/b\r\n\r\n{\"a\":1}".to_vec()).unwrap();
        assert_eq!(answer.status, 201);
        assert_eq!(answer.json().unwrap(), serde_json::json!({"a": 1}));
    }

    #[test]
    fn a_refusal_and_a_non_http_answer_are_errors() {
        assert!(parse(b"SSH-2.0-OpenSSH".to_vec()).is_err());
        assert!(parse(b"HTTP/1.0 403 Forbidden\r\n\r\n{}".to_vec()).unwrap().json().is_err());
    }
}
