//! Front matter: the data at the top of a Markdown file, in YAML, TOML or JSON.

mod block;
mod entry;
mod from_json;
mod from_toml;
mod from_yaml;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::{Map, Value};

pub use self::entry::Warning;
use self::entry::{Block, FrontMatterEntry, FrontMatterFormat, repeated};

/// The maximum number of warnings from reading the front matter of one file.
const MAX_WARNINGS: usize = 8;

/// The front matter of a file.
#[derive(Debug, Default)]
pub struct FrontMatter {
    /// The values by name, in the order of the file. The values of invalid TOML statements come last.
    pub values: Map<String, Value>,
    /// Maps each top-level name to its line in the file.
    lines: HashMap<String, usize>,
}

impl FrontMatter {
    /// Splits a file into its front matter and its body. Text that only resembles front matter belongs to the body.
    pub fn split<'a>(text: &'a str, warnings: &mut Vec<Warning>) -> (Self, &'a str) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut found = Vec::new();
        let split = block::find(text, &mut found)
            .and_then(|block| Some((Self::new(entries(&block, &mut found)?, &mut found), block.body)))
            .unwrap_or_else(|| (Self::default(), text));
        if found.len() > MAX_WARNINGS {
            let more = found.len() - MAX_WARNINGS + 1;
            found.truncate(MAX_WARNINGS);
            if let Some(last) = found.last_mut() {
                last.reason = format!("the front matter has {more} more warnings, which are not shown");
            }
        }
        warnings.append(&mut found);
        split
    }

    /// Returns the front matter with the values that are recorded in an article. The lines of the names are unknown.
    pub fn of_values(values: Map<String, Value>) -> Self {
        Self { values, ..Self::default() }
    }

    /// Returns the value with a name. If no name matches exactly, ignores the case of ASCII letters. A `.` in `name`
    /// separates the names of nested values. Returns `None` if there is no such value or if the value is null.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let mut names = name.split('.');
        let first = member(&self.values, names.next()?);
        names.try_fold(first?, |value, name| member(value.as_object()?, name)).filter(|value| !value.is_null())
    }

    /// Returns the line of the first part of a dotted name in the file. If no name matches exactly, ignores the case of
    /// ASCII letters. Returns 1 if the line is unknown.
    pub fn line(&self, name: &str) -> usize {
        let first = name.split('.').next().unwrap_or(name);
        let found = self
            .lines
            .get(first)
            .or_else(|| self.lines.iter().find(|(name, _)| name.eq_ignore_ascii_case(first)).map(|(_, line)| line));
        found.copied().unwrap_or(1)
    }

    fn new(entries: Vec<FrontMatterEntry>, warnings: &mut Vec<Warning>) -> Self {
        let mut front = Self::default();
        for FrontMatterEntry { name, line, value } in entries {
            if front.values.contains_key(&name) {
                warnings.push(repeated(&name, line));
            } else {
                front.lines.insert(name.clone(), line);
                front.values.insert(name, value);
            }
        }
        front
    }
}

fn member<'a>(values: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let in_any_case = || values.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    values.get(name).or_else(in_any_case)
}

/// Returns the entries of front matter, or `None` if the text belongs to the body.
fn entries(block: &Block<'_>, warnings: &mut Vec<Warning>) -> Option<Vec<FrontMatterEntry>> {
    match block.format {
        FrontMatterFormat::Yaml => from_yaml::read(block, warnings),
        FrontMatterFormat::Toml => from_toml::read(block, warnings),
        FrontMatterFormat::Json => from_json::read(block, warnings),
    }
}
