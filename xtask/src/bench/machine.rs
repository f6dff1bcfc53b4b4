//! What it was measured on.

use std::fs;
use std::process::Command;

use super::process::Programs;

/// Machine and versions, as a list.
pub(super) fn describe(programs: &Programs) -> String {
    let line_of = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.map_or("unknown".to_owned(), |value| value.trim_start_matches([' ', '\t', ':']).to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let go = if programs.go.is_some() { said("go", &["env", "GOVERSION"]) } else { "not there".to_owned() };
    format!(
        "## Machine\n\n- {cores} cores, {}; {} of memory; Linux {}\n- {}; {go}\n- {}\n- glibc's allocator unless a row says jemalloc \
         (tikv-jemallocator); release profile, no `target-cpu`\n",
        line_of("/proc/cpuinfo", "model name"),
        line_of("/proc/meminfo", "MemTotal"),
        kernel.trim(),
        said("rustc", &["--version"]),
        versions(),
    )
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or("unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The versions of what's compared and of what matters most below it.
fn versions() -> String {
    let lock = fs::read_to_string(super::root().join("Cargo.lock")).unwrap_or_default();
    let go = fs::read_to_string(super::root().join("peers/client-go/go.mod")).unwrap_or_default();
    let version = |name: &str| {
        let after = lock.split(&format!("name = \"{name}\"\nversion = \"")).nth(1);
        format!("{name} {}", after.and_then(|text| text.split('"').next()).unwrap_or("unknown"))
    };
    let client_go = go.lines().find_map(|line| line.trim().strip_prefix("k8s.io/client-go "));
    let ours =
        ["kube", "k8s-openapi", "serde_json", "hyper", "tokio", "zstd", "tikv-jemallocator"].map(version).join(", ");
    format!("{ours}; client-go {}", client_go.unwrap_or("unknown"))
}
