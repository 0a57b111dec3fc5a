//! Requests and responses: as much of HTTP/1.1 as a page on loopback needs.
//!
//! In: a connection. Out: [`Request`], parsed by `httparse`, and responses that close it. One
//! request per connection, no body is ever read, nothing waits longer than its limit.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Time limit for reading a request and for writing a response.
const PATIENCE: Duration = Duration::from_secs(10);
/// Size limit of the request line and headers.
const HEAD: usize = 16 << 10;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    pub(super) query: String,
    headers: Vec<(String, String)>,
}

/// Why there is no request.
#[derive(Debug)]
pub(super) enum Unheard {
    /// The connection broke, or took too long.
    Gone,
    /// Not HTTP.
    Malformed,
    /// Over the size limit.
    TooLong,
}

impl Request {
    /// Reads the lines of a request.
    pub(super) fn read(stream: &mut TcpStream) -> Result<Request, Unheard> {
        let until = Instant::now() + PATIENCE;
        stream.set_write_timeout(Some(PATIENCE)).map_err(|_| Unheard::Gone)?;
        let (mut head, mut chunk) = (Vec::new(), [0; 2048]);
        loop {
            // A limit for all of it: one byte every few seconds must not occupy a thread for hours.
            let left = until.saturating_duration_since(Instant::now());
            let left = (!left.is_zero()).then_some(left).ok_or(Unheard::Gone)?;
            stream.set_read_timeout(Some(left)).map_err(|_| Unheard::Gone)?;
            match stream.read(&mut chunk) {
                Ok(0) => return Err(Unheard::Gone),
                Ok(count) => head.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(Unheard::Gone),
            }
            if let Some(request) = Request::parse(&head)? {
                return Ok(request);
            }
            if head.len() > HEAD {
                return Err(Unheard::TooLong);
            }
        }
    }

    /// A whole request, or none while lines are missing.
    pub(super) fn parse(head: &[u8]) -> Result<Option<Request>, Unheard> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(Unheard::TooLong),
            Err(_) => return Err(Unheard::Malformed),
        }
        let target = parsed.path.ok_or(Unheard::Malformed)?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
        Ok(Some(Request {
            method: parsed.method.unwrap_or_default().to_string(),
            path: path.to_string(),
            query: query.to_string(),
            headers: parsed
                .headers
                .iter()
                .map(|header| (header.name.to_ascii_lowercase(), text(header.value)))
                .collect(),
        }))
    }

    /// All values of a header; `name` in small letters.
    pub(super) fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The value of a field of the query.
    pub(super) fn asks(&self, name: &str) -> Option<&str> {
        let fields = self.query.split('&').filter_map(|field| field.split_once('='));
        fields.into_iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }
}

/// A response.
#[derive(Debug, Default)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) more: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn new(kind: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status: 200, kind, more: Vec::new(), body: body.into() }
    }

    /// An error response with a text.
    pub(super) fn refusal(status: u16, words: &str) -> Response {
        let body = format!("{words}\n").into_bytes();
        Response { status, kind: "text/plain; charset=utf-8", more: Vec::new(), body }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Response {
        self.more.push((name, value.into()));
        self
    }

    /// Writes it; a `HEAD` request gets the same without the body.
    pub(super) fn write(&self, stream: &mut TcpStream, method: &str) -> io::Result<()> {
        let mut head = head(self.status, self.kind, &self.more);
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        stream.write_all(head.as_bytes())?;
        if method != "HEAD" {
            stream.write_all(&self.body)?;
        }
        stream.flush()
    }
}

/// The lines before a body, the empty line not included.
pub(super) fn head(status: u16, kind: &str, more: &[(&'static str, String)]) -> String {
    let reason = match status {
        200 => "OK",
        206 => "Partial Content",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        416 => "Range Not Satisfiable",
        431 => "Request Header Fields Too Large",
        _ => "Error",
    };
    let mut head = format!("HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\n");
    for (name, value) in
        GUARDS.iter().map(|(name, value)| (*name, (*value).to_string())).chain(more.to_vec())
    {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}

/// On every answer: the page loads only from this server, runs only its own script, cannot be framed,
/// and cannot be read by other pages.
const GUARDS: [(&str, &str); 7] = [
    ("connection", "close"),
    ("cache-control", "no-store"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];
