//! The same tests, all of them, with objects kept in the other forms.

use std::process::Command;

use crate::scripted::FORM;

/// Runs this very program again, with another form; what fails there shows its output here.
fn run(form: &str) {
    if std::env::var_os(FORM).is_some() {
        // That's the other run.
        return;
    }
    let program = std::env::current_exe().expect("the program's path");
    let output = Command::new(program).arg("--quiet").env(FORM, form).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", text);
    let passed = text.split(" passed").next().and_then(|text| text.rsplit(' ').next()).map(str::parse::<u32>);
    assert!(matches!(passed, Some(Ok(100..))), "{text}");
}

#[test]
fn all_of_it_holds_for_packed_objects() {
    run("packed");
}

#[test]
fn all_of_it_holds_for_raw_objects() {
    run("raw");
}
