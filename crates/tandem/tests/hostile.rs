//! Hostile arguments, files, texts and variables against the real program.
//!
//! In: the tables of `hostile_support`. Each case runs the program with 6 GB of address space and a time limit. Whatever it is
//! given, it ends by itself with an exit code of at most 3, without a panic, and an error says what to do (`hint:`).
//! A random part by default, with its seed printed; all cases with `xtask/campaigns/hostile.sh`.

mod hostile_support;
mod support;

use hostile_support::{Case, cases, room};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::TestDir;
use support::random::SmallRng;

/// Address space of each program, in KiB.
const ADDRESSES: u64 = 6 * 1024 * 1024;
/// A program that runs for longer hangs.
const LIMIT: Duration = Duration::from_secs(300);
/// Cases of a usual test run.
const SOME: usize = 48;

struct Ended {
    code: Option<i32>,
    signal: Option<i32>,
    out: String,
    err: String,
}

/// Runs a case; `None` if it had to be ended.
fn attempt(dir: &TestDir, case: &Case) -> Option<Ended> {
    let args: Vec<&str> = case.args.iter().map(String::as_str).collect();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("ulimit -v {ADDRESSES}; exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_tandem"));
    let mut command = dir.with_test_env(command, &args);
    for (name, value) in &case.env {
        command.env(name, value);
    }
    command.process_group(0);
    let mut child = command.stdin(Stdio::null()).spawn().expect("a shell");
    let out = reader(child.stdout.take().expect("piped"));
    let err = reader(child.stderr.take().expect("piped"));
    let status = wait(&mut child)?;
    let (code, signal) = (status.code(), status.signal());
    Some(Ended { code, signal, out: out.join().expect("read"), err: err.join().expect("read") })
}

fn reader(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    let read = move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    std::thread::Builder::new().name("reader".into()).spawn(read).expect("a thread")
}

fn wait(child: &mut Child) -> Option<std::process::ExitStatus> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("our child") {
            return Some(status);
        }
        if began.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What is wrong with how a case ended.
fn fault(case: &Case, ended: Option<Ended>) -> Option<String> {
    let said = |what: String, ended: &Ended| {
        let end = |text: &str| {
            text.chars().rev().take(900).collect::<Vec<_>>().into_iter().rev().collect::<String>()
        };
        Some(format!("{what}: {case}\n{}\n{}", end(&ended.out), end(&ended.err)))
    };
    let Some(ended) = ended else { return Some(format!("hangs: {case}")) };
    if let Some(signal) = ended.signal {
        return said(format!("ended by signal {signal}"), &ended);
    }
    let text = format!("{}{}", ended.out, ended.err);
    if text.contains("panicked") || text.contains("RUST_BACKTRACE") {
        return said("panics".into(), &ended);
    }
    match ended.code {
        Some(0 | 1 | 3) => None,
        Some(2) if ended.err.contains("hint:") => None,
        Some(2) => said("has no hint".into(), &ended),
        code => said(format!("exit code {code:?}"), &ended),
    }
}

/// Runs cases on all cores; one line for each that ended wrongly.
fn faults(dir: &TestDir, cases: &[Case]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(fault) = fault(case, attempt(dir, case)) {
                        #[allow(
                            clippy::print_stderr,
                            reason = "seen at once, also where the rest hangs"
                        )]
                        {
                            eprintln!("{fault}\n");
                        }
                        found.lock().expect("no panic").push(fault);
                    }
                }
            });
        }
    });
    found.into_inner().expect("no panic")
}

/// A part of the cases in random order.
fn some(mut all: Vec<Case>, count: usize, seed: u64) -> Vec<Case> {
    let mut chance = SmallRng::new(seed);
    for at in (1..all.len()).rev() {
        all.swap(at, chance.below(at + 1));
    }
    all.truncate(count);
    all
}

#[track_caller]
fn check(cases: &[Case], what: &str) {
    let dir = room();
    let found = faults(&dir, cases);
    assert!(
        found.is_empty(),
        "{} of {} cases ({what}):\n\n{}",
        found.len(),
        cases.len(),
        found.join("\n\n")
    );
}

#[test]
fn some_hostile_cases_end_well() {
    let seed = std::env::var("TANDEM_HOSTILE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    check(&some(cases(), SOME, seed), &format!("TANDEM_HOSTILE_SEED={seed}"));
}

#[test]
#[ignore = "takes minutes: xtask/campaigns/hostile.sh"]
fn all_hostile_cases_end_well() {
    let all = cases();
    assert!(all.len() >= 300, "only {} cases", all.len());
    check(&all, "all");
}

/// The check itself: a program that ends by a signal, or without a hint, is found.
#[test]
fn a_bad_end_is_found() {
    let ended =
        |code, signal, err: &str| Some(Ended { code, signal, out: String::new(), err: err.into() });
    let case = Case::of(&["text"]);
    assert!(fault(&case, None).is_some());
    assert!(fault(&case, ended(None, Some(11), "")).is_some());
    assert!(fault(&case, ended(Some(101), None, "")).is_some());
    assert!(fault(&case, ended(Some(2), None, "error: no\n")).is_some());
    assert!(fault(&case, ended(Some(0), None, "thread 'x' panicked at")).is_some());
    assert!(fault(&case, ended(Some(2), None, "error: no\nhint: try\n")).is_none());
    assert!(Path::new(env!("CARGO_BIN_EXE_tandem")).exists());
}
