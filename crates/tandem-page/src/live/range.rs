//! Parts of a file: players seek with range requests.

use axum::http::header::{ACCEPT_RANGES, CONTENT_RANGE, CONTENT_TYPE, RANGE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tandem_http::guard::plain;

/// A file, or the part of it that the request asks for.
pub(super) fn file(bytes: Vec<u8>, kind: &'static str, headers: &HeaderMap) -> Response {
    let length = bytes.len();
    let common = [(CONTENT_TYPE, kind), (ACCEPT_RANGES, "bytes")];
    let Some(range) = headers.get(RANGE) else {
        return (common, bytes).into_response();
    };
    match range.to_str().ok().and_then(|range| part(range, length)) {
        Some((first, last)) => {
            let place = [(CONTENT_RANGE, format!("bytes {first}-{last}/{length}"))];
            let bytes = bytes[first..=last].to_vec();
            (StatusCode::PARTIAL_CONTENT, common, place, bytes).into_response()
        }
        None => {
            let words = "there is no such part of the sample";
            let place = [(CONTENT_RANGE, format!("bytes */{length}"))];
            (place, plain(StatusCode::RANGE_NOT_SATISFIABLE, words)).into_response()
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        fn a_part_is_never_outside(range in "bytes=[0-9]{0,20}-[0-9]{0,20}", length in 0usize..50) {
            if let Some((first, last)) = part(&range, length) {
                prop_assert!(first <= last && last < length);
            }
        }
    }
}
