//! The function that writes to the server's log.

use std::cell::RefCell;
use std::sync::Arc;

use rhai::Engine;

use super::registration::{Refused, function, thrown};
use crate::script::guard::may_log;

/// The maximum length of a log line, in characters.
const MAX_CHARS: usize = 1_000;
const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];

pub(super) fn register(engine: &mut Engine, plugin: &str) {
    let name: Arc<str> = plugin.into();
    let plugin = name.clone();
    function(
        "log",
        &["level: string", "text: string", "()"],
        "Writes a line to the server's log. Levels are \"debug\", \"info\", \"warn\" and \"error\". Only the first \
         100 lines of a call are logged.",
        r#"log("debug", "seen") == ()"#,
    )
    .register_into_engine(engine, move |level: &str, text: &str| log(&plugin, level, text));
    let plugin = name.clone();
    engine.on_print(move |text| drop(log(&plugin, "debug", text)));
    engine.on_debug(move |text, _, _| drop(log(&name, "debug", text)));
}

thread_local! {
    /// The lines that calls on this thread have logged. `None` if the lines are not captured.
    static CAPTURED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Calls `run`, and returns the result with the lines that scripts logged on this thread during the call. These lines
/// do not reach the server's log.
pub(in crate::script) fn capture<T>(run: impl FnOnce() -> T) -> (T, Vec<String>) {
    CAPTURED.set(Some(Vec::new()));
    let result = run();
    (result, CAPTURED.take().unwrap_or_default())
}

fn log(plugin: &str, level: &str, text: &str) -> Result<(), Refused> {
    let text: String = text.chars().take(MAX_CHARS).collect();
    if !may_log() {
        return Ok(());
    }
    if !LEVELS.contains(&level) {
        let other: String = level.chars().take(20).collect();
        return Err(thrown(format!("unknown log level '{other}'; allowed are debug, info, warn and error")));
    }
    if captured(level, &text) {
        return Ok(());
    }
    match level {
        "debug" => tracing::debug!(plugin, text, "message of a plugin"),
        "info" => tracing::info!(plugin, text, "message of a plugin"),
        "warn" => tracing::warn!(plugin, text, "message of a plugin"),
        _ => tracing::error!(plugin, text, "message of a plugin"),
    }
    Ok(())
}

/// Adds a line to the captured lines. Returns `false` if the lines are not captured.
fn captured(level: &str, text: &str) -> bool {
    CAPTURED.with_borrow_mut(|lines| {
        let Some(lines) = lines else { return false };
        lines.push(format!("{level}: {text}"));
        true
    })
}
