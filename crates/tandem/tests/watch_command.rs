//! `tandem watch` and `tandem train --dashboard` by their port: every address, and every refusal.

mod kit;

use kit::{Place, Said};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example-run.jsonl");

/// A run with a record and samples, and a secret beside them.
fn run() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.inside("run/samples")).expect("created");
    fs::copy(EXAMPLE, place.inside("run/run.jsonl")).expect("copied");
    fs::write(place.inside("run/samples/step-000020-en.wav"), kit::good()).expect("written");
    fs::write(place.inside("run/samples/step-000020-en-alignment.png"), b"\x89PNG")
        .expect("written");
    fs::write(place.inside("run/secret.txt"), "secret").expect("written");
    place
}

/// A page that is open, closed when the test ends.
struct Watched {
    child: Child,
    address: SocketAddr,
}

impl Watched {
    fn open(place: &Place, more: &[&str]) -> Watched {
        let args = [&["watch", "run", "--port", "0"], more].concat();
        let mut child = place.tandem(&args).spawn().expect("the program runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("its first line");
        Watched { child, address: address(&line) }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address))
    }

    fn ask(&self, request: &str) -> Answer {
        ask(self.address, request)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address(line: &str) -> SocketAddr {
    let place = line.split("http://").nth(1).unwrap_or_else(|| panic!("no address in `{line}`"));
    place.trim().trim_end_matches('/').parse().expect("an address")
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    #[track_caller]
    fn is(&self, status: u16, kind: &str) {
        assert_eq!(self.status, status, "{}", self.head);
        assert!(self.head.contains(&format!("content-type: {kind}")), "{}", self.head);
        for guard in ["content-security-policy: default-src 'none'", "nosniff", "no-store"] {
            assert!(self.head.contains(guard), "{guard} is not in {}", self.head);
        }
        assert!(!self.head.contains("access-control-allow"), "{}", self.head);
    }
}

fn ask(address: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).expect("the page is open");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).expect("text");
    let status = head[9..12].parse().expect("a status");
    Answer { status, head, body: bytes[end..].to_vec() }
}

#[test]
fn every_address_gives_what_it_should() {
    let place = run();
    let page = Watched::open(&place, &[]);
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
fn samples_are_given_out_whole_and_in_parts_and_nothing_else_is() {
    let place = run();
    let page = Watched::open(&place, &[]);
    let sound = page.get("/samples/step%2D000020%2Den%2Ewav");
    sound.is(200, "audio/wav");
    assert_eq!(sound.body, kit::good());
    let part = page.ask(
        "GET /samples/step-000020-en.wav HTTP/1.1\r\nHost: localhost\r\nRange: bytes=4-7\r\n\r\n",
    );
    part.is(206, "audio/wav");
    assert_eq!(part.body, kit::good()[4..8]);
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
    let place = run();
    let page = Watched::open(&place, &[]);
    let ask = |lines: &str| page.ask(&format!("GET /metrics HTTP/1.1\r\n{lines}\r\n")).status;
    assert_eq!(ask("Host: localhost:1\r\n"), 200);
    // A name of another host that was pointed at loopback.
    assert_eq!(ask("Host: rebound.example\r\n"), 403);
    assert_eq!(ask(""), 403);
    assert_eq!(ask("Host: localhost\r\nOrigin: http://evil.example\r\n"), 403);
    assert_eq!(ask("Host: localhost\r\nSec-Fetch-Site: cross-site\r\n"), 403);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let request =
            format!("{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        let answer = page.ask(&request);
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.head.contains("allow: GET, HEAD"), "{}", answer.head);
    }
    assert_eq!(page.ask("nonsense\r\n\r\n").status, 400);
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    assert_eq!(page.ask(&long).status, 431);
}

#[test]
fn events_follow_the_record_while_it_grows() {
    let place = run();
    let whole = fs::read_to_string(EXAMPLE).expect("the example");
    let half = whole.lines().take(20).map(|line| format!("{line}\n")).collect::<String>();
    fs::write(place.inside("run/run.jsonl"), &half).expect("written");
    let page = Watched::open(&place, &["--lang", "fa"]);
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
    let mut file = fs::OpenOptions::new().append(true).open(place.inside("run/run.jsonl"));
    file.as_mut().expect("open").write_all(rest.as_bytes()).expect("appended");
    let second = next();
    assert!(second["sections"]["losses"].is_string(), "{second}");
    assert!(second["sections"]["samples"].is_null(), "what did not change is not sent again");
}

#[test]
fn what_cannot_be_watched_is_refused_with_a_way_out() {
    let place = run();
    place.run(&["watch", "none", "--port", "0"]).failed(&["cannot watch `none`", "check the path"]);
    fs::create_dir(place.inside("empty")).expect("created");
    place.run(&["watch", "empty", "--port", "0"]).failed(&["no run record", "--checkpoint-dir"]);
    place.run(&["watch", "run/secret.txt", "--port", "0"]).failed(&["is not a run record"]);
    place.run(&["watch", "run", "--tui"]).failed(&["needs a terminal", "tandem report"]);
    let page = Watched::open(&place, &[]);
    let port = page.address.port().to_string();
    place.run(&["watch", "run", "--port", &port]).failed(&["is taken", "another port"]);
    // Before any work: nothing is left of a run that could not have its page.
    let train = ["train", "--train-data", "demo", "--checkpoint-dir", "new", "--dashboard", &port];
    place.run(&train).failed(&["is taken", "another port"]);
    assert!(!place.inside("new").exists());
}

#[test]
fn a_signal_closes_the_page() {
    let place = run();
    let mut page = Watched::open(&place, &[]);
    kit::signal(&page.child, Signal::INT);
    assert_eq!(page.child.wait().expect("it ends").code(), Some(0));
    assert!(TcpStream::connect(page.address).is_err());
}

#[test]
fn a_run_shows_itself_while_it_trains_and_leaves_a_page() {
    let place = Place::new();
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
    let mut child = place.tandem(&args).stdout(Stdio::null()).spawn().expect("the program runs");
    let stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut lines = stderr.lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("live page: ")).expect("the address is said");
    let address = address(&line);
    let began = Instant::now();
    let metrics = || ask(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").text();
    while !metrics().contains("tandem_loss{name=\"total\"}") {
        assert!(began.elapsed() < Duration::from_secs(120), "no step within two minutes");
        std::thread::sleep(Duration::from_millis(100));
    }
    kit::signal(&child, Signal::TERM);
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(3), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("`tandem watch run`")), "{rest:?}");
    let page = fs::read_to_string(place.inside("end.html")).expect("the page of the run");
    assert!(page.contains("dir=\"rtl\"") && page.contains("id=\"losses\""));
    let report = Said::of(place.tandem(&["report", "run"]).output().expect("it runs"));
    assert_eq!(report.code, Some(0), "{report:?}");
}
