//! A process that is stopped with SIGSTOP and continued is not taken for a stalled run.
#![cfg(unix)]

mod kit;

use kit::{Does, Item, all, hold, items, numbers};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use tandem_pipeline::{Emitter, Route, Setup, StageError, Watch};

/// Set in the process that is stopped by the test below.
const CHILD: &str = "TANDEM_TEST_STOPPED_CHILD";
const LIMIT: Duration = Duration::from_secs(3);

#[test]
fn a_process_that_was_stopped_for_longer_than_the_limit_continues() {
    if std::env::var_os(CHILD).is_some() {
        return run_until_done();
    }
    let name = "a_process_that_was_stopped_for_longer_than_the_limit_continues";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let inside_a_step = lines.find(|line| line.as_ref().unwrap().contains("inside a step"));
    assert!(inside_a_step.is_some());
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::STOP).unwrap();
    std::thread::sleep(LIMIT + Duration::from_secs(1));
    kill_process(pid, Signal::CONT).unwrap();
    let rest: Vec<String> = lines.map(|line| line.unwrap()).collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
}

/// One step that is stopped in its middle, after the watchdog (a quarter of the limit) has seen it.
/// It consists of many short waits, so that it has not ended when the process continues.
fn run_until_done() {
    let step = Does("step", |item: Item, out: &mut dyn Emitter<Item>| {
        let work = |waits| (0..waits).for_each(|_| std::thread::sleep(Duration::from_millis(10)));
        work(100);
        writeln!(std::io::stdout(), "inside a step").map_err(StageError::stop)?;
        work(50);
        out.push(item)
    });
    let watch = Watch { stall_timeout: Some(LIMIT), ..Watch::default() };
    let route = Route::from(items(1), hold(2)).then(step, hold(2));
    let mut feed = route.start(Setup { watch, ..Setup::default() }).unwrap();
    assert_eq!(numbers(&all(&mut feed).unwrap()), [0]);
}
