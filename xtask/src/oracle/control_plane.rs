//! One control plane in its directory: what is started, in which order, with which settings.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{build, process};
use crate::failure::Failure;
use crate::http::Server;
use crate::wait;

const STATE_FILE: &str = "control-plane.json";
/// In the order in which they are ended: clients first.
const STOP_ORDER: [&str; 5] = ["kwok", "kube-scheduler", "kube-controller-manager", APISERVER, "etcd"];
const APISERVER: &str = "kube-apiserver";
/// Token, user, uid, groups: an administrator, and two users without rights until a test grants them some.
const TOKENS: &str = "admin,admin,admin,system:masters\nalice,alice,alice,\nbob,bob,bob,\n";
const READY_LIMIT: Duration = Duration::from_secs(90);

/// What is started besides etcd and kube-apiserver.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// kube-controller-manager and kube-scheduler too.
    pub(crate) controllers: bool,
    /// How many simulated nodes.
    pub(crate) nodes: u16,
    /// Only the APIs that a release serves when nothing is said, not the alpha and beta ones.
    pub(crate) default_apis: bool,
}

/// A control plane that was started in a directory; it may have been stopped since.
pub(crate) struct ControlPlane {
    directory: PathBuf,
    ports: Ports,
    controllers: bool,
    default_apis: bool,
}

struct Ports {
    etcd: u16,
    etcd_peer: u16,
    api: u16,
    controller_manager: u16,
    scheduler: u16,
}

/// Starts a control plane in `directory` and waits until it is ready. Returns its kubeconfig's path.
/// If any part doesn't start, those that did are ended again.
pub(crate) fn start(programs: &Path, directory: &Path, options: Options) -> Result<PathBuf, Failure> {
    if !build::is_complete(programs) {
        return Err(Failure::Missing("its programs aren't built yet: run 'cargo xtask oracle build'".to_owned()));
    }
    fs::create_dir_all(directory).map_err(Failure::file(directory))?;
    let directory = fs::canonicalize(directory).map_err(Failure::file(directory))?;
    if STOP_ORDER.iter().any(|name| process::runs(&directory, name)) {
        return Err(Failure::Failed(format!("a control plane already runs in {}", directory.display())));
    }
    let control_plane = ControlPlane {
        directory,
        ports: Ports::free()?,
        controllers: options.controllers,
        default_apis: options.default_apis,
    };
    control_plane.start_all(programs, options.nodes).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = control_plane.stop();
    })
}

impl ControlPlane {
    /// The control plane that was started in `directory`.
    pub(crate) fn open(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join(STATE_FILE);
        let text = fs::read(&path).map_err(|error| {
            Failure::Failed(format!("no control plane was started in '{}': {error}", directory.display()))
        })?;
        let state: Value = serde_json::from_slice(&text)
            .map_err(|error| Failure::Failed(format!("{} is damaged: {error}", path.display())))?;
        let port = |name: &str| {
            state["ports"][name]
                .as_u64()
                .and_then(|port| u16::try_from(port).ok())
                .ok_or_else(|| Failure::Failed(format!("{} has no port '{name}'", path.display())))
        };
        Ok(Self {
            directory: fs::canonicalize(directory).map_err(Failure::file(directory))?,
            ports: Ports {
                etcd: port("etcd")?,
                etcd_peer: port("etcdPeer")?,
                api: port("api")?,
                controller_manager: port("controllerManager")?,
                scheduler: port("scheduler")?,
            },
            controllers: state["controllers"] == true,
            default_apis: state["defaultApis"] == true,
        })
    }

    /// Ends all its programs, clients first.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        STOP_ORDER.iter().try_for_each(|name| process::end(&self.directory, name, Signal::TERM))
    }

    /// Ends the kube-apiserver without warning.
    pub(crate) fn kill_apiserver(&self) -> Result<(), Failure> {
        process::end(&self.directory, APISERVER, Signal::KILL)
    }

    /// Starts the kube-apiserver and waits until it is ready.
    pub(crate) fn start_apiserver(&self, programs: &Path) -> Result<(), Failure> {
        if process::runs(&self.directory, APISERVER) {
            return Err(Failure::Failed(format!("kube-apiserver already runs in {}", self.directory.display())));
        }
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            format!("--secure-port={}", self.ports.api),
            "--bind-address=127.0.0.1".to_owned(),
            "--cert-dir=certs".to_owned(),
            "--token-auth-file=tokens.csv".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-account-key-file=service-account.pub".to_owned(),
            "--service-account-signing-key-file=service-account.key".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--allow-privileged=true".to_owned(),
        ];
        if !self.controllers {
            // It waits for a ServiceAccount that only the controller manager makes.
            arguments.push("--disable-admission-plugins=ServiceAccount".to_owned());
        }
        if !self.default_apis {
            arguments.push("--runtime-config=api/all=true".to_owned());
        }
        process::start(&self.directory, APISERVER, &programs.join(APISERVER), arguments)?;
        let answers = |path: &str| self.api().and_then(|api| api.get(path)).is_ok_and(|answer| answer.status == 200);
        self.wait_for(APISERVER, "ready", || answers("/readyz"))
    }

    /// Compacts etcd at its present revision and returns that.
    pub(crate) fn compact(&self) -> Result<String, Failure> {
        let failed = |error: std::io::Error| Failure::Failed(format!("etcd doesn't compact: {error}"));
        let etcd = Server::plain(self.ports.etcd);
        // Any key will do: the answer's header has the revision.
        let range = etcd.post("/v3/kv/range", &json!({"key": "AA==", "limit": 1})).and_then(|answer| answer.json());
        let revision = range.map_err(failed)?["header"]["revision"].as_str().unwrap_or_default().to_owned();
        let compaction = json!({"revision": revision, "physical": true});
        etcd.post("/v3/kv/compaction", &compaction).and_then(|answer| answer.json()).map_err(failed)?;
        Ok(revision)
    }

    fn start_all(&self, programs: &Path, nodes: u16) -> Result<PathBuf, Failure> {
        self.write_files()?;
        self.start_etcd(programs)?;
        self.start_apiserver(programs)?;
        let kubeconfig = self.write("kubeconfig", &self.kubeconfig())?;
        if self.controllers {
            self.start_controllers(programs)?;
        }
        if nodes > 0 {
            self.start_nodes(programs, nodes)?;
        }
        if self.controllers {
            // Before it no Pod can be created in the default namespace.
            let path = "/api/v1/namespaces/default/serviceaccounts/default";
            self.wait_for("kube-controller-manager", "making ServiceAccounts", || {
                self.api().and_then(|api| api.get(path)).is_ok_and(|answer| answer.status == 200)
            })?;
        }
        Ok(kubeconfig)
    }

    fn write_files(&self) -> Result<(), Failure> {
        let certificates = self.directory.join("certs");
        fs::create_dir_all(&certificates).map_err(Failure::file(&certificates))?;
        self.write("tokens.csv", TOKENS)?;
        if !self.directory.join("service-account.key").exists() {
            let pair = rcgen::KeyPair::generate()
                .map_err(|error| Failure::Failed(format!("no key for ServiceAccounts can be made: {error}")))?;
            self.write("service-account.pub", &pair.public_key_pem())?;
            self.write("service-account.key", &pair.serialize_pem())?;
        }
        let ports = &self.ports;
        let state = json!({
            "ports": {
                "etcd": ports.etcd,
                "etcdPeer": ports.etcd_peer,
                "api": ports.api,
                "controllerManager": ports.controller_manager,
                "scheduler": ports.scheduler,
            },
            "controllers": self.controllers,
            "defaultApis": self.default_apis,
        });
        self.write(STATE_FILE, &state.to_string()).map(|_| ())
    }

    fn start_etcd(&self, programs: &Path) -> Result<(), Failure> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        let arguments = [
            "--data-dir=etcd".to_owned(),
            // A crash of the machine may lose it all, which is fine here, and writes are much faster.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
        ];
        process::start(&self.directory, "etcd", &programs.join("etcd"), arguments)?;
        let etcd = Server::plain(self.ports.etcd);
        self.wait_for("etcd", "ready", || etcd.get("/health").is_ok_and(|answer| answer.status == 200))
    }

    fn start_controllers(&self, programs: &Path) -> Result<(), Failure> {
        let common = ["--kubeconfig=kubeconfig", "--leader-elect=false", "--bind-address=127.0.0.1"].map(str::to_owned);
        let own = [
            format!("--secure-port={}", self.ports.controller_manager),
            "--service-account-private-key-file=service-account.key".to_owned(),
            "--root-ca-file=certs/apiserver.crt".to_owned(),
            "--use-service-account-credentials".to_owned(),
        ];
        let name = "kube-controller-manager";
        process::start(&self.directory, name, &programs.join(name), common.iter().chain(&own))?;
        let own = [format!("--secure-port={}", self.ports.scheduler)];
        let name = "kube-scheduler";
        process::start(&self.directory, name, &programs.join(name), common.iter().chain(&own))
    }

    fn start_nodes(&self, programs: &Path, nodes: u16) -> Result<(), Failure> {
        let arguments = [
            "--kubeconfig=kubeconfig".to_owned(),
            format!("--config={}", programs.join("stages.yaml").display()),
            "--manage-all-nodes".to_owned(),
            "--server-address=127.0.0.1:0".to_owned(),
            "--node-lease-duration-seconds=40".to_owned(),
        ];
        process::start(&self.directory, "kwok", &programs.join("kwok"), arguments)?;
        let failed = |error: std::io::Error| Failure::Failed(format!("a simulated node can't be created: {error}"));
        let api = self.api().map_err(failed)?;
        for number in 0..nodes {
            let answer = api.post("/api/v1/nodes", &node(number)).map_err(failed)?;
            // A node of an earlier start is still there.
            if answer.status != 409 {
                answer.json().map_err(failed)?;
            }
        }
        self.wait_for("kwok", "making nodes ready", || {
            api.get("/api/v1/nodes").and_then(|answer| answer.json()).is_ok_and(|list| all_ready(&list))
        })
    }

    fn wait_for(&self, name: &str, what: &str, mut done: impl FnMut() -> bool) -> Result<(), Failure> {
        let answered = wait::until(READY_LIMIT, || done() || !process::runs(&self.directory, name));
        if answered && process::runs(&self.directory, name) {
            return Ok(());
        }
        let state = if answered { "ended instead of" } else { "isn't, after 90 s," };
        let words = process::last_words(&self.directory, name);
        Err(Failure::Failed(format!("{name} {state} being {what}; the end of its log:\n{words}")))
    }

    fn api(&self) -> std::io::Result<Server> {
        Server::tls(self.ports.api, &self.directory.join("certs/apiserver.crt"), "admin")
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.directory.join(name);
        fs::write(&path, text).map_err(Failure::file(&path))?;
        Ok(path)
    }

    /// JSON is YAML too.
    fn kubeconfig(&self) -> String {
        let users = ["admin", "alice", "bob"];
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "admin",
            "clusters": [{"name": "oracle", "cluster": {
                "server": format!("https://127.0.0.1:{}", self.ports.api),
                "certificate-authority": self.directory.join("certs/apiserver.crt").display().to_string(),
            }}],
            "users": users.map(|user| json!({"name": user, "user": {"token": user}})),
            "contexts": users.map(|user| json!({"name": user, "context": {"cluster": "oracle", "user": user}})),
        })
        .to_string()
    }
}

impl Ports {
    /// Five ports that nobody listens on: all are held until the last is known, so they differ.
    fn free() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::Failed(format!("no free port on 127.0.0.1: {error}"));
        let mut held = Vec::new();
        let mut next = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
            let port = listener.local_addr().map_err(failed)?.port();
            held.push(listener);
            Ok(port)
        };
        Ok(Self { etcd: next()?, etcd_peer: next()?, api: next()?, controller_manager: next()?, scheduler: next()? })
    }
}

fn node(number: u16) -> Value {
    let name = format!("node-{number}");
    let room = json!({"cpu": "32", "memory": "256Gi", "pods": "1000"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }},
        "status": {"capacity": room, "allocatable": room},
    })
}

fn all_ready(nodes: &Value) -> bool {
    let ready = |node: &Value| {
        let conditions = node["status"]["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
    };
    nodes["items"].as_array().is_some_and(|items| items.iter().all(ready))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_ready_when_every_node_is() {
        let condition = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        assert!(all_ready(&json!({"items": [condition("True"), condition("True")]})));
        assert!(!all_ready(&json!({"items": [condition("True"), condition("Unknown")]})));
        assert!(!all_ready(&json!({"items": [{}]})));
    }

    #[test]
    fn a_directory_without_a_control_plane_is_named_in_the_error() {
        let failure = ControlPlane::open(Path::new("no-such-directory")).err().unwrap();
        assert!(failure.to_string().contains("'no-such-directory'"), "{failure}");
    }
}
