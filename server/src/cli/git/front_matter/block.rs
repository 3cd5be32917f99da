//! Finds front matter at the top of a file: between two marker lines, or as a JSON object.

use super::entry::{Block, FrontMatterFormat, Warning};
use super::{from_json, from_yaml};

/// Returns the front matter at the top of a file. The first line determines the format.
pub fn find<'a>(text: &'a str, warnings: &mut Vec<Warning>) -> Option<Block<'a>> {
    if text.starts_with('{') {
        return find_object(text, warnings);
    }
    let opening = text.split_inclusive('\n').next()?;
    let first = opening.trim_end();
    let is_ambiguous = first == "---";
    let (format, closing): (FrontMatterFormat, &[&str]) = match first {
        "---" => (FrontMatterFormat::Yaml, &["---", "..."]),
        "+++" => (FrontMatterFormat::Toml, &["+++"]),
        ";;;" => (FrontMatterFormat::Json, &[";;;"]),
        _ => (format_of(first.strip_prefix("---")?.trim(), warnings)?, &["---"]),
    };
    let Some((inside, body)) = split_at_line(text.get(opening.len()..)?, closing) else {
        let begins = text.get(opening.len()..).is_some_and(from_yaml::begins_with_name);
        if !is_ambiguous || begins {
            let closing = closing.first().unwrap_or(&first);
            let reason = format!("the front matter stays in the body: no line with only `{closing}` ends it");
            warnings.push(Warning { line: 1, reason });
        }
        return None;
    };
    Some(Block { format, text: inside, first_line: 2, body, is_ambiguous })
}

/// Returns the format whose name follows `---`, or `None` if no supported format has this name. Adds a warning if the
/// name belongs to a known format that is not supported, such as `js`.
fn format_of(name: &str, warnings: &mut Vec<Warning>) -> Option<FrontMatterFormat> {
    match name.to_ascii_lowercase().as_str() {
        "yaml" | "yml" => Some(FrontMatterFormat::Yaml),
        "toml" => Some(FrontMatterFormat::Toml),
        "json" => Some(FrontMatterFormat::Json),
        "js" | "javascript" | "coffee" | "cson" => {
            let reason = format!("the front matter stays in the body: expected yaml, toml or json, found `{name}`");
            warnings.push(Warning { line: 1, reason });
            None
        }
        _ => None,
    }
}

/// Splits a text at the first line that is one of the lines in `closing`. Returns the text before this line, and the
/// text after this line without leading line breaks.
fn split_at_line<'a>(text: &'a str, closing: &[&str]) -> Option<(&'a str, &'a str)> {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if closing.contains(&line.trim_end()) {
            let body = text.get(end + line.len()..)?;
            return Some((text.get(..end)?, body.trim_start_matches(['\r', '\n'])));
        }
        end += line.len();
    }
    None
}

/// Returns the JSON object at the top of a file. Only white space may follow the object on its last line, because
/// templates and attributes also begin with `{`.
fn find_object<'a>(text: &'a str, warnings: &mut Vec<Warning>) -> Option<Block<'a>> {
    let inside = text.get(1..)?.trim_start();
    if !inside.starts_with(['"', '}']) {
        return None;
    }
    match from_json::end_of_object(text) {
        Ok(end) => {
            let (object, rest) = text.split_at_checked(end)?;
            let last_line = rest.split_inclusive('\n').next().unwrap_or_default();
            if !last_line.trim().is_empty() {
                return None;
            }
            let body = rest.get(last_line.len()..)?.trim_start_matches(['\r', '\n']);
            Some(Block { format: FrontMatterFormat::Json, text: object, first_line: 1, body, is_ambiguous: false })
        }
        Err(fault) => {
            warnings.push(fault);
            None
        }
    }
}
