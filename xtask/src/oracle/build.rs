//! Builds the control plane's programs from Go modules by name. The versions and checksums of all that goes into them are
//! in `peers/kubernetes/*/go.mod` and `go.sum`; no source of theirs is kept here.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// The Kubernetes release that the oracle is.
pub(crate) const VERSION: &str = "1.37.2";
/// The oldest Go that builds it.
const GO: (u32, u32) = (1, 26);

/// Every program, as it's called in the directory of programs.
const PROGRAMS: [&str; 5] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"];

/// What makes nodes and Pods of kwok behave: the files of its own default stages, in the module's `kustomize/stage`.
const STAGE_DIRECTORIES: [(&str, &str); 3] = [
    ("node/fast", "node-initialize"),
    ("node/heartbeat-with-lease", "node-heartbeat-with-lease"),
    ("pod/fast", "pod-"),
];

/// Whether everything was built into `programs`.
pub(crate) fn is_complete(programs: &Path) -> bool {
    programs.join("complete").is_file()
}

/// Builds what is missing into `programs`. Two builds at once wait for each other.
pub(crate) fn build(programs: &Path) -> Result<(), Failure> {
    if is_complete(programs) {
        eprintln!("oracle: already built in {}", programs.display());
        return Ok(());
    }
    require_go()?;
    fs::create_dir_all(programs).map_err(Failure::file(programs))?;
    let lock_path = programs.join("lock");
    let lock = File::create(&lock_path).map_err(Failure::file(&lock_path))?;
    lock.lock().map_err(Failure::file(&lock_path))?;
    if is_complete(programs) {
        return Ok(());
    }
    let version = "k8s.io/component-base/version";
    let (major, minor) = (VERSION.split('.').next().unwrap_or_default(), VERSION.split('.').nth(1).unwrap_or_default());
    let stamp =
        format!("-X {version}.gitVersion=v{VERSION} -X {version}.gitMajor={major} -X {version}.gitMinor={minor}");
    let kubernetes = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
    compile(programs, "kubernetes", &stamp, &kubernetes.map(|name| format!("k8s.io/kubernetes/cmd/{name}")))?;
    compile(programs, "etcd", "", &["go.etcd.io/etcd/server/v3".to_owned()])?;
    let (built, named) = (programs.join("server"), programs.join("etcd"));
    fs::rename(&built, &named).map_err(Failure::file(&built))?;
    compile(programs, "kwok", "", &["sigs.k8s.io/kwok/cmd/kwok".to_owned()])?;
    write_stages(programs)?;
    for name in PROGRAMS {
        if !programs.join(name).is_file() {
            return Err(Failure::Failed(format!("{name} was built but isn't in {}", programs.display())));
        }
    }
    let complete = programs.join("complete");
    fs::write(&complete, "").map_err(Failure::file(&complete))
}

fn require_go() -> Result<(), Failure> {
    let (major, minor) = GO;
    let missing =
        |what: String| Failure::Missing(format!("{what}: install Go {major}.{minor} or newer, then try again"));
    let output = Command::new("go")
        .args(["env", "GOVERSION"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| missing(format!("there is no 'go' on the PATH ({error})")))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if parse_go_version(&text).is_some_and(|found| found >= GO) {
        return Ok(());
    }
    Err(missing(format!("the 'go' on the PATH is {}", if text.is_empty() { "of unknown version" } else { &text })))
}

fn parse_go_version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.strip_prefix("go")?.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn module_directory(module: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers/kubernetes").join(module)
}

fn compile(programs: &Path, module: &str, link_flags: &str, packages: &[String]) -> Result<(), Failure> {
    eprintln!("oracle: building {module} (minutes, the first time)");
    let status = Command::new("go")
        .args(["build", "-mod=readonly", "-trimpath", "-ldflags", &format!("-s -w {link_flags}"), "-o"])
        // The slash at the end makes it a directory for go.
        .arg(format!("{}/", programs.display()))
        .args(packages)
        .current_dir(module_directory(module))
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .status()
        .map_err(|error| Failure::Failed(format!("'go build' of {module} can't be run: {error}")))?;
    if status.success() { Ok(()) } else { Err(Failure::Failed(format!("'go build' of {module} ended with {status}"))) }
}

fn write_stages(programs: &Path) -> Result<(), Failure> {
    let output = Command::new("go")
        .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"])
        .current_dir(module_directory("kwok"))
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::Failed(format!("'go list' can't be run: {error}")))?;
    let source = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()).join("kustomize/stage");
    let mut stages = String::new();
    for (directory, prefix) in STAGE_DIRECTORIES {
        let directory = source.join(directory);
        let mut files: Vec<PathBuf> = fs::read_dir(&directory)
            .map_err(Failure::file(&directory))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
            .collect();
        files.sort();
        for file in files {
            stages.push_str("---\n");
            stages.push_str(&fs::read_to_string(&file).map_err(Failure::file(&file))?);
            stages.push('\n');
        }
    }
    let path = programs.join("stages.yaml");
    fs::write(&path, stages).map_err(Failure::file(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_go_version_is_compared_by_its_numbers() {
        assert_eq!(parse_go_version("go1.26.8"), Some((1, 26)));
        assert_eq!(parse_go_version("go1.27rc1"), Some((1, 27)));
        assert_eq!(parse_go_version("devel"), None);
        assert!(parse_go_version("go1.9.7") < Some(GO));
    }
}
