//! Which requests are refused before a route sees them, and the headers of every answer.
//!
//! In: a request. Out: its answer, or 403 or 413. A foreign host name may resolve to this machine (DNS
//! rebinding), and any page in a browser on this machine may send requests. So the `Host` header must
//! name this server, and no request of a page of another origin is answered.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::Arc;

/// The host names by which this server may be called.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Rebinding needs a name: an address as the host is safe, unless only loopback is meant.
    any_address: bool,
    names: Vec<String>,
}

impl Hosts {
    /// `localhost`, `::1` and every address that begins with 127.
    pub fn loopback() -> Hosts {
        Hosts { any_address: false, names: Vec::new() }
    }

    /// Loopback, every IP address, and these names.
    pub fn open_to(names: &[String]) -> Hosts {
        let names = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Hosts { any_address: true, names }
    }

    /// Whether `host`, with or without a port, is one of them.
    fn allow(&self, host: &str) -> bool {
        let (name, port) = match host.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((name, port)) => {
                    (name, port.strip_prefix(':').or(port.is_empty().then_some("0")))
                }
                None => return false,
            },
            None => {
                host.split_once(':').map_or((host, Some("0")), |(name, port)| (name, Some(port)))
            }
        };
        let is_port = |port: &str| port.parse::<u16>().is_ok();
        let name = name.to_ascii_lowercase();
        port.is_some_and(is_port)
            && (name == "localhost"
                || name.parse::<IpAddr>().is_ok_and(|ip| self.any_address || ip.is_loopback())
                || self.names.contains(&name))
    }
}

/// Turns a refusal into an answer, as the API of the server words it.
pub type Refuse = fn(StatusCode, &str) -> Response;

/// A refusal as plain text.
pub fn plain(status: StatusCode, words: &str) -> Response {
    (status, format!("{words}\n")).into_response()
}

#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) hosts: Hosts,
    pub(crate) refuse: Refuse,
    /// The largest body of a request, in bytes.
    pub(crate) body: usize,
}

/// Refuses, or asks the route; every answer gets [`HEADERS`] that it does not set itself.
pub(crate) async fn guard(
    State(guard): State<Arc<Guard>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let mut answer = match refusal(request.headers(), &guard.hosts) {
        Some(words) => (guard.refuse)(StatusCode::FORBIDDEN, words),
        // Before any of it is read. A body without a length is limited while it is read.
        None if length(request.headers()).is_some_and(|length| length > guard.body as u64) => {
            let words = format!("the request is larger than {} bytes", guard.body);
            (guard.refuse)(StatusCode::PAYLOAD_TOO_LARGE, &words)
        }
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        answer.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    answer
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Why a request is not answered, if it is not.
pub fn refusal(headers: &HeaderMap, hosts: &Hosts) -> Option<&'static str> {
    let all = |name: HeaderName| headers.get_all(name).into_iter().map(|value| value.to_str());
    let mut named = all(header::HOST);
    if !matches!((named.next(), named.next()), (Some(Ok(host)), None) if hosts.allow(host)) {
        return Some("this host name is not served (Host header)");
    }
    let ours = |origin: &str| {
        let host = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
        host.is_some_and(|host| hosts.allow(host))
    };
    if !all(header::ORIGIN).all(|origin| origin.is_ok_and(ours)) {
        return Some("requests of pages from other hosts are refused (Origin header)");
    }
    // Browsers say where a request comes from; following a link is allowed.
    let visit = all(SEC_FETCH_MODE).any(|mode| mode.is_ok_and(|mode| mode == "navigate"));
    let own = |site: &str| site == "same-origin" || site == "none";
    if !visit && !all(SEC_FETCH_SITE).all(|site| site.is_ok_and(own)) {
        return Some("requests of pages from other origins are refused (Sec-Fetch-Site header)");
    }
    None
}

const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// On every answer: a page loads only from this server, runs only its own script, cannot be framed,
/// and cannot be read by other pages.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hosts: &Hosts, lines: &[(&'static str, &str)], answered: bool) {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(refusal(&headers, hosts).is_none(), answered, "{lines:?}");
    }

    #[test]
    fn only_requests_to_this_machine_are_answered() {
        let hosts = Hosts::loopback();
        for host in [
            "127.0.0.1:7878",
            "127.0.0.2:7878",
            "localhost:7878",
            "LOCALHOST",
            "[::1]:7878",
            "localhost:9000",
        ] {
            check(&hosts, &[("host", host)], true);
        }
        for host in [
            "evil.example",
            "evil.example:7878",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "192.168.1.5:7878",
            "",
            "[::1",
            "[::1]evil",
            "evil@localhost",
            "localhost:80:evil",
        ] {
            check(&hosts, &[("host", host)], false);
        }
        check(&hosts, &[], false);
        check(&hosts, &[("host", "localhost"), ("host", "evil.example")], false);
    }

    #[test]
    fn an_open_server_answers_addresses_and_its_names() {
        let hosts = Hosts::open_to(&["Voice.example".into()]);
        for host in ["192.168.1.5:7880", "[fe80::1]:7880", "localhost", "voice.example:443"] {
            check(&hosts, &[("host", host)], true);
        }
        for host in ["evil.example", "voice.example.evil.example", "192.168.1.5.nip.io"] {
            check(&hosts, &[("host", host)], false);
        }
        check(&hosts, &[("host", "voice.example"), ("origin", "https://voice.example")], true);
        check(&hosts, &[("host", "voice.example"), ("origin", "https://evil.example")], false);
    }

    #[test]
    fn no_page_of_another_origin_is_answered() {
        let hosts = Hosts::loopback();
        let host = ("host", "localhost:7878");
        check(&hosts, &[host, ("origin", "http://localhost:7878")], true);
        for origin in ["http://evil.example", "https://localhost.evil.example", "null", "file://"] {
            check(&hosts, &[host, ("origin", origin)], false);
        }
        let site = |site, mode| [host, ("sec-fetch-site", site), ("sec-fetch-mode", mode)];
        check(&hosts, &site("same-origin", "cors"), true);
        check(&hosts, &site("cross-site", "no-cors"), false);
        check(&hosts, &site("same-site", "cors"), false);
        // A followed link.
        check(&hosts, &site("cross-site", "navigate"), true);
    }
}
