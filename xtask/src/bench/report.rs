//! Tables of what was found.

use std::fmt::Write;

use serde_json::Value;

use super::plan::{Client, Section, Shows};

/// What stands above the results.
pub(super) const HEAD: &str = "\
# Results of the benchmarks

Written by `cargo xtask bench --full`; `cargo xtask bench` gives the first table in a few minutes. Every client is a process
of its own on one core, the server is on another one; each has a fresh server; clients take turns, and of two rounds the
better one is told.

## How to read it

- The server sends bytes that cost it next to nothing, over loopback, without gzip and HTTP/2, and without TLS where it isn't
  said. A real kube-apiserver needs longer to make a list than anybody here to read it: **there the gain in a sync shows as
  processor time and memory first, and as time only where the server isn't what's waited for.** The last table has one.
- `managedFields` are about 40 % of these Pods, and people report 20 to 30 %. That flatters every ratio to a kube-rs as it
  comes. The ratio to kube-rs with `managedFields` dropped hardly depends on it: read that one.
- A packed object's size depends on how alike objects are: here there are a hundred Pods to a ReplicaSet. The worst case has
  objects that are alone of their kind, with annotations that can't be compressed.
- Packed and raw objects are decoded when they're read whole. Who reads all of them all the time pays more than was saved;
  the table of reads says how much. The handlers here look at the resource version only, as one does who queues keys.
- Steady memory of client-go is what's resident half a second after the sync; in brackets, after a forced collection.
- Latency is from the server's hand-over of an event to its socket until the handler is called, so it contains the way
  through loopback. At a rate, events come in bursts of a millisecond, the step of the server's timer. As fast as it goes, it's
  mostly waiting in the socket.
- A relist's time is from the arrival of its first request, so that nobody's delay before it counts.
- The time of processors is exact where the wall clock isn't: memory that's touched for the first time is slow on virtual
  machines, and that's in the wall clock and in the system's time only.
- The handler, the queue and the indexes are the library's; a controller's work on top is the same for all.
";

/// One section as Markdown.
pub(super) fn section(section: &Section, found: &[(Client, Value)]) -> String {
    let mut out = format!("\n## {}\n\n", section.title);
    // Writing into a String can't fail.
    let _ = match section.shows {
        Shows::All => all(found, &mut out),
        Shows::Sync | Shows::Cluster => sync(found, &mut out).and_then(|()| ratios(found, &mut out)),
        Shows::Churn => churn(found, &mut out),
        Shows::FanOut => fan_out(found, &mut out),
        Shows::Reads => reads(found, &mut out),
    };
    out
}

fn all(found: &[(Client, Value)], out: &mut String) -> std::fmt::Result {
    sync(found, out)?;
    ratios(found, out)?;
    latencies(found, out)?;
    relists(found, out)
}

fn sync(found: &[(Client, Value)], out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "| client | sync s | user CPU s | system CPU s | peak MiB | steady MiB | bytes/object | counted/object | events/s |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|")?;
    for (client, value) in found {
        let sync = &value["sync"];
        let objects = number(&value["objects"]);
        let collected =
            value["collected_bytes"].as_f64().map_or(String::new(), |bytes| format!(" ({})", mebibytes(bytes)));
        let steady = number(&value["resident_bytes"]);
        let each = |bytes: f64| {
            if client.is_ours() || client.is_peer() { format!("{:.0}", bytes / objects) } else { String::new() }
        };
        let held = value["held_bytes"].as_f64().map_or(String::new(), each);
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {}{collected} | {} | {held} | {} |",
            client.label,
            short(number(&sync["seconds"])),
            short(number(&sync["user_cpu_seconds"])),
            short(number(&sync["system_cpu_seconds"])),
            mebibytes(number(&sync["peak_bytes"])),
            mebibytes(steady),
            each(steady),
            flat_out(value).map_or(String::new(), |rate| format!("{rate:.0}")),
        )?;
    }
    Ok(())
}

/// How many times better ours are than each peer: time, user CPU, peak memory, events.
fn ratios(found: &[(Client, Value)], out: &mut String) -> std::fmt::Result {
    let peers: Vec<_> = found.iter().filter(|(client, _)| client.is_peer()).collect();
    if peers.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTimes better than a peer: sync / user CPU / peak memory / events per second.\n")?;
    write!(out, "| |")?;
    peers.iter().try_for_each(|(peer, _)| write!(out, " {} |", peer.label))?;
    writeln!(out, "\n|---|{}", "---|".repeat(peers.len()))?;
    for (client, ours) in found.iter().filter(|(client, _)| client.is_ours()) {
        write!(out, "| {} |", client.label)?;
        for (_, theirs) in &peers {
            let lower = |name: &str| number(&theirs["sync"][name]) / number(&ours["sync"][name]);
            let events =
                flat_out(ours).zip(flat_out(theirs)).map_or("-".to_owned(), |(ours, theirs)| times(ours / theirs));
            write!(
                out,
                " {} / {} / {} / {events} |",
                times(lower("seconds")),
                times(lower("user_cpu_seconds")),
                times(lower("peak_bytes")),
            )?;
        }
        writeln!(out)?;
    }
    let floors: Vec<_> = found.iter().filter(|(client, _)| client.label.contains("bytes")).collect();
    for (floor, value) in floors {
        let protobuf = floor.label.contains("protobuf");
        let of: Vec<String> = found
            .iter()
            .filter(|(client, _)| client.is_ours() && client.label.contains("protobuf") == protobuf)
            .map(|(client, ours)| {
                format!(
                    "{} {}",
                    client.label,
                    times(number(&ours["sync"]["seconds"]) / number(&value["sync"]["seconds"]))
                )
            })
            .collect();
        writeln!(out, "\nIn multiples of {}: {}.", floor.label, of.join("; "))?;
    }
    Ok(())
}

fn latencies(found: &[(Client, Value)], out: &mut String) -> std::fmt::Result {
    writeln!(out, "\nLatency in microseconds, p50 / p99 / p99.9, and the user CPU per event.\n")?;
    let rates: Vec<u64> = found
        .iter()
        .find_map(|(_, value)| value["watch"].as_array().filter(|phases| !phases.is_empty()))
        .map_or(Vec::new(), |phases| phases.iter().filter_map(|phase| phase["rate"].as_u64()).collect());
    write!(out, "| client |")?;
    for rate in &rates {
        let name = if *rate == 0 { "as fast as it goes".to_owned() } else { format!("{rate}/s") };
        write!(out, " {name} | CPU us |")?;
    }
    writeln!(out, "\n|---|{}", "---|---|".repeat(rates.len()))?;
    for (client, value) in found {
        let Some(phases) = value["watch"].as_array().filter(|phases| !phases.is_empty()) else { continue };
        write!(out, "| {} |", client.label)?;
        for phase in phases {
            let micros = |name: &str| short(number(&phase[name]));
            let cpu = number(&phase["user_cpu_seconds"]) * 1e6 / number(&phase["events"]);
            write!(out, " {} / {} / {} | {} |", micros("p50_us"), micros("p99_us"), micros("p999_us"), short(cpu))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn relists(found: &[(Client, Value)], out: &mut String) -> std::fmt::Result {
    writeln!(out, "\nRelists: nothing changed, and 1 % changed.\n")?;
    writeln!(
        out,
        "| client | unchanged: s | of the sync's | user CPU s | peak / steady | handler calls | 1 %: s | user CPU s | peak / steady | handler calls |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|")?;
    for (client, value) in found {
        let Some([same, changed]) = value["relist"].as_array().map(Vec::as_slice) else { continue };
        let steady = number(&value["resident_bytes"]);
        let peak = |phase: &Value| short(number(&phase["peak_bytes"]) / steady);
        writeln!(
            out,
            "| {} | {} | {:.0} % | {} | {} | {} | {} | {} | {} | {} |",
            client.label,
            short(number(&same["seconds"])),
            100.0 * number(&same["seconds"]) / number(&value["sync"]["seconds"]),
            short(number(&same["user_cpu_seconds"])),
            peak(same),
            same["calls"],
            short(number(&changed["seconds"])),
            short(number(&changed["user_cpu_seconds"])),
            peak(changed),
            changed["calls"],
        )?;
    }
    Ok(())
}

fn churn(found: &[(Client, Value)], out: &mut String) -> std::fmt::Result {
    writeln!(out, "| client | fresh MiB | after MiB | times fresh |\n|---|---|---|---|")?;
    for (client, value) in found {
        let (fresh, after) = (number(&value["resident_bytes"]), number(&value["resident_after_bytes"]));
        writeln!(out, "| {} | {} | {} | {:.2} |", client.label, mebibytes(fresh), mebibytes(after), after / fresh)?;
    }
    Ok(())
}

fn fan_out(found: &[(Client, Value)], out: &mut String) -> std::fmt::Result {
    writeln!(out, "| client | events/s | calls/s | user CPU us per event |\n|---|---|---|---|")?;
    for (client, value) in found {
        let phase = &value["watch"][0];
        let handlers: f64 =
            client.label.split_whitespace().rev().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1.0);
        let rate = number(&phase["events_per_second"]);
        let cpu = number(&phase["user_cpu_seconds"]) * 1e6 / number(&phase["events"]);
        writeln!(out, "| {} | {rate:.0} | {:.0} | {} |", client.label, rate * handlers, short(cpu))?;
    }
    Ok(())
}

/// Each client found a list of measurements, alike for all that have it.
fn reads(found: &[(Client, Value)], out: &mut String) -> std::fmt::Result {
    writeln!(out, "| store | read | writer | p50 ns | p99 ns | p99.9 ns | reads/s |\n|---|---|---|---|---|---|---|")?;
    for (client, value) in found {
        for read in value["reads"].as_array().into_iter().flatten() {
            let text = |name: &str| read[name].as_str().unwrap_or("").to_owned();
            let count = |name: &str| format!("{:.0}", number(&read[name]));
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} |",
                client.label,
                text("read"),
                text("writer"),
                count("p50_ns"),
                count("p99_ns"),
                count("p999_ns"),
                count("per_second"),
            )?;
        }
    }
    Ok(())
}

/// The rate of the events that came as fast as they go.
fn flat_out(value: &Value) -> Option<f64> {
    let phases = value["watch"].as_array()?;
    phases.iter().find(|phase| phase["rate"] == 0)?["events_per_second"].as_f64()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Three digits that count.
fn short(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn times(ratio: f64) -> String {
    format!("{}x", short(ratio))
}

fn mebibytes(bytes: f64) -> String {
    short(bytes / 1024.0 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        assert_eq!([0.123, 12.34, 1234.5].map(short), ["0.12", "12.3", "1234"]);
        assert_eq!((times(31.25), mebibytes(1024.0 * 1024.0)), ("31.2x".to_owned(), "1.00".to_owned()));
    }

    #[test]
    fn the_rate_told_is_that_of_the_events_that_were_not_held_back() {
        let value = serde_json::json!({"watch": [{"rate": 1000, "events_per_second": 1000.0}, {"rate": 0, "events_per_second": 5.0}]});
        assert_eq!(flat_out(&value), Some(5.0));
        assert_eq!(flat_out(&serde_json::json!({"watch": []})), None);
    }
}
