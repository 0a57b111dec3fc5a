//! One connection, from its first byte to its last, with a limit for everything that can be slow.
//!
//! In: a TCP stream and the routes. Out: nothing; errors of a connection are of no interest here. A
//! client that sends its headers slowly, or does not read its answer, is disconnected.

use crate::server::Limits;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncReadExt, copy, sink};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_io_timeout::TimeoutStream;

/// Size limit of the request line and headers.
const HEAD: usize = 16 << 10;
/// How much of a refused request is still read, and for how long.
const REST: u64 = 1 << 20;
const REST_TIME: Duration = Duration::from_millis(500);

/// Serves a connection until it ends, or until `stop` says so and its answer is complete.
pub(crate) async fn serve(
    stream: TcpStream,
    routes: Router,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    // Sound and events go out as they are ready.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.stall));
    let io = TokioIo::new(Box::pin(stream));
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_header_size(HEAD)
        .max_buf_size(HEAD.max(64 << 10))
        .keep_alive(limits.keep_alive)
        .serve_connection(io, TowerToHyperService::new(routes));
    let mut end = limits.lifetime.map(|lifetime| Instant::now() + lifetime);
    let mut ending = *stop.borrow();
    if ending {
        Pin::new(&mut connection).graceful_shutdown();
    }
    loop {
        let lifetime_over = async {
            match end {
                Some(end) => sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = Pin::new(&mut connection) => break,
            changed = stop.changed(), if !ending => {
                // The server itself is gone: nobody waits for the answer to be complete.
                if changed.is_err() { return; }
                ending = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            () = lifetime_over => {
                // The answer under way gets as much time again.
                match limits.lifetime {
                    Some(lifetime) if !ending => end = Some(Instant::now() + lifetime),
                    _ => return,
                }
                ending = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    }
    // Closing with unread bytes would reset the connection and lose the answer to a refused request.
    let mut stream = connection.into_parts().io.into_inner();
    let rest = stream.as_mut();
    let mut rest = rest.take(REST);
    let _ = timeout(REST_TIME, copy(&mut rest, &mut sink())).await;
}
