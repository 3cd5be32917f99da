//! Reads front matter in YAML 1.2. Parts that are not valid, such as `title: One: two`, are kept as text.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Map, Value};

use super::entry::{
    Block, Budget, FrontMatterEntry, MAX_DEPTH, Warning, exact_number, kept_as_text, repeated, shown, too_deep,
};

/// The nesting limit of the YAML parser. The limit is one level above [`MAX_DEPTH`], so that [`YamlReader`] reports
/// values deeper than [`MAX_DEPTH`] before the parser fails.
const PARSER_DEPTH: usize = MAX_DEPTH + 1;

/// Returns the entries of front matter. Returns `None` if the text belongs to the body: the text is not empty, and no
/// part of the text has the form `name: value`. A text between two lines `---` also belongs to the body if the text is
/// valid YAML but not a mapping, or if the text is not valid YAML and does not begin with a name. Then the text is
/// Markdown, and the lines are horizontal rules.
pub fn read(block: &Block<'_>, warnings: &mut Vec<Warning>) -> Option<Vec<FrontMatterEntry>> {
    let mut found = Vec::new();
    match parse(block.text, block.first_line, &mut Budget::new(), &mut found) {
        Ok(Some(entries)) => {
            warnings.append(&mut found);
            return Some(entries);
        }
        // The text is not a mapping, so the lines around it are horizontal rules.
        Ok(None) if block.is_ambiguous => return None,
        Ok(None) | Err(_) => found.clear(),
    }
    if block.is_ambiguous && !begins_with_name(block.text) {
        return None;
    }
    let entries = read_in_parts(block, &mut found);
    if entries.is_empty() {
        let reason = "the front matter stays in the body: it has no line of the form `name: value`".to_owned();
        warnings.push(Warning { line: block.first_line, reason });
        return None;
    }
    warnings.append(&mut found);
    Some(entries)
}

/// Returns whether the first line that is neither empty nor a comment has the form `name: value`, with a name without
/// white space.
pub fn begins_with_name(yaml: &str) -> bool {
    let first = yaml.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    first.and_then(split_name).is_some_and(|(name, _)| !name.contains(char::is_whitespace))
}

/// Reads a block of invalid YAML part by part. An invalid part does not affect the other parts.
fn read_in_parts(block: &Block<'_>, warnings: &mut Vec<Warning>) -> Vec<FrontMatterEntry> {
    let mut budget = Budget::new();
    let mut entries = Vec::new();
    for (line, part) in parts(block) {
        let mut found = Vec::new();
        match parse(part, line, &mut budget, &mut found) {
            Ok(Some(mut read)) => {
                entries.append(&mut read);
                warnings.append(&mut found);
            }
            Ok(None) => warnings.push(nameless(line)),
            Err(fault) => match split_name(part) {
                Some((name, value)) => {
                    warnings.push(kept_as_text(name, Warning { line, ..fault }));
                    let (name, value) = (name.to_owned(), unquoted(value.trim()).into());
                    entries.push(FrontMatterEntry { name, line, value });
                }
                None => warnings.push(nameless(line)),
            },
        }
    }
    entries
}

fn nameless(line: usize) -> Warning {
    Warning { line, reason: "the line of front matter is left out: it is not of the form `name: value`".to_owned() }
}

/// Splits front matter into parts, each with the number of its first line in the file. Every line begins a part, except
/// indented lines, list items, closing brackets, comments and empty lines. These lines belong to the preceding part.
fn parts<'a>(block: &Block<'a>) -> Vec<(usize, &'a str)> {
    let mut parts = Vec::new();
    let (mut start, mut end, mut first_line) = (0, 0, block.first_line);
    for (line, text) in (block.first_line..).zip(block.text.split_inclusive('\n')) {
        let begins = !text.starts_with([' ', '\t', '-', '#', ']', '}', '\r', '\n']);
        if begins && end > start {
            parts.push((first_line, block.text.get(start..end).unwrap_or_default()));
            (start, first_line) = (end, line);
        }
        end += text.len();
    }
    parts.push((first_line, block.text.get(start..end).unwrap_or_default()));
    parts.retain(|(_, part)| !part.trim().is_empty());
    parts
}

/// Splits `name: value` at the first colon that ends a name.
fn split_name(part: &str) -> Option<(&str, &str)> {
    let ends =
        |at: &usize| part.get(at + 1..).is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
    let at = part.match_indices(':').map(|(at, _)| at).find(ends)?;
    let name = unquoted(part.get(..at)?.trim());
    (!name.is_empty() && !name.contains('\n')).then_some((name, part.get(at + 1..)?))
}

/// Removes quotation marks around a text.
fn unquoted(text: &str) -> &str {
    let inside = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

/// Returns the entries of a YAML text, or `None` if the text is neither a mapping nor empty.
fn parse(
    yaml: &str,
    first_line: usize,
    budget: &mut Budget,
    warnings: &mut Vec<Warning>,
) -> Result<Option<Vec<FrontMatterEntry>>, Warning> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: PARSER_DEPTH,
        block_nesting_limit: PARSER_DEPTH,
    };
    let events = Parser::new_from_str_with_options(yaml, options);
    let mut reader = YamlReader { events, first_line, anchors: HashMap::new(), budget, warnings };
    reader.document()
}

/// Builds values from the events of a parser.
struct YamlReader<'a, 'e> {
    events: Parser<'e, StrInput<'e>>,
    first_line: usize,
    /// The values of complete anchored nodes.
    anchors: HashMap<usize, Value>,
    budget: &'a mut Budget,
    warnings: &'a mut Vec<Warning>,
}

impl<'e> YamlReader<'_, 'e> {
    /// Returns the entries of the YAML document. Returns `None` if the document is not a mapping and not empty. Fails
    /// if the YAML has a second document.
    fn document(&mut self) -> Result<Option<Vec<FrontMatterEntry>>, Warning> {
        let mut entries = Some(Vec::new());
        let mut documents = 0;
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(entries),
                (Event::DocumentStart(..), line) => {
                    documents += 1;
                    if documents > 1 {
                        return Err(Warning::new(line, "the YAML has a second document"));
                    }
                }
                (Event::MappingStart(_, anchor, tag), line) => {
                    self.check_tag(tag.as_deref(), line);
                    entries = Some(self.members(anchor, 1)?);
                }
                (Event::Scalar(text, ScalarStyle::Plain, 0, None), _) if is_null(&text) => {}
                (event, line) if event.is_node() => {
                    self.node(event, line, 1)?;
                    entries = None;
                }
                _ => {}
            }
        }
    }

    /// Returns the members of the mapping that has begun.
    fn members(&mut self, anchor: usize, level: usize) -> Result<Vec<FrontMatterEntry>, Warning> {
        let mut entries: Vec<FrontMatterEntry> = Vec::new();
        let mut positions: HashMap<String, usize> = HashMap::new();
        loop {
            let (event, line) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let name = self.name(event, line)?;
            let (event, at) = self.next()?;
            let value = self.node(event, at, level + 1)?;
            if positions.contains_key(&name) {
                self.warnings.push(repeated(&name, line));
            } else {
                positions.insert(name.clone(), entries.len());
                entries.push(FrontMatterEntry { name, line, value });
            }
        }
        if anchor > 0 {
            self.anchors.insert(anchor, object(entries.iter().map(|entry| (entry.name.clone(), entry.value.clone()))));
        }
        Ok(entries)
    }

    /// Returns a name as it is written.
    fn name(&mut self, event: Event<'e>, line: usize) -> Result<String, Warning> {
        match event {
            Event::Scalar(text, _, anchor, _) => {
                self.charge(1, text.len(), line)?;
                if anchor > 0 {
                    self.anchors.insert(anchor, text.as_ref().into());
                }
                Ok(text.into_owned())
            }
            Event::Alias(id) => match self.anchors.get(&id) {
                Some(Value::String(name)) => Ok(name.clone()),
                _ => Err(Warning::new(
                    line,
                    "expected a string as the name of a field, found an alias of a value that is not a string",
                )),
            },
            _ => Err(Warning::new(line, "expected a string as the name of a field, found a list or a mapping")),
        }
    }

    fn node(&mut self, event: Event<'e>, line: usize, level: usize) -> Result<Value, Warning> {
        if level > MAX_DEPTH {
            return Err(Warning::new(line, too_deep()));
        }
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.charge(1, text.len(), line)?;
                self.check_tag(tag.as_deref(), line);
                (anchor, scalar(&text, style, tag.as_deref()))
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.charge(1, 0, line)?;
                self.check_tag(tag.as_deref(), line);
                (anchor, self.items(level)?)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.charge(1, 0, line)?;
                self.check_tag(tag.as_deref(), line);
                let members = self.members(anchor, level)?;
                return Ok(object(members.into_iter().map(|entry| (entry.name, entry.value))));
            }
            Event::Alias(id) => (0, self.aliased(id, line, level)?),
            _ => return Err(Warning::new(line, "a value is missing")),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    /// Returns the items of the sequence that has begun.
    fn items(&mut self, level: usize) -> Result<Value, Warning> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                (event, line) => items.push(self.node(event, line, level + 1)?),
            }
        }
    }

    /// Returns a copy of an anchored value. The copy counts towards the budget like a value that is written out.
    fn aliased(&mut self, id: usize, line: usize, level: usize) -> Result<Value, Warning> {
        let Some(value) = self.anchors.get(&id) else {
            return Err(Warning::new(line, "an alias refers to a value that contains the alias"));
        };
        let size = Size::of(value);
        if level + size.depth > MAX_DEPTH {
            return Err(Warning::new(line, too_deep()));
        }
        // Charges the budget before making the copy.
        self.budget.charge(size.values, size.bytes).map_err(|reason| Warning { line, reason })?;
        Ok(value.clone())
    }

    /// Reports a tag that is neither a tag of YAML's core schema nor `!`.
    fn check_tag(&mut self, tag: Option<&Tag>, line: usize) {
        if let Some(tag) = tag.filter(|tag| tag.core_suffix().is_none() && !is_text_tag(tag)) {
            let reason = format!("the tag `{}` is left out; its value is kept", shown(&tag.original()));
            self.warnings.push(Warning { line, reason });
        }
    }

    fn charge(&mut self, values: usize, bytes: usize, line: usize) -> Result<(), Warning> {
        self.budget.charge(values, bytes).map_err(|reason| Warning { line, reason })
    }

    /// Returns the next event and its line in the file.
    fn next(&mut self) -> Result<(Event<'e>, usize), Warning> {
        let in_file = |line: usize| self.first_line + line.saturating_sub(1);
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, in_file(span.start.line()))),
            Some(Err(error)) => Err(Warning::new(in_file(error.marker().line()), error.info())),
            None => Ok((Event::StreamEnd, self.first_line)),
        }
    }
}

/// The size of a value.
struct Size {
    values: usize,
    bytes: usize,
    /// The number of levels below the value itself.
    depth: usize,
}

impl Size {
    /// Measures a value, which nests at most [`MAX_DEPTH`] levels.
    fn of(value: &Value) -> Size {
        let mut size = Size { values: 1, bytes: 0, depth: 0 };
        match value {
            Value::String(text) => size.bytes = text.len(),
            Value::Array(items) => items.iter().for_each(|item| size.add(&Size::of(item))),
            Value::Object(members) => members.iter().for_each(|(name, value)| {
                size.add(&Size::of(value));
                size.bytes += name.len();
                size.values += 1;
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        size
    }

    fn add(&mut self, inner: &Size) {
        self.values += inner.values;
        self.bytes += inner.bytes;
        self.depth = self.depth.max(inner.depth + 1);
    }
}

fn object(members: impl Iterator<Item = (String, Value)>) -> Value {
    Value::Object(members.collect::<Map<String, Value>>())
}

/// Returns whether a tag is `!` alone, which turns a scalar into text.
fn is_text_tag(tag: &Tag) -> bool {
    tag.original() == "!"
}

/// Returns the value of a scalar according to the core schema of YAML 1.2. A number is returned as text unless its JSON
/// is exactly `text`. For example, `1.10` is returned as text, because its JSON is `1.1`.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_type_defined = match tag {
        Some(tag) if is_text_tag(tag) => false,
        Some(tag) => match tag.core_suffix() {
            Some(name) => matches!(name, "null" | "bool" | "int" | "float"),
            None => style == ScalarStyle::Plain,
        },
        None => style == ScalarStyle::Plain,
    };
    match text {
        _ if !is_type_defined => text.into(),
        _ if is_null(text) => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => exact_number(text).map_or_else(|| text.into(), Value::Number),
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}
