//! Refused requests, and byte ranges of files.

use super::*;
use proptest::prelude::*;

fn request(lines: &str) -> Request {
    let text = format!("GET / HTTP/1.1\r\n{lines}\r\n");
    Request::parse(text.as_bytes()).ok().flatten().expect("a whole request")
}

#[track_caller]
fn check(lines: &str, status: Option<u16>) {
    assert_eq!(refusal(&request(lines)).map(|response| response.status), status, "{lines}");
}

#[test]
fn only_requests_to_this_machine_are_answered() {
    for host in ["127.0.0.1:7878", "localhost:7878", "LOCALHOST", "[::1]:7878", "localhost:9000"] {
        check(&format!("Host: {host}\r\n"), None);
    }
    for host in [
        "evil.example",
        "evil.example:7878",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "192.168.1.5:7878",
        "",
        "[::1",
        "evil@localhost",
    ] {
        check(&format!("Host: {host}\r\n"), Some(403));
    }
    check("", Some(403));
    check("Host: localhost\r\nHost: evil.example\r\n", Some(403));
}

#[test]
fn no_page_of_another_origin_is_answered() {
    let host = "Host: localhost:7878\r\n";
    check(&format!("{host}Origin: http://localhost:7878\r\n"), None);
    for origin in ["http://evil.example", "https://localhost.evil.example", "null", "file://"] {
        check(&format!("{host}Origin: {origin}\r\n"), Some(403));
    }
    check(&format!("{host}Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n"), None);
    check(&format!("{host}Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n"), Some(403));
    check(&format!("{host}Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n"), Some(403));
    // A followed link.
    check(&format!("{host}Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"), None);
}

#[test]
fn byte_ranges_are_those_requested() {
    assert_eq!(part("bytes=0-", 10), Some((0, 9)));
    assert_eq!(part("bytes=2-4", 10), Some((2, 4)));
    assert_eq!(part("bytes=8-99", 10), Some((8, 9)));
    assert_eq!(part("bytes=-3", 10), Some((7, 9)));
    for range in ["bytes=10-", "bytes=5-2", "bytes=x-", "items=0-1", "bytes=0-1,3-4", ""] {
        assert_eq!(part(range, 10), None, "{range}");
    }
    assert_eq!(part("bytes=0-", 0), None);
}

proptest! {
    #[test]
    fn any_bytes_are_a_request_or_not(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Request::parse(&bytes);
    }

    #[test]
    fn a_part_is_never_outside(range in "bytes=[0-9]{0,20}-[0-9]{0,20}", length in 0usize..50) {
        if let Some((first, last)) = part(&range, length) {
            prop_assert!(first <= last && last < length);
        }
    }
}
