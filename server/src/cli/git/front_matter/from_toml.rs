//! Reads front matter in TOML. Statements that are not valid are kept as text.

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::entry::{Block, Budget, FrontMatterEntry, MAX_DEPTH, Warning, kept_as_text, shown, too_deep};

/// The maximum number of invalid statements in front matter. The number is limited, because the text is parsed again
/// after each invalid statement is removed.
const MAX_FAULTS: usize = 20;
/// The maximum size of a name in bytes. An invalid statement with a longer name is left out instead of kept as text.
const MAX_NAME: usize = 1_000;

/// Returns the entries of front matter. Up to [`MAX_FAULTS`] invalid statements are tolerated. The value of an invalid
/// statement is kept as text, or the statement is left out. Both cases cause a warning. If the rest is still not valid
/// TOML, adds a warning and returns `None`.
pub fn read(block: &Block<'_>, warnings: &mut Vec<Warning>) -> Option<Vec<FrontMatterEntry>> {
    let mut source = block.text.to_owned();
    let mut found = Vec::new();
    let mut kept: Vec<(FrontMatterEntry, Warning)> = Vec::new();
    for _ in 0..=MAX_FAULTS {
        let fault = match parse(&source, block.first_line, &mut found) {
            Ok(mut entries) => {
                warnings.append(&mut found);
                for (entry, warning) in kept {
                    // Omits the warning if the name is repeated, because the repetition is reported.
                    if !entries.iter().any(|other| other.name == entry.name) {
                        warnings.push(warning);
                    }
                    entries.push(entry);
                }
                return Some(entries);
            }
            Err(fault) => fault,
        };
        let Some(statement) = statement_at(&source, fault.line.saturating_sub(block.first_line)) else { break };
        let line = block.first_line + statement.first;
        match statement.name {
            Some(name) if name.len() <= MAX_NAME => {
                let warning = kept_as_text(&name, Warning { line, ..fault });
                kept.push((FrontMatterEntry { name, line, value: statement.value.into() }, warning));
            }
            _ => found
                .push(Warning::new(line, format!("the statement in the front matter is left out: {}", fault.reason))),
        }
        source = blanked(&source, statement.first, statement.count);
    }
    warnings.push(Warning::new(block.first_line, "the front matter stays in the body: it is not TOML"));
    None
}

fn parse(source: &str, first_line: usize, warnings: &mut Vec<Warning>) -> Result<Vec<FrontMatterEntry>, Warning> {
    let line_of = |at: usize| first_line + source.get(..at).map_or(0, |before| before.matches('\n').count());
    let table = DeTable::parse(source).map_err(|error| match error.span() {
        Some(span) => Warning::new(line_of(span.start), error.message()),
        None => Warning::new(first_line + unlocated(source, error.message()), "a dotted key has too many parts"),
    })?;
    let mut budget = Budget::new();
    let mut converted: Vec<(usize, FrontMatterEntry)> = Vec::new();
    for (name, value) in table.get_ref().iter() {
        let at = name.span().start;
        let (name, line) = (name.get_ref().to_string(), line_of(at));
        let value = convert(source, value, 1, &mut budget).unwrap_or_else(|reason| {
            warnings.push(kept_as_text(&name, Warning { line, reason }));
            source.get(value.span()).unwrap_or_default().into()
        });
        converted.push((at, FrontMatterEntry { name, line, value }));
    }
    // Restores the order of the file, because the table is sorted by name.
    converted.sort_by_key(|(at, _)| *at);
    Ok(converted.into_iter().map(|(_, entry)| entry).collect())
}

/// Returns the index of the first line with a name that has too many parts. The parser reports this error as `message`,
/// but without a place. Therefore the function parses beginnings of the text that end at different lines.
fn unlocated(source: &str, message: &str) -> usize {
    let mut ends = Vec::new();
    for line in source.split_inclusive('\n') {
        ends.push(ends.last().copied().unwrap_or(0) + line.len());
    }
    let is_error = |error: &toml::de::Error| error.span().is_none() && error.message() == message;
    let is_valid = |end: &usize| {
        let (_, errors) = DeTable::parse_recoverable(source.get(..*end).unwrap_or_default());
        !errors.iter().any(is_error)
    };
    ends.partition_point(is_valid)
}

/// Converts a value. Dates, integers that do not fit an `i64`, and floats that are not finite become strings with the
/// text of the file.
fn convert(source: &str, value: &Spanned<DeValue<'_>>, level: usize, budget: &mut Budget) -> Result<Value, String> {
    if level > MAX_DEPTH {
        return Err(too_deep());
    }
    let written = || Value::from(source.get(value.span()).unwrap_or_default().trim());
    let bytes = match value.get_ref() {
        DeValue::String(text) => text.len(),
        _ => 0,
    };
    budget.charge(1, bytes)?;
    Ok(match value.get_ref() {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or_else(|_| written(), Value::from)
        }
        DeValue::Float(number) => {
            let number = number.as_str().parse().ok().and_then(Number::from_f64);
            number.map_or_else(written, Value::Number)
        }
        DeValue::Datetime(_) => written(),
        DeValue::Array(items) => {
            items.iter().map(|item| convert(source, item, level + 1, budget)).collect::<Result<_, _>>()?
        }
        DeValue::Table(table) => {
            let mut members: Vec<_> = table.iter().collect();
            members.sort_by_key(|(name, _)| name.span().start);
            let mut object = Map::new();
            for (name, value) in members {
                budget.charge(1, name.get_ref().len())?;
                object.insert(name.get_ref().to_string(), convert(source, value, level + 1, budget)?);
            }
            Value::Object(object)
        }
    })
}

/// A statement of a TOML text: `name = value` or a table's header.
struct Statement<'a> {
    /// The index of the first line.
    first: usize,
    /// The number of lines.
    count: usize,
    /// The name in the statement. In a table, the name of the table comes first: `table.name`. `None` if the statement
    /// is not `name = value`.
    name: Option<String>,
    value: &'a str,
}

/// Returns the statement to which a line belongs.
fn statement_at(source: &str, line: usize) -> Option<Statement<'_>> {
    let lines: Vec<&str> = source.lines().collect();
    let last = lines.len().checked_sub(1)?;
    // An error at the end of the text is in the last statement.
    let line = (0..=line.min(last)).rev().find(|&at| lines.get(at).is_some_and(|line| !line.trim().is_empty()))?;
    let begins = |at: &usize| lines.get(*at).is_some_and(|line| is_beginning(line));
    let first = (0..=line).rev().find(begins).unwrap_or(line);
    let next = (line + 1..lines.len()).find(begins).unwrap_or(lines.len());
    let start = offset_of(source, first);
    let text = source.get(start..offset_of(source, next))?;
    let (name, value) = text.split_once('=').unwrap_or(("", ""));
    let name = name.trim().trim_matches(['"', '\'']);
    let is_named = !name.is_empty() && !name.contains(['\n', '[']);
    let table = lines.get(..first)?.iter().rev().find_map(|line| table_name(line));
    let name = is_named.then(|| table.map_or_else(|| name.to_owned(), |table| format!("{table}.{name}")));
    Some(Statement { first, count: next - first, name, value: value.trim() })
}

/// Returns whether a line looks like the beginning of a statement. A line inside a list or a multi-line text is seldom
/// mistaken for a beginning.
fn is_beginning(line: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.trim();
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "\"'-_. ".contains(letter))
    };
    table_name(line).is_some() || line.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Returns the name in a table's header.
fn table_name(line: &str) -> Option<String> {
    let inside = line.strip_prefix('[')?;
    let name = inside.trim_start_matches('[').split(']').next()?.trim();
    let is_name = !name.is_empty() && !name.contains([',', '{']);
    is_name.then(|| shown(name))
}

/// Returns the text with `count` lines emptied, from the line `first` on. The lines are not removed, so that later
/// lines keep their numbers.
fn blanked(source: &str, first: usize, count: usize) -> String {
    let lines = source.split_inclusive('\n').enumerate();
    lines.map(|(at, line)| if (first..first + count).contains(&at) { "\n" } else { line }).collect()
}

/// Returns the offset of a line.
fn offset_of(source: &str, line: usize) -> usize {
    source.split_inclusive('\n').take(line).map(str::len).sum()
}
