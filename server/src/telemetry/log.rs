//! The output of the program: the log on standard error, and the first lines on standard output.
//!
//! With the format `json`, every line is a JSON object, including the lines about a panic or a failed start. The owner
//! key is written to standard output only.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::panic::PanicHookInfo;

use anyhow::Context as _;
use serde_json::json;
use tracing_subscriber::EnvFilter;

use crate::config::{Format, Log};
use crate::metric;

/// Starts the log on standard error. The log includes panics.
pub fn start_log(log: &Log) -> anyhow::Result<()> {
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter(log)?).with_writer(std::io::stderr);
    // Does not report failed writes of log messages. If the disk is full, the report to the same stream would fail as
    // well and end the request.
    let subscriber = subscriber.log_internal_errors(false).with_ansi(is_colored());
    // If logging is already initialized in this process, the first subscriber stays.
    let _ = match log.format {
        Format::Text => subscriber.try_init(),
        Format::Json => subscriber.json().try_init(),
    };
    std::panic::set_hook(Box::new(note_panic));
    Ok(())
}

/// Returns the filter of log messages. Fails if the setting is invalid.
pub fn filter(log: &Log) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(&log.filter).with_context(|| format!("log.filter '{}' is invalid", log.filter))
}

/// Returns whether messages are colored: standard error must be a terminal, and `NO_COLOR` must be unset or empty.
fn is_colored() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn note_panic(panic: &PanicHookInfo<'_>) {
    metric::PANICS.add(&[], 1);
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let message = panic.payload_as_str().unwrap_or("the panic has no message");
    let current = std::thread::current();
    let thread = current.name().unwrap_or("unnamed");
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| tracing::field::display(backtrace));
    tracing::error!(location, thread, backtrace, "panicked: {message}");
}

/// Writes the error that ended the program to standard error. The log need not have started.
pub fn report(format: Format, error: &anyhow::Error) {
    let line = match format {
        Format::Text => format!("error: {error:#}\n"),
        Format::Json => {
            let now = jiff::Timestamp::now().to_string();
            let fields = json!({"message": format!("{error:#}")});
            format!("{}\n", json!({"timestamp": now, "level": "ERROR", "fields": fields, "target": "foldwork"}))
        }
    };
    // Ignores a failed write, because there is no other place to report the error.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// Prints the owner key of a first start to standard output. The log never contains the key.
pub fn print_key(format: Format, key: &str) -> std::io::Result<()> {
    let message = format!("owner key (shown once): {key}");
    print(&match format {
        Format::Text => message,
        Format::Json => json!({"message": message, "owner_key": key}).to_string(),
    })
}

/// Reports the address of the server and the address of its metrics: on standard output or, with the format `json`, in
/// the log.
pub fn print_address(format: Format, address: SocketAddr, metrics: Option<SocketAddr>) -> std::io::Result<()> {
    let metrics = metrics.map(|metrics| (metrics, format!("metrics on http://{metrics}/metrics")));
    // Prints the server's line last, because a program that waits for the server may stop reading after this line.
    for (address, line) in metrics.into_iter().chain([(address, format!("listening on http://{address}"))]) {
        match format {
            Format::Text => print(&line)?,
            Format::Json => tracing::info!(%address, "{line}"),
        }
    }
    Ok(())
}

fn print(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// A log in memory.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_is_logged_as_one_line_of_json() {
        let memory = Memory::default();
        let writer = memory.clone();
        let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(note_panic));
            let caught = std::panic::catch_unwind(|| panic!("two\nlines"));
            std::panic::set_hook(before);
            assert!(caught.is_err());
        });
        let text = String::from_utf8(memory.0.lock().clone()).expect("a text");
        let line: serde_json::Value = serde_json::from_str(text.trim_end()).expect("one object");
        assert_eq!(line["fields"]["message"], "panicked: two\nlines");
        assert!(line["fields"]["location"].as_str().is_some_and(|place| place.contains("log.rs")), "{line}");
        assert!(!text.trim_end().contains('\n'), "{text}");
    }
}
