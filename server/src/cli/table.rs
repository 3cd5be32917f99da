//! Aligned tables for the terminal.

use serde_json::Value;

use super::output::print;

/// The maximum width of a column in characters. Longer text is truncated.
const MAX_WIDTH: usize = 60;
const GAP: &str = "  ";

/// Rows of text under headings, with aligned columns.
#[derive(Debug)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<TableCell>>,
}

// The options of a command that lists records. `clap` would show a doc comment as the description of each command.
#[derive(clap::Args, Debug)]
pub struct ListFormat {
    /// Prints the records as JSON, one per line.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug)]
struct TableCell {
    text: String,
    is_number: bool,
}

impl Table {
    /// Creates a table without rows, with these columns.
    pub fn new(headings: &[&str]) -> Self {
        Self { headings: headings.iter().map(|&heading| heading.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row of values, one per column. A null value is shown as a dash.
    pub fn push(&mut self, values: &[&Value]) {
        self.rows.push(values.iter().map(|value| TableCell::from(*value)).collect());
    }

    /// Returns the table as text. Columns of numbers are aligned to the right.
    pub fn render(&self) -> String {
        let columns: Vec<(usize, bool)> = (0..self.headings.len()).map(|column| self.measure(column)).collect();
        let headings = line(self.headings.iter().map(String::as_str), &columns);
        let rule = line(columns.iter().map(|&(width, _)| "-".repeat(width)), &columns);
        let rows = self.rows.iter().map(|row| line(row.iter().map(|cell| cell.text.as_str()), &columns));
        [headings, rule].into_iter().chain(rows).map(|line| line + "\n").collect()
    }

    /// Returns a column's width, and whether the column has only numbers.
    fn measure(&self, column: usize) -> (usize, bool) {
        let heading = self.headings.get(column).map_or(0, |heading| heading.chars().count());
        let cells = || self.rows.iter().filter_map(move |row| row.get(column));
        let width = cells().map(|cell| cell.text.chars().count()).max().unwrap_or(0).max(heading);
        (width, cells().next().is_some() && cells().all(|cell| cell.is_number))
    }
}

impl From<&Value> for TableCell {
    fn from(value: &Value) -> Self {
        let text = match value {
            Value::Null => "-".to_owned(),
            Value::String(text) => printable(text),
            Value::Array(items) => {
                let texts: Vec<String> = items.iter().map(|item| Self::from(item).text).collect();
                printable(&texts.join(" "))
            }
            other => printable(&other.to_string()),
        };
        Self { text, is_number: value.is_number() }
    }
}

/// Returns text that is safe for a terminal: a single line without control characters, truncated to the maximum width.
fn printable(text: &str) -> String {
    let mut characters = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    let mut printable: String = characters.by_ref().take(MAX_WIDTH).collect();
    if characters.next().is_some() {
        printable.pop();
        printable.push('…');
    }
    printable
}

/// Returns a table of JSON objects. Each column is a field of the objects.
pub fn listing<'a>(columns: &[&str], records: impl IntoIterator<Item = &'a Value>) -> String {
    let places: Vec<String> = columns.iter().map(|column| format!("/{column}")).collect();
    let columns: Vec<(&str, &str)> = columns.iter().copied().zip(places.iter().map(String::as_str)).collect();
    pointed(&columns, records)
}

/// Returns a table of JSON objects. Each column is given as a heading and a JSON pointer to a value in the objects.
pub fn pointed<'a>(columns: &[(&str, &str)], records: impl IntoIterator<Item = &'a Value>) -> String {
    let headings: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
    let mut table = Table::new(&headings);
    for record in records {
        let cell = |(_, place): &(&str, &str)| record.pointer(place).unwrap_or(&Value::Null);
        table.push(&columns.iter().map(cell).collect::<Vec<&Value>>());
    }
    table.render()
}

/// Prints records. If `as_json` is set, prints each record as one line of JSON. Otherwise, prints the text that `table`
/// returns.
pub fn print_records(records: &[Value], as_json: bool, table: impl FnOnce() -> String) -> anyhow::Result<()> {
    let lines = || records.iter().map(|record| format!("{record}\n")).collect::<String>();
    print(&if as_json { lines() } else { table() })
}

fn line(cells: impl Iterator<Item = impl AsRef<str>>, columns: &[(usize, bool)]) -> String {
    let padded: Vec<String> = cells
        .zip(columns)
        .map(|(cell, &(width, to_the_right))| {
            let cell = cell.as_ref();
            if to_the_right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        })
        .collect();
    padded.join(GAP).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_aligned_with_numbers_on_the_right() {
        let mut table = Table::new(&["folder", "articles"]);
        table.push(&[&json!("text"), &json!(652)]);
        table.push(&[&json!("äöü\u{1b}[2J"), &json!(7)]);
        let expected = "folder   articles\n-------  --------\ntext          652\näöü [2J         7\n";
        assert_eq!(table.render(), expected);
    }

    #[test]
    fn absent_values_are_dashes_and_long_values_are_truncated() {
        let mut table = Table::new(&["a", "b"]);
        table.push(&[&Value::Null, &json!("x".repeat(100))]);
        let text = table.render();
        assert!(text.ends_with(&format!("-  {}…\n", "x".repeat(MAX_WIDTH - 1))));
    }
}
