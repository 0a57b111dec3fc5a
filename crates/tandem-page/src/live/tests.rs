//! The server by its port: opened, read, closed, refused.

use super::*;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example-run.jsonl");

fn run() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(RECORD, folder.path().join("run.jsonl")).unwrap();
    folder
}

fn open(folder: &Path) -> Dashboard {
    let poll_every = Duration::from_millis(10);
    let options = DashboardOptions { poll_every, ..DashboardOptions::new("example") };
    Dashboard::open(PageListener::take(0).unwrap(), folder, options).unwrap()
}

fn get(page: &Dashboard, path: &str) -> String {
    let mut stream = TcpStream::connect(page.server.address()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_page_is_open_until_it_is_dropped() {
    let folder = run();
    let page = open(folder.path());
    assert!(page.server.address().ip().is_loopback());
    assert!(get(&page, "/").contains("dir=\"ltr\""));
    assert!(get(&page, "/?lang=fa").contains("dir=\"rtl\""));
    let address = page.server.address();
    drop(page);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_port_that_is_taken_is_refused_with_a_way_out() {
    use tandem_units::Hint;
    let folder = run();
    let first = open(folder.path());
    let error = PageListener::take(first.server.address().port()).unwrap_err();
    assert!(error.to_string().contains("is in use"), "{error}");
    assert!(error.hint().unwrap().contains("another port"));
}

#[test]
fn a_reader_that_only_listens_does_not_hold_the_page_up() {
    let folder = run();
    let page = open(folder.path());
    let mut silent = TcpStream::connect(page.server.address()).unwrap();
    let mut reader = TcpStream::connect(page.server.address()).unwrap();
    write!(reader, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 15];
    reader.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    drop(page);
    let _ = silent.write_all(b"GET");
}
