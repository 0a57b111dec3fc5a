//! The format of the record: fixed by a golden file, and documented field by field.

use serde_json::{Value, json};
use tandem_telemetry::event::{
    CacheState, Checkpoint, Data, Decision, DecisionOutcome, DeviceRole, DeviceSample, Doing,
    EmptyStep, Event, Final, Graphs, Health, HostFacts, Kernels, Kind, Loss, QueueLevel,
    RankInterval, RunHeader, RunOutcome, Schema, Skipped, SlotChange, SlotState, Span,
    StageInterval, Stamped, StartReason, Started, Step, Validation, WarmUp, Warning,
};
use tandem_telemetry::{Nanos, Pending};
use tandem_units::{Bytes, Epoch, Ticket};

/// One event of each kind with every field filled in.
fn one_of_each() -> Vec<Event> {
    [start_events(), pipeline_events(), other_events(), end_events()].concat()
}

const TICKET: Ticket = Ticket { epoch: Epoch(1), seq: 41 };

fn start_events() -> Vec<Event> {
    let header = RunHeader {
        format: RunHeader::FORMAT.into(),
        schema: Schema { major: 1, minor: 3 },
        program: "tandem".into(),
        version: "0.1.0".into(),
        started_unix_ms: 1_790_000_000_000,
        settings: json!({ "batch_size": 16 }),
        host: HostFacts {
            os: "linux".into(),
            arch: "x86_64".into(),
            threads: Some(2),
            memory: Some(Bytes::mib(4)),
            cpu: Some("test CPU".into()),
        },
    };
    let [waited, limit] = [Nanos(1), Nanos(2)];
    let started = Started { waited, limit, ready: 3, why: StartReason::EnoughReady };
    let warm_up = WarmUp { shape: [4, 60, 400], number: 1, total: 3, took: Nanos(5) };
    let data = Data {
        usable: 900,
        rejected: 2,
        eval: 32,
        list: Some("run/rejected.csv".into()),
        cache: CacheState::Updated,
        rebuilt: 7,
        seconds: 1.5,
        workers: 2,
    };
    let kernels = Kernels {
        cached_tuned: 24,
        cached_compiled: 99,
        saved: Nanos(6),
        tuned: 1,
        compiled: 2,
        took: Nanos(7),
    };
    let graphs = Graphs {
        shapes: 2,
        planned: 3,
        memory: Bytes::mib(35),
        took: Nanos(8),
        replayed: 95,
        others: 5,
        why_none: Some("refused".into()),
    };
    let header = Event::Run(Box::new(header));
    vec![header, data.into(), warm_up.into(), kernels.into(), graphs.into(), started.into()]
}

fn pipeline_events() -> Vec<Event> {
    let losses = vec![
        Loss { name: "total".into(), value: Pending::known(0.5) },
        Loss { name: "prior".into(), value: Pending::known(f32::NAN) },
        Loss { name: "late".into(), value: None.into() },
    ];
    vec![
        StageInterval {
            stage: "load".into(),
            workers: 2,
            interval: Nanos(10),
            busy: Nanos(11),
            starved: Nanos(5),
            blocked: Nanos(4),
            items: 7,
        }
        .into(),
        Span {
            stage: "load".into(),
            worker: 1,
            ticket: Some(TICKET),
            doing: Doing::Busy,
            begin: Nanos(1),
            end: Nanos(2),
        }
        .into(),
        Step {
            step: 42,
            ticket: TICKET,
            took: Nanos(150),
            waited: Nanos(3),
            items: 16,
            frames: 9000,
            shape: Some([16, 128, 640]),
            batches: vec![[16, 120, 600], [16, 128, 640]],
            work: [("load".into(), Nanos(90)), ("align".into(), Nanos(7))].into(),
            cpu: Some(Nanos(280)),
            preempted: Some(4),
            losses,
        }
        .into(),
        EmptyStep { step: 43, ticket: TICKET }.into(),
        RankInterval {
            step: 43,
            steps: 2,
            took: Nanos(300),
            busy: vec![Nanos(120), Nanos(140)],
            starved: vec![Nanos(3), Nanos(0)],
            slowest: Nanos(140),
            reduce: Nanos(9),
            reduces: vec![Nanos(9), Nanos(8)],
            slowest_in: vec![0, 2],
        }
        .into(),
        SlotChange { slot: 2, state: SlotState::Training, ticket: Some(TICKET) }.into(),
        QueueLevel {
            queue: "train".into(),
            items: 2,
            bytes: Bytes(5000),
            limit: Bytes(9000),
            limit_items: Some(3),
        }
        .into(),
    ]
}

fn other_events() -> Vec<Event> {
    vec![
        Decision {
            what: "workers".into(),
            stage: Some("load".into()),
            from: 2,
            to: 3,
            before: 100.5,
            after: Some(120.25),
            outcome: DecisionOutcome::Reverted,
            why: "the model starves".into(),
        }
        .into(),
        Skipped {
            ticket: Some(TICKET),
            id: Some("LJ001-0042".into()),
            stage: "load".into(),
            why: "broken".into(),
        }
        .into(),
        DeviceSample {
            device: "cuda:0".into(),
            role: DeviceRole::Data,
            utilisation: Some(0.5),
            activity: Some(0.25),
            memory_used: Some(Bytes(1)),
            memory_total: Some(Bytes(2)),
            temperature: Some(60.5),
            power: Some(250.5),
        }
        .into(),
        Checkpoint {
            step: 42,
            path: "checkpoints/42".into(),
            bytes: Bytes(77),
            took: Nanos(8),
            why: "best".into(),
        }
        .into(),
        Validation {
            step: 42,
            took: Nanos(8),
            best: true,
            values: [("flow".to_string(), 0.5)].into(),
        }
        .into(),
    ]
}

fn end_events() -> Vec<Event> {
    vec![
        Warning { code: "variation".into(), text: "step times vary".into() }.into(),
        Health {
            lost: [("span".to_string(), 3)].into(),
            write_errors: 1,
            first_error: Some("No space left on device".into()),
            slowest_write: Nanos(9),
            late_losses: 1,
        }
        .into(),
        Final {
            outcome: RunOutcome::Interrupted,
            why: Some("Ctrl-C".into()),
            steps: 42,
            flags: vec!["--num-workers 2".into()],
        }
        .into(),
    ]
}

fn lines() -> Vec<String> {
    let events = one_of_each().into_iter().enumerate();
    events
        .map(|(index, event)| Stamped { at: Nanos(index as u64), event })
        .map(|stamped| serde_json::to_string(&stamped).unwrap())
        .collect()
}

#[test]
fn the_format_changes_only_on_purpose() {
    let kinds: Vec<Kind> = one_of_each().iter().map(Event::kind).collect();
    assert_eq!(kinds, Kind::ALL, "one of each");
    // A changed line needs a new `Schema` number and a word in docs/record.md.
    insta::assert_snapshot!(lines().join("\n"));
}

#[test]
fn every_line_reads_back_as_it_was_written() {
    for line in lines() {
        let back: Stamped = serde_json::from_str(&line).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), line);
    }
}

#[test]
fn names_of_the_older_minor_version_are_read() {
    #[track_caller]
    fn check(line: &str) {
        let new = |line: String, (old, new): (&str, &str)| line.replace(old, new);
        let renamed = [
            ("\"of\"", "\"total\""),
            ("\"over\"", "\"interval\""),
            ("taken_back", "reverted"),
            ("processor", "cpu"),
        ];
        let read: Stamped = serde_json::from_str(line).unwrap();
        let now = renamed.into_iter().fold(line.to_string(), new);
        assert_ne!(now, line, "nothing was renamed");
        assert_eq!(serde_json::to_string(&read).unwrap(), now);
    }
    check(r#"{"at":1,"event":"warm_up","shape":[4,60,400],"number":1,"of":3,"took":5}"#);
    check(
        r#"{"at":3,"event":"stage","stage":"load","workers":2,"over":10,"busy":11,"starved":5,"blocked":4,"items":7}"#,
    );
    check(
        r#"{"at":8,"event":"decision","what":"workers","stage":"load","from":2,"to":3,"before":100.5,"after":120.25,"outcome":"taken_back","why":"the model starves"}"#,
    );
    check(
        r#"{"at":0,"event":"run","format":"tandem-run","schema":{"major":1,"minor":1},"program":"tandem","version":"0.1.0","started_unix_ms":1,"settings":{},"host":{"os":"linux","arch":"x86_64","processor":"test CPU"}}"#,
    );
}

#[test]
fn every_tag_is_the_name_of_its_kind() {
    for (line, kind) in lines().iter().zip(Kind::ALL) {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["event"], kind.name());
    }
}

#[test]
fn every_field_is_documented() {
    let page = include_str!("../../../docs/record.md");
    for line in lines() {
        let value: Value = serde_json::from_str(&line).unwrap();
        let kind = value["event"].as_str().unwrap();
        let section = page
            .split("\n### ")
            .find(|section| section.starts_with(&format!("`{kind}`")))
            .unwrap_or_else(|| panic!("docs/record.md has no section `{kind}`"));
        for field in value.as_object().unwrap().keys() {
            let explained =
                field == "at" || field == "event" || section.contains(&format!("`{field}`"));
            assert!(explained, "docs/record.md does not explain `{field}` of `{kind}`");
        }
    }
}

#[test]
fn an_event_is_small_enough_to_send_by_value() {
    assert!(size_of::<Stamped>() <= 192, "{} bytes", size_of::<Stamped>());
}
