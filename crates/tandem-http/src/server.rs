//! A server: its threads, its connections, and its end.
//!
//! In: a bound port and routes. Out: answers, until [`Server::stop`] or the drop. The async threads only
//! move bytes; work that computes belongs on other threads.

use crate::address::Listening;
use crate::connection;
use crate::error::HttpError;
use crate::guard::{Guard, Hosts, Refuse, guard};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The name of its threads.
    pub name: &'static str,
    pub hosts: Hosts,
    pub refuse: Refuse,
    pub limits: Limits,
}

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections; further ones are closed at once.
    pub connections: u32,
    /// Bytes of the body of a request.
    pub body: usize,
    /// Time for the request line and the headers. An idle connection is closed after it.
    pub head: Duration,
    /// Time in which a client must take some of the answer.
    pub stall: Duration,
    /// Whether a connection may carry several requests.
    pub keep_alive: bool,
    /// The longest a connection lasts; an answer under way may take as long again.
    pub lifetime: Option<Duration>,
}

impl Limits {
    /// For a page with a few readers and endless answers.
    pub const PAGE: Limits = Limits {
        connections: 32,
        body: 0,
        head: Duration::from_secs(10),
        stall: Duration::from_secs(10),
        keep_alive: false,
        lifetime: None,
    };
    /// For many short requests.
    pub const API: Limits = Limits {
        connections: 256,
        body: 256 << 10,
        keep_alive: true,
        lifetime: Some(Duration::from_secs(600)),
        ..Limits::PAGE
    };
}

/// A running server. Dropping it closes every connection.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    /// None once stopped.
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    free: Arc<Semaphore>,
    connections: u32,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Every answer was complete.
    Finished,
    /// This many connections were closed before their answer was complete.
    Abandoned(usize),
}

/// Threads that move bytes, and threads that may wait for files.
const ASYNC_THREADS: usize = 2;
const FILE_THREADS: usize = 4;
/// The time that threads get to end.
const THREADS_END: Duration = Duration::from_secs(1);

impl Server {
    pub fn start(
        listening: Listening,
        routes: Router,
        options: ServerOptions,
    ) -> Result<Server, HttpError> {
        let address = listening.address();
        let runtime = Builder::new_multi_thread()
            .worker_threads(ASYNC_THREADS)
            .max_blocking_threads(FILE_THREADS)
            .thread_name(options.name)
            .enable_io()
            .enable_time()
            .build()
            .map_err(HttpError::Threads)?;
        let (stop, stopping) = watch::channel(false);
        let ServerOptions { hosts, refuse, limits, .. } = options;
        let checks = Arc::new(Guard { hosts, refuse, body: limits.body });
        let routes = routes
            .layer(DefaultBodyLimit::max(limits.body))
            .layer(from_fn_with_state(checks, guard));
        let free = Arc::new(Semaphore::new(limits.connections as usize));
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listening.listener)
                .map_err(|source| HttpError::Listen { address, source })?
        };
        runtime.spawn(accept(listener, routes, limits, Arc::clone(&free), stopping));
        Ok(Server { address, runtime: Some(runtime), stop, free, connections: limits.connections })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Accepts no further connection, and waits until every answer under way is complete, no longer
    /// than `grace`.
    pub fn stop(mut self, grace: Duration) -> Stopped {
        self.stop.send_replace(true);
        let Some(runtime) = &self.runtime else { return Stopped::Finished };
        let free = Arc::clone(&self.free);
        let all = self.connections;
        let finished = runtime.block_on(async {
            // Its permits are of no further use.
            tokio::time::timeout(grace, free.acquire_many(all)).await.is_ok()
        });
        let open = all as usize - self.free.available_permits();
        self.end();
        if finished { Stopped::Finished } else { Stopped::Abandoned(open) }
    }

    fn end(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(THREADS_END);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

async fn accept(
    listener: TcpListener,
    routes: Router,
    limits: Limits,
    free: Arc<Semaphore>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        let Ok((stream, _)) = accepted else {
            // For example out of file handles: wait a moment instead of a busy loop.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&free).try_acquire_owned() else {
            continue; // Dropping the stream closes the connection.
        };
        let (routes, stop) = (routes.clone(), stop.clone());
        tokio::spawn(async move {
            connection::serve(stream, routes, limits, stop).await;
            drop(permit);
        });
    }
}

#[cfg(test)]
mod tests;
