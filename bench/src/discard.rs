//! The floor: the same pages by the same HTTP library, thrown away.

use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::Problem;
use crate::client::ClientArgs;
use crate::corpus::KINDS;
use crate::measure::{Span, peak, resident};

/// Downloads all pages of a list. Of each only the token of the next one is read.
///
/// # Errors
/// If the server can't be reached.
pub async fn run(args: ClientArgs) -> Result<Value, Problem> {
    let kind = KINDS.iter().find(|kind| kind.name == args.kind).ok_or("no such kind")?;
    let accept = if args.wire == "protobuf" { "application/vnd.kubernetes.protobuf" } else { "application/json" };
    let client = Client::try_from(args.config().await?)?;
    let span = Span::begin();
    let (mut bytes, mut token) = (0, Some(String::new()));
    while let Some(after) = token.take() {
        let path = format!("{}?limit=500&continue={after}", kind.path);
        let request = http::Request::get(path).header(http::header::ACCEPT, accept).body(Body::empty())?;
        let answer = client.send(request).await?;
        if !answer.status().is_success() {
            return Err(format!("the list was answered with {}", answer.status()).into());
        }
        let mut body = answer.into_body();
        let mut head = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame?;
            let Some(chunk) = frame.data_ref() else { continue };
            bytes += chunk.len();
            if head.len() < 1024 {
                head.extend_from_slice(&chunk[..chunk.len().min(1024)]);
            }
        }
        token = next(&head, args.wire == "protobuf").filter(|token| !token.is_empty());
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

/// The token of the next page, from the beginning of this one.
fn next(head: &[u8], protobuf: bool) -> Option<String> {
    if protobuf {
        // The envelope's message, its metadata, and in that the token.
        let message = field(head.get(4..)?, 2)?;
        return String::from_utf8(field(field(message, 1)?, 3)?.to_vec()).ok();
    }
    // Before the items.
    let text = String::from_utf8_lossy(head);
    let metadata = text.split(r#""items""#).next()?;
    Some(metadata.split(r#""continue":""#).nth(1)?.split('"').next()?.to_owned())
}

/// The bytes of a field of a message, which may be cut.
fn field(mut message: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        let (&tag, rest) = message.split_first()?;
        let (length, rest) = varint(rest)?;
        if tag & 7 != 2 {
            message = rest;
            continue;
        }
        let (value, rest) = rest.split_at(length.min(rest.len()));
        if tag >> 3 == wanted {
            return Some(value);
        }
        message = rest;
    }
}

fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = bytes.iter().position(|byte| *byte < 0x80)?;
    let value = bytes.iter().take(end + 1).rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f));
    Some((value, bytes.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_found_in_both_forms_and_at_the_end_there_is_none() {
        let json =
            br#"{"kind":"PodList","metadata":{"resourceVersion":"1","continue":"abc"},"items":[{"continue":"x"}]}"#;
        assert_eq!(next(json, false).as_deref(), Some("abc"));
        assert_eq!(next(br#"{"metadata":{},"items":[{"a":1,"continue":"x"}]}"#, false), None);
        let list = serde_json::json!({"apiVersion": "v1", "kind": "PodList", "items": [],
            "metadata": {"resourceVersion": "1", "continue": "abc", "remainingItemCount": 300}});
        let bytes = informant_apiserver::to_protobuf(&list).unwrap();
        assert_eq!(next(&bytes, true).as_deref(), Some("abc"));
    }
}
