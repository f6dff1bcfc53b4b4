//! What was typed, as plain values. What it means is decided in [`commands`](crate::commands).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use informant::prelude::Scope;

/// Informers, controllers and an embedded API server for Kubernetes.
///
/// `informant demo` needs no cluster: it starts an API server of its own and runs an operator on it.
#[derive(Debug, Parser)]
#[command(name = "informant", version, propagate_version = true, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the MyApp operator on an embedded API server (or on your cluster) and show what happens
    Demo(DemoArgs),
    /// Run the embedded API server alone, for kubectl and any other client
    Apiserver(ApiserverArgs),
    /// Follow any resource through an informer, also one whose CRD isn't there yet
    Watch(WatchArgs),
}

/// `informant demo`
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// End when all sample MyApps are Ready, with a JSON summary as the last line
    #[arg(long)]
    pub once: bool,
    /// With --once: give up after this long, saying what isn't Ready and why (for example 90s, 2m)
    #[arg(long, default_value = "60s", value_parser = duration, requires = "once")]
    pub timeout: Duration,
    /// Run on the cluster of this kubeconfig, in the namespace `informant-demo` and with the MyApp CRD, both removed at the
    /// end unless they were there; the cluster has to run Pods and to be able to pull the sample images
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// With --kubeconfig: leave the namespace and the CRD when the demo ends
    #[arg(long, requires = "kubeconfig")]
    pub keep: bool,
    /// Address of /healthz, /readyz, /metrics and /katalog
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub serve: SocketAddr,
}

/// `informant apiserver`
#[derive(Debug, Args)]
pub struct ApiserverArgs {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Write the kubeconfig to this file instead of a temporary one
    #[arg(long, value_name = "FILE")]
    pub kubeconfig_out: Option<PathBuf>,
    /// Speak plain HTTP instead of TLS with a fresh CA
    #[arg(long)]
    pub plain_http: bool,
}

/// `informant watch`
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// RESOURCE[.GROUP] or RESOURCE.VERSION.GROUP; plural, singular, short name or kind, as with kubectl
    #[arg(value_name = "RESOURCE[.GROUP]", value_parser = resource_name)]
    pub resource: String,
    /// The namespace; the kubeconfig's own if left out
    #[arg(short, long, conflicts_with = "all_namespaces", value_parser = namespace_name)]
    pub namespace: Option<String>,
    /// All namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Label selector, for example 'app=web,tier!=cache'
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Print the synced state and end
    #[arg(long)]
    pub once: bool,
    /// How to keep the objects in memory
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Full)]
    pub representation: Form,
    /// Say on standard error, once synced and at the end, what it took and what's held: a line of JSON with objects,
    /// sync_seconds, user_cpu_seconds, held_bytes, resident_bytes, peak_bytes, events, events_per_second
    #[arg(long)]
    pub stats: bool,
    /// Kubeconfig file; without it and --server, KUBECONFIG, ~/.kube/config or the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// URL of an API server that wants no credentials, for example http://127.0.0.1:8001
    #[arg(long, value_name = "URL", conflicts_with = "kubeconfig")]
    pub server: Option<String>,
}

/// Output form of `informant watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A line an event: time, type, key, what changed
    Table,
    /// An object a line, with the fields time, type, initial, key, object and, for an update, changed
    Json,
    /// The key alone
    Name,
    /// Nothing
    None,
}

/// How `informant watch` keeps objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Whole
    Full,
    /// As compressed bytes
    Packed,
    /// As bytes
    Raw,
    /// Their metadata only
    Metadata,
}

/// `90`, `90s`, `2m`, `1h` or `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds_per_unit = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("unknown unit '{other}': use ms, s, m or h")),
    };
    let value: f64 = number.parse().map_err(|_| format!("'{text}' is no duration: write for example 90s or 2m"))?;
    Duration::try_from_secs_f64(value * seconds_per_unit).map_err(|error| error.to_string())
}

/// One resource, as it may stand in discovery.
fn resource_name(text: &str) -> Result<String, String> {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if text.split('.').all(is_name) {
        Ok(text.to_owned())
    } else {
        Err("name one resource, for example pods or deployments.apps".to_owned())
    }
}

/// A name that a namespace can have.
fn namespace_name(text: &str) -> Result<String, String> {
    if Scope::is_namespace_name(text) {
        Ok(text.to_owned())
    } else {
        Err("a namespace is called by 1 to 63 of a-z, 0-9 and '-', with '-' neither first nor last".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_resource_is_one_name_with_a_group_perhaps() {
        for name in ["pods", "deployments.apps", "Deployment", "orders.v1.shop.example.org"] {
            assert_eq!(resource_name(name).as_deref(), Ok(name));
        }
        for name in ["", ".", "po,svc", "pods/x", "pods.", "a b"] {
            assert!(resource_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_namespace_is_called_as_namespaces_are() {
        for name in ["web", "a", "team-1"] {
            assert_eq!(namespace_name(name).as_deref(), Ok(name));
        }
        for name in ["", "Web", "-a", "a-", "a.b", "a/b", "..", &"a".repeat(64)] {
            assert!(namespace_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn durations_take_the_usual_units() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(duration("soon").is_err());
        assert!(duration("5 parsecs").is_err());
        assert!(duration("-1s").is_err());
    }
}
