//! The server by its port, with a voice that needs no checkpoint.

use super::*;
use crate::api_error::ApiError;
use crate::encode::BlockPosition;
use crate::request::SpeechRequest;
use crate::voices::Voices;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tandem_model::synthesis::text::SpeechOptions;
use tandem_units::SampleRate;

const PATIENCE: Duration = Duration::from_secs(60);

/// A tenth of a second for each sentence. Before a sentence with the word `wait` it waits for a turn.
struct Fake(Receiver<()>);

impl Speech for Fake {
    fn rate(&self) -> SampleRate {
        SampleRate(22_050)
    }

    fn speak(
        &mut self,
        request: &SpeechRequest,
        part: &mut dyn FnMut(&[f32], BlockPosition) -> ControlFlow<()>,
    ) -> Result<(), ApiError> {
        if request.text.contains('★') {
            return Err(ApiError::param(
                "input",
                "unreadable_input",
                "cannot read `★`",
                "leave it out",
            ));
        }
        let sentences: Vec<&str> = request.text.split_terminator('.').collect();
        for (number, sentence) in sentences.iter().enumerate() {
            if sentence.contains("wait") {
                let _ = self.0.recv_timeout(PATIENCE);
            }
            if sentence.contains("break") {
                return Err(ApiError::server("broken"));
            }
            let place = if number + 1 == sentences.len() {
                BlockPosition::Last
            } else {
                BlockPosition::More
            };
            if part(&[0.1; 2205], place).is_break() {
                break;
            }
        }
        Ok(())
    }
}

struct Running {
    server: SpeechServer,
    address: SocketAddr,
    turn: SyncSender<()>,
}

fn start(queue: usize, token: Option<Token>, limits: Limits) -> Running {
    let (turn, turns) = sync_channel(100);
    let offer = Offer {
        model: "run".into(),
        voices: Voices::test(),
        defaults: SpeechOptions::default(),
        max_text: 200,
    };
    let hosts = Hosts::loopback();
    let options = ServeOptions {
        offer,
        queue,
        answer_memory: tandem_units::Bytes::mib(512),
        token,
        hosts,
        limits,
        lang: Lang::En,
    };
    let port = Listening::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = port.address();
    let server = SpeechServer::start(port, vec![Box::new(Fake(turns))], options).unwrap();
    Running { server, address, turn }
}

struct HttpAnswer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl HttpAnswer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}", self.head))
    }

    #[track_caller]
    fn refused(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{}", self.head);
        let error = &self.json()["error"];
        assert_eq!(error["code"], code);
        assert!(error["message"].is_string() && error["type"].is_string(), "{error}");
    }
}

impl Running {
    fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn ask(&self, request: &str) -> HttpAnswer {
        read(self.connect(request))
    }

    fn get(&self, path: &str) -> HttpAnswer {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    }

    fn say(&self, changes: Value) -> HttpAnswer {
        self.ask(&spoken(changes))
    }
}

fn spoken(changes: Value) -> String {
    let mut body = json!({ "model": "run", "input": "Hello.", "voice": "emma" });
    for (key, value) in changes.as_object().unwrap() {
        body[key] = value.clone();
    }
    let body = body.to_string();
    format!(
        "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn read(mut stream: TcpStream) -> HttpAnswer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    HttpAnswer { status: head[9..12].parse().unwrap(), head, body: bytes[end..].to_vec() }
}

#[test]
fn lists_health_metrics_and_the_page_are_there() {
    let running = start(4, None, Limits::API);
    let models = running.get("/v1/models").json();
    assert_eq!(models["data"][0]["id"], "run");
    assert_eq!(models["object"], "list");
    assert_eq!(running.get("/v1/models/run").json()["owned_by"], "tandem");
    running.get("/v1/models/none").refused(404, "model_not_found");
    let voices = running.get("/voices").json();
    assert_eq!(voices["voices"][1]["name"], "emma");
    assert_eq!(voices["languages"], json!(["en", "fa"]));
    assert_eq!(running.get("/health").json()["status"], "ok");
    assert_eq!(running.say(json!({})).status, 200);
    let metrics = String::from_utf8(running.get("/metrics").body).unwrap();
    assert!(metrics.contains("tandem_serve_requests_total{status=\"200\"} 1\n"), "{metrics}");
    let page = String::from_utf8(running.get("/?lang=fa").body).unwrap();
    assert!(page.contains("dir=\"rtl\"") && page.contains("serve.js"), "{page}");
    assert_eq!(running.get("/serve.js").status, 200);
    assert!(running.get("/page.css").head.contains("text/css"));
    running.get("/none").refused(404, "not_found");
    running.get("/v1/audio/speech").refused(405, "method_not_allowed");
}

#[test]
fn one_sentence_has_a_length_and_several_are_streamed() {
    let running = start(4, None, Limits::API);
    let one = running.say(json!({}));
    assert!(
        one.head.contains("content-type: audio/wav") && one.head.contains("content-length: 4454")
    );
    assert_eq!(hound::WavReader::new(&one.body[..]).unwrap().duration(), 2205);
    // The first sentence arrives while the second has not begun.
    let request = spoken(json!({ "input": "One. Please wait.", "response_format": "pcm" }));
    let mut stream = running.connect(&request);
    let mut text = Vec::new();
    while text.len() < 2400 * 2 {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "the answer ended early");
        text.extend_from_slice(&bytes[..count]);
    }
    assert!(String::from_utf8_lossy(&text).contains("transfer-encoding: chunked"));
    running.turn.send(()).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "the answer is complete");
    let whole = running.say(json!({ "input": "One. Two.", "stream": false }));
    assert_eq!(hound::WavReader::new(&whole.body[..]).unwrap().duration(), 4410);
}

#[test]
fn errors_have_openai_s_shape() {
    let running = start(4, None, Limits::API);
    running.say(json!({ "voice": "bob" })).refused(400, "unknown_voice");
    running.say(json!({ "input": "" })).refused(400, "empty_input");
    running.say(json!({ "input": "A ★ star." })).refused(400, "unreadable_input");
    running.say(json!({ "response_format": "mp3" })).refused(400, "unknown_format");
    running.say(json!({ "model": "tts-1" })).refused(404, "model_not_found");
    running.say(json!({ "input": "break." })).refused(500, "synthesis_failed");
    let text = spoken(json!({})).replace("application/json", "text/plain");
    running.ask(&text).refused(415, "unsupported_media_type");
    // An error after the first sentence breaks the answer off.
    let mut stream = running.connect(&spoken(json!({ "input": "One. wait, then break." })));
    let mut first = [0; 1000];
    stream.read_exact(&mut first).unwrap();
    assert!(first.starts_with(b"HTTP/1.1 200 OK"));
    running.turn.send(()).unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"0\r\n\r\n"), "the answer is not complete");
}

#[test]
fn hostile_requests_are_refused() {
    let limits = Limits { head: Duration::from_millis(300), ..Limits::API };
    let running = start(4, None, limits);
    let speech = spoken(json!({}));
    running
        .ask(&speech.replace("Host: localhost", "Host: rebound.example"))
        .refused(403, "refused");
    let evil = speech.replace("Host: localhost", "Host: localhost\r\nOrigin: http://evil.example");
    running.ask(&evil).refused(403, "refused");
    let site = speech.replace("Host: localhost", "Host: localhost\r\nSec-Fetch-Site: cross-site");
    running.ask(&site).refused(403, "refused");
    let long = speech.replace("Content-Length: ", "Content-Length: 90000");
    running.ask(&long).refused(413, "request_too_large");
    // A body that does not arrive.
    let length = speech.replace("Content-Length: ", "Content-Length: 1");
    running.ask(&length).refused(408, "request_timeout");
    let chunk = format!("{:x}\r\n{}\r\n", 300_000, "x".repeat(300_000));
    let chunked = format!(
        "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n"
    );
    running.ask(&chunked).refused(413, "request_too_large");
    assert_eq!(running.ask("nonsense\r\n\r\n").status, 400);
    assert_eq!(running.say(json!({})).status, 200);
}

#[test]
fn a_token_is_needed_for_everything_but_the_page_and_health() {
    let room = tempfile::tempdir().unwrap();
    std::fs::write(room.path().join("token"), "0123456789abcdef").unwrap();
    let token = Token::read(&room.path().join("token")).unwrap();
    let running = start(4, Some(token), Limits::API);
    for path in ["/v1/models", "/v1/models/run", "/voices", "/metrics"] {
        running.get(path).refused(401, "invalid_api_key");
    }
    let refused = running.say(json!({}));
    refused.refused(401, "invalid_api_key");
    assert!(refused.head.contains("www-authenticate: Bearer"));
    for path in ["/", "/health", "/page.css", "/serve.js"] {
        assert_eq!(running.get(path).status, 200, "{path}");
    }
    let with = |token: &str| {
        let line = format!("Host: localhost\r\nAuthorization: Bearer {token}");
        running.ask(&spoken(json!({})).replace("Host: localhost", &line)).status
    };
    assert_eq!(with("0123456789abcdef"), 200);
    assert_eq!(with("0123456789abcdeF"), 401);
}

#[test]
fn a_full_queue_answers_429_and_nothing_is_lost() {
    let running = start(1, None, Limits::API);
    let wait = || spoken(json!({ "input": "wait." }));
    let first = running.connect(&wait());
    until("the first is active", || running.get("/health").json()["active"] == 1);
    let second = running.connect(&wait());
    until("the second waits", || running.get("/health").json()["waiting"] == 1);
    let third = running.say(json!({}));
    third.refused(429, "queue_full");
    assert!(third.head.contains("retry-after: "), "{}", third.head);
    running.turn.send(()).unwrap();
    running.turn.send(()).unwrap();
    assert_eq!((read(first).status, read(second).status), (200, 200));
}

#[test]
fn a_stop_completes_requests_under_way_within_its_limit() {
    let running = start(4, None, Limits::API);
    let first = running.connect(&spoken(json!({ "input": "wait." })));
    let second = running.connect(&spoken(json!({ "input": "wait. Two." })));
    until("both are known", || {
        let health = running.get("/health").json();
        health["active"] == 1 && health["waiting"] == 1
    });
    running.turn.send(()).unwrap();
    running.turn.send(()).unwrap();
    assert_eq!(running.server.stop(PATIENCE), Stopped::Finished);
    assert_eq!((read(first).status, read(second).status), (200, 200));
    assert!(TcpStream::connect(running.address).is_err());

    let running = start(4, None, Limits::API);
    let kept = running.connect(&spoken(json!({ "input": "wait." })));
    until("it is active", || running.get("/health").json()["active"] == 1);
    assert_eq!(running.server.stop(Duration::from_millis(50)), Stopped::Abandoned(1));
    drop(kept);
}

#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
