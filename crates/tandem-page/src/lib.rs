//! Pages about runs: one self-contained HTML file, a live page on loopback, a terminal view.
//!
//! In: run records and answers of `tandem-insight`. Out: pages. Decides nothing about runs, sends no
//! request to another host, cannot change the run.

pub mod prose; // text with inline code
pub mod view; // 1. events -> history of a run
pub mod page; // 2. sections made of blocks
pub mod run_page; // 3. a run -> sections
pub mod profile_page; // 3. a profile -> sections
pub mod runs_page; // 3. several runs -> sections
pub mod render; // 4. sections -> HTML
pub mod follow; // 1. a record that is still being written
pub mod samples; // 1. sound and pictures of a run
pub mod live; // 5. the live page on loopback
pub mod terminal; // 5. the same for a terminal
pub mod error; // errors and hints

pub use error::PageError;
pub use live::{Dashboard, DashboardOptions, PageListener};
pub use page::Page;
pub use run_page::run_page;
pub use tandem_units::Lang;
pub use view::RunView;
