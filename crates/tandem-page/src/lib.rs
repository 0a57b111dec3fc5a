//! Pages about runs: one self-contained HTML file, a live page on loopback, a terminal view.
//!
//! In: run records and answers of `tandem-insight`. Out: pages. Never: a judgement of its own, a
//! request to another host, a way to change the run.

pub mod lang; // English or Persian: words and numbers
pub mod prose; // words with commands in between
pub mod view; // 1. events -> the course of a run
pub mod plot; // 2. plots as numbers
pub mod axis; // 2. round labels
pub mod page; // 2. sections made of blocks
pub mod run_page; // 3. a run -> sections
pub mod render; // 4. sections -> HTML

pub use lang::Lang;
pub use page::Page;
pub use run_page::run_page;
pub use view::RunView;
