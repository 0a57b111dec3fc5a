//! A speech server: opened with voices and a port, stopped within a limit.

use crate::answer_memory::{AnswerMemory, PER_CLIENT};
use crate::error::ServeError;
use crate::metrics::Stats;
use crate::request::Offer;
use crate::routes::{App, REFUSE, routes};
use crate::token::Token;
use crate::workers::{Speech, Workers};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tandem_http::{Hosts, Limits, Listening, Server, ServerOptions, Stopped};
use tandem_page::Lang;
use tandem_units::Bytes;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    pub offer: Offer,
    /// Requests that wait; further ones are refused.
    pub queue: usize,
    /// Bytes of all answers that clients have not taken yet.
    pub answer_memory: Bytes,
    pub token: Option<Token>,
    pub hosts: Hosts,
    pub limits: Limits,
    /// The language of the page; readers may choose the other one.
    pub lang: Lang,
}

/// A running server. Dropping it closes every connection.
pub struct SpeechServer {
    http: Server,
    app: Arc<App>,
}

impl SpeechServer {
    /// One worker for each of `speech`.
    pub fn start(
        listening: Listening,
        speech: Vec<Box<dyn Speech>>,
        options: ServeOptions,
    ) -> Result<SpeechServer, ServeError> {
        let ServeOptions { offer, queue, answer_memory, token, hosts, limits, lang } = options;
        let stats = Arc::new(Stats::default());
        // A part has at least one character.
        let memory = AnswerMemory::new(PER_CLIENT, answer_memory);
        let workers = Workers::start(speech, queue, offer.max_text, &memory, Arc::clone(&stats))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let app = Arc::new(App {
            offer,
            workers,
            stats,
            token,
            created: now.as_secs(),
            lang,
            body: limits.body,
            body_time: limits.head,
        });
        let options = ServerOptions { name: "tandem-serve", hosts, refuse: REFUSE, limits };
        let http = Server::start(listening, routes(Arc::clone(&app)), options)?;
        Ok(SpeechServer { http, app })
    }

    pub fn url(&self) -> String {
        self.http.url()
    }

    /// Accepts no further request and completes those under way, no longer than `grace`.
    pub fn stop(self, grace: Duration) -> Stopped {
        let stopped = self.http.stop(grace);
        self.app.workers.close();
        if stopped == Stopped::Finished {
            self.app.workers.join();
        }
        stopped
    }
}

#[cfg(test)]
mod tests;
