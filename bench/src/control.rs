//! What a client tells the server of the benchmark, on a connection of its own.

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Problem;

/// A plain connection to a server.
pub struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    host: String,
    /// The connection's own work, ended with it.
    _driver: JoinSet<()>,
}

impl Connection {
    /// Connects to `http://HOST:PORT`.
    ///
    /// # Errors
    /// If it can't.
    pub async fn open(url: &str) -> Result<Self, Problem> {
        let host = url.strip_prefix("http://").ok_or("not a plain URL")?.trim_end_matches('/').to_owned();
        let stream = TcpStream::connect(&host).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async { drop(connection.await) });
        Ok(Self { sender, host, _driver: driver })
    }

    /// Asks for a path; the answer's body is still coming.
    ///
    /// # Errors
    /// If there's no answer, or it isn't a success.
    pub async fn get(&mut self, path: &str, accept: &str) -> Result<Incoming, Problem> {
        self.sender.ready().await?;
        let request = http::Request::get(path)
            .header(http::header::HOST, &self.host)
            .header(http::header::ACCEPT, accept)
            .body(Empty::new())?;
        let answer = self.sender.send_request(request).await?;
        if !answer.status().is_success() {
            return Err(format!("{path}: {}", answer.status()).into());
        }
        Ok(answer.into_body())
    }

    async fn whole(&mut self, path: &str) -> Result<Bytes, Problem> {
        Ok(self.get(path, "*/*").await?.collect().await?.to_bytes())
    }

    async fn number(&mut self, path: &str) -> Result<u64, Problem> {
        Ok(std::str::from_utf8(&self.whole(path).await?)?.trim().parse()?)
    }

    /// Has changes sent to those who watch. Returns the last one's resource version.
    ///
    /// # Errors
    /// If there's no answer.
    pub async fn events(&mut self, count: u64, rate: u64) -> Result<u64, Problem> {
        self.number(&format!("/bench/events?count={count}&rate={rate}")).await
    }

    /// Changes so many of a thousand objects and ends all watches. Returns the resource version of lists after.
    ///
    /// # Errors
    /// If there's no answer.
    pub async fn expire(&mut self, permille: u64) -> Result<u64, Problem> {
        self.number(&format!("/bench/expire?permille={permille}")).await
    }

    /// When somebody first asked for the present state after that, in nanoseconds of the monotonic clock.
    ///
    /// # Errors
    /// If there's no answer.
    pub async fn listed(&mut self) -> Result<u64, Problem> {
        self.number("/bench/listed").await
    }

    /// When changes were sent, in nanoseconds of the monotonic clock.
    ///
    /// # Errors
    /// If there's no answer.
    pub async fn sent(&mut self, from: u64, count: u64) -> Result<Vec<u64>, Problem> {
        let bytes = self.whole(&format!("/bench/sent?from={from}&count={count}")).await?;
        Ok(bytes.chunks_exact(8).map(|time| u64::from_le_bytes(time.try_into().unwrap_or_default())).collect())
    }
}
