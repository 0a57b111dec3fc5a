//! Judges that are right, fail, hang, print garbage, or answer slowly.

use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use tandem_text::Language;

fn hear(judge: &Judge, limit: Duration) -> Result<Vec<String>, JudgeError> {
    let wavs = vec![b"RIFFone".to_vec(), b"RIFFtwo".to_vec()];
    let mut watch = || ControlFlow::Continue(());
    judge.hear(&wavs, &mut Patience::new(limit, &mut watch))
}

fn said(command: &str) -> Result<Vec<String>, JudgeError> {
    hear(&Judge::parse(command).unwrap(), LONGEST)
}

#[cfg(unix)]
#[test]
fn a_command_prints_a_line_for_each_file() {
    let found = said("sh -c 'for file; do tail -c 3 \"$file\"; echo; done' -").unwrap();
    assert_eq!(found, ["one", "two"]);
}

#[cfg(unix)]
#[test]
fn a_command_that_fails_is_quoted() {
    let error = said("sh -c 'echo no model >&2; exit 3'").unwrap_err();
    assert!(
        matches!(&error, JudgeError::Failed { message, .. } if message == "no model"),
        "{error}"
    );
    let error = said("/nonexistent/judge").unwrap_err();
    assert!(matches!(error, JudgeError::Failed { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn a_command_that_hangs_is_killed() {
    let judge = Judge::parse("sleep 1000 #").unwrap();
    let error = hear(&judge, Duration::from_millis(100)).unwrap_err();
    assert!(matches!(error, JudgeError::Slow { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn a_stopped_run_does_not_wait_for_its_judge() {
    let judge = Judge::parse("sleep 1000 #").unwrap();
    let mut watch = || ControlFlow::Break(());
    let error = judge.hear(&[Vec::new()], &mut Patience::new(LONGEST, &mut watch)).unwrap_err();
    assert!(matches!(error, JudgeError::Stopped), "{error}");
}

#[cfg(unix)]
#[test]
fn garbage_is_no_transcript() {
    let error = said("echo only one line #").unwrap_err();
    assert!(matches!(error, JudgeError::Lines { found: 1, expected: 2 }), "{error}");
    let error = said("yes #").unwrap_err();
    assert!(matches!(error, JudgeError::Garbage { .. }), "{error}");
    let error = said("printf '\\377\\n\\377\\n' #").unwrap_err();
    assert!(matches!(error, JudgeError::Garbage { .. }), "{error}");
}

/// A server that gives the same answer to every request, and what it was asked.
fn server(answer: &'static str) -> (Judge, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let judge = Judge::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let serve = move || {
        let mut asked = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
            while !request.ends_with(b"--\r\n") {
                let count = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..count]);
            }
            asked.push(String::from_utf8_lossy(&request).into_owned());
            // A client that gave up is no failure of the server.
            let _ = stream.write_all(answer.as_bytes());
        }
        asked
    };
    (judge, std::thread::Builder::new().name("recogniser".into()).spawn(serve).unwrap())
}

#[test]
fn an_address_gets_a_form_and_answers_with_json() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{\"text\": \"Hello.\"}",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"text\":\r\na\r\n \"Hello.\"}\r\n0\r\n\r\n",
    ] {
        let (judge, server) = server(answer);
        assert_eq!(hear(&judge, LONGEST).unwrap(), ["Hello.", "Hello."]);
        let asked = server.join().unwrap();
        assert!(asked[0].starts_with("POST /v1/audio/transcriptions HTTP/1.1\r\n"), "{asked:?}");
        assert!(asked[0].contains("name=\"file\"") && asked[0].contains("RIFFone"), "{asked:?}");
        assert!(asked[1].contains("RIFFtwo"), "{asked:?}");
    }
}

#[test]
fn an_answer_that_is_no_transcript_is_an_error() {
    let refused = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
    for answer in [refused, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "hello\r\n\r\n"] {
        let (judge, _server) = server(answer);
        let error = hear(&judge, LONGEST).unwrap_err();
        let refused = matches!(error, JudgeError::Failed { .. });
        assert!(refused || matches!(error, JudgeError::Garbage { .. }), "{answer}: {error}");
    }
}

#[test]
fn an_address_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let judge = Judge::parse(&format!("http://{}/hear", listener.local_addr().unwrap())).unwrap();
    let error = hear(&judge, Duration::from_millis(100)).unwrap_err();
    assert!(matches!(error, JudgeError::Slow { .. }), "{error}");
    drop(listener);
    assert!(matches!(hear(&judge, LONGEST).unwrap_err(), JudgeError::Start { .. }));
}

#[test]
fn other_protocols_are_refused() {
    for address in ["https://api.example.org/v1", "http://", "http:///x", "ftp://a"] {
        let error = Judge::parse(address).unwrap_err();
        assert!(matches!(error, JudgeError::Address { .. }), "{address}");
    }
    assert!(Judge::parse("http://[::1]:8080/v1").is_ok());
}

#[test]
fn errors_are_counted_over_all_sentences_without_marks_and_digits() {
    let english = Language::English;
    let errors = |pairs: &[(&str, &str)]| {
        hearing_errors(pairs.iter().map(|(said, heard)| (english, *said, *heard)))
    };
    let exact = errors(&[("It is 7, Tom!", "it is seven tom"), ("Well-known.", "Well known")]);
    assert_eq!(exact, Some(HearingErrors { words: 0.0, characters: 0.0 }));
    let one = errors(&[("one two three four", "one two tree four"), ("five six", "five six")]);
    let one = one.unwrap();
    assert!((one.words - 1.0 / 6.0).abs() < 1e-9, "{one:?}");
    assert!((one.characters - 1.0 / 26.0).abs() < 1e-9, "{one:?}");
    assert_eq!(errors(&[("silence", "")]).unwrap().words, 1.0);
    assert_eq!(errors(&[]), None);
}
