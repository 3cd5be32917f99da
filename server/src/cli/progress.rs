//! The progress of a long command, shown on standard error if standard error is a terminal.

use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressStyle};

const KNOWN: &str = "{bar:32} {percent:>3}%  {msg}  {elapsed}";
const UNKNOWN: &str = "{spinner} {msg}  {elapsed}";

/// A progress bar with a count of events, hidden if standard error is not a terminal.
#[derive(Clone, Debug)]
pub struct ProgressIndicator {
    bar: ProgressBar,
    started: Instant,
}

impl ProgressIndicator {
    /// Starts a progress bar, or a spinner if the total is unknown.
    pub fn start(total: Option<u64>) -> Self {
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::new_spinner(),
        };
        let progress = Self { bar, started: Instant::now() };
        progress.style(if total.is_some() { KNOWN } else { UNKNOWN });
        progress.bar.enable_steady_tick(Duration::from_millis(200));
        progress
    }

    /// Sets the total and replaces the spinner with a bar.
    pub fn set_total(&self, total: u64) {
        self.bar.set_length(total);
        self.style(KNOWN);
    }

    /// Shows the read position, the number of processed events, and the events per second.
    pub fn advance(&self, read: u64, events: u64) {
        self.bar.set_position(read);
        let rate = events as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        self.bar.set_message(format!("{} events, {rate:.0}/s", HumanCount(events)));
    }

    /// Shows `what`, the current activity, until `advance` shows the first count of events.
    pub fn show_activity(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Prints a line above the bar, to standard error.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| {
            // Ignores a failed write, so that the command continues without the note.
            let _ = writeln!(io::stderr(), "{text}");
        });
    }

    /// Removes the bar and returns the elapsed time as text for the summary.
    pub fn finish(&self) -> impl fmt::Display + use<> {
        self.bar.finish_and_clear();
        format!("{:.1} s", self.started.elapsed().as_secs_f64())
    }

    fn style(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
    }
}
