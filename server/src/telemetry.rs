//! Log messages and metrics of the process.

mod exposition;
mod log;
mod process;

pub use exposition::{Exposition, serve_metrics};
pub use log::{filter, print_address, print_key, report, start_log};
pub use process::PROCESS;
