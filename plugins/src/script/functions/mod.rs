//! The host functions, which scripts can call in addition to the language's own functions. Each function is documented
//! by a sentence and an example.
//!
//! Host functions have no side effects apart from log lines. The interpreter cannot interrupt a host function, so slow
//! functions limit the size of their arguments or check the limits of the call while they run. Functions that return
//! lists return `#{items, more}` if the caller limits the number of items.

mod file_names;
mod html_links;
mod json;
mod language;
mod listing;
mod log;
mod markdown;
mod page_links;
mod page_references;
mod path;
mod pattern;
mod registration;
mod site_tags;
mod text;
mod time;

use rhai::Engine;

pub(super) use json::to_json;
pub(super) use log::capture;
pub(super) use registration::{Refused, thrown, too_large};

/// Registers all host functions for a plugin.
pub(super) fn register(engine: &mut Engine, plugin: &str) {
    text::register(engine);
    markdown::register(engine);
    page_links::register(engine);
    pattern::register(engine);
    json::register(engine);
    time::register(engine);
    path::register(engine);
    log::register(engine, plugin);
}
