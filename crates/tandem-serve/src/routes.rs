//! The routes of the speech server.
//!
//! In: requests that `tandem-http` has let through. Out: audio as it is ready, lists, the page. Everything
//! except the page, its files and `/health` needs the token, where there is one.

use crate::api_error::{ApiError, refuse, wrong_method};
use crate::encode::BlockPosition;
use crate::metrics::Stats;
use crate::page;
use crate::request::{Offer, SpeechRequest};
use crate::token::Token;
use crate::workers::{EncodedPart, Parts, Workers};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tandem_page::Lang;
use tandem_telemetry::metrics::CONTENT_TYPE as PROMETHEUS;
use tokio_stream::wrappers::ReceiverStream;

/// State shared by all requests.
pub(crate) struct App {
    pub(crate) offer: Offer,
    pub(crate) workers: Workers,
    pub(crate) stats: Arc<Stats>,
    pub(crate) token: Option<Token>,
    /// When the server was started, in seconds since 1970.
    pub(crate) created: u64,
    pub(crate) lang: Lang,
    /// The largest body, and the time in which it must arrive.
    pub(crate) body: usize,
    pub(crate) body_time: Duration,
}

pub(crate) fn routes(app: Arc<App>) -> Router {
    let nothing = || async {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this address")
            .with_hint("POST /v1/audio/speech, GET /v1/models, /voices, /health, /metrics")
    };
    let closed = Router::new()
        .route("/v1/audio/speech", post(speech).fallback(|| async { wrong_method("POST") }))
        .route("/v1/models", get(models).fallback(read_only))
        .route("/v1/models/{id}", get(model).fallback(read_only))
        .route("/voices", get(voices).fallback(read_only))
        .route("/metrics", get(prometheus).fallback(read_only))
        .route_layer(from_fn_with_state(Arc::clone(&app), check_token));
    Router::new()
        .route("/", get(front).fallback(read_only))
        .route("/page.css", get(|| async { file("text/css; charset=utf-8", page::style()) }))
        .route("/serve.js", get(|| async { file("text/javascript; charset=utf-8", page::SCRIPT) }))
        .route("/health", get(health).fallback(read_only))
        .merge(closed)
        .fallback(nothing)
        .with_state(app)
}

async fn read_only() -> Response {
    wrong_method("GET")
}

fn file(kind: &'static str, body: impl IntoResponse) -> Response {
    ([(CONTENT_TYPE, kind)], body).into_response()
}

async fn check_token(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let Some(token) = &app.token else { return next.run(request).await };
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match given.is_some_and(|given| token.is_in(given)) {
        true => next.run(request).await,
        false => ApiError::new(
            StatusCode::UNAUTHORIZED,
            "invalid_api_key",
            "the token is missing or wrong",
        )
        .with_hint("send the header `Authorization: Bearer TOKEN`")
        .into_response(),
    }
}

/// `POST /v1/audio/speech`.
async fn speech(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    let answer = match read_request(&app, &headers, body).await {
        Ok(request) => synthesize(&app, request).await,
        Err(error) => Err(error),
    };
    let answer = answer.unwrap_or_else(IntoResponse::into_response);
    app.stats.answered(answer.status().as_u16());
    answer
}

async fn read_request(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<SpeechRequest, ApiError> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // Not only a formality: pages of other origins cannot send this type without being asked first.
    if !kind
        .split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    {
        let fact = "the body is not JSON";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(ApiError::new(status, "unsupported_media_type", fact)
            .with_hint("send `Content-Type: application/json`"));
    }
    let bytes: Bytes =
        match tokio::time::timeout(app.body_time, axum::body::to_bytes(body, app.body)).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(_)) => {
                let fact = format!("the request is larger than {} bytes, or broke off", app.body);
                return Err(ApiError::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "request_too_large",
                    fact,
                ));
            }
            Err(_) => {
                let fact = "the body of the request did not arrive in time";
                return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", fact));
            }
        };
    SpeechRequest::parse(&bytes, &app.offer)
}

/// Waits for the first sentence, so that a text that cannot be read gets a status of its own.
async fn synthesize(app: &App, request: SpeechRequest) -> Result<Response, ApiError> {
    let kind = [(CONTENT_TYPE, request.format.content_type())];
    let mut parts: Parts = app.workers.submit(request)?;
    let gone = || ApiError::server("the synthesis ended without a result");
    let first: EncodedPart = parts.recv().await.ok_or_else(gone)??;
    if first.place == BlockPosition::Last {
        return Ok((kind, Bytes::from_owner(first)).into_response());
    }
    let rest = ReceiverStream::new(parts).map(|part| match part {
        Ok(part) => Ok(Bytes::from_owner(part)),
        // The status is sent already: the answer breaks off, which every client notices.
        Err(error) => Err(std::io::Error::other(error.fact)),
    });
    let first = stream::iter([Ok(Bytes::from_owner(first))]);
    Ok((kind, Body::from_stream(first.chain(rest))).into_response())
}

async fn models(State(app): State<Arc<App>>) -> Response {
    axum::Json(json!({ "object": "list", "data": [described(&app)] })).into_response()
}

async fn model(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    match id == app.offer.model {
        true => axum::Json(described(&app)).into_response(),
        false => ApiError {
            param: Some("model"),
            ..ApiError::new(
                StatusCode::NOT_FOUND,
                "model_not_found",
                format!("there is no model `{id}`"),
            )
            .with_hint(format!("use `{}`", app.offer.model))
        }
        .into_response(),
    }
}

fn described(app: &App) -> Value {
    json!({ "id": app.offer.model, "object": "model", "created": app.created, "owned_by": "tandem" })
}

async fn voices(State(app): State<Arc<App>>) -> Response {
    let voices: Vec<_> = app.offer.voices.list().collect();
    let languages = &app.offer.voices.languages;
    axum::Json(json!({ "model": app.offer.model, "languages": languages, "voices": voices }))
        .into_response()
}

async fn health(State(app): State<Arc<App>>) -> Response {
    let (waiting, active) = (app.stats.waiting.load(Relaxed), app.stats.active.load(Relaxed));
    axum::Json(json!({ "status": "ok", "waiting": waiting, "active": active })).into_response()
}

async fn prometheus(State(app): State<Arc<App>>) -> Response {
    file(PROMETHEUS, app.stats.prometheus())
}

#[derive(Deserialize)]
struct Asked {
    lang: Option<String>,
}

async fn front(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Response {
    let lang = asked.lang.and_then(|code| code.parse().ok()).unwrap_or(app.lang);
    Html(page::document(&app.offer, app.token.is_some(), lang)).into_response()
}

/// How the HTTP layer words its refusals here.
pub(crate) const REFUSE: tandem_http::guard::Refuse = refuse;
