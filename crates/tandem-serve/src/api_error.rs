//! A request that is not answered with sound, in OpenAI's shape, with a hint.
//!
//! ```json
//! {"error": {"message": "...", "type": "invalid_request_error", "param": "voice", "code": "unknown_voice", "hint": "..."}}
//! ```

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::error::Error;
use std::time::Duration;
use tandem_model::synthesis::text::SynthesisError;
use tandem_units::Hint;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    pub status: StatusCode,
    /// For programs.
    pub code: &'static str,
    /// The field of the request.
    pub param: Option<&'static str>,
    pub fact: String,
    pub hint: Option<String>,
    /// When it is worth trying again.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    pub fn new(status: StatusCode, code: &'static str, fact: impl Into<String>) -> ApiError {
        ApiError { status, code, param: None, fact: fact.into(), hint: None, retry_after: None }
    }

    /// A field with a wrong value.
    pub fn param(
        param: &'static str,
        code: &'static str,
        fact: impl Into<String>,
        hint: impl Into<String>,
    ) -> ApiError {
        let error = ApiError::new(StatusCode::BAD_REQUEST, code, fact);
        ApiError { param: Some(param), ..error }.with_hint(hint)
    }

    /// A fault of the server.
    pub fn server(fact: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "synthesis_failed", fact)
    }

    pub fn with_hint(self, hint: impl Into<String>) -> ApiError {
        ApiError { hint: Some(hint.into()), ..self }
    }

    /// OpenAI's type for the status.
    fn kind(&self) -> &'static str {
        match self.status.as_u16() {
            401 => "authentication_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        }
    }
}

impl From<SynthesisError> for ApiError {
    fn from(error: SynthesisError) -> ApiError {
        let mut fact = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            fact.push_str(&format!(": {next}"));
            cause = next.source();
        }
        let (param, code) = match &error {
            SynthesisError::NothingToSay => (Some("input"), "empty_input"),
            SynthesisError::Text { .. } => (Some("input"), "unreadable_input"),
            SynthesisError::Language { .. } => (Some("input"), "unknown_language"),
            SynthesisError::Speaker { .. } => (Some("voice"), "unknown_voice"),
            SynthesisError::SamplingOptions { .. } => (Some("speed"), "invalid_value"),
            _ => (None, "synthesis_failed"),
        };
        let status = match param {
            Some(_) => StatusCode::BAD_REQUEST,
            None => StatusCode::INTERNAL_SERVER_ERROR,
        };
        ApiError { param, hint: error.hint(), ..ApiError::new(status, code, fact) }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        // Many clients show the message alone.
        let message = match &self.hint {
            Some(hint) => format!("{}; {hint}", self.fact),
            None => self.fact.clone(),
        };
        let body = json!({ "error": {
            "message": message,
            "type": self.kind(),
            "param": self.param,
            "code": self.code,
            "hint": self.hint,
        }});
        let mut answer = (self.status, Json(body)).into_response();
        let headers = answer.headers_mut();
        if let Some(time) = self.retry_after {
            headers.insert(RETRY_AFTER, time.as_secs().max(1).into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, axum::http::HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

/// A refusal of the HTTP layer.
pub fn refuse(status: StatusCode, words: &str) -> Response {
    let code = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        _ => "refused",
    };
    ApiError::new(status, code, words).into_response()
}

/// A path with another method.
pub fn wrong_method(allowed: &'static str) -> Response {
    let error = ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this method is not served here",
    );
    ([(ALLOW, allowed)], error.with_hint(format!("use {allowed}"))).into_response()
}
