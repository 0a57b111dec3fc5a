//! Routes of the live page, and which requests are refused.
//!
//! In: a connection. Out: one answer, or events until the client disconnects. Only requests that name
//! this machine are answered, and none that a page of another origin makes: a foreign host name
//! may resolve to loopback (DNS rebinding), and any page in the same browser may send requests.

use crate::lang::Lang;
use crate::live::board::{Board, Newest};
use crate::live::document::{SCRIPT, Sent, document};
use crate::live::http::{Request, Response, Unheard, head};
use crate::render::STYLE;
use percent_encoding::percent_decode_str;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use tandem_telemetry::metrics;

/// Answers one connection.
pub(super) fn answer(stream: &mut TcpStream, board: &Board) -> io::Result<()> {
    let request = match Request::read(stream) {
        Ok(request) => request,
        Err(Unheard::Gone) => return Ok(()),
        Err(Unheard::Malformed) => {
            return refuse(stream, &Response::refusal(400, "this is not HTTP"), "GET");
        }
        Err(Unheard::TooLong) => {
            return refuse(stream, &Response::refusal(431, "the request is too long"), "GET");
        }
    };
    if let Some(refusal) = refusal(&request) {
        return refuse(stream, &refusal, &request.method);
    }
    if request.path == "/events" && request.method == "GET" {
        return events(stream, board, lang(&request, board));
    }
    respond(&request, board).write(stream, &request.method)
}

/// Refuses, then reads the rest of the request for a moment: closing with unread bytes would reset
/// the connection and lose the answer.
fn refuse(stream: &mut TcpStream, refusal: &Response, method: &str) -> io::Result<()> {
    refusal.write(stream, method)?;
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    io::copy(&mut stream.take(256 << 10), &mut io::sink()).map(|_| ())
}

/// Why a request is not answered, if it is not.
pub(super) fn refusal(request: &Request) -> Option<Response> {
    let here = |host: &str| {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
            None => host.split_once(':').map_or(host, |(name, _)| name),
        };
        ["localhost", "127.0.0.1", "::1"].contains(&name.to_ascii_lowercase().as_str())
    };
    let mut hosts = request.header("host");
    if !matches!((hosts.next(), hosts.next()), (Some(host), None) if here(host)) {
        let words = "only requests to localhost are answered (Host header)";
        return Some(Response::refusal(403, words));
    }
    let ours = |origin: &str| origin.strip_prefix("http://").is_some_and(here);
    if !request.header("origin").all(ours) {
        let words = "requests of pages from other hosts are refused (Origin header)";
        return Some(Response::refusal(403, words));
    }
    // Browsers send the origin of a request; following a link is allowed.
    let visit = request.header("sec-fetch-mode").any(|mode| mode == "navigate");
    let own = |site: &str| site == "same-origin" || site == "none";
    if !visit && !request.header("sec-fetch-site").all(own) {
        let words = "requests of pages from other origins are refused (Sec-Fetch-Site header)";
        return Some(Response::refusal(403, words));
    }
    if !["GET", "HEAD"].contains(&request.method.as_str()) {
        let words = "this page is read-only";
        return Some(Response::refusal(405, words).with("allow", "GET, HEAD"));
    }
    None
}

fn lang(request: &Request, board: &Board) -> Lang {
    request.asks("lang").and_then(|code| code.parse().ok()).unwrap_or(board.lang)
}

fn respond(request: &Request, board: &Board) -> Response {
    let now = || board.now();
    match request.path.as_str() {
        "/" => {
            let text = document(board, &now(), lang(request, board));
            Response::new("text/html; charset=utf-8", text)
        }
        "/page.css" => Response::new("text/css; charset=utf-8", STYLE),
        "/live.js" => Response::new("text/javascript; charset=utf-8", SCRIPT),
        "/metrics" => {
            Response::new(metrics::CONTENT_TYPE, metrics::prometheus(&now().view.summary))
        }
        "/report.json" => match serde_json::to_vec(&now().view.report()) {
            Ok(text) => Response::new("application/json", text),
            Err(error) => Response::refusal(500, &error.to_string()),
        },
        path => match path.strip_prefix("/samples/") {
            Some(name) => sample(name, request, board),
            None => Response::refusal(404, "there is nothing at this address"),
        },
    }
}

fn sample(name: &str, request: &Request, board: &Board) -> Response {
    let name = percent_decode_str(name).decode_utf8_lossy();
    let Some((bytes, kind)) = board.samples.file(&name) else {
        return Response::refusal(404, "the run has no such sample");
    };
    let length = bytes.len();
    let Some(range) = request.header("range").next() else {
        return Response::new(kind, bytes).with("accept-ranges", "bytes");
    };
    // Players seek with range requests.
    match part(range, length) {
        Some((first, last)) => {
            let whole = Response::new(kind, &bytes[first..=last]).with("accept-ranges", "bytes");
            let place = format!("bytes {first}-{last}/{length}");
            Response { status: 206, ..whole.with("content-range", place) }
        }
        None => Response::refusal(416, "there is no such part of the sample")
            .with("content-range", format!("bytes */{length}")),
    }
}

/// The first and the last byte that `bytes=...` asks for.
fn part(range: &str, length: usize) -> Option<(usize, usize)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let end = length.checked_sub(1)?;
    let (first, last) = match (first.trim(), last.trim()) {
        ("", count) => (length.saturating_sub(count.parse().ok()?), end),
        (first, "") => (first.parse().ok()?, end),
        (first, last) => (first.parse().ok()?, last.parse::<usize>().ok()?.min(end)),
    };
    (first <= last && first < length).then_some((first, last))
}

/// The shortest time between two updates, and the interval of keep-alive lines.
const UPDATE_EVERY: Duration = Duration::from_secs(1);
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// Sends changes until the client disconnects or the page closes.
fn events(stream: &mut TcpStream, board: &Board, lang: Lang) -> io::Result<()> {
    let mut opening = head(200, "text/event-stream; charset=utf-8", &[]);
    opening.push_str("\r\nretry: 1000\n\n");
    stream.write_all(opening.as_bytes())?;
    let mut sent = Sent::default();
    let mut newest: Newest = board.now();
    loop {
        match sent.update(board, &newest, lang) {
            Some(parts) => write!(stream, "event: parts\ndata: {parts}\n\n")?,
            // A failed write shows that the client has disconnected.
            None => stream.write_all(b": still here\n\n")?,
        }
        stream.flush()?;
        std::thread::sleep(UPDATE_EVERY);
        match board.wait(&newest, SIGN_OF_LIFE - UPDATE_EVERY) {
            Some(next) => newest = next,
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
