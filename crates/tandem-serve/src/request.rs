//! What a client asks for: OpenAI's JSON -> a request that is known to be sensible.
//!
//! In: the body of `POST /v1/audio/speech`. Out: [`SpeechRequest`], or a refusal that names the field.
//! Beyond OpenAI's fields: `language`, `seed` and `stream`. Fields that would be ignored are refused.

use crate::api_error::ApiError;
use crate::encode::Format;
use crate::voices::Voices;
use axum::http::StatusCode;
use serde::Deserialize;
use tandem_model::synthesis::text::{SpeakerChoice, SpeechOptions};
use tandem_text::Language;
use tandem_units::Seed;

/// A request to synthesize.
#[derive(Clone, Debug)]
pub struct SpeechRequest {
    pub text: String,
    pub speaker: SpeakerChoice,
    pub options: SpeechOptions,
    pub format: Format,
    /// Whether each sentence is sent as it is ready.
    pub stream: bool,
}

/// What requests are compared with.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The name in `/v1/models`.
    pub model: String,
    pub voices: Voices,
    /// For what a request leaves out.
    pub defaults: SpeechOptions,
    /// The longest text, in characters.
    pub max_text: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    model: String,
    input: String,
    voice: String,
    response_format: Option<String>,
    speed: Option<f32>,
    instructions: Option<String>,
    stream_format: Option<String>,
    language: Option<String>,
    seed: Option<u64>,
    stream: Option<bool>,
}

impl SpeechRequest {
    pub fn parse(body: &[u8], offer: &Offer) -> Result<SpeechRequest, ApiError> {
        let body: Body = serde_json::from_slice(body).map_err(|error| {
            let fact = format!("the body is not a speech request: {error}");
            ApiError::new(StatusCode::BAD_REQUEST, "invalid_json", fact)
                .with_hint("send JSON with `model`, `input` and `voice`")
        })?;
        if body.model != offer.model {
            let fact = format!("there is no model `{}`", body.model);
            let error =
                ApiError::param("model", "model_not_found", fact, format!("use `{}`", offer.model));
            return Err(ApiError { status: StatusCode::NOT_FOUND, ..error });
        }
        let speaker = offer.voices.find(&body.voice).ok_or_else(|| {
            let fact = format!("there is no voice `{}`", body.voice);
            ApiError::param(
                "voice",
                "unknown_voice",
                fact,
                format!("use one of {}", offer.voices.names()),
            )
        })?;
        let mut options = offer.defaults;
        if let Some(speed) = body.speed {
            if !(0.25..=4.0).contains(&speed) {
                let fact = format!("the speed is {speed}");
                return Err(ApiError::param(
                    "speed",
                    "invalid_value",
                    fact,
                    "use a number from 0.25 to 4",
                ));
            }
            options.sampling.speed = speed;
        }
        if let Some(seed) = body.seed {
            options.sampling.seed = Seed(seed);
        }
        if let Some(tag) = &body.language {
            options.language = Some(language(tag, &offer.voices)?);
        }
        check_unsupported(&body)?;
        Ok(SpeechRequest {
            format: format(body.response_format.as_deref())?,
            stream: body.stream.unwrap_or(true),
            speaker: speaker.clone(),
            options,
            text: checked_text(body.input, offer.max_text)?,
        })
    }
}

fn checked_text(text: String, max_text: usize) -> Result<String, ApiError> {
    let length = text.chars().count();
    if length > max_text {
        let fact = format!("the text has {length} characters");
        let hint = format!("send at most {max_text} characters at a time");
        return Err(ApiError::param("input", "input_too_long", fact, hint));
    }
    if text.trim().is_empty() {
        return Err(ApiError::param(
            "input",
            "empty_input",
            "the text is empty",
            "write at least one word",
        ));
    }
    Ok(text)
}

fn format(named: Option<&str>) -> Result<Format, ApiError> {
    let Some(named) = named else { return Ok(Format::Wav) };
    named.parse().map_err(|()| {
        let fact = format!("the format `{named}` is not supported");
        ApiError::param("response_format", "unknown_format", fact, "use wav, pcm or flac")
    })
}

fn language(tag: &str, voices: &Voices) -> Result<Language, ApiError> {
    let known = voices.languages.iter().any(|known| known == tag);
    tag.parse().ok().filter(|_| known).ok_or_else(|| {
        let fact = format!("this model does not speak `{tag}`");
        ApiError::param(
            "language",
            "unknown_language",
            fact,
            format!("it speaks {}", voices.languages.join(", ")),
        )
    })
}

/// Fields of OpenAI that have no meaning here: better refused than ignored.
fn check_unsupported(body: &Body) -> Result<(), ApiError> {
    if body.instructions.as_ref().is_some_and(|text| !text.trim().is_empty()) {
        let fact = "this model takes no instructions";
        return Err(ApiError::param("instructions", "unsupported", fact, "leave the field out"));
    }
    match body.stream_format.as_deref() {
        None | Some("audio") => Ok(()),
        Some(other) => {
            let fact = format!("the stream format `{other}` is not supported");
            Err(ApiError::param(
                "stream_format",
                "unsupported",
                fact,
                "use `audio`, which is streamed by sentence",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    pub(crate) fn offer() -> Offer {
        Offer {
            model: "run".into(),
            voices: Voices::test(),
            defaults: SpeechOptions::default(),
            max_text: 20,
        }
    }

    fn parse(changes: Value) -> Result<SpeechRequest, ApiError> {
        let mut body = json!({ "model": "run", "input": "Hello.", "voice": "emma" });
        for (key, value) in changes.as_object().expect("fields") {
            body[key] = value.clone();
        }
        SpeechRequest::parse(body.to_string().as_bytes(), &offer())
    }

    #[test]
    fn a_request_has_openai_s_defaults_except_the_format() {
        let request = parse(json!({})).unwrap();
        assert_eq!((request.format, request.stream), (Format::Wav, true));
        assert_eq!(request.options, SpeechOptions::default());
        assert!(matches!(request.speaker, SpeakerChoice::Known(name) if name == "emma"));
        let request = parse(json!({
            "response_format": "flac", "speed": 2, "seed": 7, "language": "fa",
            "stream_format": "audio", "instructions": "", "stream": false,
        }));
        let request = request.unwrap();
        assert_eq!((request.format, request.stream), (Format::Flac, false));
        assert_eq!(request.options.sampling.speed, 2.0);
        assert_eq!(request.options.sampling.seed, Seed(7));
        assert_eq!(request.options.language.map(|language| language.tag()), Some("fa"));
    }

    #[test]
    fn wrong_fields_are_named_with_a_hint() {
        let refused = [
            (json!({ "model": "tts-1" }), 404, "model", "use `run`"),
            (json!({ "voice": "alloy" }), 400, "voice", "use one of default, emma"),
            (json!({ "input": " \n" }), 400, "input", "at least one word"),
            (json!({ "input": "x".repeat(21) }), 400, "input", "at most 20 characters"),
            (json!({ "response_format": "mp3" }), 400, "response_format", "wav, pcm or flac"),
            (json!({ "speed": 0.1 }), 400, "speed", "0.25 to 4"),
            (json!({ "language": "de" }), 400, "language", "en, fa"),
            (json!({ "language": "klingon" }), 400, "language", "en, fa"),
            (json!({ "instructions": "Whisper" }), 400, "instructions", "leave the field out"),
            (json!({ "stream_format": "sse" }), 400, "stream_format", "`audio`"),
        ];
        for (changes, status, param, hint) in refused {
            let error = parse(changes).unwrap_err();
            assert_eq!((error.status.as_u16(), error.param), (status, Some(param)), "{error:?}");
            assert!(error.hint.as_ref().unwrap().contains(hint), "{error:?}");
        }
    }

    #[test]
    fn a_body_that_is_no_request_is_refused() {
        for changes in [json!({ "voice": 7 }), json!({ "unknown": 1 }), json!({ "speed": "fast" })]
        {
            assert_eq!(parse(changes).unwrap_err().code, "invalid_json");
        }
        for body in ["", "{", "[]", "null", "{\"model\":\"run\"}", "\u{0}"] {
            let error = SpeechRequest::parse(body.as_bytes(), &offer()).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (400, "invalid_json"), "{body}");
        }
    }
}
