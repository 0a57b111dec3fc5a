//! `tandem watch` and `tandem train --dashboard` over HTTP: every URL, and every refused request.

mod support;

use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::http::{Serving, address, ask};
use support::{CommandOutput, TestDir};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example-run.jsonl");

/// A run with a record, samples and a file that must not be served.
fn run() -> TestDir {
    let dir = TestDir::new();
    fs::create_dir_all(dir.path("run/samples")).expect("created");
    fs::copy(EXAMPLE, dir.path("run/run.jsonl")).expect("copied");
    fs::write(dir.path("run/samples/step-000020-en.wav"), support::tone_wav()).expect("written");
    fs::write(dir.path("run/samples/step-000020-en-alignment.png"), b"\x89PNG").expect("written");
    fs::write(dir.path("run/secret.txt"), "secret").expect("written");
    dir
}

fn open(dir: &TestDir, more: &[&str]) -> Serving {
    Serving::start(dir, &[&["watch", "run", "--port", "0"], more].concat())
}

#[test]
fn every_url_has_its_content() {
    let dir = run();
    let page = open(&dir, &[]);
    let front = page.get("/");
    front.is(200, "text/html; charset=utf-8");
    let text = front.text();
    for part in [
        "<html lang=\"en\" dir=\"ltr\">",
        "id=\"losses\"",
        "id=\"stages\"",
        "id=\"samples\"",
        "<audio controls",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(page.get("/?lang=fa").text().contains("dir=\"rtl\""));
    page.get("/page.css").is(200, "text/css");
    page.get("/live.js").is(200, "text/javascript");
    let metrics = page.get("/metrics");
    metrics.is(200, "text/plain; version=0.0.4");
    assert!(metrics.text().contains("\ntandem_steps_total 40\n"), "{}", metrics.text());
    let report = page.get("/report.json");
    report.is(200, "application/json");
    let report: serde_json::Value = serde_json::from_slice(&report.body).expect("JSON");
    assert_eq!(report["verdict"]["stage"], "load");
    page.get("/nothing").is(404, "text/plain");
    let head = page.ask("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    head.is(200, "text/html");
    assert!(head.body.is_empty());
}

#[test]
fn samples_are_served_whole_and_by_range_and_no_other_file_is() {
    let dir = run();
    let page = open(&dir, &[]);
    let sound = page.get("/samples/step%2D000020%2Den%2Ewav");
    sound.is(200, "audio/wav");
    assert_eq!(sound.body, support::tone_wav());
    let part = page.ask(
        "GET /samples/step-000020-en.wav HTTP/1.1\r\nHost: localhost\r\nRange: bytes=4-7\r\n\r\n",
    );
    part.is(206, "audio/wav");
    assert_eq!(part.body, support::tone_wav()[4..8]);
    page.get("/samples/step-000020-en-alignment.png").is(200, "image/png");
    for path in [
        "/samples/../secret.txt",
        "/samples/..%2fsecret.txt",
        "/samples/%2e%2e/secret.txt",
        "/samples/",
        "/samples//etc/passwd",
        "/samples/..%00.wav",
        "/../run/secret.txt",
        "/run.jsonl",
        "//etc/passwd",
    ] {
        let answer = page.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {}", answer.head);
        assert!(!answer.text().contains("secret\n") && !answer.text().contains("root:"), "{path}");
    }
}

#[test]
fn other_hosts_other_pages_and_other_methods_are_refused() {
    let dir = run();
    let page = open(&dir, &[]);
    let ask = |lines: &str| page.ask(&format!("GET /metrics HTTP/1.1\r\n{lines}\r\n")).status;
    assert_eq!(ask("Host: localhost:1\r\n"), 200);
    // DNS rebinding: the name of another host that resolves to loopback.
    assert_eq!(ask("Host: rebound.example\r\n"), 403);
    assert_eq!(ask(""), 403);
    assert_eq!(ask("Host: localhost\r\nOrigin: http://evil.example\r\n"), 403);
    assert_eq!(ask("Host: localhost\r\nSec-Fetch-Site: cross-site\r\n"), 403);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let request =
            format!("{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        let answer = page.ask(&request);
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.head.contains("allow: GET,HEAD"), "{}", answer.head);
    }
    assert_eq!(page.ask("nonsense\r\n\r\n").status, 400);
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    assert_eq!(page.ask(&long).status, 431);
}

#[test]
fn events_follow_the_record_while_it_grows() {
    let dir = run();
    let whole = fs::read_to_string(EXAMPLE).expect("the example");
    let half = whole.lines().take(20).map(|line| format!("{line}\n")).collect::<String>();
    fs::write(dir.path("run/run.jsonl"), &half).expect("written");
    let page = open(&dir, &["--lang", "fa"]);
    let mut stream = TcpStream::connect(page.address).expect("open");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("a line"));
    assert_eq!(lines.next().expect("a status"), "HTTP/1.1 200 OK");
    let mut next = || loop {
        let line = lines.next().expect("an event");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str::<serde_json::Value>(data).expect("JSON");
        }
    };
    let first = next();
    assert_eq!(first["order"][0], "summary");
    assert!(first["sections"]["losses"].as_str().expect("drawn").contains("زیان"));
    assert!(first["sections"]["samples"].is_string());
    let rest = whole[half.len()..].to_string();
    let mut file = fs::OpenOptions::new().append(true).open(dir.path("run/run.jsonl"));
    file.as_mut().expect("open").write_all(rest.as_bytes()).expect("appended");
    let second = next();
    assert!(second["sections"]["losses"].is_string(), "{second}");
    assert!(second["sections"]["samples"].is_null(), "unchanged sections are not sent again");
}

#[test]
fn unusable_runs_and_ports_are_errors_with_a_hint() {
    let dir = run();
    dir.run(&["watch", "none", "--port", "0"])
        .assert_failed(&["cannot watch `none`", "check the path"]);
    fs::create_dir(dir.path("empty")).expect("created");
    dir.run(&["watch", "empty", "--port", "0"])
        .assert_failed(&["no run record", "--checkpoint-dir"]);
    dir.run(&["watch", "run/secret.txt", "--port", "0"]).assert_failed(&["is not a run record"]);
    dir.run(&["watch", "run", "--tui"]).assert_failed(&["needs a terminal", "tandem report"]);
    let page = open(&dir, &[]);
    let port = page.address.port().to_string();
    dir.run(&["watch", "run", "--port", &port]).assert_failed(&["is in use", "another port"]);
    // The port is checked before any work, so no run directory is created.
    let train = ["train", "--train-data", "demo", "--checkpoint-dir", "new", "--dashboard", &port];
    dir.run(&train).assert_failed(&["is in use", "another port"]);
    assert!(!dir.path("new").exists());
}

#[test]
fn a_signal_stops_the_server() {
    let dir = run();
    let mut page = open(&dir, &[]);
    support::signal(&page.child, Signal::INT);
    assert_eq!(page.child.wait().expect("it ends").code(), Some(0));
    assert!(TcpStream::connect(page.address).is_err());
}

#[test]
fn a_run_serves_its_dashboard_and_writes_a_page_at_the_end() {
    let dir = TestDir::new();
    let args = [
        "train",
        "--train-data",
        "demo",
        "--batch-size",
        "3",
        "--frame-budget",
        "900",
        "--max-steps",
        "400",
        "--checkpoint-dir",
        "run",
        "--dashboard",
        "0",
        "--html",
        "end.html",
        "--lang",
        "fa",
    ];
    let mut child = dir.tandem(&args).stdout(Stdio::null()).spawn().expect("the program runs");
    let stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut lines = stderr.lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("live page: ")).expect("the URL is printed");
    let address = address(&line);
    let began = Instant::now();
    let metrics = || ask(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").text();
    while !metrics().contains("tandem_loss{name=\"total\"}") {
        assert!(began.elapsed() < Duration::from_secs(600), "no step within ten minutes");
        std::thread::sleep(Duration::from_millis(100));
    }
    support::signal(&child, Signal::TERM);
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(3), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("`tandem watch run`")), "{rest:?}");
    let page = fs::read_to_string(dir.path("end.html")).expect("the page of the run");
    assert!(page.contains("dir=\"rtl\"") && page.contains("id=\"losses\""));
    let report = CommandOutput::of(dir.tandem(&["report", "run"]).output().expect("it runs"));
    assert_eq!(report.code, Some(0), "{report:?}");
}
