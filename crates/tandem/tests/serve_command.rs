//! `tandem serve` over HTTP with a checkpoint of a small untrained voice.

mod support;

use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::http::{Answer, Serving, ask};
use support::voice::dir_with_voice;
use support::{Kind, TestDir, wav};

const QUICK: [&str; 4] = ["--steps", "2", "--vocoder-rounds", "2"];

fn serve(dir: &TestDir, more: &[&str]) -> Serving {
    let args = ["serve", "--checkpoint", "run", "--port", "0"];
    Serving::start(dir, &[&args[..], &QUICK, more].concat())
}

fn request(changes: Value) -> String {
    let mut body = json!({ "model": "run", "input": "Good morning.", "voice": "emma" });
    for (key, value) in changes.as_object().expect("fields") {
        body[key] = value.clone();
    }
    let body = body.to_string();
    format!(
        "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn say(server: &Serving, changes: Value) -> Answer {
    server.ask(&request(changes))
}

#[test]
fn speech_is_that_of_synth_in_every_format() {
    let dir = dir_with_voice();
    fs::write(dir.path("me.wav"), wav(Kind::Int(16), 44_100, 2, 2.0)).expect("written");
    let server = serve(&dir, &["--voice", "me=me.wav"]);
    let synth = |text: &str| {
        let args =
            ["synth", "--checkpoint", "run", "--speaker", "emma", "--text", text, "-o", "a.wav"];
        let output = dir.run(&[&args[..], &QUICK].concat());
        assert_eq!(output.code, Some(0), "{output:?}");
        fs::read(dir.path("a.wav")).expect("written")
    };
    let one = say(&server, json!({}));
    one.is(200, "audio/wav");
    assert!(one.body == synth("Good morning."), "one sentence is the file of `synth`");
    let two = "Good morning. سلام دنیا!";
    let streamed = say(&server, json!({ "input": two }));
    assert!(streamed.head.contains("transfer-encoding: chunked"), "{}", streamed.head);
    let file = synth(two);
    assert!(streamed.body[44..] == file[44..], "several sentences have the samples of `synth`");
    let whole = say(&server, json!({ "input": two, "stream": false }));
    assert!(whole.head.contains("content-length"), "{}", whole.head);
    assert!(whole.body == file);
    let flac = say(&server, json!({ "input": two, "response_format": "flac" }));
    flac.is(200, "audio/flac");
    assert_eq!(&flac.body[..4], b"fLaC");
    let pcm = say(&server, json!({ "input": two, "response_format": "pcm", "voice": "me" }));
    pcm.is(200, "audio/pcm");
    assert!(pcm.body.len() > 2000 && pcm.body.len().is_multiple_of(2));
    let slow = say(&server, json!({ "speed": 0.25 }));
    assert!(slow.body.len() > one.body.len() * 3 / 2, "slower speech is longer");
    let voices = server.get("/voices").json();
    let names: Vec<_> = voices["voices"].as_array().expect("a list").iter().collect();
    assert_eq!(names.iter().map(|one| &one["name"]).collect::<Vec<_>>(), ["default", "emma", "me"]);
    assert_eq!(voices["voices"][1]["language"], "en");
    assert_eq!(server.get("/v1/models").json()["data"][0]["id"], "run");
}

#[test]
fn texts_that_the_voice_cannot_read_are_refused_with_a_hint() {
    let dir = dir_with_voice();
    let server = serve(&dir, &["--max-text", "100"]);
    let refused = |changes: Value, status: u16, code: &str, hint: &str| {
        let answer = say(&server, changes);
        assert_eq!(answer.status, status, "{}", answer.text());
        let error = &answer.json()["error"];
        assert_eq!(error["code"], code, "{error}");
        assert!(error["hint"].as_str().is_some_and(|words| words.contains(hint)), "{error}");
    };
    refused(json!({ "voice": "bob" }), 400, "unknown_voice", "default, emma");
    refused(json!({ "input": "" }), 400, "empty_input", "one word");
    refused(json!({ "input": "..." }), 400, "empty_input", "one word");
    refused(json!({ "input": "Fine. Привет." }), 400, "unreadable_input", "reads en, fa");
    refused(json!({ "input": "漢字" }), 400, "unreadable_input", "");
    refused(json!({ "language": "de" }), 400, "unknown_language", "en, fa");
    refused(json!({ "response_format": "mp3" }), 400, "unknown_format", "wav, pcm or flac");
    refused(json!({ "model": "tts-1" }), 404, "model_not_found", "`run`");
    refused(json!({ "input": "a".repeat(101) }), 400, "input_too_long", "100 characters");
    assert_eq!(say(&server, json!({})).status, 200);
}

#[test]
fn many_clients_lose_no_request() {
    let dir = dir_with_voice();
    let server = serve(&dir, &[]);
    let (address, next) = (server.address, AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < 100 {
                    let answer = ask(address, &request(json!({ "input": "Hi. Yes." })));
                    assert_eq!(answer.status, 200, "{}", answer.head);
                    assert!(answer.body.len() > 1000);
                }
            });
        }
    });
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("tandem_serve_requests_total{status=\"200\"} 100\n"), "{metrics}");
    assert!(metrics.contains("\ntandem_serve_waiting 0\n"), "{metrics}");
}

#[test]
fn a_signal_completes_running_requests() {
    let dir = dir_with_voice();
    let mut server = serve(&dir, &[]);
    let address = server.address;
    let text = "Good morning to all of you. ".repeat(30);
    let ask = move || ask(address, &request(json!({ "input": text })));
    let running = std::thread::Builder::new().name("client".into()).spawn(ask).expect("a thread");
    while server.get("/health").json()["active"] != 1 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    support::signal(&server.child, Signal::INT);
    let answer = running.join().expect("the answer is complete");
    assert_eq!(answer.status, 200);
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn what_a_request_leaves_out_is_reported_once_each() {
    let dir = dir_with_voice();
    let mut server = serve(&dir, &[]);
    assert_eq!(say(&server, json!({ "input": "Good ★ morning ★." })).status, 200);
    assert_eq!(say(&server, json!({ "input": "Good morning." })).status, 200);
    support::signal(&server.child, Signal::INT);
    let mut told = String::new();
    let mut stderr = server.child.stderr.take().expect("piped");
    stderr.read_to_string(&mut told).expect("text");
    let reports: Vec<&str> = told.lines().filter(|line| line.contains("left out")).collect();
    assert_eq!(reports.len(), 1, "{told}");
    assert!(reports[0].ends_with("left out of a text: `★` (U+2605)"), "{told}");
}

#[test]
fn a_token_and_a_host_name_open_the_server() {
    let dir = dir_with_voice();
    fs::write(dir.path("token"), "0123456789abcdef\n").expect("written");
    let more = ["--token-file", "token", "--allow-host", "voice.example"];
    let server = serve(&dir, &more);
    let say =
        |lines: &str| server.ask(&request(json!({})).replace("Host: localhost", lines)).status;
    let token = "Authorization: Bearer 0123456789abcdef";
    assert_eq!(say("Host: voice.example"), 401);
    assert_eq!(say(&format!("Host: voice.example\r\n{token}")), 200);
    assert_eq!(say(&format!("Host: 192.168.1.5:7880\r\n{token}")), 200);
    assert_eq!(say(&format!("Host: rebound.example\r\n{token}")), 403);
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let dir = dir_with_voice();
    fs::write(dir.path("short"), "secret").expect("written");
    fs::write(dir.path("token"), "0123456789abcdef\n").expect("written");
    fs::write(dir.path("quiet.wav"), wav(Kind::Int(16), 22_050, 1, 0.3)).expect("written");
    let fails = |more: &[&str], words: &[&str]| {
        dir.run(&[&["serve", "--checkpoint", "run", "--port", "0"], more].concat())
            .assert_failed(words);
    };
    fails(&["--host", "0.0.0.0"], &["no token", "--token-file"]);
    fails(&["--token-file", "short"], &["fewer than 16", "openssl rand"]);
    fails(&["--token-file", "none"], &["`none`", "openssl rand"]);
    fails(&["--voice", "emma=quiet.wav"], &["quiet.wav", "clear speech"]);
    fails(&["--host", "203.0.113.7", "--token-file", "token"], &["203.0.113.7", "of this machine"]);
    let server = serve(&dir, &[]);
    let port = server.address.port().to_string();
    dir.run(&["serve", "--checkpoint", "run", "--port", &port])
        .assert_failed(&["is in use", "another port"]);
    dir.run(&["serve", "--checkpoint", "nowhere", "--port", "0"]).assert_failed(&["nowhere"]);
}
