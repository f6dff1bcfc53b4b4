//! The floor: the same bytes by the same HTTP library, thrown away.

use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::Problem;
use crate::client::ClientArgs;
use crate::control::Connection;
use crate::corpus::KINDS;
use crate::measure::{Span, peak, resident};

/// Downloads all pages of a list, whose tokens are numbers with this server.
///
/// # Errors
/// If the server can't be reached.
pub async fn run(args: ClientArgs) -> Result<Value, Problem> {
    let kind = KINDS.iter().find(|kind| kind.name == args.kind).ok_or("no such kind")?;
    let accept = if args.wire == "protobuf" { "application/vnd.kubernetes.protobuf" } else { "application/json" };
    let mut connection = Connection::open(args.control()).await?;
    let span = Span::begin();
    let mut bytes = 0;
    for start in (0..args.objects).step_by(500) {
        let mut body = connection.get(&format!("{}?limit=500&continue={start}", kind.path), accept).await?;
        while let Some(frame) = body.frame().await {
            bytes += frame?.data_ref().map_or(0, hyper::body::Bytes::len);
        }
    }
    let sync = span.end();
    Ok(json!({
        "client": "discard",
        "objects": args.objects,
        "sync": sync,
        "bytes": bytes,
        "resident_bytes": resident(),
        "peak_bytes": peak(),
        "watch": [],
        "relist": [],
    }))
}
