//! What a projection of twelve fields costs: time to make one of a Pod's JSON, and memory to keep it.
//!
//! `cargo run --release -p informant-bench --example projection`

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use informant_bench::corpus::template::Form;
use informant_bench::corpus::{Corpus, KINDS};
use informant_cache::{Document, Projection, Strings};

#[derive(Projection)]
#[projection(api_version = "v1", kind = "Pod")]
struct PodView {
    #[projection(path = "metadata.name")]
    _name: String,
    #[projection(path = "metadata.namespace")]
    _namespace: Option<Arc<str>>,
    #[projection(path = "metadata.uid")]
    _uid: String,
    #[projection(path = "metadata.resourceVersion")]
    _version: String,
    #[projection(path = "metadata.labels")]
    _labels: BTreeMap<Arc<str>, Arc<str>>,
    #[projection(path = "metadata.annotations")]
    _annotations: BTreeMap<Arc<str>, String>,
    #[projection(path = "spec.nodeName")]
    _node: Option<Arc<str>>,
    #[projection(path = "spec.serviceAccountName")]
    _account: Option<Arc<str>>,
    #[projection(path = "spec.containers[*].image")]
    _images: Vec<Arc<str>>,
    #[projection(path = "status.phase")]
    _phase: Option<Arc<str>>,
    #[projection(path = "status.podIP")]
    _address: Option<String>,
    #[projection(path = "status.conditions[type=Ready].status")]
    _ready: Option<Arc<str>>,
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default() * 4096
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const PODS: usize = 20_000;
    let corpus = Corpus::new(&KINDS[0], PODS, 7, false);
    let texts: Vec<Vec<u8>> = (0..PODS)
        .map(|index| {
            let (template, object) = corpus.object(index, 0);
            let mut text = Vec::new();
            template.render(Form::Json, object, &mut text);
            text
        })
        .collect();
    let bytes: usize = texts.iter().map(Vec::len).sum();
    let strings = Strings::new();
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        for text in &texts {
            drop(std::hint::black_box(Document::json(text).project_with::<PodView>(&strings)?));
        }
        best = best.min(start.elapsed());
    }
    println!("{} bytes a Pod; {:.1} us to project one", bytes / PODS, best.as_secs_f64() * 1e6 / PODS as f64);
    let mut kept: Vec<Arc<PodView>> = Vec::with_capacity(PODS);
    let before = resident();
    let start = Instant::now();
    for text in &texts {
        kept.push(Arc::new(Document::json(text).project_with(&strings)?));
    }
    let held = start.elapsed();
    let counted: usize = kept.iter().map(|pod| size_of::<PodView>() + 16 + pod.heap_bytes()).sum();
    println!(
        "{:.1} us to project and keep one; resident {} bytes, counted {}, and {} for {} shared texts",
        held.as_secs_f64() * 1e6 / PODS as f64,
        (resident() - before) / PODS,
        counted / PODS,
        strings.bytes(),
        strings.len(),
    );
    Ok(())
}
