//! Formats JSON for expectation files. A value that fits on one line is written on one line.

use serde_json::Value;

/// The maximum length of a line in columns.
const WIDTH: usize = 116;

/// Formats a value. Lines after the first are indented by at least `indent` columns.
pub fn pretty(value: &Value, indent: usize) -> String {
    let mut text = String::new();
    write(value, indent, 0, &mut text);
    text
}

fn write(value: &Value, indent: usize, before: usize, text: &mut String) {
    let line = spaced(value);
    let (open, close, empty) = match value {
        Value::Array(items) => ('[', ']', items.is_empty()),
        Value::Object(fields) => ('{', '}', fields.is_empty()),
        _ => (' ', ' ', true),
    };
    if empty || indent + before + line.chars().count() <= WIDTH {
        text.push_str(&line);
        return;
    }
    let inner = indent + 2;
    text.push(open);
    let mut entry = |name: Option<&String>, value: &Value, is_last: bool| {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', inner));
        let name = name.map(|name| format!("{}: ", quoted(name))).unwrap_or_default();
        text.push_str(&name);
        write(value, inner, name.chars().count() + 1, text);
        if !is_last {
            text.push(',');
        }
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                entry(None, item, index + 1 == items.len());
            }
        }
        Value::Object(fields) => {
            for (index, (name, field)) in fields.iter().enumerate() {
                entry(Some(name), field, index + 1 == fields.len());
            }
        }
        _ => {}
    }
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', indent));
    text.push(close);
}

/// Formats a value on one line, with a space after commas and colons.
pub fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(name, value)| format!("{}: {}", quoted(name), spaced(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
