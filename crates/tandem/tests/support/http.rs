//! A server of the program, and requests to it, byte by byte.

use super::TestDir;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Child;
use std::time::Duration;

/// A running command that serves, killed when dropped. Its first line is its address.
pub struct Serving {
    pub child: Child,
    pub address: SocketAddr,
}

impl Serving {
    pub fn start(dir: &TestDir, args: &[&str]) -> Serving {
        let mut child = dir.tandem(args).spawn().expect("the program runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("its first line");
        Serving { child, address: address(&line) }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        ))
    }

    pub fn ask(&self, request: &str) -> Answer {
        ask(self.address, request)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in a line with a URL.
pub fn address(line: &str) -> SocketAddr {
    let url = line.split("http://").nth(1).unwrap_or_else(|| panic!("no address in `{line}`"));
    url.trim().trim_end_matches('/').parse().expect("an address")
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    /// Without the frames of chunked encoding.
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.head))
    }

    #[track_caller]
    pub fn is(&self, status: u16, kind: &str) {
        assert_eq!(self.status, status, "{}", self.head);
        assert!(self.head.contains(&format!("content-type: {kind}")), "{}", self.head);
        for guard in ["content-security-policy: default-src 'none'", "nosniff", "no-store"] {
            assert!(self.head.contains(guard), "{guard} is not in {}", self.head);
        }
        assert!(!self.head.contains("access-control-allow"), "{}", self.head);
    }
}

/// Sends bytes, and reads until the server closes the connection.
pub fn ask(address: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).expect("the server runs");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a limit");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).expect("text");
    let status = head[9..12].parse().expect("a status");
    let body = match head.contains("transfer-encoding: chunked") {
        true => joined(&bytes[end..]),
        false => bytes[end..].to_vec(),
    };
    Answer { status, head, body }
}

/// The contents of a chunked body, which must be complete.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = chunks.windows(2).position(|two| two == b"\r\n").expect("the length of a chunk");
        let digits = std::str::from_utf8(&chunks[..line]).expect("digits");
        let length = usize::from_str_radix(digits, 16).expect("a length");
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&chunks[line + 2..][..length]);
        chunks = &chunks[line + 2 + length + 2..];
    }
}
