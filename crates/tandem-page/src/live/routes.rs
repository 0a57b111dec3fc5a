//! Routes of the live page.
//!
//! In: a request that `tandem-http` has let through. Out: one answer, or events until the client
//! disconnects. Pages are rendered and files are read on the threads for blocking work.

use crate::live::board::{Board, Newest};
use crate::live::document::{SCRIPT, Sent, document};
use crate::live::range;
use crate::render::STYLE;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tandem_http::guard::plain;
use tandem_telemetry::metrics;
use tandem_units::Lang;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

/// Every address of the page.
pub(super) fn routes(board: Arc<Board>) -> Router {
    Router::new()
        .route("/", get(front))
        .route("/events", get(events))
        .route("/page.css", get(|| text("text/css; charset=utf-8", STYLE)))
        .route("/live.js", get(|| text("text/javascript; charset=utf-8", SCRIPT)))
        .route("/metrics", get(prometheus))
        .route("/report.json", get(report))
        .route("/samples/{name}", get(sample))
        .fallback(|| async { plain(StatusCode::NOT_FOUND, "there is nothing at this address") })
        .with_state(board)
}

#[derive(Deserialize)]
struct Asked {
    lang: Option<String>,
}

impl Asked {
    fn lang(&self, board: &Board) -> Lang {
        self.lang.as_deref().and_then(|code| code.parse().ok()).unwrap_or(board.lang)
    }
}

async fn text(kind: &'static str, body: impl IntoResponse) -> Response {
    ([(CONTENT_TYPE, kind)], body).into_response()
}

/// An answer that takes computing or reading.
async fn blocking(work: impl FnOnce() -> Response + Send + 'static) -> Response {
    spawn_blocking(work).await.unwrap_or_else(|_| {
        plain(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be made")
    })
}

async fn front(State(board): State<Arc<Board>>, Query(asked): Query<Asked>) -> Response {
    blocking(move || {
        let page = document(&board, &board.now(), asked.lang(&board));
        ([(CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
    })
    .await
}

async fn prometheus(State(board): State<Arc<Board>>) -> Response {
    text(metrics::CONTENT_TYPE, metrics::prometheus(&board.now().view.summary)).await
}

async fn report(State(board): State<Arc<Board>>) -> Response {
    blocking(move || axum::Json(board.now().view.report()).into_response()).await
}

async fn sample(
    State(board): State<Arc<Board>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    blocking(move || match board.samples.file(&name) {
        Some((bytes, kind)) => range::file(bytes, kind, &headers),
        None => plain(StatusCode::NOT_FOUND, "the run has no such sample"),
    })
    .await
}

/// The shortest time between two updates, and the interval of keep-alive lines.
const UPDATE_EVERY: Duration = Duration::from_secs(1);
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Sends changes until the client disconnects or the page closes.
async fn events(
    State(board): State<Arc<Board>>,
    Query(asked): Query<Asked>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let lang = asked.lang(&board);
    let newest = board.subscribe();
    let client = Client { board, newest, lang, sent: Sent::default(), began: false };
    // A failed write of a keep-alive line shows that the client has disconnected.
    let alive = KeepAlive::new().interval(HEARTBEAT).text("still here");
    Sse::new(stream::unfold(client, Client::next)).keep_alive(alive)
}

/// A client that follows the run.
struct Client {
    board: Arc<Board>,
    newest: watch::Receiver<Newest>,
    lang: Lang,
    /// What it has received.
    sent: Sent,
    began: bool,
}

impl Client {
    /// The next event: at first everything, then what changes. The state of a run also changes
    /// by time alone, when nothing is recorded any more.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Client)> {
        loop {
            if self.began {
                tokio::time::sleep(UPDATE_EVERY).await;
                let changed = self.newest.changed();
                let waited = tokio::time::timeout(HEARTBEAT - UPDATE_EVERY, changed).await;
                if let Ok(Err(_)) = waited {
                    return None;
                }
            }
            let newest = self.newest.borrow_and_update().clone();
            let drawn = spawn_blocking(move || {
                let parts = self.sent.update(&self.board, &newest, self.lang);
                (parts, self)
            });
            let (parts, client) = drawn.await.ok()?;
            self = client;
            let first = !std::mem::replace(&mut self.began, true);
            if let Some(parts) = parts {
                let event = Event::default().event("parts").data(parts);
                let event = if first { event.retry(UPDATE_EVERY) } else { event };
                return Some((Ok(event), self));
            }
        }
    }
}
