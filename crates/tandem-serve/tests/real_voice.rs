//! The server with a real synthesizer: the samples of requests, texts it cannot read, many clients.

mod support;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tandem_model::synthesis::text::SpeakerChoice;
use tandem_model::vocoder::wav::wav_bytes;

/// The status and the body of an answer.
fn say(url: &str, text: &str, changes: Value) -> (u16, Vec<u8>) {
    let mut body = json!({ "model": "small", "input": text, "voice": "emma", "stream": false });
    for (key, value) in changes.as_object().expect("fields") {
        body[key] = value.clone();
    }
    let (address, body) =
        (url.trim_start_matches("http://").trim_end_matches('/'), body.to_string());
    let mut stream = TcpStream::connect(address).expect("the server runs");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a limit");
    let head = format!(
        "POST /v1/audio/speech HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let status = std::str::from_utf8(&bytes[9..12]).expect("digits").parse().expect("a status");
    (status, bytes[end..].to_vec())
}

#[test]
fn a_request_has_the_samples_of_the_synthesizer() {
    let server = support::serve();
    let text = "Good morning. سلام دنیا!";
    let emma = SpeakerChoice::Known("emma".into());
    let mut synthesizer = support::synthesizer();
    let speech =
        synthesizer.synthesize(text, &emma, &support::options(), &mut |_, _| ()).expect("speech");
    let rate = synthesizer.trained().document.mel.rate;
    let (expected, _) = wav_bytes(&speech.samples, rate).expect("a file");
    let (status, found) = say(&server.url(), text, json!({}));
    assert_eq!(status, 200);
    assert!(found == expected);
}

#[test]
fn texts_that_the_voice_cannot_read_are_refused_before_the_first_sentence() {
    let server = support::serve();
    for (text, code) in [
        ("Fine. Привет.", "unreadable_input"),
        ("Fine. 漢字.", "unreadable_input"),
        ("...", "empty_input"),
    ] {
        let (status, body) = say(&server.url(), text, json!({ "stream": true }));
        let error: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((status, &error["error"]["code"]), (400, &json!(code)), "{text}");
        assert!(error["error"]["message"].is_string());
    }
}

#[test]
fn many_clients_lose_no_request() {
    let server = support::serve();
    let (url, next) = (server.url(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < 100 {
                    let (status, body) = say(&url, "Hi. Yes.", json!({ "response_format": "pcm" }));
                    assert_eq!(status, 200);
                    assert!(body.len() > 1000);
                }
            });
        }
    });
}
