//! The server by its port: hostile clients, and its end.

use super::*;
use crate::guard::plain;
use axum::routing::{get, post};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Whether a request for `/slow` has reached its route.
static SLOW_BEGAN: AtomicBool = AtomicBool::new(false);
const PATIENCE: Duration = Duration::from_secs(30);

fn start(limits: Limits) -> Server {
    let routes = Router::new()
        .route("/", get(|| async { "here" }))
        .route("/big", get(|| async { vec![7u8; 64 << 20] }))
        .route("/body", post(|body: String| async move { body }))
        .route(
            "/slow",
            get(|| async {
                SLOW_BEGAN.store(true, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(400)).await;
                "done"
            }),
        );
    let options =
        ServerOptions { name: "test-http", hosts: Hosts::loopback(), refuse: plain, limits };
    let port = Listening::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    Server::start(port, routes, options).unwrap()
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn ask(server: &Server, request: &str) -> String {
    let mut stream = connect(server);
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn line(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

#[test]
fn answers_have_the_headers_of_a_safe_page() {
    let server = start(Limits::PAGE);
    let answer = ask(&server, &line("/"));
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhere"),
        "{answer}"
    );
    for header in ["default-src 'none'", "nosniff", "no-store", "same-origin", "connection: close"]
    {
        assert!(answer.contains(header), "{header}: {answer}");
    }
    assert!(ask(&server, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").contains(" 403 "));
}

#[test]
fn malformed_and_oversized_requests_are_refused() {
    let server = start(Limits::API);
    assert!(ask(&server, "nonsense\r\n\r\n").contains(" 400 "));
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(200_000));
    assert!(ask(&server, &long).contains(" 431 "));
    let post = "POST /body HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    // Refused by its length alone, and as it arrives.
    let length = format!("{post}Content-Length: 3000000\r\n\r\n{}", "x".repeat(2048));
    assert!(ask(&server, &length).contains(" 413 "));
    let chunk = format!("{:x}\r\n{}\r\n", 300_000, "x".repeat(300_000));
    let chunked = format!("{post}Transfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n");
    assert!(ask(&server, &chunked).contains(" 413 "));
}

#[test]
fn slow_clients_are_disconnected() {
    let limits = Limits {
        head: Duration::from_millis(200),
        stall: Duration::from_millis(200),
        ..Limits::API
    };
    let server = start(limits);
    // Half a request.
    let mut half = connect(&server);
    half.write_all(b"GET / HTTP/1.1\r\nHost: loc").unwrap();
    // One that reads nothing of a large answer.
    let mut deaf = connect(&server);
    deaf.write_all(line("/big").as_bytes()).unwrap();
    let began = Instant::now();
    while server.free.available_permits() < limits.connections as usize {
        assert!(began.elapsed() < PATIENCE, "slow clients are still connected");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut rest = Vec::new();
    let _ = half.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains(" 200 "));
}

#[test]
fn an_old_connection_is_closed() {
    let lifetime = Some(Duration::from_millis(100));
    let server = start(Limits { lifetime, ..Limits::API });
    let mut idle = connect(&server);
    assert_eq!(idle.read(&mut [0; 10]).unwrap(), 0);
    // An answer under way is completed: it gets as much time again.
    let server = start(Limits { lifetime: Some(Duration::from_secs(5)), ..Limits::API });
    assert!(ask(&server, &line("/slow")).ends_with("done"));
}

#[test]
fn connections_are_limited() {
    let server = start(Limits { connections: 2, ..Limits::API });
    let kept = [connect(&server), connect(&server)];
    let began = Instant::now();
    while server.free.available_permits() > 0 {
        assert!(began.elapsed() < PATIENCE, "connections are accepted");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut third = connect(&server);
    let mut byte = [0; 1];
    assert!(!matches!(third.read(&mut byte), Ok(1..)));
    drop(kept);
}

#[test]
fn a_stop_completes_answers_within_its_limit() {
    let server = start(Limits::API);
    SLOW_BEGAN.store(false, Ordering::SeqCst);
    let mut slow = connect(&server);
    slow.write_all(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    while !SLOW_BEGAN.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut idle = connect(&server);
    idle.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    idle.read_exact(&mut answer).unwrap();
    let address = server.address();
    assert_eq!(server.stop(PATIENCE), Stopped::Finished);
    let mut text = String::new();
    slow.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("done"), "{text}");
    assert!(TcpStream::connect(address).is_err());

    let server = start(Limits::API);
    let mut deaf = connect(&server);
    deaf.write_all(line("/big").as_bytes()).unwrap();
    deaf.read_exact(&mut answer).unwrap();
    assert_eq!(server.stop(Duration::from_millis(100)), Stopped::Abandoned(1));
}
