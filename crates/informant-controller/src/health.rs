//! Health endpoints: named checks, and the text that Kubernetes' own components answer with.
//!
//! Pure: the checks' results come in, status and body go out. Other than controller-runtime, which withholds it, a failed check says
//! its reason: these pages are for the people who run the program.

use std::{collections::BTreeMap, fmt::Write};

/// The results of an endpoint's checks, by name.
pub(crate) type Results = BTreeMap<String, Result<(), String>>;

/// An answer: HTTP status and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// What the query of a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) verbose: bool,
    pub(crate) exclude: Vec<String>,
}

impl Query {
    /// Reads a raw query, such as `verbose&exclude=ping`. Anything else in it is ignored.
    pub(crate) fn parse(query: &str) -> Self {
        let mut parsed = Self::default();
        for (name, value) in query.split('&').map(|part| part.split_once('=').unwrap_or((part, ""))) {
            match name {
                "verbose" => parsed.verbose = true,
                "exclude" => parsed.exclude.push(value.to_owned()),
                _ => {}
            }
        }
        parsed
    }
}

/// The answer of an endpoint, such as `readyz`, as a whole.
pub(crate) fn aggregate(endpoint: &str, results: &Results, query: &Query) -> Answer {
    let mut text = String::new();
    let mut failed = false;
    for (name, result) in results {
        // Writing to a String can't fail.
        let _ = match result {
            _ if query.exclude.contains(name) => writeln!(text, "[+]{name} excluded: ok"),
            Ok(()) => writeln!(text, "[+]{name} ok"),
            Err(reason) => {
                failed = true;
                writeln!(text, "[-]{name} failed: {reason}")
            }
        };
    }
    let unknown: Vec<String> =
        query.exclude.iter().filter(|name| !results.contains_key(*name)).map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        let _ = writeln!(text, "warn: some health checks cannot be excluded: no matches for {}", unknown.join(","));
    }
    if failed {
        // A failure always says what failed.
        let _ = writeln!(text, "{endpoint} check failed");
        return Answer { status: 500, body: text };
    }
    if !query.verbose {
        return Answer { status: 200, body: "ok".to_owned() };
    }
    let _ = writeln!(text, "{endpoint} check passed");
    Answer { status: 200, body: text }
}

/// The answer for one check, such as `readyz/ping`.
pub(crate) fn single(endpoint: &str, name: &str, results: &Results) -> Answer {
    match results.get(name) {
        Some(Ok(())) => Answer { status: 200, body: "ok".to_owned() },
        Some(Err(reason)) => Answer { status: 500, body: format!("{name} failed: {reason}\n") },
        None => {
            let known: Vec<&str> = results.keys().map(String::as_str).collect();
            Answer { status: 404, body: format!("{endpoint} has no check {name:?}; there are: {}\n", known.join(", ")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(sync: Result<(), String>) -> Results {
        BTreeMap::from([("ping".to_owned(), Ok(())), ("informer-sync".to_owned(), sync)])
    }

    /// controller-runtime facts 27 and 102.
    #[test]
    fn all_well_is_ok_in_short_and_by_line_if_asked() {
        let results = results(Ok(()));
        assert_eq!(aggregate("readyz", &results, &Query::parse("")), Answer { status: 200, body: "ok".into() });
        let verbose = aggregate("readyz", &results, &Query::parse("verbose"));
        assert_eq!(verbose.body, "[+]informer-sync ok\n[+]ping ok\nreadyz check passed\n");
    }

    #[test]
    fn a_failure_says_which_check_failed_and_why_without_being_asked() {
        let results = results(Err("not synced: pods/v1 (forbidden)".into()));
        let answer = aggregate("readyz", &results, &Query::parse(""));
        assert_eq!(answer.status, 500);
        assert_eq!(
            answer.body,
            "[-]informer-sync failed: not synced: pods/v1 (forbidden)\n[+]ping ok\nreadyz check failed\n"
        );
    }

    /// controller-runtime fact 102.
    #[test]
    fn excluded_checks_count_as_well_and_unknown_ones_are_pointed_out() {
        let results = results(Err("not yet".into()));
        let answer = aggregate("readyz", &results, &Query::parse("verbose=1&exclude=informer-sync&exclude=nope"));
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.body,
            "[+]informer-sync excluded: ok\n[+]ping ok\nwarn: some health checks cannot be excluded: no matches for \"nope\"\nreadyz check passed\n"
        );
    }

    #[test]
    fn one_check_answers_alone() {
        let results = results(Err("not yet".into()));
        assert_eq!(single("readyz", "ping", &results), Answer { status: 200, body: "ok".into() });
        assert_eq!(
            single("readyz", "informer-sync", &results),
            Answer { status: 500, body: "informer-sync failed: not yet\n".into() }
        );
        let unknown = single("readyz", "x", &results);
        assert_eq!(unknown.status, 404);
        assert!(unknown.body.contains("informer-sync, ping"), "{}", unknown.body);
    }
}
