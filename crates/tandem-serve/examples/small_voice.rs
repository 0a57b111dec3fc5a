//! Serves a small untrained voice until standard input ends, for tests of clients without a checkpoint.
//!
//! `cargo run --release -p tandem-serve --example small_voice`, or `xtask/campaigns/serve_load.py --url URL`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::io::{Read, Write};
use std::time::Duration;

fn main() -> std::io::Result<()> {
    let server = support::serve();
    let mut out = std::io::stdout();
    writeln!(out, "{}", server.url())?;
    out.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let stopped = server.stop(Duration::from_secs(30));
    writeln!(out, "{stopped:?}")
}
