//! Lines for the server's log.

use std::sync::Arc;

use rhai::Engine;

use super::{Refused, function, thrown};
use crate::script::guard::may_log;

/// Characters of a line that are kept.
const LONGEST: usize = 1_000;

pub(super) fn register(engine: &mut Engine, plugin: &str) {
    let name: Arc<str> = plugin.into();
    let plugin = name.clone();
    function(
        "log",
        &["level: string", "text: string", "()"],
        "Writes a line into the server's log, as \"debug\", \"info\", \"warn\" or \"error\"; of a call the first 100.",
        r#"log("debug", "seen") == ()"#,
    )
    .register_into_engine(engine, move |level: &str, text: &str| log(&plugin, level, text));
    let plugin = name.clone();
    engine.on_print(move |text| drop(log(&plugin, "debug", text)));
    engine.on_debug(move |text, _, _| drop(log(&name, "debug", text)));
}

fn log(plugin: &str, level: &str, text: &str) -> Result<(), Refused> {
    let text: String = text.chars().take(LONGEST).collect();
    if !may_log() {
        return Ok(());
    }
    match level {
        "debug" => tracing::debug!(plugin, text, "a plugin says"),
        "info" => tracing::info!(plugin, text, "a plugin says"),
        "warn" => tracing::warn!(plugin, text, "a plugin says"),
        "error" => tracing::error!(plugin, text, "a plugin says"),
        other => {
            let other: String = other.chars().take(20).collect();
            return Err(thrown(format!("log knows debug, info, warn and error, not '{other}'")));
        }
    }
    Ok(())
}
