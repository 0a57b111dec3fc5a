//! A disk that is slow, full or hanging loses events at worst, never delays the run, and is reported.

use serde_json::json;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tandem_telemetry::event::{Final, RunHeader, RunOutcome, SlotChange, SlotState, Step};
use tandem_telemetry::{
    Ending, MemoryFile, Nanos, RecordFile, RecordOptions, Recorder, Recording, Report, Rules,
    RunRecord,
};
use tandem_units::Ticket;

fn header() -> RunHeader {
    RunHeader::now("tandem", "0.0.0", json!({}))
}

fn small() -> RecordOptions {
    RecordOptions {
        essential_room: 64,
        bulk_room: 64,
        outbox: 64 << 10,
        retry_every: Duration::from_millis(1),
        flush_every: Duration::from_millis(1),
        close_within: Duration::from_millis(300),
        ..RecordOptions::default()
    }
}

fn step(number: u64) -> Step {
    Step {
        step: number,
        ticket: Ticket { seq: number - 1, ..Ticket::default() },
        took: Nanos::millis(100),
        waited: Nanos(0),
        items: 16,
        frames: 9000,
        shape: None,
        ..Step::default()
    }
}

fn slot(number: u64) -> SlotChange {
    SlotChange { slot: (number % 3) as u32, state: SlotState::Ready, ticket: None }
}

fn done(steps: u64) -> Final {
    Final { outcome: RunOutcome::Done, why: None, steps, flags: vec![] }
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..24_000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("never happened: {what}");
}

/// A latch: every write blocks until it is opened.
#[derive(Clone, Default)]
struct Latch(Arc<(Mutex<bool>, Condvar)>);

impl Latch {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |open| !*open).unwrap());
    }
}

struct Hanging {
    latch: Latch,
    to: MemoryFile,
    reached: SyncSender<()>,
}

impl Hanging {
    fn new() -> (Hanging, Latch, MemoryFile, Receiver<()>) {
        let (latch, to) = (Latch::default(), MemoryFile::default());
        let (reached, blocked) = sync_channel(1);
        (Hanging { latch: latch.clone(), to: to.clone(), reached }, latch, to, blocked)
    }
}

impl Write for Hanging {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.reached.try_send(());
        self.latch.wait();
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RecordFile for Hanging {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A sender that waits for the disk would never return: the latch is closed.
fn send_far_more_than_there_is_room_for(recorder: &Recorder) {
    for number in 1..=1000 {
        recorder.send(step(number));
        (0..3).for_each(|slot_number| recorder.send(slot(slot_number)));
    }
}

#[test]
fn a_disk_that_hangs_stops_no_sender_and_every_lost_event_is_counted() {
    let (disk, latch, file, blocked) = Hanging::new();
    let recording = Recording::start(Box::new(disk), header(), small()).unwrap();
    blocked.recv().unwrap();
    let recorder = recording.recorder();
    send_far_more_than_there_is_room_for(&recorder);
    let lost = recorder.health().lost;
    assert_eq!(lost.get("step"), Some(&(1000 - 64)));
    assert_eq!(lost.get("slot"), Some(&(3000 - 64)));
    latch.open();
    // Room for the last line: what was queued is written now.
    wait_until("the queue is empty", || file.contents().len() > 64 * 100);
    recorder.send(done(1000));
    let closed = recording.finish();
    assert_eq!(closed.ending, Ending::Whole);
    let text = String::from_utf8(file.contents()).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["lost"]["step"], 936, "{last}");
    assert!(text.contains("\"event\":\"final\""));
}

#[test]
fn closing_does_not_wait_for_a_disk_that_never_answers() {
    let (disk, latch, _file, blocked) = Hanging::new();
    let recording = Recording::start(Box::new(disk), header(), small()).unwrap();
    blocked.recv().unwrap();
    let recorder = recording.recorder();
    recorder.send(step(1));
    // Returns at all: the latch is still shut.
    let closed = recording.finish();
    assert_eq!(closed.ending, Ending::Cut);
    assert!(closed.health.slowest_write >= Nanos::millis(200), "the hanging write is counted");
    latch.open();
}

/// Takes so many bytes in all, then says that it is full, as long as it is.
struct Full {
    to: MemoryFile,
    room: Arc<Mutex<usize>>,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut room = self.room.lock().unwrap();
        let taken = bytes.len().min(*room);
        *room -= taken;
        if taken == 0 {
            return Err(io::Error::from_raw_os_error(28));
        }
        self.to.write(&bytes[..taken])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RecordFile for Full {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_tried_again_and_loses_nothing_if_it_recovers_in_time() {
    let (to, room) = (MemoryFile::default(), Arc::new(Mutex::new(1000)));
    let disk = Full { to: to.clone(), room: Arc::clone(&room) };
    let recording = Recording::start(Box::new(disk), header(), small()).unwrap();
    let recorder = recording.recorder();
    (1..=50).for_each(|number| recorder.send(step(number)));
    wait_until("writes fail", || recorder.health().write_errors > 2);
    let first = recorder.health().first_error.unwrap();
    assert!(first.contains("No space left"), "{first}");
    *room.lock().unwrap() = usize::MAX;
    let closed = recording.finish();
    assert_eq!((closed.ending, closed.health.total_lost()), (Ending::Whole, 0));
    let record = read(&to);
    assert_eq!((record.notes.broken, record.notes.torn), (0, None));
    let report = Report::of(&record, &Rules::default());
    assert_eq!(report.steps.as_ref().unwrap().all.count, 50);
    assert!(report.record.health.write_errors > 2);
    assert!(report.to_string().contains("writes failed, first: No space left"), "{report}");
}

#[test]
fn a_disk_that_stays_full_leaves_the_report_in_memory() {
    let (to, room) = (MemoryFile::default(), Arc::new(Mutex::new(1000)));
    let disk = Full { to: to.clone(), room };
    let recording = Recording::start(Box::new(disk), header(), small()).unwrap();
    let recorder = recording.recorder();
    for number in 1..=2000 {
        recorder.send(step(number));
        if number % 32 == 0 {
            // Slow enough for the queue, far too much for the outbox.
            wait_until("taken", || recorder.summary().steps.all.count() == number);
        }
    }
    wait_until("all taken", || recorder.summary().steps.all.count() == 2000);
    let closed = recording.finish();
    assert_eq!(closed.ending, Ending::Cut);
    assert!(closed.health.lost["step"] > 1000, "the outbox is bounded");
    let report = Report::from_summary(&closed.summary, None, &Rules::default());
    assert_eq!(report.steps.as_ref().unwrap().all.count, 2000);
    assert!(report.to_string().contains("No space left"), "{report}");
    assert_eq!(to.contents().len(), 1000);
    read(&to);
}

#[cfg(target_os = "linux")]
#[test]
fn the_systems_own_full_disk_is_reported_too() {
    let file = tandem_disk::File::create(Path::new("/dev/full")).unwrap();
    let recording = Recording::start(Box::new(file), header(), small()).unwrap();
    recording.recorder().send(step(1));
    let closed = recording.finish();
    assert_eq!(closed.ending, Ending::Cut);
    assert!(closed.health.first_error.unwrap().contains("No space left"));
}

fn read(file: &MemoryFile) -> RunRecord {
    let mut events = Vec::new();
    let bytes = file.contents();
    let (header, notes) =
        tandem_telemetry::reader::visit_from(&bytes[..], Path::new("memory"), |stamped| {
            events.push(stamped);
        })
        .unwrap();
    RunRecord { header, events, notes }
}
