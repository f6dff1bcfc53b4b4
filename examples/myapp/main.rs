//! The MyApp operator on a cluster: `cargo run --example myapp`, with KUBECONFIG or in a pod; pages at 127.0.0.1:8080.
//!
//! The CRD has to be there or to come: `kubectl apply -f examples/myapp/crd.yaml`. `informant demo` runs the same operator.

#![allow(unreachable_pub, reason = "an example has no outside: pub says that another file uses it")]

mod api;
mod operator;

use informant::cache::Scope;
use informant::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::detect().await?;
    let factory = InformerFactory::new(&cluster);
    let controller = operator::controller(cluster.client(), &factory, &Scope::all());
    Manager::with_factory(factory).serve("127.0.0.1:8080").controller(controller).run(CancellationToken::new()).await?;
    Ok(())
}
