//! The live page: a small server on loopback that shows a run in progress.
//!
//! In: a run's directory or record. Out: a page at `http://127.0.0.1:PORT/` that updates itself,
//! and the same values for Prometheus at `/metrics`. It follows the record on the disk
//! ([`crate::follow`]), on its own threads, so the run is not affected. Never: an address other
//! than loopback, an answer to a page of another host, a way to change anything, a file outside of
//! the run's `samples/`. HTTP is `tandem-http`'s.

mod board; // shared state
mod document; // the page and its updates
mod range; // parts of a file
mod routes; // routes

use crate::error::PageError;
use crate::follow::Follower;
use crate::samples::Samples;
use board::Board;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tandem_http::guard::plain;
use tandem_http::{Hosts, Limits, Listening, Server, ServerOptions};
use tandem_units::Lang;

/// A live page that is open. Dropping it closes the page.
#[derive(Debug)]
pub struct Dashboard {
    server: Server,
    board: Arc<Board>,
    follow: Option<JoinHandle<()>>,
}

/// A bound port on loopback, not yet served. A long run binds it before it starts, so that a port
/// in use is an error at once.
#[derive(Debug)]
pub struct PageListener(Listening);

impl PageListener {
    /// The port where none is named.
    pub const PORT: u16 = 7878;

    /// Takes a port on loopback; 0 for any that is free.
    pub fn take(port: u16) -> Result<PageListener, PageError> {
        Ok(PageListener(Listening::bind((Ipv4Addr::LOCALHOST, port).into())?))
    }
}

/// How a live page is shown.
#[derive(Clone, Debug)]
pub struct DashboardOptions {
    /// The language of the page; readers may choose the other one.
    pub lang: Lang,
    /// What the page calls the run.
    pub name: String,
    /// How often the record is polled.
    pub poll_every: Duration,
}

impl DashboardOptions {
    /// Default options.
    pub fn new(name: impl Into<String>) -> DashboardOptions {
        let poll_every = Duration::from_millis(500);
        DashboardOptions { lang: Lang::En, name: name.into(), poll_every }
    }
}

impl Dashboard {
    /// Opens the page of a run: its directory or its record.
    pub fn open(
        door: PageListener,
        run: &Path,
        options: DashboardOptions,
    ) -> Result<Dashboard, PageError> {
        let follower = Follower::start(run)?;
        let samples = Samples::of_run(&follower.directory());
        let poll_every = options.poll_every;
        let board = Arc::new(Board::new(follower.view(), samples, options));
        let following = Arc::clone(&board);
        let follow = std::thread::Builder::new()
            .name("tandem-follow".into())
            .spawn(move || following.follow(follower, poll_every))
            .map_err(|source| PageError::Thread { what: "follows the run", source })?;
        let options = ServerOptions {
            name: "tandem-page",
            hosts: Hosts::loopback(),
            refuse: plain,
            limits: Limits::PAGE,
        };
        let server = Server::start(door.0, routes::routes(Arc::clone(&board)), options);
        let server = server.inspect_err(|_| board.close())?;
        Ok(Dashboard { server, board, follow: Some(follow) })
    }

    pub fn url(&self) -> String {
        self.server.url()
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.board.close();
        if let Some(follow) = self.follow.take() {
            // A thread that panicked has nothing left to join.
            let _ = follow.join();
        }
    }
}

#[cfg(test)]
mod tests;
