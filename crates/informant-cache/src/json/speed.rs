//! How quick it all is, on Pods as a server writes them. Not run by itself:
//! `cargo test --release -p informant-cache --lib json::speed -- --ignored --nocapture`.

#![allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]

use std::hint::black_box;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use serde::de::IgnoredAny;

use super::*;
use crate::protobuf::table;

/// Prints the time for each object, and how many bytes are gone through. Of each batch the best of many runs counts, so
/// that what else runs on the machine shows little.
fn measure(name: &str, objects: &[Vec<u8>], work: impl Fn(&[u8])) {
    let bytes: usize = objects.iter().map(Vec::len).sum();
    let mut seconds = 0.0;
    for batch in objects.chunks(25) {
        let runs = (0..40).map(|_| {
            let start = Instant::now();
            batch.iter().for_each(|object| work(black_box(object)));
            start.elapsed().as_secs_f64()
        });
        seconds += runs.fold(f64::MAX, f64::min);
    }
    let each = bytes / objects.len();
    println!(
        "{name:32} {each:6} B {:7.2} us {:6.2} GB/s",
        seconds * 1e6 / objects.len() as f64,
        bytes as f64 / seconds / 1e9
    );
}

#[test]
#[ignore = "a measurement"]
fn pods() {
    let whole: Vec<Vec<u8>> = (0..500).map(|number| samples::pod(number).into_bytes()).collect();
    let cut = |text: &[u8]| without(text, head(text, false).expect("a head").managed_fields.expect("managedFields"));
    let trimmed: Vec<Vec<u8>> = whole.iter().map(|text| cut(text)).collect();
    let form = Form::Kind(table().kind("v1", "Pod").expect("a known kind"));
    measure("split", &whole, |text| {
        black_box(Nesting::default().close(text));
    });
    measure("split, head", &whole, |text| {
        black_box(Nesting::default().close(text));
        black_box(head(text, false));
    });
    measure("split, head, cut", &whole, |text| {
        black_box(Nesting::default().close(text));
        black_box(cut(text));
    });
    for (name, objects) in [("whole", &whole), ("trimmed", &trimmed)] {
        measure(&format!("{name}: UTF-8"), objects, |text| {
            black_box(std::str::from_utf8(text).is_ok());
        });
        measure(&format!("{name}: check, no table"), objects, |text| assert!(check(text, Form::Any).is_ok()));
        measure(&format!("{name}: check, table"), objects, |text| assert!(check(text, form).is_ok()));
        measure(&format!("{name}: serde_json, IgnoredAny"), objects, |text| {
            assert!(serde_json::from_slice::<IgnoredAny>(text).is_ok());
        });
        measure(&format!("{name}: serde_json, Pod"), objects, |text| {
            assert!(serde_json::from_slice::<Pod>(text).is_ok())
        });
    }
}
