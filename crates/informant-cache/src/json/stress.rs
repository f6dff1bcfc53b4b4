//! Objects with random changes to their bytes, through all that looks at JSON without decoding it.

use k8s_openapi::api::core::v1::Pod;

use super::samples;
use crate::fuzzing;

const WORDS: &[&str] = &[
    "\"",
    "\\",
    "\\\"",
    "\\u",
    "\\u0041",
    "\\ud83d",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "{}",
    "[]",
    "null",
    "true",
    "0",
    "-",
    "1e9",
    "\"metadata\":",
    "\"items\":[",
    "\"managedFields\":[],",
    "\"managedFi\\u0065lds\":1,",
    "\"name\":\"x\",",
    "\"name\":null,",
    " ",
    "\n",
    "\u{0}",
    "é",
    "\u{10ffff}",
];

fn changed(text: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..random.usize(0..4) {
        let (at, to) = (random.usize(0..=text.len()), random.usize(0..=text.len()));
        let range = at.min(to)..at.max(to);
        match random.u8(..5) {
            0 if range.len() < 200 => drop(text.drain(range)),
            1 => {
                let twice = text[range].to_vec();
                text.splice(at..at, twice.into_iter().take(300));
            }
            2 if at < text.len() => text[at] = random.u8(..),
            _ => drop(text.splice(at..at, WORDS[random.usize(..WORDS.len())].bytes())),
        }
    }
    text
}

#[test]
fn whatever_happens_to_an_object_no_answer_is_wrong() {
    let pods: Vec<String> = (0..4).map(samples::pod).collect();
    let small = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a\"b","managedFields":[{"f":{"k:{\"a\":1}":{}}}],"uid":"u","labels":{"a":"}"}},"items":[{"a":[1]},{"b":"]"}]}"#;
    for seed in 0..2_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let text = if seed % 20 == 0 { &pods[random.usize(..pods.len())] } else { small };
        let text = changed(text.as_bytes(), &mut random);
        fuzzing::json_scan(&text);
        if fuzzing::is_sure("v1", "Pod", &text) {
            let pod: Result<Pod, _> = serde_json::from_slice(&text);
            assert!(pod.is_ok(), "seed {seed}: {}", pod.expect_err("it's not ok"));
        }
    }
}
