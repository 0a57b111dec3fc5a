//! Current values of a run in Prometheus' text format.
//!
//! In: the [`Summary`] of a run under way. Out: text for a `/metrics` page, version 0.0.4 of
//! the exposition format. Pure: the page and its port belong to the dashboard. Counters only
//! ever rise during a run; what was not measured has no line.

use crate::ranks::{RankRecord, host_of, rank_report};
use crate::summary::{DeviceSums, Summary};
use std::fmt::{self, Write};

/// What the `Content-Type` header must say.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub fn prometheus(summary: &Summary) -> String {
    let mut page = Exposition::default();
    // Writing to a string cannot fail.
    let _ = steps(&mut page, summary)
        .and_then(|()| ranks(&mut page, summary))
        .and_then(|()| stages(&mut page, summary))
        .and_then(|()| queues(&mut page, summary))
        .and_then(|()| devices(&mut page, summary))
        .and_then(|()| events(&mut page, summary));
    page.text
}

/// A page that is being written. Names get the prefix `tandem_`.
#[derive(Debug, Default)]
pub struct Exposition {
    pub text: String,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    Counter,
    Gauge,
}

impl Exposition {
    /// The lines before the values of a metric.
    pub fn metric(&mut self, name: &str, kind: Type, help: &str) -> fmt::Result {
        let kind = match kind {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
        };
        writeln!(self.text, "# HELP tandem_{name} {help}\n# TYPE tandem_{name} {kind}")
    }

    /// One value of a metric.
    pub fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) -> fmt::Result {
        write!(self.text, "tandem_{name}")?;
        for (index, (label, content)) in labels.iter().enumerate() {
            let lead = if index == 0 { "{" } else { "," };
            write!(self.text, "{lead}{label}=\"{}\"", escaped(content))?;
        }
        let close = if labels.is_empty() { "" } else { "}" };
        writeln!(self.text, "{close} {value}")
    }

    /// A metric with one value.
    pub fn single(&mut self, name: &str, kind: Type, help: &str, value: f64) -> fmt::Result {
        self.metric(name, kind, help)?;
        self.value(name, &[], value)
    }
}

fn escaped(content: &str) -> String {
    content.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn steps(page: &mut Exposition, summary: &Summary) -> fmt::Result {
    let steps = &summary.steps;
    let (count, took) = (steps.all.count() as f64, steps.took.seconds().0);
    page.single("steps_total", Type::Counter, "Training steps finished.", count)?;
    page.single("step_seconds_total", Type::Counter, "Time of all steps.", took)?;
    let waited = steps.waited.seconds().0;
    page.single("waited_seconds_total", Type::Counter, "Time the model had no batch.", waited)?;
    page.single("utterances_total", Type::Counter, "Utterances trained on.", steps.items as f64)?;
    page.single("frames_total", Type::Counter, "Real mel frames trained on.", steps.frames as f64)?;
    if steps.losses.is_empty() {
        return Ok(());
    }
    page.metric("loss", Type::Gauge, "Losses of the last step.")?;
    for (name, value) in &steps.losses {
        if let Some(value) = value {
            page.value("loss", &[("name", name)], f64::from(*value))?;
        }
    }
    Ok(())
}

fn ranks(page: &mut Exposition, summary: &Summary) -> fmt::Result {
    let Some(sums) = &summary.ranks else { return Ok(()) };
    let hosts: Vec<String> = (0..sums.busy.len()).map(|rank| host_of(summary, rank)).collect();
    let host = |rank: usize| hosts.get(rank).map_or("unknown", String::as_str);
    page.metric("rank_seconds_total", Type::Counter, "Time of the steps of a rank.")?;
    let parts = [("busy", &sums.busy), ("starved", &sums.starved), ("reduce", &sums.reduces)];
    for (doing, times) in parts {
        for (rank, time) in times.iter().enumerate() {
            let labels = [("rank", &*rank.to_string()), ("host", host(rank)), ("doing", doing)];
            page.value("rank_seconds_total", &labels, *time)?;
        }
    }
    let help = "Steps in which a rank was the slowest.";
    page.metric("rank_slowest_steps_total", Type::Counter, help)?;
    for (rank, count) in sums.slowest_in.iter().enumerate() {
        let labels = [("rank", &*rank.to_string()), ("host", host(rank))];
        page.value("rank_slowest_steps_total", &labels, *count as f64)?;
    }
    rank_records(page, summary)?;
    let help = "Time in which gradients of several ranks were summed.";
    page.single("reduce_seconds_total", Type::Counter, help, sums.reduce)
}

/// What the records of the ranks add.
fn rank_records(page: &mut Exposition, summary: &Summary) -> fmt::Result {
    let Some(report) = rank_report(summary) else { return Ok(()) };
    type Figure = fn(&RankRecord) -> Option<f64>;
    let figures: [(&str, Type, &str, Figure); 4] = [
        ("rank_skipped_total", Type::Counter, "Items skipped by a rank.", |record| {
            Some(record.skipped as f64)
        }),
        ("rank_warnings_total", Type::Counter, "Warnings of a rank.", |record| {
            Some(record.warnings as f64)
        }),
        (
            "rank_device_utilisation",
            Type::Gauge,
            "Mean share of time the device of a rank is busy.",
            |record| record.utilisation,
        ),
        (
            "rank_slowest_stage_seconds",
            Type::Gauge,
            "Time per step of the slowest stage before the model.",
            |record| record.stage.as_ref().map(|load| load.per_step),
        ),
    ];
    for (name, kind, help, figure) in figures {
        let values = report.ranks.iter().enumerate();
        let values: Vec<_> = values
            .filter_map(|(rank, load)| Some((rank, load, figure(load.record.as_ref()?)?)))
            .collect();
        if !values.is_empty() {
            page.metric(name, kind, help)?;
        }
        for (rank, load, value) in values {
            let labels = [("rank", &*rank.to_string()), ("host", &*load.host)];
            page.value(name, &labels, value)?;
        }
    }
    Ok(())
}

fn stages(page: &mut Exposition, summary: &Summary) -> fmt::Result {
    if summary.stages.is_empty() {
        return Ok(());
    }
    page.metric("stage_seconds_total", Type::Counter, "Time of all workers of a stage.")?;
    for stage in &summary.stages {
        let parts = [("busy", stage.busy), ("starved", stage.starved), ("blocked", stage.blocked)];
        for (doing, time) in parts {
            let labels = [("stage", &*stage.stage), ("doing", doing)];
            page.value("stage_seconds_total", &labels, time.seconds().0)?;
        }
    }
    page.metric("stage_items_total", Type::Counter, "Items a stage has finished.")?;
    for stage in &summary.stages {
        page.value("stage_items_total", &[("stage", &stage.stage)], stage.items as f64)?;
    }
    page.metric("stage_workers", Type::Gauge, "Workers of a stage.")?;
    summary.stages.iter().try_for_each(|stage| {
        page.value("stage_workers", &[("stage", &stage.stage)], f64::from(stage.workers))
    })
}

fn queues(page: &mut Exposition, summary: &Summary) -> fmt::Result {
    if summary.queues.is_empty() {
        return Ok(());
    }
    page.metric("queue_bytes", Type::Gauge, "Bytes in a queue.")?;
    for (name, queue) in &summary.queues {
        page.value("queue_bytes", &[("queue", name)], queue.now.0 as f64)?;
    }
    page.metric("queue_limit_bytes", Type::Gauge, "Byte limit of a queue.")?;
    summary.queues.iter().try_for_each(|(name, queue)| {
        page.value("queue_limit_bytes", &[("queue", name)], queue.limit.0 as f64)
    })
}

fn devices(page: &mut Exposition, summary: &Summary) -> fmt::Result {
    type Figure = fn(&DeviceSums) -> Option<f64>;
    let share = "Share of time a device is busy.";
    let active = "Share of active multiprocessors.";
    let figures: [(&str, &str, Figure); 5] = [
        ("device_utilisation", share, |sums| sums.last_utilisation.map(f64::from)),
        ("device_activity", active, |sums| sums.last_activity.map(f64::from)),
        ("device_memory_bytes", "Memory in use on a device.", |sums| {
            sums.last_memory.map(|used| used.0 as f64)
        }),
        ("device_temperature_celsius", "Temperature of a device.", |sums| {
            sums.last_temperature.map(f64::from)
        }),
        ("device_power_watts", "Power draw of a device.", |sums| sums.last_power.map(f64::from)),
    ];
    for (name, help, figure) in figures {
        if summary.devices.values().any(|sums| figure(sums).is_some()) {
            page.metric(name, Type::Gauge, help)?;
        }
        for ((role, device), sums) in &summary.devices {
            if let Some(value) = figure(sums) {
                let labels = [("device", &**device), ("role", role.name())];
                page.value(name, &labels, value)?;
            }
        }
    }
    Ok(())
}

fn events(page: &mut Exposition, summary: &Summary) -> fmt::Result {
    let skipped = summary.all_skips().count as f64;
    page.single("skipped_total", Type::Counter, "Items skipped.", skipped)?;
    let warnings = summary.all_warning_count() as f64;
    page.single("warnings_total", Type::Counter, "Warnings given.", warnings)?;
    let checkpoints = summary.checkpoints.count as f64;
    page.single("checkpoints_total", Type::Counter, "Checkpoints written.", checkpoints)?;
    let failed = summary.health.write_errors as f64;
    let help = "Failed writes of the run record.";
    page.single("record_write_errors_total", Type::Counter, help, failed)?;
    if summary.health.lost.is_empty() {
        return Ok(());
    }
    page.metric("record_lost_total", Type::Counter, "Dropped events.")?;
    summary.health.lost.iter().try_for_each(|(kind, count)| {
        page.value("record_lost_total", &[("kind", kind)], *count as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Nanos;
    use crate::event::{
        DeviceRole, DeviceSample, Health, RankInterval, RunHeader, Skipped, StageInterval, Stamped,
        Step,
    };
    use tandem_units::Bytes;

    fn summary() -> Summary {
        let mut summary = Summary::default();
        let mut add = |event| summary.add(&Stamped { at: Nanos(1), event });
        add(Step {
            step: 1,
            took: Nanos::millis(150),
            waited: Nanos::millis(50),
            items: 16,
            frames: 9000,
            ..Step::default()
        }
        .into());
        add(StageInterval {
            stage: "load \"fast\"\n".into(),
            workers: 2,
            interval: Nanos::millis(1000),
            busy: Nanos::millis(500),
            starved: Nanos::millis(0),
            blocked: Nanos::millis(1500),
            items: 7,
        }
        .into());
        add(DeviceSample {
            memory_used: Some(Bytes(1024)),
            power: Some(250.5),
            ..DeviceSample::new("cuda:1".into(), DeviceRole::Model)
        }
        .into());
        add(Health { lost: [("span".to_string(), 3)].into(), ..Health::default() }.into());
        summary
    }

    #[test]
    fn every_line_has_the_form_prometheus_reads() {
        insta::assert_snapshot!(prometheus(&summary()));
    }

    #[test]
    fn every_rank_has_its_lines() {
        let mut summary = summary();
        assert!(!prometheus(&summary).contains("rank"));
        let hosts = serde_json::json!({"ranks": {"hosts": ["a", "b"]}});
        summary.header = Some(RunHeader::now("test", "0", hosts));
        let times = |second: u64| vec![Nanos::millis(100), Nanos::millis(second)];
        let interval = RankInterval {
            steps: 4,
            took: Nanos::millis(300),
            busy: times(150),
            starved: times(0),
            reduces: times(20),
            slowest_in: vec![1, 3],
            reduce: Nanos::millis(100),
            ..RankInterval::default()
        };
        summary.add(&Stamped { at: Nanos(2), event: interval.into() });
        let text = prometheus(&summary);
        for line in [
            "tandem_rank_seconds_total{rank=\"1\",host=\"b\",doing=\"busy\"} 0.15",
            "tandem_rank_seconds_total{rank=\"1\",host=\"b\",doing=\"reduce\"} 0.02",
            "tandem_rank_slowest_steps_total{rank=\"1\",host=\"b\"} 3\n",
            "tandem_reduce_seconds_total 0.1",
        ] {
            assert!(text.contains(line), "no {line} in {text}");
        }
        assert!(!text.contains("rank_skipped"), "no record of another rank was read");
        let mut other = Summary::default();
        let skipped = Skipped { ticket: None, id: None, stage: "load".into(), why: "cut".into() };
        other.add(&Stamped { at: Nanos(2), event: skipped.into() });
        summary.other_ranks.insert(1, other);
        let text = prometheus(&summary);
        for line in [
            "tandem_rank_skipped_total{rank=\"0\",host=\"a\"} 0\n",
            "tandem_rank_skipped_total{rank=\"1\",host=\"b\"} 1\n",
            "\ntandem_skipped_total 1\n",
        ] {
            assert!(text.contains(line), "no {line} in {text}");
        }
    }

    #[test]
    fn what_was_not_measured_has_no_line() {
        let text = prometheus(&summary());
        assert!(text.contains("tandem_device_memory_bytes{device=\"cuda:1\",role=\"model\"} 1024"));
        assert!(!text.contains("device_utilisation") && !text.contains("queue"));
    }
}
