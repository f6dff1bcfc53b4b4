//! One connection of a scripted socket: HTTP/1.1 read as a server does and written as the test says.
//!
//! No HTTP library stands in between, since none would write what's wrong.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::answer::{Answer, Framing, Part};
use super::exchange::Exchange;
use super::{REQUEST_BODY_MAX, ScriptService};

/// Longest head of a request, in bytes.
const HEAD_MAX: usize = 64 * 1024;

pub(super) struct Connection {
    stream: TcpStream,
    service: ScriptService,
    /// What has come and isn't used up.
    received: BytesMut,
}

/// What becomes of a connection after an answer.
enum After {
    NextRequest,
    Close,
}

/// How an answer's body is marked off.
enum Marking {
    Chunked,
    /// By its length, of which so much is left.
    Length(usize),
    /// By the connection's end.
    Close,
}

// === impl Connection ===

impl Connection {
    pub(super) fn new(stream: TcpStream, service: ScriptService) -> Self {
        Self { stream, service, received: BytesMut::new() }
    }

    /// Serves until the client or the test ends it.
    pub(super) async fn serve(mut self) {
        loop {
            match self.exchange().await {
                Ok(After::NextRequest) => {}
                Ok(After::Close) => return,
                Err(error) => {
                    tracing::debug!(%error, "a scripted connection ended");
                    return;
                }
            }
        }
    }

    async fn exchange(&mut self) -> io::Result<After> {
        let Some(request) = self.read_request().await? else { return Ok(After::Close) };
        let (head, body) = request.into_parts();
        let (exchange, answered) = Exchange::new(head, body, self.service.kind.clone());
        if self.service.hand_over(exchange).await.is_err() {
            return self.reset();
        }
        let (mut from_client, _) = self.stream.split();
        let answer = tokio::select! {
            answer = answered => answer,
            gone = gone(&mut from_client, &mut self.received) => return gone.map(|()| After::Close),
        };
        match answer {
            Ok(answer) => self.write(answer).await,
            Err(_) => self.reset(),
        }
    }

    /// Closes the connection with a reset.
    fn reset(&self) -> io::Result<After> {
        self.stream.set_zero_linger()?;
        Ok(After::Close)
    }

    // --- requests ---

    async fn read_request(&mut self) -> io::Result<Option<Request<Bytes>>> {
        let end = loop {
            if let Some(end) = self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if self.received.len() > HEAD_MAX {
                return Err(invalid("the head is too long"));
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Ok(None);
            }
        };
        let head = self.received.split_to(end).freeze();
        self.received.advance(4);
        let mut request = parse(&head)?;
        if request.headers().contains_key(EXPECT) {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        *request.body_mut() = self.read_body(request.headers()).await?;
        Ok(Some(request))
    }

    async fn read_body(&mut self, headers: &HeaderMap) -> io::Result<Bytes> {
        if headers.contains_key(TRANSFER_ENCODING) {
            return self.read_chunks().await;
        }
        let length = length(headers).unwrap_or(0);
        self.take(length).await
    }

    async fn read_chunks(&mut self) -> io::Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let line = self.line().await?;
            let size = line.split(';').next().unwrap_or("").trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| invalid("a chunk without a size"))?;
            if size == 0 {
                // Trailers are read and forgotten.
                while !self.line().await?.is_empty() {}
                return Ok(body.freeze());
            }
            if body.len().saturating_add(size) > REQUEST_BODY_MAX {
                return Err(invalid("the body is too long"));
            }
            body.extend_from_slice(&self.take(size).await?);
            self.line().await?;
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line = self.received.split_to(end + 1);
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.received.len() > HEAD_MAX {
                return Err(invalid("a line is too long"));
            }
            self.more().await?;
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Bytes> {
        if length > REQUEST_BODY_MAX {
            return Err(invalid("the body is too long"));
        }
        while self.received.len() < length {
            self.more().await?;
        }
        Ok(self.received.split_to(length).freeze())
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Ok(()),
        }
    }

    // --- answers ---

    async fn write(&mut self, mut answer: Answer) -> io::Result<After> {
        let (mut from_client, mut to_client) = self.stream.split();
        let mut marking = Marking::Close;
        if let Framing::Http { status, headers } = &answer.framing {
            marking = Marking::of(*status, headers);
            to_client.write_all(&head(*status, headers, &marking)).await?;
        }
        loop {
            let part = tokio::select! {
                part = answer.parts.recv() => part,
                gone = gone(&mut from_client, &mut self.received) => return gone.map(|()| After::Close),
            };
            match part {
                Some(Part::Bytes(bytes)) => to_client.write_all(&marking.mark(&bytes)).await?,
                Some(Part::Pause(time)) => tokio::time::sleep(time).await,
                Some(Part::Reset) => return self.reset(),
                // The connection is held, and neither read nor written.
                Some(Part::Silence) => return std::future::pending().await,
                None => break,
            }
        }
        match marking {
            Marking::Chunked => to_client.write_all(b"0\r\n\r\n").await?,
            Marking::Length(0) => {}
            Marking::Length(_) | Marking::Close => return Ok(After::Close),
        }
        Ok(After::NextRequest)
    }
}

// === impl Marking ===

impl Marking {
    fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let bodiless = status.is_informational() || matches!(status.as_u16(), 204 | 304);
        match length(headers) {
            Some(length) => Self::Length(length),
            None if bodiless => Self::Length(0),
            None if headers.contains_key(TRANSFER_ENCODING) => Self::Close,
            None => Self::Chunked,
        }
    }

    fn mark(&mut self, bytes: &Bytes) -> Bytes {
        match self {
            Self::Chunked => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend_from_slice(bytes);
                chunk.extend_from_slice(b"\r\n");
                chunk.into()
            }
            Self::Length(left) => {
                *left = left.saturating_sub(bytes.len());
                bytes.clone()
            }
            Self::Close => bytes.clone(),
        }
    }
}

/// Returns when the client has closed its side; what it sends before that is kept.
async fn gone(from_client: &mut tokio::net::tcp::ReadHalf<'_>, received: &mut BytesMut) -> io::Result<()> {
    loop {
        if received.len() > HEAD_MAX {
            return std::future::pending().await;
        }
        if from_client.read_buf(received).await? == 0 {
            return Ok(());
        }
    }
}

fn head(status: StatusCode, headers: &HeaderMap, marking: &Marking) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or("");
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    if matches!(marking, Marking::Chunked) {
        head.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn parse(head: &[u8]) -> io::Result<Request<Bytes>> {
    let head = std::str::from_utf8(head).map_err(|_| invalid("the head isn't text"))?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or("").split(' ');
    let (Some(method), Some(uri), Some(_version)) = (words.next(), words.next(), words.next()) else {
        return Err(invalid("there's no request line"));
    };
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = Method::try_from(method).map_err(|_| invalid("the method is none"))?;
    *request.uri_mut() = Uri::try_from(uri).map_err(|_| invalid("the path is none"))?;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header has no colon"))?;
        let name = HeaderName::try_from(name).map_err(|_| invalid("a header has no name"))?;
        let value = HeaderValue::try_from(value.trim()).map_err(|_| invalid("a header has no value"))?;
        request.headers_mut().append(name, value);
    }
    Ok(request)
}

fn length(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
