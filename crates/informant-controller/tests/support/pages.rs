//! A manager that runs with its pages served, and how to read them.

use std::{net::SocketAddr, time::Duration};

use informant_controller::{Manager, ManagerError};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    cancel: CancellationToken,
    tasks: JoinSet<Result<(), ManagerError>>,
}

impl Running {
    pub(crate) async fn start(manager: Manager) -> Self {
        let (handle, cancel, mut tasks) = (manager.handle(), CancellationToken::new(), JoinSet::new());
        tasks.spawn(manager.run(cancel.clone()));
        Self { address: handle.address().await.unwrap(), cancel, tasks }
    }

    pub(crate) async fn stop(mut self) {
        self.cancel.cancel();
        self.tasks.join_next().await.unwrap().unwrap().unwrap();
    }
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Waits, in real time, until a page has what it should have.
pub(crate) async fn until(address: SocketAddr, path: &str, is_right: impl Fn(&str) -> bool) -> String {
    for _ in 0..500 {
        let body = get(address, path).await;
        if is_right(&body) {
            return body;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{path} never got right: {}", get(address, path).await);
}
