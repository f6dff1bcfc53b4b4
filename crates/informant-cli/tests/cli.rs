//! The program as a person runs it: real processes, real sockets on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

const CRD: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.shop.example.org"},
    "spec": {"group": "shop.example.org", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}"#;

fn informant(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_informant"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).env_remove("KUBECONFIG");
    command
}

fn run(arguments: &[&str]) -> (Output, String, String) {
    let output = informant(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

/// A running `informant`, asked to end (SIGTERM) and waited for on drop.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = informant(arguments).stderr(Stdio::inherit()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn terminate(&mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.terminate();
        }
        drop(self.child.wait());
    }
}

/// An `informant apiserver --plain-http` and its URL.
fn server() -> (Running, String) {
    let kubeconfig = std::env::temp_dir().join(format!(
        "informant-cli-test-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let mut server = Running::start(&["apiserver", "--plain-http", "--kubeconfig-out", kubeconfig.to_str().unwrap()]);
    let ready = server.line();
    let url = ready.split_whitespace().find(|word| word.starts_with("http://")).expect(&ready).to_owned();
    std::fs::remove_file(kubeconfig).unwrap();
    (server, url)
}

fn request(url: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    let body = &body[body.find('{').unwrap()..=body.rfind('}').unwrap()];
    (code, serde_json::from_str(body).unwrap())
}

fn create_config_map(url: &str, name: &str, team: &str) {
    let map = json!({"metadata": {"name": name, "labels": {"team": team}}, "data": {"a": "1"}}).to_string();
    let (code, answer) = request(url, "POST", "/api/v1/namespaces/default/configmaps", &map);
    assert_eq!(code, 201, "{answer}");
}

#[test]
fn the_demo_ends_with_a_summary_when_all_samples_are_ready() {
    let (output, out, err) = run(&["demo", "--once"]);
    assert!(output.status.success(), "{out}\n{err}");
    let summary: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    for number in ["objects", "events", "reconciles", "seconds"] {
        assert!(summary[number].as_f64().is_some_and(|number| number > 0.0), "{summary}");
    }
    assert!(out.contains("deployment default/storefront added"), "{out}");
    assert!(out.contains("all MyApps are Ready"), "{out}");
}

#[test]
fn a_demo_that_runs_out_of_time_says_what_isnt_ready_and_why() {
    let (output, _, err) = run(&["demo", "--once", "--timeout", "0s"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("not Ready after 0 s") && err.contains("default/storefront ("), "{err}");
}

#[test]
fn the_server_says_that_it_is_ready_and_ends_cleanly_on_sigterm() {
    let (mut server, url) = server();
    assert_eq!(request(&url, "GET", "/version", "").1["major"], "1");
    server.terminate();
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn watch_once_prints_the_state_in_each_form() {
    let (_server, url) = server();
    create_config_map(&url, "one", "a");
    create_config_map(&url, "two", "b");
    let watch = |more: &[&str]| {
        let (output, out, err) = run(&[&["watch", "cm", "--once", "--server", &url], more].concat());
        assert!(output.status.success(), "{err}");
        out
    };
    assert_eq!(watch(&["-o", "name", "-l", "team"]), "default/one\ndefault/two\n");
    assert_eq!(watch(&["-o", "name", "-l", "team=b"]), "default/two\n");
    assert_eq!(watch(&["-o", "name", "-n", "kube-public", "-l", "team"]), "");
    assert!(watch(&["-A", "-o", "name"]).contains("kube-system/kube-root-ca.crt"));
    let object: Value = serde_json::from_str(watch(&["-o", "json", "-l", "team=a"]).trim()).unwrap();
    assert_eq!(
        (&object["type"], &object["initial"], &object["key"]),
        (&json!("add"), &json!(true), &json!("default/one"))
    );
    assert_eq!(object["object"]["kind"], "ConfigMap");
    assert_eq!(object["object"]["data"], json!({"a": "1"}));
}

#[test]
fn watch_tells_each_event_and_what_changed() {
    let (_server, url) = server();
    let mut watch = Running::start(&["watch", "configmaps", "-l", "team", "-o", "json", "--server", &url]);
    create_config_map(&url, "one", "a");
    let added: Value = serde_json::from_str(&watch.line()).unwrap();
    assert_eq!(added["type"], "add");
    let path = "/api/v1/namespaces/default/configmaps/one";
    let mut changed = request(&url, "GET", path, "").1;
    changed["data"] = json!({"a": "2"});
    assert_eq!(request(&url, "PUT", path, &changed.to_string()).0, 200);
    let updated: Value = serde_json::from_str(&watch.line()).unwrap();
    assert_eq!((&updated["type"], &updated["changed"]), (&json!("update"), &json!(["data.a"])));
    assert_eq!(request(&url, "DELETE", path, "").0, 200);
    let deleted: Value = serde_json::from_str(&watch.line()).unwrap();
    assert_eq!((&deleted["type"], &deleted["object"]["data"]["a"]), (&json!("delete"), &json!("2")));
    watch.terminate();
    assert!(watch.child.wait().unwrap().success());
}

/// What's printed is the same in each form but for `managedFields`, and of metadata what metadata holds.
#[test]
fn watch_keeps_objects_in_each_form_and_says_what_it_took() {
    let (_server, url) = server();
    create_config_map(&url, "one", "a");
    create_config_map(&url, "two", "b");
    let watch = |form: &str, output: &str| {
        let (output, out, err) = run(&[
            "watch",
            "cm",
            "--once",
            "--stats",
            "-l",
            "team",
            "--representation",
            form,
            "-o",
            output,
            "--server",
            &url,
        ]);
        assert!(output.status.success(), "{err}");
        (out, err)
    };
    let objects = |out: &str| -> Vec<Value> {
        out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["object"].take()).collect()
    };
    let full = objects(&watch("full", "json").0);
    assert_eq!(full.len(), 2);
    for form in ["packed", "raw"] {
        assert_eq!(objects(&watch(form, "json").0), full, "{form}");
    }
    let metadata = objects(&watch("metadata", "json").0);
    assert_eq!((&metadata[0]["metadata"]["labels"], &metadata[0]["data"]), (&json!({"team": "a"}), &Value::Null));
    let (out, err) = watch("packed", "none");
    assert_eq!(out, "");
    let lines: Vec<Value> = err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "once synced and at the end: {err}");
    for line in &lines {
        assert_eq!(
            (&line["objects"], &line["events"], &line["events_per_second"]),
            (&json!(2), &json!(0), &Value::Null)
        );
        assert!(line["sync_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{line}");
        let bytes = |name: &str| line[name].as_u64();
        assert!(bytes("held_bytes").is_some_and(|held| held > 0));
        if cfg!(target_os = "linux") {
            assert!(bytes("resident_bytes") <= bytes("peak_bytes") && bytes("resident_bytes") > bytes("held_bytes"));
            assert!(line["user_cpu_seconds"].as_f64().is_some_and(|seconds| seconds < 60.0), "{line}");
        }
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "another process is waited for, in real time")]
fn watch_counts_events_also_when_it_prints_none() {
    let (_server, url) = server();
    create_config_map(&url, "one", "a");
    let arguments = ["watch", "cm", "-l", "team", "-o", "none", "--stats", "--server", &url];
    let mut watch = informant(&arguments).spawn().unwrap();
    let mut lines = BufReader::new(watch.stderr.take().unwrap()).lines();
    let mut line = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(line()["objects"], 1);
    create_config_map(&url, "two", "a");
    create_config_map(&url, "three", "a");
    // Named after the others: by the time that it's there, they are.
    let mut named = Running::start(&["watch", "cm", "-l", "team", "-o", "name", "--server", &url]);
    (0..3).for_each(|_| drop(named.line()));
    create_config_map(&url, "last", "a");
    assert_eq!(named.line(), "default/last");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid = watch.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let end = line();
    assert_eq!((&end["objects"], &end["events"]), (&json!(4), &json!(3)));
    assert!(end["events_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{end}");
    assert!(watch.wait().unwrap().success());
}

#[test]
fn watch_waits_for_a_kind_that_isnt_there_yet() {
    let (_server, url) = server();
    let mut watch = Running::start(&["watch", "gadgets.shop.example.org", "-A", "-o", "name", "--server", &url]);
    assert_eq!(request(&url, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD).0, 201);
    let gadget = r#"{"apiVersion": "shop.example.org/v1", "kind": "Gadget", "metadata": {"name": "first"}}"#;
    let path = "/apis/shop.example.org/v1/namespaces/default/gadgets";
    let code = (0..1000).map(|_| request(&url, "POST", path, gadget).0).find(|code| *code != 404);
    assert_eq!(code, Some(201));
    assert_eq!(watch.line(), "default/first");
}

/// Nothing has to happen for it: the reader's end alone is seen.
#[test]
#[allow(clippy::disallowed_methods, reason = "another process's end is waited for, in real time")]
fn watch_ends_when_nobody_reads_any_more() {
    let (_server, url) = server();
    create_config_map(&url, "one", "a");
    let mut watch = Running::start(&["watch", "configmaps", "-l", "team", "-o", "name", "--server", &url]);
    assert_eq!(watch.line(), "default/one");
    let Running { child, lines } = &mut watch;
    let (reader, writer) = std::io::pipe().unwrap();
    drop(writer);
    let nothing = ChildStdout::from(std::os::fd::OwnedFd::from(reader));
    drop(std::mem::replace(lines, BufReader::new(nothing)));
    let ended = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        child.try_wait().unwrap()
    });
    assert!(ended.expect("it still runs").success());
}

#[test]
fn what_cant_be_done_is_said_in_one_sentence() {
    let (_server, url) = server();
    let cases: [(&[&str], &str); 7] = [
        (&["watch", "gizmos", "--once", "--server", &url], "the server has no resource 'gizmos'"),
        (&["watch", "pods", "--once", "--server", "http://127.0.0.1:1"], "Connection refused"),
        (&["watch", "pods", "--server", "nonsense"], "'nonsense' is no URL of an API server"),
        (&["watch", "pods", "--server", "ftp://127.0.0.1"], "'ftp://127.0.0.1' is no URL of an API server"),
        (&["watch", "pods", "--server", "127.0.0.1:8001"], "'127.0.0.1:8001' is no URL of an API server"),
        (
            &["watch", "pods", "--kubeconfig", "/nonexistent/kubeconfig"],
            "the kubeconfig /nonexistent/kubeconfig can't be used",
        ),
        (&["watch", "pods", "--once", "-l", "a in", "--server", &url], "'a in' is no label selector"),
    ];
    for (arguments, said) in cases {
        let (output, out, err) = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_eq!(out, "");
        assert!(err.contains(said) && err.starts_with("informant: ") && err.trim_end().lines().count() == 1, "{err}");
    }
    assert_eq!(run(&["watch"]).0.status.code(), Some(2));
    assert_eq!(run(&["watch", "pods", "-n", "Web/x", "--server", &url]).0.status.code(), Some(2));
}
