//! The cells of a Pod: what its containers' states come down to.

use serde_json::{Value, json};

use super::Row;
use crate::table::age;

/// What a pod's row shows of its containers.
struct Summary {
    ready: usize,
    total: usize,
    restarts: i64,
    /// When the last restarted container had ended.
    last_restart: Option<String>,
    reason: String,
}

pub(super) fn ready(row: &Row<'_>) -> Value {
    let summary = Summary::of(*row);
    json!(format!("{}/{}", summary.ready, summary.total))
}

pub(super) fn status(row: &Row<'_>) -> Value {
    json!(Summary::of(*row).reason)
}

pub(super) fn restarts(row: &Row<'_>) -> Value {
    let summary = Summary::of(*row);
    match summary.last_restart.filter(|_| summary.restarts != 0) {
        Some(time) => json!(format!("{} ({} ago)", summary.restarts, age::since(Some(&time), row.now))),
        None => json!(summary.restarts.to_string()),
    }
}

pub(super) fn ip(row: &Row<'_>) -> Value {
    let ip = row.items("status.podIPs").next().map_or("", |ip| ip.text("ip"));
    json!(if ip.is_empty() { "<none>" } else { ip })
}

pub(super) fn readiness_gates(row: &Row<'_>) -> Value {
    let gates: Vec<&str> = row.items("spec.readinessGates").map(|gate| gate.text("conditionType")).collect();
    if gates.is_empty() {
        return json!("<none>");
    }
    let open = gates.iter().filter(|gate| row.has_true_condition(gate)).count();
    json!(format!("{open}/{}", gates.len()))
}

// === impl Summary ===

impl Summary {
    fn of(pod: Row<'_>) -> Self {
        let phase = pod.text("status.phase");
        let mut summary = Self {
            ready: 0,
            total: pod.count("spec.containers"),
            restarts: 0,
            last_restart: None,
            reason: pod.text_or("status.reason", phase).to_owned(),
        };
        if pod.condition("PodScheduled").is_some_and(|condition| condition.text("reason") == "SchedulingGated") {
            summary.reason = "SchedulingGated".to_owned();
        }
        let initializing = summary.add_init_containers(pod);
        if !initializing || pod.has_true_condition("Initialized") {
            summary.add_containers(pod);
        }
        if pod.is_terminating() {
            if pod.text("status.reason") == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if !matches!(phase, "Succeeded" | "Failed") {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    /// Looks at the init containers up to the first that isn't done; tells whether there is one.
    fn add_init_containers(&mut self, pod: Row<'_>) -> bool {
        let total = pod.count("spec.initContainers");
        let sidecars: Vec<&str> = pod
            .items("spec.initContainers")
            .filter(|container| container.text("restartPolicy") == "Always")
            .map(|container| container.text("name"))
            .collect();
        self.total += sidecars.len();
        for (at, container) in pod.items("status.initContainerStatuses").enumerate() {
            self.add_restarts(container);
            let is_sidecar = sidecars.contains(&container.text("name"));
            if container.has("state.terminated") && container.integer("state.terminated.exitCode") == 0 {
                continue;
            }
            if is_sidecar && container.at("started").and_then(Value::as_bool).unwrap_or(false) {
                self.ready += usize::from(is_ready(container));
                continue;
            }
            self.reason = if container.has("state.terminated") {
                format!("Init:{}", end_reason(container))
            } else {
                match container.text("state.waiting.reason") {
                    "" | "PodInitializing" => format!("Init:{at}/{total}"),
                    waiting => format!("Init:{waiting}"),
                }
            };
            return true;
        }
        false
    }

    fn add_containers(&mut self, pod: Row<'_>) {
        // Once the init containers are done only the sidecars' restarts count.
        (self.restarts, self.last_restart) = (0, None);
        let sidecars: Vec<&str> = pod
            .items("spec.initContainers")
            .filter(|container| container.text("restartPolicy") == "Always")
            .map(|container| container.text("name"))
            .collect();
        for container in pod.items("status.initContainerStatuses") {
            if sidecars.contains(&container.text("name")) {
                self.add_restarts(container);
            }
        }
        let (mut has_running, mut error) = (false, None);
        for container in pod.items("status.containerStatuses").rev() {
            self.add_restarts(container);
            if !container.text("state.waiting.reason").is_empty() {
                self.reason = container.text("state.waiting.reason").to_owned();
            } else if container.has("state.terminated") {
                self.reason = end_reason(container);
                if container.integer("state.terminated.exitCode") != 0 {
                    error = Some(self.reason.clone());
                }
            } else if is_ready(container) && container.has("state.running") {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if has_running && pod.has_true_condition("Ready") {
                self.reason = "Running".to_owned();
            } else if let Some(error) = error {
                self.reason = error;
            } else if has_running {
                self.reason = "NotReady".to_owned();
            }
        }
    }

    fn add_restarts(&mut self, container: Row<'_>) {
        self.restarts += container.integer("restartCount");
        let ended = container.text("lastState.terminated.finishedAt");
        if !ended.is_empty() && self.last_restart.as_deref().is_none_or(|last| last < ended) {
            self.last_restart = Some(ended.to_owned());
        }
    }
}

fn is_ready(container: Row<'_>) -> bool {
    container.at("ready").and_then(Value::as_bool).unwrap_or(false)
}

/// Why a container ended: the reason given, else its signal, else its exit code.
fn end_reason(container: Row<'_>) -> String {
    match (container.text("state.terminated.reason"), container.integer("state.terminated.signal")) {
        ("", 0) => format!("ExitCode:{}", container.integer("state.terminated.exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
