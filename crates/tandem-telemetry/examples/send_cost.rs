//! What telemetry costs the thread that sends: nanoseconds per event, and the share of a 10 ms step.
//!
//! `cargo run --release -p tandem-telemetry --example send_cost`. Sends in bursts with pauses, as
//! a pipeline does, so that the writer is asleep for most of them; reports the median and the
//! slowest hundredth of bursts, and the CPU time of the whole process per event.
//! With a directory as argument, record and trace are written there.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tandem_telemetry::event::{
    Doing, Event, Loss, RunHeader, SlotChange, SlotState, Span, StageInterval, Step,
};
use tandem_telemetry::record::TraceOptions;
use tandem_telemetry::{Nanos, Pending, RecordOptions, Recorder, Recording};
use tandem_units::Ticket;

const BURSTS: usize = 400;
const BURST: usize = 50;

fn main() {
    let scratch = tempfile::tempdir().expect("a directory for the record");
    let dir = std::env::args_os().nth(1).map_or(scratch.path().to_path_buf(), PathBuf::from);
    let header = RunHeader::now("send_cost", "0", serde_json::json!({}));
    let trace = Some(TraceOptions::to(dir.join("run.pftrace")));
    let options = RecordOptions { trace, ..RecordOptions::default() };
    let recording = Recording::create(&dir.join("run.jsonl"), header, options).expect("a record");
    let recorder = recording.recorder();
    let before = cpu_time();
    println!("nanoseconds per send       median      99 %");
    measure("slot change", &recorder, |_| slot().into());
    measure("span", &recorder, |number| span(number).into());
    measure("stage interval", &recorder, |_| stage().into());
    measure("step, two losses known", &recorder, |number| {
        step(number, [Pending::known(0.5), Pending::known(0.25)]).into()
    });
    measure("step, two losses later", &recorder, |number| {
        let ((first, total), (second, prior)) = (Pending::later(), Pending::later());
        let step = step(number, [total, prior]).into();
        first.set(0.5);
        second.set(0.25);
        step
    });
    let off = Recorder::off();
    measure("slot change, recorder off", &off, |_| slot().into());
    let closed = recording.finish();
    let sent = (5 * BURSTS * BURST) as f64;
    if let (Some(before), Some(after)) = (before, cpu_time()) {
        let each = (after - before).as_secs_f64() * 1e6 / sent;
        println!("whole process, record and trace written: {each:.2} us of CPU time per event");
    }
    println!("events lost: {}", closed.health.total_lost());
}

fn measure(what: &str, recorder: &Recorder, mut make: impl FnMut(u64) -> Event) {
    let mut bursts: Vec<f64> = (0..BURSTS)
        .map(|burst| {
            let begin = Instant::now();
            for number in 0..BURST {
                recorder.send(black_box(make((burst * BURST + number) as u64)));
            }
            let took = begin.elapsed().as_nanos() as f64 / BURST as f64;
            std::thread::sleep(Duration::from_micros(500));
            took
        })
        .collect();
    bursts.sort_by(f64::total_cmp);
    println!("{what:<25} {:>8.0} {:>9.0}", bursts[BURSTS / 2], bursts[BURSTS * 99 / 100]);
}

fn slot() -> SlotChange {
    SlotChange { slot: 1, state: SlotState::Ready, ticket: Some(Ticket::default()) }
}

fn span(number: u64) -> Span {
    Span {
        stage: "load".into(),
        worker: 0,
        ticket: Some(Ticket::default()),
        doing: Doing::Busy,
        begin: Nanos(number * 100),
        end: Nanos(number * 100 + 90),
    }
}

fn stage() -> StageInterval {
    let third = Nanos::millis(333);
    StageInterval {
        stage: "load".into(),
        workers: 1,
        interval: Nanos::millis(1000),
        busy: third,
        starved: third,
        blocked: third,
        items: 7,
    }
}

fn step(number: u64, [total, prior]: [Pending<f32>; 2]) -> Step {
    Step {
        step: number,
        ticket: Ticket { seq: number, ..Ticket::default() },
        took: Nanos::millis(10),
        waited: Nanos(0),
        items: 16,
        frames: 9000,
        shape: Some([16, 128, 640]),
        losses: vec![
            Loss { name: "total".into(), value: total },
            Loss { name: "prior".into(), value: prior },
        ],
        ..Step::default()
    }
}

/// User and system time of this process, from `/proc`; `None` on other systems.
fn cpu_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    // The kernel counts in hundredths of a second for user space, whatever its own clock.
    Some(Duration::from_millis(ticks * 10))
}
