//! Final reports of constructed runs, as text and JSON.

use serde_json::json;
use tandem_telemetry::event::{
    CacheState, Data, Decision, DecisionOutcome, DeviceRole, DeviceSample, EmptyStep, Event, Final,
    Health, HostFacts, QueueLevel, RunHeader, RunOutcome, Schema, Skipped, StageInterval, Stamped,
    StartReason, Started, Step, WarmUp,
};
use tandem_telemetry::verdict::Cause;
use tandem_telemetry::{Nanos, Report, Rules, RunRecord};
use tandem_units::{Bytes, Ticket};

/// Builds the record of a run step by step.
struct RecordBuilder {
    now: Nanos,
    events: Vec<Stamped>,
    steps: u64,
}

impl RecordBuilder {
    fn new() -> RecordBuilder {
        let header = RunHeader {
            format: RunHeader::FORMAT.into(),
            schema: Schema::CURRENT,
            program: "tandem".into(),
            version: "0.1.0".into(),
            started_unix_ms: 1_790_000_000_000,
            settings: json!({}),
            host: HostFacts::default(),
        };
        let mut run = RecordBuilder { now: Nanos(0), events: Vec::new(), steps: 0 };
        run.push(Event::Run(Box::new(header)));
        run.push(Started {
            waited: Nanos::millis(340),
            limit: Nanos::millis(2000),
            ready: 3,
            why: StartReason::EnoughReady,
        });
        run
    }

    fn push(&mut self, event: impl Into<Event>) {
        self.events.push(Stamped { at: self.now, event: event.into() });
    }

    fn step(&mut self, took: u64, waited: u64) {
        self.now += Nanos::millis(took);
        self.steps += 1;
        self.push(Step {
            step: self.steps,
            ticket: Ticket { seq: self.steps - 1, ..Ticket::default() },
            took: Nanos::millis(took),
            waited: Nanos::millis(waited),
            items: 16,
            frames: 9600,
            shape: Some([16, 128, 640 + 64 * (self.steps % 3) as u32]),
            ..Step::default()
        });
    }

    /// A stage that worked so many milliseconds on each step so far; the rest of the time it
    /// was starved (`-1`), blocked (`1`) or half of each (`0`).
    fn stage(&mut self, name: &'static str, workers: u32, millis: u64, lean: i8) {
        let over = Nanos(self.now.0);
        let busy = Nanos::millis(millis * self.steps);
        let rest = Nanos(over.0 * u64::from(workers)).less(busy).0;
        let (starved, blocked) = match lean {
            -1 => (rest, 0),
            1 => (0, rest),
            _ => (rest / 2, rest / 2),
        };
        self.push(StageInterval {
            stage: name.into(),
            workers,
            interval: over,
            busy,
            starved: Nanos(starved),
            blocked: Nanos(blocked),
            items: self.steps,
        });
    }

    fn device(&mut self, name: &'static str, role: DeviceRole, utilisation: f32) {
        self.push(DeviceSample {
            utilisation: Some(utilisation),
            memory_used: Some(Bytes::mib(9000)),
            memory_total: Some(Bytes::mib(24576)),
            ..DeviceSample::new(name.into(), role)
        });
    }

    fn end(mut self) -> RunRecord {
        let steps = self.steps;
        let outcome = RunOutcome::Done;
        let flags = vec!["--num-workers 4".into(), "--pipeline-depth 3".into()];
        self.push(Final { outcome, why: None, steps, flags });
        self.unfinished()
    }

    fn unfinished(self) -> RunRecord {
        let Event::Run(header) = &self.events[0].event else { panic!("no header") };
        let header = (**header).clone();
        RunRecord { header, events: self.events, notes: Default::default() }
    }
}

fn skipped(id: Option<&str>, seq: u64) -> Skipped {
    Skipped {
        ticket: Some(Ticket { seq, ..Ticket::default() }),
        id: id.map(str::to_string),
        stage: "load".into(),
        why: "the recording ends in the middle of a frame".into(),
    }
}

fn found(cache: CacheState, list: Option<&str>) -> Data {
    Data {
        usable: 12_950,
        rejected: 3,
        eval: 128,
        list: list.map(str::to_string),
        cache,
        rebuilt: 40,
        seconds: 1.5,
        workers: 2,
    }
}

fn report(record: &RunRecord) -> Report {
    Report::of(record, &Rules::default())
}

#[test]
fn the_verdict_names_the_stage_a_starved_model_waits_for() {
    let mut run = RecordBuilder::new();
    (0..200).for_each(|_| run.step(150, 100));
    run.stage("load", 1, 149, 1);
    run.stage("preprocess", 2, 40, -1);
    run.stage("transfer", 1, 5, -1);
    run.device("cuda:0", DeviceRole::Data, 0.12);
    run.device("cuda:1", DeviceRole::Model, 0.34);
    run.push(QueueLevel {
        queue: "preprocess".into(),
        items: 1,
        bytes: Bytes::mib(3),
        limit: Bytes::mib(256),
        limit_items: None,
    });
    run.push(skipped(Some("LJ001-0042"), 7));
    let decide = |from, to, after, outcome| Decision {
        what: "workers".into(),
        stage: Some("load".into()),
        from,
        to,
        before: 106.0,
        after: Some(after),
        outcome,
        why: "the model starves".into(),
    };
    run.push(decide(1, 2, 211.0, DecisionOutcome::Kept));
    run.push(decide(2, 3, 211.5, DecisionOutcome::Reverted));
    let report = report(&run.end());
    assert_eq!(report.verdict.cause, Cause::Feed);
    assert_eq!(report.verdict.stage.as_deref(), Some("load"));
    // Without `load` a step would take the model's 50 ms of 150.
    assert!((report.verdict.cost - 2.0 / 3.0).abs() < 1e-9);
    insta::assert_snapshot!("starved_text", report);
    insta::assert_json_snapshot!("starved_json", report);
}

#[test]
fn a_slow_model_with_slack_before_it_is_the_intended_bottleneck() {
    let mut run = RecordBuilder::new();
    // The first step compiles kernels for a minute; it must not affect the other figures.
    run.step(60_000, 0);
    (0..199).for_each(|_| run.step(150, 1));
    run.stage("load", 1, 20, 1);
    run.stage("preprocess", 1, 10, 1);
    run.device("cuda:1", DeviceRole::Model, 0.93);
    let report = report(&run.end());
    assert_eq!(report.verdict.cause, Cause::Model);
    assert!((report.verdict.slack.unwrap() - (1.0 - 20.0 / 150.0)).abs() < 1e-9);
    insta::assert_snapshot!("slow_train_text", report);
}

#[test]
fn equal_stages_are_called_balanced() {
    let mut run = RecordBuilder::new();
    (0..200).for_each(|_| run.step(100, 1));
    run.stage("load", 2, 190, 0);
    run.stage("transfer", 1, 5, -1);
    let report = report(&run.end());
    assert_eq!(report.verdict.cause, Cause::Balanced);
    insta::assert_snapshot!("balanced_text", report);
}

#[test]
fn waits_without_a_slow_stage_are_attributed_to_variation() {
    let mut run = RecordBuilder::new();
    for number in 0..200 {
        if number % 4 == 0 { run.step(260, 160) } else { run.step(100, 0) }
    }
    run.stage("load", 1, 90, 0);
    run.stage("preprocess", 1, 30, -1);
    let report = report(&run.end());
    assert_eq!(report.verdict.cause, Cause::Variation);
    assert_eq!(report.verdict.stage.as_deref(), Some("load"));
    insta::assert_snapshot!("oscillating_text", report);
}

#[test]
fn a_killed_run_without_stages_names_what_is_unknown() {
    let mut run = RecordBuilder::new();
    (0..10).for_each(|_| run.step(100, 50));
    run.push(Health {
        lost: [("span".to_string(), 12)].into(),
        write_errors: 3,
        first_error: Some("No space left on device (os error 28)".into()),
        slowest_write: Nanos::millis(3),
        late_losses: 1,
    });
    let mut record = run.unfinished();
    record.notes.torn = Some(17);
    let report = report(&record);
    assert_eq!(report.verdict.cause, Cause::Unknown);
    insta::assert_snapshot!("killed_text", report);
}

#[test]
fn what_was_compiled_before_the_clock_started_is_in_the_report() {
    let mut run = RecordBuilder::new();
    for (number, took) in [(1, 1200), (2, 300)] {
        run.push(WarmUp { shape: [4, 60, 400], number, total: 2, took: Nanos::millis(took) });
    }
    let text = report(&run.end()).to_string();
    assert!(text.contains("warm-up   2 shapes compiled before the first step: 1.50 s"), "{text}");
}

#[test]
fn each_skipped_row_is_listed_once_and_the_rest_are_counted() {
    let mut run = RecordBuilder::new();
    for epoch in 0..3 {
        (0..22).for_each(|row| run.push(skipped(Some(&format!("row-{row:02}")), 100 * epoch)));
    }
    let report = report(&run.end());
    assert_eq!((report.skips.count, report.skips.rows.len(), report.skips.others), (66, 20, 6));
    assert!(report.skips.rows.iter().all(|row| row.times == 3));
    let text = report.to_string();
    let line = "  row-00 at load 3 times: the recording ends in the middle of a frame\n";
    assert_eq!(text.matches("row-00").count(), 1, "{text}");
    assert!(text.contains("skipped   66 items (load 66)\n"), "{text}");
    assert!(text.contains(line) && text.contains("  and 6 skips of other rows\n"), "{text}");
    assert!(!text.contains("row-20"), "{text}");
}

#[test]
fn skipped_batches_without_an_id_are_named_by_their_ticket() {
    let mut run = RecordBuilder::new();
    [4, 9].into_iter().for_each(|seq| run.push(skipped(None, seq)));
    let names: Vec<_> = report(&run.end()).skips.rows.iter().map(|row| row.name()).collect();
    assert_eq!(names, ["#4", "#9"]);
}

#[test]
fn steps_without_a_usable_batch_are_counted() {
    let mut run = RecordBuilder::new();
    (1..=2).for_each(|step| run.push(EmptyStep { step, ticket: Ticket::default() }));
    let report = report(&run.end());
    assert_eq!(report.empty_steps, 2);
    let line = "empty     2 optimizer steps without a usable batch: weights unchanged\n";
    assert!(report.to_string().contains(line), "{report}");
    assert_eq!(serde_json::to_value(&report).unwrap()["empty_steps"], 2);
}

#[test]
fn the_corpus_is_on_the_second_line() {
    #[track_caller]
    fn check(data: Data, line: &str) {
        let mut run = RecordBuilder::new();
        run.push(data.clone());
        let report = report(&run.end());
        assert_eq!(report.to_string().lines().nth(1), Some(line));
        assert_eq!(report.data, Some(data));
    }
    check(
        found(CacheState::Read, None),
        "data      12950 usable rows, 128 held out, 3 rejected; cache read in 1.50 s by 2 workers",
    );
    check(
        found(CacheState::Updated, Some("run/rejected.csv")),
        "data      12950 usable rows, 128 held out, 3 rejected (list: run/rejected.csv); \
         cache updated, 40 rebuilt in 1.50 s by 2 workers",
    );
    check(
        found(CacheState::Built, None),
        "data      12950 usable rows, 128 held out, 3 rejected; cache built, 40 new in 1.50 s by 2 workers",
    );
}

#[test]
fn a_run_without_steps_is_neither_judged_nor_graded() {
    let report = report(&RecordBuilder::new().end());
    assert_eq!(report.verdict.cause, Cause::NoSteps);
    assert_eq!(report.grading.grade, None);
    insta::assert_snapshot!("no_steps_text", report);
}

#[test]
fn a_stage_that_handles_utterances_is_measured_per_step_too() {
    let by_utterance = |per_batch: u64| {
        let mut run = RecordBuilder::new();
        (0..100).for_each(|_| run.step(100, 0));
        let interval = StageInterval {
            stage: "prepare".into(),
            workers: 2,
            interval: run.now,
            busy: Nanos::millis(9600),
            starved: Nanos(0),
            blocked: Nanos(0),
            // It works a few items ahead of the model.
            items: 100 * per_batch + 20,
        };
        run.push(interval);
        report(&run.end()).stages[0].per_step
    };
    assert!((by_utterance(16) - 0.048 * 1600.0 / 1620.0).abs() < 1e-6);
    assert!((by_utterance(1) - 0.048 / 1.2).abs() < 1e-6);
}

#[test]
fn the_json_form_reads_back_as_the_same_report() {
    let mut run = RecordBuilder::new();
    (0..20).for_each(|n| run.step(100 + n, n));
    run.stage("load", 2, 50, 0);
    let report = report(&run.end());
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
}

#[test]
fn a_device_shows_activity_power_and_temperature_where_known() {
    let mut run = RecordBuilder::new();
    run.device("cuda:0", DeviceRole::Model, 0.9);
    for (activity, power, temperature) in [(0.25, 200.0, 60.0), (0.75, 300.0, 71.0)] {
        run.push(DeviceSample {
            activity: Some(activity),
            power: Some(power),
            temperature: Some(temperature),
            ..DeviceSample::new("cuda:1".into(), DeviceRole::Data)
        });
    }
    let text = report(&run.end()).to_string();
    let line = |device| text.lines().find(|line| line.contains(device)).unwrap().to_string();
    assert!(line("cuda:1").ends_with("; 50.0 % active; 250 W; up to 71 C"), "{text}");
    assert!(line("cuda:0").ends_with("8.8 GiB of 24.0 GiB"), "{text}");
}
