//! The live page: a small server on loopback that shows a run in progress.
//!
//! In: a run's directory or record. Out: a page at `http://127.0.0.1:PORT/` that updates itself,
//! and the same values for Prometheus at `/metrics`. It follows the record on the disk
//! ([`crate::follow`]), on its own threads, so the run is not affected. Never: an address other
//! than loopback, an answer to a page of another host, a way to change anything, a file outside of
//! the run's `samples/`.

mod board; // shared state
mod document; // the page and its updates
mod http; // requests and responses
mod routes; // routes

use crate::error::PageError;
use crate::follow::Follower;
use crate::lang::Lang;
use crate::samples::Samples;
use board::Board;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A live page that is open. Dropping it closes the page.
#[derive(Debug)]
pub struct Dashboard {
    address: SocketAddr,
    board: Arc<Board>,
    threads: Vec<JoinHandle<()>>,
}

/// A bound port on loopback, not yet served. A long run binds it before it starts, so that a port
/// in use is an error at once.
#[derive(Debug)]
pub struct Doorway {
    listener: TcpListener,
    address: SocketAddr,
}

impl Doorway {
    /// The port where none is named.
    pub const PORT: u16 = 7878;

    /// Takes a port on loopback; 0 for any that is free.
    pub fn take(port: u16) -> Result<Doorway, PageError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => PageError::PortTaken { address },
            _ => PageError::Listen { address, source },
        })?;
        let address =
            listener.local_addr().map_err(|source| PageError::Listen { address, source })?;
        Ok(Doorway { listener, address })
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

/// The most clients at once; further connections are closed.
const MOST_READERS: usize = 32;

impl Dashboard {
    /// Opens the page of a run: its directory or its record.
    pub fn open(
        door: Doorway,
        run: &Path,
        options: DashboardOptions,
    ) -> Result<Dashboard, PageError> {
        let follower = Follower::start(run)?;
        let Doorway { listener, address } = door;
        let samples = Samples::of_run(&follower.directory());
        let poll_every = options.poll_every;
        let board = Arc::new(Board::new(follower.view(), samples, options));
        let following = Arc::clone(&board);
        let follow = thread("tandem-follow", "follows the run", move || {
            following.follow(follower, poll_every);
        })?;
        let serving = Arc::clone(&board);
        let serve = thread("tandem-page", "serves the page", move || serve(&listener, &serving))?;
        Ok(Dashboard { address, board, threads: vec![follow, serve] })
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.board.close();
        // A connection wakes the listener; clients see the end at their next poll.
        let _ = std::net::TcpStream::connect_timeout(&self.address, Duration::from_millis(200));
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to join.
            let _ = thread.join();
        }
    }
}

fn thread(
    name: &str,
    what: &'static str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, PageError> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map_err(|source| PageError::Thread { what, source })
}

fn serve(listener: &TcpListener, board: &Arc<Board>) {
    for stream in listener.incoming() {
        if board.is_closed() {
            return;
        }
        let Ok(stream) = stream else {
            // For example out of file handles: wait a moment instead of a busy loop.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        // Each reader counts while this lives.
        let reader = Arc::clone(board);
        let answer = move || {
            let mut stream = stream;
            // The client may have disconnected: nothing to do.
            let _ = routes::answer(&mut stream, &reader);
        };
        if Arc::strong_count(board) > MOST_READERS + FIXED_HOLDERS {
            continue; // Dropping the answer closes the connection.
        }
        // Where no thread can be had, the connection is closed the same way.
        let _ = std::thread::Builder::new().name("tandem-reader".into()).spawn(answer);
    }
}

/// Owners of the board that are not clients: the dashboard, the follower, the server.
const FIXED_HOLDERS: usize = 3;

#[cfg(test)]
mod tests;
