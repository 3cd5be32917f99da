//! The progress of a long command, on standard error and only for a person who looks at it.

use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressStyle};

const KNOWN: &str = "{bar:32} {percent:>3}%  {msg}  {elapsed}";
const UNKNOWN: &str = "{spinner} {msg}  {elapsed}";

/// A bar with a count of events beside it; hidden where standard error is no terminal.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// Starts a bar; without a total it only shows that something happens.
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

    /// Shows a bar of this length from now on.
    pub fn set_total(&self, total: u64) {
        self.bar.set_length(total);
        self.style(KNOWN);
    }

    /// Shows how far the source is read, and how many events are done.
    pub fn advance(&self, read: u64, events: u64) {
        self.bar.set_position(read);
        let rate = events as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        self.bar.set_message(format!("{} events, {rate:.0}/s", HumanCount(events)));
    }

    /// Shows what is being done, where no event is counted yet.
    pub fn say(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Writes a line above the bar, on standard error.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| {
            // A note that cannot be shown is no reason to stop the work.
            let _ = writeln!(io::stderr(), "{text}");
        });
    }

    /// Takes the bar away and returns the time since the start, as a closing line says it.
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
