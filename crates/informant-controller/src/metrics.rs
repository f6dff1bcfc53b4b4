//! `/metrics`: the numbers of controllers, queues and informers under the names that dashboards for Go controllers use.
//!
//! Nothing is counted here. A scrape reads the same values as `/katalog` does, so there's no registry to keep in step and nothing that
//! outlives its manager.

use std::{collections::HashMap, fmt, time::Duration};

use informant_cache::{HandlerStatus, InformerState, InformerStatus, RelistReason, WatchRestartReason};
use informant_queue::{Histogram, Stats};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

use crate::controller::Numbers;

/// What is shown of one controller.
#[derive(Clone, Debug)]
pub(crate) struct ControllerSample {
    pub(crate) name: String,
    pub(crate) workers: usize,
    pub(crate) numbers: Numbers,
    pub(crate) queue: Stats,
}

/// Every reason of a relist, so that a first one shows as a step from 0.
const RELIST_REASONS: [RelistReason; 7] = [
    RelistReason::Expired,
    RelistReason::ResourceVersionTooLarge,
    RelistReason::WatchError,
    RelistReason::Incomplete,
    RelistReason::Returned,
    RelistReason::Unreadable,
    RelistReason::Internal,
];

/// Every reason why a watch is opened again, for the same.
const WATCH_RESTART_REASONS: [WatchRestartReason; 9] = [
    WatchRestartReason::Ended,
    WatchRestartReason::Short,
    WatchRestartReason::Broken,
    WatchRestartReason::Idle,
    WatchRestartReason::Refused,
    WatchRestartReason::TooManyRequests,
    WatchRestartReason::Denied,
    WatchRestartReason::ErrorEvent,
    WatchRestartReason::Failed,
];

/// Writes all metrics of a manager.
pub(crate) fn encode(
    mut encoder: DescriptorEncoder<'_>,
    controllers: &[ControllerSample],
    mut informers: Vec<InformerStatus>,
) -> fmt::Result {
    // There are no series of what's gone.
    informers.retain(|informer| informer.state != InformerState::Stopped);
    for informer in &mut informers {
        informer.handlers.retain(|handler| handler.ended.is_none());
        number(informer.handlers.iter_mut().map(|handler| &mut handler.handler));
    }
    number(informers.iter_mut().map(|informer| &mut informer.informer));
    encode_reconciles(&mut encoder, controllers)?;
    encode_queues(&mut encoder, controllers)?;
    encode_informers(&mut encoder, &informers)
}

/// Informers of one resource with different object types have one name, as handlers may, and two series with the same labels would void
/// the whole page.
fn number<'a>(names: impl Iterator<Item = &'a mut String>) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for name in names {
        let number = seen.entry(name.clone()).or_default();
        *number += 1;
        if *number > 1 {
            *name = format!("{name} ({number})");
        }
    }
}

fn encode_reconciles(encoder: &mut DescriptorEncoder<'_>, controllers: &[ControllerSample]) -> fmt::Result {
    let label = |sample: &ControllerSample| [("controller", sample.name.clone())];
    let help = "Reconciles by result";
    let mut totals = encoder.encode_descriptor("controller_runtime_reconcile", help, None, MetricType::Counter)?;
    for sample in controllers {
        let counts = &sample.numbers.counts;
        for (result, value) in [
            ("error", counts.error),
            ("requeue", counts.requeue),
            ("requeue_after", counts.requeue_after),
            ("success", counts.success),
        ] {
            counter(&mut totals, &[("controller", sample.name.as_str()), ("result", result)], value)?;
        }
    }
    let rows: [Row<ControllerSample, u64>; 4] = [
        ("controller_runtime_reconcile_errors", "Reconciles that failed", |sample| sample.numbers.counts.error),
        ("controller_runtime_terminal_reconcile_errors", "Reconciles that failed for good", |sample| {
            sample.numbers.counts.terminal_errors
        }),
        ("controller_runtime_reconcile_panics", "Reconciles that panicked", |sample| sample.numbers.counts.panics),
        ("controller_runtime_reconcile_timeouts", "Reconciles that took longer than allowed", |sample| {
            sample.numbers.counts.timeouts
        }),
    ];
    encode_rows(encoder, MetricType::Counter, &rows, controllers, label, counter)?;
    let name = "controller_runtime_reconcile_time_seconds";
    let mut times = encoder.encode_descriptor(name, "Time that reconciles took", None, MetricType::Histogram)?;
    for sample in controllers {
        let time = &sample.numbers.time;
        histogram(&mut times, &label(sample), time.sum, time.count(), time.buckets())?;
    }
    let rows: [Row<ControllerSample, f64>; 2] = [
        ("controller_runtime_max_concurrent_reconciles", "Keys that are reconciled at a time, at most", |sample| {
            count(sample.workers)
        }),
        ("controller_runtime_active_workers", "Keys that are reconciled now", |sample| count(sample.numbers.active())),
    ];
    encode_rows(encoder, MetricType::Gauge, &rows, controllers, label, gauge)
}

fn encode_queues(encoder: &mut DescriptorEncoder<'_>, controllers: &[ControllerSample]) -> fmt::Result {
    let label = |sample: &ControllerSample| [("name", sample.name.clone()), ("controller", sample.name.clone())];
    let rows: [Row<ControllerSample, f64>; 3] = [
        ("workqueue_depth", "Keys that are ready and not with a worker", |sample| count(sample.queue.depth)),
        ("workqueue_unfinished_work_seconds", "Running time of all keys with a worker, added up", |sample| {
            sample.queue.unfinished.as_secs_f64()
        }),
        (
            "workqueue_longest_running_processor_seconds",
            "Running time of the key that is longest with a worker",
            |sample| sample.queue.longest_running.as_secs_f64(),
        ),
    ];
    encode_rows(encoder, MetricType::Gauge, &rows, controllers, label, gauge)?;
    let rows: [Row<ControllerSample, u64>; 2] = [
        ("workqueue_adds", "Keys added, those left out that waited already", |sample| sample.queue.adds),
        ("workqueue_retries", "Keys added with a delay", |sample| sample.queue.retries),
    ];
    encode_rows(encoder, MetricType::Counter, &rows, controllers, label, counter)?;
    let rows: [Row<ControllerSample, Histogram>; 2] = [
        ("workqueue_queue_duration_seconds", "Time that keys waited for a worker", |sample| {
            sample.queue.queue_duration.clone()
        }),
        ("workqueue_work_duration_seconds", "Time that keys were with a worker", |sample| {
            sample.queue.work_duration.clone()
        }),
    ];
    encode_rows(encoder, MetricType::Histogram, &rows, controllers, label, |metric, labels, times| {
        histogram(metric, labels, times.sum(), times.count(), times.buckets())
    })
}

fn encode_informers(encoder: &mut DescriptorEncoder<'_>, informers: &[InformerStatus]) -> fmt::Result {
    let label = |informer: &InformerStatus| [("informer", informer.informer.clone())];
    let rows: [Row<InformerStatus, f64>; 3] = [
        ("informer_synced", "1 if the cache was complete at least once", |informer| {
            f64::from(u8::from(informer.synced))
        }),
        ("informer_objects", "Objects in the cache", |informer| count(informer.objects)),
        ("informer_bytes", "Memory that the cache takes, backlogs included", |informer| bytes(informer.memory.total())),
    ];
    encode_rows(encoder, MetricType::Gauge, &rows, informers, label, gauge)?;
    let help = "1 for the state that the informer is in";
    let mut states = encoder.encode_descriptor("informer_state", help, None, MetricType::Gauge)?;
    for informer in informers {
        gauge(&mut states, &[("informer", informer.informer.as_str()), ("state", informer.state.name())], 1.0)?;
    }
    let rows: [Row<InformerStatus, u64>; 4] = [
        ("informer_events", "Changes that were announced", |informer| informer.counters.events),
        ("informer_failures", "Requests that failed", |informer| informer.counters.failures),
        ("informer_undecodable", "Objects received that couldn't be decoded", |informer| informer.counters.undecodable),
        ("informer_conflated_events", "Events merged away in handlers' backlogs", |informer| {
            informer.counters.conflated
        }),
    ];
    encode_rows(encoder, MetricType::Counter, &rows, informers, label, counter)?;
    let help = "Times that the present state was taken in again";
    let mut relists = encoder.encode_descriptor("informer_relists", help, None, MetricType::Counter)?;
    for informer in informers {
        for reason in RELIST_REASONS {
            let times = informer.counters.relists.get(&reason).copied().unwrap_or_default();
            let reason = serde_name(&reason);
            counter(&mut relists, &[("informer", informer.informer.as_str()), ("reason", &reason)], times)?;
        }
    }
    let help = "Watches opened again where the last one ended, without a new list";
    let mut restarts = encoder.encode_descriptor("informer_watch_restarts", help, None, MetricType::Counter)?;
    for informer in informers {
        for reason in WATCH_RESTART_REASONS {
            let times = informer.counters.watch_restarts.get(&reason).copied().unwrap_or_default();
            let reason = serde_name(&reason);
            counter(&mut restarts, &[("informer", informer.informer.as_str()), ("reason", &reason)], times)?;
        }
    }
    encode_handlers(encoder, informers)?;
    encode_informers_of_client_go(encoder, informers)
}

/// What client-go has of its informers, under its names and labels.
fn encode_informers_of_client_go(encoder: &mut DescriptorEncoder<'_>, informers: &[InformerStatus]) -> fmt::Result {
    let help = "Events that wait in the backlogs of the informer's handlers";
    let mut queued = encoder.encode_descriptor("informer_queued_items", help, None, MetricType::Gauge)?;
    for informer in informers {
        let waiting = informer.handlers.iter().map(|handler| handler.queued).sum();
        gauge(&mut queued, &resource_labels(informer), count(waiting))?;
    }
    let help = "Time to apply a batch of changes to the cache and to hand it to the handlers";
    let name = "informer_processing_latency_seconds";
    let mut times = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for informer in informers {
        let time = &informer.processing;
        histogram(&mut times, &resource_labels(informer), time.sum(), time.count(), time.buckets())?;
    }
    let help = "Resource version up to which the cache follows the server, its last 15 digits";
    let mut versions = encoder.encode_descriptor("informer_store_resource_version", help, None, MetricType::Gauge)?;
    for informer in informers {
        // What's no number can't be shown.
        if let Some(version) = last_digits(&informer.resource_version) {
            gauge(&mut versions, &resource_labels(informer), version)?;
        }
    }
    Ok(())
}

fn resource_labels(informer: &InformerStatus) -> [(&'static str, &str); 4] {
    [
        ("name", &informer.informer),
        ("group", &informer.group),
        ("version", &informer.version),
        ("resource", &informer.resource),
    ]
}

/// How the handlers do that there are now.
fn encode_handlers(encoder: &mut DescriptorEncoder<'_>, informers: &[InformerStatus]) -> fmt::Result {
    let rows: [Row<HandlerStatus, f64>; 2] = [
        ("informer_handler_queued_events", "Events that wait for the handler", |handler| count(handler.queued)),
        ("informer_handler_synced", "1 if the handler has handled the whole initial state", |handler| {
            f64::from(u8::from(handler.synced))
        }),
    ];
    for (name, help, value) in rows {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, handler) in handlers(informers) {
            gauge(&mut metric, &labels, value(handler))?;
        }
    }
    let rows: [Row<HandlerStatus, u64>; 3] = [
        ("informer_handler_events", "Events that the handler was given", |handler| handler.delivered),
        ("informer_handler_conflated_events", "Events merged away in the handler's backlog", |handler| {
            handler.conflated
        }),
        ("informer_handler_panics", "Calls that panicked", |handler| handler.panics),
    ];
    for (name, help, value) in rows {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, handler) in handlers(informers) {
            counter(&mut metric, &labels, value(handler))?;
        }
    }
    let help = "Time from a change's arrival from the server to its having been handled";
    let name = "informer_handler_lag_seconds";
    let mut lags = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (labels, handler) in handlers(informers) {
        let lag = &handler.lag;
        histogram(&mut lags, &labels, lag.sum(), lag.count(), lag.buckets())?;
    }
    Ok(())
}

fn handlers(informers: &[InformerStatus]) -> impl Iterator<Item = ([(&'static str, &str); 2], &HandlerStatus)> {
    informers.iter().flat_map(|informer| {
        informer
            .handlers
            .iter()
            .map(|handler| ([("informer", informer.informer.as_str()), ("handler", handler.handler.as_str())], handler))
    })
}

/// A resource version as a number that a float holds exactly: its last 15 digits, as client-go has it.
fn last_digits(resource_version: &str) -> Option<f64> {
    let digits = resource_version.get(resource_version.len().saturating_sub(15)..)?;
    let all_digits = resource_version.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| all_digits)
}

/// A metric: its name (a counter's without `_total`, which the encoder adds), its help text, and its value of one sample.
type Row<S, V> = (&'static str, &'static str, fn(&S) -> V);

/// Writes metrics that have one value for each sample.
fn encode_rows<S, V, L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    metric_type: MetricType,
    rows: &[Row<S, V>],
    samples: &[S],
    label: impl Fn(&S) -> L,
    write: impl Fn(&mut MetricEncoder<'_>, &L, V) -> fmt::Result,
) -> fmt::Result {
    for (name, help, value) in rows {
        let mut metric = encoder.encode_descriptor(name, help, None, metric_type)?;
        for sample in samples {
            write(&mut metric, &label(sample), value(sample))?;
        }
    }
    Ok(())
}

fn counter<S: EncodeLabelSet>(metric: &mut MetricEncoder<'_>, labels: &S, value: u64) -> fmt::Result {
    metric.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

fn gauge<S: EncodeLabelSet>(metric: &mut MetricEncoder<'_>, labels: &S, value: f64) -> fmt::Result {
    metric.encode_family(labels)?.encode_gauge(&value)
}

fn histogram<S: EncodeLabelSet>(
    metric: &mut MetricEncoder<'_>,
    labels: &S,
    sum: Duration,
    total: u64,
    buckets: impl Iterator<Item = (Option<Duration>, u64)>,
) -> fmt::Result {
    let bound = |bound: Option<Duration>| bound.map_or(f64::INFINITY, |bound| bound.as_secs_f64());
    let buckets: Vec<(f64, u64)> = buckets.map(|(upper, count)| (bound(upper), count)).collect();
    metric.encode_family(labels)?.encode_histogram::<NoLabelSet>(sum.as_secs_f64(), total, &buckets, None)
}

#[allow(clippy::cast_precision_loss, reason = "a float holds any number of keys that fits into memory")]
fn count(value: usize) -> f64 {
    value as f64
}

#[allow(clippy::cast_precision_loss, reason = "a float holds any number of bytes that fits into memory, nearly")]
fn bytes(value: u64) -> f64 {
    value as f64
}

/// The name of a variant as JSON has it.
fn serde_name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
