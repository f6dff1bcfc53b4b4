//! `docs/semantics.md` says only what is so: each test that it names exists, and no fact is left out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all functions below a folder.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            for rest in text.split("fn ").skip(1) {
                names.insert(rest.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect());
            }
        }
    }
}

/// The rows of the tables: number and last column.
fn rows(text: &str) -> Vec<(String, String)> {
    let cells = text.lines().filter(|line| line.starts_with("| ")).map(|line| line.split(" | ").collect::<Vec<_>>());
    cells
        .filter_map(|cells| {
            let number = cells.first()?.trim_start_matches("| ").trim().to_owned();
            let last = cells.last()?.trim().trim_end_matches('|').trim().to_owned();
            number.starts_with(|char: char| char.is_ascii_digit() || char == 'I').then_some((number, last))
        })
        .collect()
}

#[test]
fn every_test_that_the_semantics_name_exists_and_every_fact_has_a_row() {
    let text = fs::read_to_string(root().join("docs/semantics.md")).unwrap();
    let mut names = BTreeSet::new();
    functions(&root().join("crates"), &mut names);
    let rows = rows(&text);
    for (number, last) in &rows {
        let named: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        let tests: Vec<&&str> =
            named.iter().filter(|name| name.contains('_') && !name.contains([' ', '(', ':'])).collect();
        assert!(
            !tests.is_empty() || last.starts_with("None here:"),
            "{number} names no test and doesn't say why: {last}"
        );
        for test in tests {
            assert!(names.contains(*test), "{number} names the test {test}, which doesn't exist");
        }
    }
    let numbers: BTreeSet<String> = rows.into_iter().map(|(number, _)| number).collect();
    let client_go = (1..=121).map(|number| number.to_string());
    let istio = (1..=35).chain(90..=100).map(|number| format!("I{number}"));
    for number in client_go.chain(istio) {
        assert!(numbers.contains(&number), "{number} has no row");
    }
}
