//! What is measured: sections, each of the same clients on the same objects.

use serde_json::Value;

use super::cluster;
use super::process::{Program, Programs, client_of, measure};
use crate::failure::Failure;

/// One table.
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) title: String,
    /// What the server serves.
    server: String,
    pub(super) clients: Vec<Client>,
    /// How often all of them are measured, in turns. The best is told.
    rounds: usize,
    pub(super) shows: Shows,
}

/// One row.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) label: String,
    program: Program,
    arguments: String,
}

/// What a section is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    /// Sync, memory, watch, latencies, relists; and the ratios to the peers.
    All,
    /// Sync and memory, and the ratios.
    Sync,
    /// Memory after objects were replaced many times.
    Churn,
    /// Events with more and more handlers.
    FanOut,
    /// A real server, which is what's waited for.
    Cluster,
    /// Nanoseconds of reads.
    Reads,
}

/// The phases that follow the sync.
const PHASES: &str = "--events 60000@0 --events 5000@1000 --events 50000@10000 --relist 0 --relist 10";
const QUICK_PHASES: &str = "--events 20000@0 --events 2000@1000 --events 10000@10000 --relist 0 --relist 10";

/// All sections, in the order of what they're worth.
pub(super) fn sections(full: bool) -> Vec<Section> {
    let phases = if full { PHASES } else { QUICK_PHASES };
    let rounds = if full { 2 } else { 1 };
    let pods = |objects: &str| format!("--kind pods --objects {objects}");
    let mut all = vec![Section {
        name: "pods-20k",
        title: "20,000 Pods".to_owned(),
        server: pods("20000"),
        clients: clients("pods", "20000", phases, true),
        rounds,
        shows: Shows::All,
    }];
    if !full {
        return all;
    }
    all.push(Section {
        name: "pods-100k",
        title: "100,000 Pods".to_owned(),
        server: pods("100000"),
        clients: clients("pods", "100000", phases, true),
        rounds,
        shows: Shows::All,
    });
    all.push(Section {
        name: "pods-1m",
        title: "1,000,000 Pods, indexed by node, one handler (without kube-rs and client-go, which need 30 to 70 GiB)"
            .to_owned(),
        server: pods("1000000"),
        clients: [ours("packed", "json"), ours("packed", "protobuf"), discard("json"), discard("protobuf")]
            .map(|client| client.with("--index --kind pods --objects 1000000"))
            .to_vec(),
        rounds: 1,
        shows: Shows::Sync,
    });
    for (kind, objects) in [("widgets", "100000"), ("endpointslices", "20000"), ("events", "100000"), ("nodes", "5000")]
    {
        all.push(Section {
            name: kind,
            title: match kind {
                "widgets" => format!("{objects} custom resources of 2 KB"),
                "endpointslices" => format!("{objects} EndpointSlices"),
                "events" => format!("{objects} Events"),
                _ => format!("{objects} Nodes"),
            },
            server: format!("--kind {kind} --objects {objects}"),
            clients: clients(kind, objects, "--events 20000@0", kind != "widgets"),
            rounds: 1,
            shows: Shows::Sync,
        });
    }
    all.push(Section {
        name: "worst",
        title: "Worst case: 20,000 Pods, each of a ReplicaSet of its own, with 4 KB of random annotations".to_owned(),
        server: format!("{} --worst", pods("20000")),
        clients: clients("pods", "20000", "--events 20000@0", true),
        rounds: 1,
        shows: Shows::Sync,
    });
    all.push(Section {
        name: "tls",
        title: "20,000 Pods over TLS".to_owned(),
        server: format!("{} --tls {}", pods("20000"), std::env::temp_dir().join("informant-bench.pem").display()),
        clients: clients("pods", "20000", "", true)
            .into_iter()
            .filter(|client| !client.label.contains("bytes"))
            .collect(),
        rounds: 1,
        shows: Shows::Sync,
    });
    all.push(Section {
        name: "reads",
        title: "Reads of 100,000 Pods; the reader is a thread of its own, and the clock's 50 ns are in it".to_owned(),
        server: pods("100000"),
        clients: ["full", "raw", "packed", "kube-rs"]
            .map(|form| {
                let label = if form == "kube-rs" { "kube-rs".to_owned() } else { format!("informant {form}") };
                Client::new(&label, Program::Unpinned, &format!("reads --form {form}"))
            })
            .to_vec(),
        rounds: 1,
        shows: Shows::Reads,
    });
    all.push(Section {
        name: "churn",
        title: "Churn: 20,000 Pods, each replaced 20 times".to_owned(),
        server: pods("20000"),
        clients: ["packed", "raw", "full"]
            .into_iter()
            .flat_map(|form| [ours(form, "json"), ours(form, "json").jemalloc()])
            .map(|client| client.with("--kind pods --events 400000@0"))
            .collect(),
        rounds: 1,
        shows: Shows::Churn,
    });
    all.push(Section {
        name: "fan-out",
        title: "Fan-out: 20,000 Pods, 40,000 events as fast as they come, to 1, 10 and 100 handlers".to_owned(),
        server: pods("20000"),
        clients: ["packed", "full"]
            .into_iter()
            .flat_map(|form| [1, 10, 100].map(|handlers| (form, handlers)))
            .map(|(form, handlers)| {
                let mut client =
                    ours(form, "json").with(&format!("--kind pods --handlers {handlers} --events 40000@0"));
                client.label = format!("{}, {handlers} handlers", client.label);
                client
            })
            .collect(),
        rounds: 1,
        shows: Shows::FanOut,
    });
    all.push(Section {
        name: "cluster",
        title: "A real kube-apiserver with 20,000 Pods, over TLS; it and the client share the processors".to_owned(),
        server: String::new(),
        clients: cluster_clients(),
        rounds: 3,
        shows: Shows::Cluster,
    });
    all
}

/// Those that are worth a look at a real server. Streams of initial events beside lists.
fn cluster_clients() -> Vec<Client> {
    let mut all: Vec<Client> = clients("pods", "20000", "", true)
        .into_iter()
        .filter(|client| !client.label.contains("jemalloc") && !client.label.contains("dynamic"))
        .collect();
    all.push(ours("packed", "protobuf").with("--kind pods --watch-list").named(", streamed"));
    all.push(Client::new("client-go, protobuf, streamed", Program::Go, "--wire protobuf --kind pods --watch-list"));
    all
}

/// Everybody; `typed` if client-go has a type for the kind.
fn clients(kind: &str, objects: &str, phases: &str, typed: bool) -> Vec<Client> {
    let mut all = vec![ours("packed", "json"), ours("raw", "json"), ours("metadata", "json"), ours("full", "json")];
    if typed {
        all.extend([ours("packed", "protobuf"), ours("raw", "protobuf")]);
    }
    if kind == "pods" {
        all.push(ours("projected", "json"));
        all.push(ours("projected", "protobuf"));
    }
    all.push(ours("packed", "json").jemalloc());
    all.push(ours("raw", "json").jemalloc());
    all.push(Client::new("kube-rs", Program::Rust, "kube-rs --form full"));
    all.push(Client::new("kube-rs, managedFields dropped", Program::Rust, "kube-rs --form tuned"));
    all.push(Client::new("kube-rs, managedFields dropped, jemalloc", Program::Jemalloc, "kube-rs --form tuned"));
    if typed {
        all.push(Client::new("client-go, protobuf", Program::Go, "--wire protobuf"));
        all.push(Client::new("client-go, JSON", Program::Go, "--wire json"));
    }
    all.push(Client::new("client-go, dynamic", Program::Go, "--form dynamic"));
    all = all.into_iter().map(|client| client.with(&format!("--kind {kind} {phases}"))).collect();
    all.push(discard("json").with(&format!("--kind {kind} --objects {objects}")));
    if typed {
        all.push(discard("protobuf").with(&format!("--kind {kind} --objects {objects}")));
    }
    all
}

fn ours(form: &str, wire: &str) -> Client {
    let name = if wire == "json" { "JSON" } else { "protobuf" };
    Client::new(&format!("informant {form}, {name}"), Program::Rust, &format!("informant --form {form} --wire {wire}"))
}

fn discard(wire: &str) -> Client {
    let name = if wire == "json" { "JSON" } else { "protobuf" };
    Client::new(&format!("the bytes thrown away, {name}"), Program::Rust, &format!("discard --wire {wire}"))
}

// === impl Client ===

impl Client {
    fn new(label: &str, program: Program, arguments: &str) -> Self {
        Self { label: label.to_owned(), program, arguments: arguments.to_owned() }
    }

    fn with(mut self, more: &str) -> Self {
        self.arguments = format!("{} {more}", self.arguments);
        self
    }

    fn named(mut self, more: &str) -> Self {
        self.label.push_str(more);
        self
    }

    fn jemalloc(mut self) -> Self {
        self.program = Program::Jemalloc;
        self.named(", jemalloc")
    }

    /// Whether it's one of ours.
    pub(super) fn is_ours(&self) -> bool {
        self.label.starts_with("informant")
    }

    /// Whether it does the work that we do.
    pub(super) fn is_peer(&self) -> bool {
        !self.is_ours() && !self.label.contains("bytes")
    }
}

// === impl Section ===

impl Section {
    /// What each client found, the best of all rounds; nothing of those whose program isn't there or that failed.
    pub(super) fn run(&self, programs: &Programs) -> Result<Vec<(Client, Value)>, Failure> {
        if self.shows == Shows::Cluster {
            return cluster::with(programs, |kubeconfig| {
                self.rounds(|client| {
                    let arguments = words(&format!("{} --kubeconfig {}", client.arguments, kubeconfig.display()));
                    client_of(programs, client.program, true, &arguments)
                })
            });
        }
        Ok(self.rounds(|client| measure(programs, &words(&self.server), client.program, &words(&client.arguments))))
    }

    fn rounds(&self, run: impl Fn(&Client) -> Result<Option<Value>, Failure>) -> Vec<(Client, Value)> {
        let mut best: Vec<Option<Value>> = vec![None; self.clients.len()];
        for round in 0..self.rounds {
            for (client, best) in self.clients.iter().zip(&mut best) {
                eprintln!("    {} ({} of {})", client.label, round + 1, self.rounds);
                match run(client) {
                    Ok(Some(found)) => {
                        let seconds = |value: &Value| value["sync"]["seconds"].as_f64().unwrap_or(f64::MAX);
                        if best.as_ref().is_none_or(|best| seconds(&found) < seconds(best)) {
                            *best = Some(found);
                        }
                    }
                    Ok(None) => {}
                    // One client's trouble doesn't take the others' results.
                    Err(failure) => eprintln!("    {failure}"),
                }
            }
        }
        self.clients.iter().cloned().zip(best).filter_map(|(client, best)| Some((client, best?))).collect()
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
