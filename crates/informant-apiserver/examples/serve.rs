//! Serves an API server on a port of loopback and writes its kubeconfig: `serve [PORT [KUBECONFIG]]`.
#![allow(clippy::print_stdout, reason = "it's a program")]

use informant_apiserver::{ApiServer, ListenOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let server = ApiServer::builder().build();
    let listening = server.listen(ListenOptions::default().port(port)).await?;
    match arguments.next() {
        Some(path) => std::fs::write(path, listening.kubeconfig())?,
        None => println!("{}", listening.kubeconfig()),
    }
    println!("listening on {}", listening.url());
    std::future::pending::<()>().await;
    Ok(())
}
