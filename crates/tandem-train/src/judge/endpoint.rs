//! A judge with OpenAI's transcription API: a WAV file in a form, JSON with a `text` back.
//!
//! In: an address and a WAV file. Out: the text. One connection for each file, closed by the server; each read waits no longer
//! than the rest of the time. No encryption, no redirection.

use super::{Endpoint, JudgeError, MOST_BYTES, Patience};
use serde::Deserialize;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Between the parts of the form; does not occur in a header, and PCM would need 160 equal bits.
const BOUNDARY: &str = "tandem-judge-7d1f8c4b0a52";
/// How often a waiting connection looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(200);

#[derive(Deserialize)]
struct Transcription {
    text: String,
}

impl Endpoint {
    pub(super) fn parse(address: &str) -> Result<Endpoint, JudgeError> {
        let wrong = || JudgeError::Address { address: address.to_owned() };
        let rest = address.strip_prefix("http://").ok_or_else(wrong)?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let plain = |c: char| c.is_ascii_graphic();
        if host.is_empty() || !address.chars().all(plain) {
            return Err(wrong());
        }
        let port =
            if host.rsplit(']').next().is_some_and(|end| end.contains(':')) { "" } else { ":80" };
        let path = if path.is_empty() { "/v1/audio/transcriptions" } else { path };
        Ok(Endpoint { host: format!("{host}{port}"), path: path.to_owned() })
    }

    pub(super) fn hear(
        &self,
        wav: &[u8],
        patience: &mut Patience<'_>,
    ) -> Result<String, JudgeError> {
        let mut stream = self.connect(patience)?;
        stream.set_write_timeout(Some(patience.left()?))?;
        stream.write_all(&self.request(wav))?;
        let answer = read_all(&mut stream, patience)?;
        let (status, body) = parted(&answer)?;
        if status != 200 {
            let message = String::from_utf8_lossy(&body).trim().chars().take(200).collect();
            return Err(JudgeError::Failed { status: format!("HTTP status {status}"), message });
        }
        let read = serde_json::from_slice::<Transcription>(&body);
        let read = read.map_err(|error| garbage(format!("no JSON with `text`: {error}")))?;
        Ok(read.text)
    }

    fn connect(&self, patience: &mut Patience<'_>) -> Result<TcpStream, JudgeError> {
        let mut last = None;
        for address in self.host.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, patience.left()?) {
                Ok(stream) => return Ok(stream),
                Err(source) => last = Some(source),
            }
        }
        let source = last.unwrap_or_else(|| ErrorKind::AddrNotAvailable.into());
        Err(JudgeError::Start { source })
    }

    fn request(&self, wav: &[u8]) -> Vec<u8> {
        let field = |name: &str, value: &str| {
            format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            )
        };
        let mut form =
            (field("model", "whisper-1") + &field("response_format", "json")).into_bytes();
        let file = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"speech.wav\"\r\n\
             Content-Type: audio/wav\r\n\r\n"
        );
        form.extend([file.as_bytes(), wav, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat());
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: multipart/form-data; boundary={BOUNDARY}\r\n\
             Content-Length: {}\r\nConnection: close\r\nAccept: application/json\r\n\r\n",
            self.path,
            self.host,
            form.len()
        );
        [head.into_bytes(), form].concat()
    }
}

/// Until the server closes, or its whole answer is there.
fn read_all(stream: &mut TcpStream, patience: &mut Patience<'_>) -> Result<Vec<u8>, JudgeError> {
    let (mut answer, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        stream.set_read_timeout(Some(patience.left()?.min(GLANCE)))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(answer),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        if answer.len() as u64 > MOST_BYTES {
            return Err(garbage("it has no end".into()));
        }
        if is_whole(&answer) {
            return Ok(answer);
        }
    }
}

/// With a stated length: some servers do not close.
fn is_whole(answer: &[u8]) -> bool {
    let Some((head, body)) = split(answer) else { return false };
    let length = header(&head, "content-length").and_then(|value| value.parse::<usize>().ok());
    length.is_some_and(|length| body.len() >= length)
}

fn parted(answer: &[u8]) -> Result<(u16, Vec<u8>), JudgeError> {
    let (head, body) = split(answer).ok_or_else(|| garbage("no HTTP answer".into()))?;
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    let status = status.filter(|_| head.starts_with("HTTP/1."));
    let status = status.ok_or_else(|| garbage("no HTTP status".into()))?;
    let chunked = header(&head, "transfer-encoding").is_some_and(|value| value.contains("chunked"));
    let body = if chunked { unchunked(body)? } else { body.to_vec() };
    Ok((status, body))
}

fn split(answer: &[u8]) -> Option<(String, &[u8])> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((String::from_utf8_lossy(&answer[..end]).into_owned(), &answer[end + 4..]))
}

/// The value of a header, in small letters.
fn header(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    Some(found.1.trim().to_ascii_lowercase())
}

fn unchunked(mut rest: &[u8]) -> Result<Vec<u8>, JudgeError> {
    let broken = || garbage("a broken chunk".into());
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").ok_or_else(broken)?;
        let length = std::str::from_utf8(&rest[..end]).map_err(|_| broken())?;
        let length = length.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(length, 16).map_err(|_| broken())?;
        if length == 0 {
            return Ok(body);
        }
        let chunk = rest.get(end + 2..).and_then(|rest| rest.get(..length)).ok_or_else(broken)?;
        body.extend_from_slice(chunk);
        rest = rest.get(end + 2 + length + 2..).ok_or_else(broken)?;
    }
}

fn garbage(why: String) -> JudgeError {
    JudgeError::Garbage { why }
}
