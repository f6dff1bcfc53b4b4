//! CRD validation against a real kube-apiserver 1.37.2.
//!
//! `recorded_cases.json` holds CRDs and the causes of the 422 that the real server answered (none: it took them). What isn't
//! compared: the value in messages about `spec.versions` and about a whole schema (Go's internal form), the place that a
//! message about a default repeats, the words of a broken regular expression, and `spec.version`, which only Go has.

use serde::Deserialize;
use serde_json::Value;

use super::{prepare, validate};

#[derive(Deserialize)]
struct Case {
    case: String,
    crd: Value,
    /// Reason, field and message of each cause.
    causes: Vec<[String; 3]>,
}

fn comparable([reason, field, message]: [String; 3]) -> [String; 3] {
    let whole = field == "spec.versions" || field.ends_with("openAPIV3Schema");
    let message = if whole {
        message.rsplit(": ").next().unwrap_or_default().to_owned()
    } else if field.ends_with(".pattern") {
        message.split(" but isn't").next().unwrap_or_default().to_owned()
    } else if let Some((before, after)) = message.split_once(" in body ") {
        let before = before.rsplit_once(": ").map_or(before, |(before, _)| before);
        format!("{before}: in body {after}")
    } else {
        message
    };
    [reason, field, message]
}

#[test]
fn crds_are_judged_as_recorded() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("recorded_cases.json")).unwrap();
    let mut wrong = Vec::new();
    let count = cases.len();
    for case in cases {
        let mut crd = case.crd;
        prepare(&mut crd, None);
        let ours = validate(&crd, None).unwrap_or_else(|status| panic!("{}: {status}", case.case));
        let mut ours: Vec<_> =
            ours.into_iter().map(|cause| comparable([cause.reason, cause.field, cause.message])).collect();
        let mut real: Vec<_> =
            case.causes.into_iter().filter(|[_, field, _]| field != "spec.version").map(comparable).collect();
        ours.sort();
        real.sort();
        if ours != real {
            wrong.push(format!("{}\n  ours: {ours:?}\n  real: {real:?}", case.case));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}
