//! Converts a Markdown file to the fields of an article, from its front matter, first heading and body.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use serde_json::{Map, Value};

/// The names of the fields that the import sets for every article. Of these fields, front matter can set only the title
/// and the tags.
const OWN_FIELDS: [&str; 6] = ["slug", "title", "body", "tags", "path", "folder"];
/// The line number of the first line of front matter, which follows the `---` on line 1.
const FIRST_LINE: usize = 2;
/// The maximum length of a front matter field's name.
const MAX_NAME: usize = 64;

/// A line of front matter that is skipped because it cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BadLine {
    /// The number of the line in the file, from 1.
    pub line: usize,
    pub reason: &'static str,
}

/// Returns the fields of a file's article. Adds the lines of front matter that cannot be parsed to `bad`.
pub fn fields(path: &str, slug: &str, text: &str, bad: &mut Vec<BadLine>) -> Map<String, Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (front, body) = split_front_matter(text, bad);
    let folders: Vec<&str> = path.rsplit_once('/').map(|(folders, _)| folders.split('/').collect()).unwrap_or_default();
    let title = front.get("title").and_then(scalar_text).or_else(|| first_heading(body));
    let tags =
        front.get("tags").and_then(tag_list).unwrap_or_else(|| folders.iter().map(|&name| name.into()).collect());

    let mut fields = Map::new();
    fields.insert("slug".to_owned(), slug.into());
    fields.insert("title".to_owned(), title.unwrap_or_else(|| stem(path).to_owned()).into());
    fields.insert("body".to_owned(), body.into());
    fields.insert("tags".to_owned(), tags.into());
    fields.insert("path".to_owned(), path.into());
    fields.insert("folder".to_owned(), folders.first().copied().unwrap_or(".").into());
    fields.extend(front.into_iter().filter(|(name, value)| is_extra_field(name, value)));
    fields
}

/// Splits a file into front matter and body. Text that only resembles front matter belongs to the body.
fn split_front_matter<'a>(text: &'a str, bad: &mut Vec<BadLine>) -> (Map<String, Value>, &'a str) {
    let parsed = find_front_matter(text)
        .and_then(|(yaml, rest)| Some((parse_front_matter(yaml).or_else(|| read_by_entries(yaml, bad))?, rest)));
    parsed.unwrap_or_else(|| (Map::new(), text))
}

/// Parses front matter that is not valid YAML as a whole, entry by entry, and skips bad entries. Returns `None` if the
/// text does not begin with a name or has no valid entry. In that case, the two `---` are horizontal rules, and the
/// text belongs to the body.
fn read_by_entries(yaml: &str, bad: &mut Vec<BadLine>) -> Option<Map<String, Value>> {
    let mut front = Map::new();
    let mut left_out = Vec::new();
    let entries = entries(yaml);
    let (_, first) = entries.iter().find(|(_, entry)| !entry.trim().is_empty())?;
    let (name, value) = first.split_once(':')?;
    if name.is_empty() || name.contains(char::is_whitespace) || !value.starts_with(char::is_whitespace) {
        return None;
    }
    for (line, entry) in entries {
        let Some(read) = parse_front_matter(entry) else {
            left_out.push(BadLine { line, reason: "it is not YAML of the form `name: value`" });
            continue;
        };
        for (name, value) in read {
            if front.contains_key(&name) {
                left_out.push(BadLine { line, reason: "an earlier line has the same name" });
            } else {
                front.insert(name, value);
            }
        }
    }
    if front.is_empty() {
        return None;
    }
    bad.append(&mut left_out);
    Some(front)
}

/// Splits front matter into entries with their line numbers in the file. Indented lines, list items, comments and empty
/// lines belong to the preceding entry.
fn entries(yaml: &str) -> Vec<(usize, &str)> {
    let mut entries = Vec::new();
    let (mut start, mut end, mut first_line) = (0, 0, FIRST_LINE);
    for (line, text) in (FIRST_LINE..).zip(yaml.split_inclusive('\n')) {
        let begins = !text.starts_with([' ', '\t', '-', '#', '\r', '\n']);
        if begins && end > start {
            entries.push((first_line, yaml.get(start..end).unwrap_or_default()));
            (start, first_line) = (end, line);
        }
        end += text.len();
    }
    entries.push((first_line, yaml.get(start..end).unwrap_or_default()));
    entries
}

/// Returns the text between `---` on the first line and the next `---` or `...`, and the text after that second line.
fn find_front_matter(text: &str) -> Option<(&str, &str)> {
    let mut lines = text.split_inclusive('\n');
    let opening = lines.next().filter(|line| line.trim_end() == "---")?;
    let mut end = opening.len();
    for line in lines {
        if matches!(line.trim_end(), "---" | "...") {
            let rest = text.get(end + line.len()..)?;
            return Some((text.get(opening.len()..end)?, rest.trim_start_matches(['\r', '\n'])));
        }
        end += line.len();
    }
    None
}

fn parse_front_matter(yaml: &str) -> Option<Map<String, Value>> {
    if yaml.trim().is_empty() {
        return Some(Map::new());
    }
    match serde_saphyr::from_str(yaml) {
        Ok(Value::Object(front)) => Some(front),
        Ok(Value::Null) => Some(Map::new()),
        _ => None,
    }
}

fn is_extra_field(name: &str, value: &Value) -> bool {
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.starts_with(['_', '$'])
        && !name.contains(|character: char| character == '.' || character.is_control());
    is_name && !OWN_FIELDS.contains(&name) && (value.is_string() || value.is_number() || value.is_boolean())
}

/// Returns a scalar as text, or `None` if the text is empty.
fn scalar_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// Returns the tags in a list or in comma-separated text.
fn tag_list(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(tags) => Some(tags.iter().filter_map(scalar_text).map(Value::from).collect()),
        Value::String(tags) => {
            Some(tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(Value::from).collect())
        }
        _ => None,
    }
}

/// Returns the text of the first heading that is not empty.
fn first_heading(body: &str) -> Option<String> {
    let mut heading: Option<String> = None;
    for event in Parser::new(body) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(text) | Event::Code(text), Some(heading)) => heading.push_str(&text),
            (Event::SoftBreak | Event::HardBreak, Some(heading)) => heading.push(' '),
            (Event::End(TagEnd::Heading(_)), Some(text)) if !text.trim().is_empty() => {
                return Some(text.trim().to_owned());
            }
            (Event::End(TagEnd::Heading(_)), _) => heading = None,
            _ => {}
        }
    }
    None
}

fn stem(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields_of(path: &str, text: &str) -> Value {
        Value::Object(fields(path, "slug", text, &mut Vec::new()))
    }

    #[test]
    fn invalid_lines_of_front_matter_are_reported_and_skipped() {
        let text =
            "---\ntitle: One: two\ntags:\n- a\n- b\nstatus: draft\nnonsense\nopen: [\nstatus: twice\n---\n# Heading\n";
        let mut bad = Vec::new();
        let fields = fields("a.md", "slug", text, &mut bad);
        assert_eq!((&fields["title"], &fields["tags"]), (&json!("Heading"), &json!(["a", "b"])));
        assert_eq!((&fields["status"], &fields["body"]), (&json!("draft"), &json!("# Heading\n")));
        assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [2, 7, 8, 9]);
    }

    #[test]
    fn front_matter_gives_title_tags_and_further_scalars() {
        let text = "---\ntitle: A title\ntags: [one, 2]\nstatus: draft\nweight: 3\ndate: 2024-01-02\n_hidden: x\n\
                    $odd: x\na.b: x\nslug: other\nnested: {a: 1}\n---\n\n# Heading\n\nBody.\n";
        let expected = json!({
            "slug": "slug", "title": "A title", "body": "# Heading\n\nBody.\n", "tags": ["one", "2"],
            "path": "docs/guide/a.md", "folder": "docs", "status": "draft", "weight": 3, "date": "2024-01-02",
        });
        assert_eq!(fields_of("docs/guide/a.md", text), expected);
    }

    #[test]
    fn title_and_tags_default_to_heading_and_folders() {
        let expected = json!({
            "slug": "slug", "title": "The code way", "body": "text\n\n#\n\nThe `code`\nway\n===\n",
            "tags": ["docs", "guide"], "path": "docs/guide/a.md", "folder": "docs",
        });
        assert_eq!(fields_of("docs/guide/a.md", "text\n\n#\n\nThe `code`\nway\n===\n"), expected);
        let root = fields_of("CHANGES.md", "no heading");
        assert_eq!((&root["title"], &root["tags"], &root["folder"]), (&json!("CHANGES"), &json!([]), &json!(".")));
    }

    #[test]
    fn tags_may_be_separated_by_commas() {
        assert_eq!(fields_of("a.md", "---\ntags: one, two ,\n---\n")["tags"], json!(["one", "two"]));
    }

    #[test]
    fn text_that_only_resembles_front_matter_stays_in_the_body() {
        for text in ["---\n\nA rule above.\n\n---\nmore", "---\ntitle: never closed\n", "---\na: [\n---\nx", "--- \r\n"]
        {
            assert_eq!(fields_of("a.md", text)["body"], json!(text));
        }
        assert_eq!(fields_of("a.md", "---\r\ntitle: t\r\n---\r\nx\r\n")["body"], json!("x\r\n"));
        assert_eq!(fields_of("a.md", "---\n---\nx")["body"], json!("x"));
    }
}
