//! A schema as a graph of its subschemas: which of them look at the same value, and which at the values in it.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::refused;
use crate::model::violation::{Violation, segment};

/// Bytes that one compiled pattern may have.
pub(super) const MAX_PATTERN_BYTES: usize = 256 << 10;
/// Sizes of compiled patterns that are told apart, in bytes: the work that a pattern may be grows with its size.
const PATTERN_SIZES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, MAX_PATTERN_BYTES];
/// Bytes of a compiled pattern that one step goes through.
const PATTERN_BYTES_A_STEP: usize = 256;
/// Patterns of one schema.
const MAX_PATTERNS: usize = 32;
/// Subschemas that are reached.
const MAX_SUBSCHEMAS: usize = 500;
/// Levels of JSON, and subschemas that look at one value and are nested in each other.
const MAX_LEVELS: usize = 64;
pub(super) const MAX_NESTED: usize = 32;
/// Evaluations of one value, references followed.
const MAX_EXPANDED: u64 = 1_000;
/// Subschemas with `unevaluatedProperties` or `unevaluatedItems`: each looks again at everything beside it.
const MAX_UNEVALUATED: usize = 4;
/// How often what stands beside these words is looked at.
const UNEVALUATED_TIMES: u64 = 8;

/// Keywords whose subschemas look at the same value, by what stands under them.
const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SAME_VALUE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords that this validator would follow to places that are only known while a value is checked.
const DYNAMIC: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// The subschemas that are reached from the root, which is the first.
#[derive(Debug)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
}

/// A subschema, as far as it makes work.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub same_value: Vec<usize>,
    pub properties: HashMap<String, usize>,
    /// Each pattern's steps for a byte, and its subschema.
    pub pattern_properties: Vec<(u64, usize)>,
    /// Applied to the members that `properties` does not name.
    pub other_properties: Vec<usize>,
    pub property_names: Vec<usize>,
    pub prefix_items: Vec<usize>,
    pub items: Vec<usize>,
    /// Steps for each value.
    pub steps: u64,
    /// Steps for each byte of a text.
    pub byte_steps: u64,
    pub unique_items: bool,
    /// How often what looks at the same value is evaluated.
    pub times: u64,
}

impl Graph {
    pub fn read(schema: &Value) -> Result<Graph, Violation> {
        check_levels(schema)?;
        let mut reading =
            Reading { root: schema, found: Vec::new(), known: HashMap::new(), patterns: 0, unevaluated: 0 };
        reading.reach(schema, String::new())?;
        let mut nodes = Vec::new();
        while let Some((value, at)) = reading.found.get(nodes.len()).cloned() {
            nodes.push(reading.node(value, &at)?);
        }
        let graph = Graph { nodes };
        let mut expanded = vec![Expanded::Unknown; graph.nodes.len()];
        for place in 0..graph.nodes.len() {
            let at = |place: usize| reading.found.get(place).map_or("", |(_, at)| at.as_str());
            graph.expand(place, &mut expanded, 1).map_err(|(place, reason)| refused(at(place), reason))?;
        }
        Ok(graph)
    }

    /// How many evaluations a value takes from a subschema on, without those of the values in it, and how deep they nest.
    fn expand(&self, place: usize, known: &mut [Expanded], nested: usize) -> Result<(u64, usize), (usize, String)> {
        match known.get(place) {
            Some(Expanded::Known(evaluations, depth)) => return Ok((*evaluations, *depth)),
            Some(Expanded::UnderWay) => {
                return Err((place, "the schema refers to itself for the same value".into()));
            }
            _ => {}
        }
        let too_deep = || (place, format!("more than {MAX_NESTED} schemas for the same value are nested"));
        if nested > MAX_NESTED {
            return Err(too_deep());
        }
        let Some(node) = self.nodes.get(place) else { return Ok((0, 0)) };
        known[place] = Expanded::UnderWay;
        let (mut evaluations, mut depth) = (0_u64, 0);
        for next in &node.same_value {
            let (more, below) = self.expand(*next, known, nested + 1)?;
            (evaluations, depth) = (evaluations.saturating_add(more), depth.max(below));
        }
        let (evaluations, depth) = (evaluations.saturating_mul(node.times).saturating_add(1), depth + 1);
        if depth > MAX_NESTED {
            return Err(too_deep());
        }
        if evaluations > MAX_EXPANDED {
            let message = format!("one value would take {evaluations} evaluations; allowed are {MAX_EXPANDED}");
            return Err((place, message));
        }
        known[place] = Expanded::Known(evaluations, depth);
        Ok((evaluations, depth))
    }
}

#[derive(Clone)]
enum Expanded {
    Unknown,
    UnderWay,
    Known(u64, usize),
}

/// A schema while it is read.
struct Reading<'s> {
    root: &'s Value,
    /// The subschemas that were reached, with their places.
    found: Vec<(&'s Value, String)>,
    /// Their numbers, by their addresses in the schema, which stays where it is.
    known: HashMap<*const Value, usize>,
    patterns: usize,
    unevaluated: usize,
}

impl<'s> Reading<'s> {
    /// The number of a subschema.
    fn reach(&mut self, schema: &'s Value, at: String) -> Result<usize, Violation> {
        let next = self.found.len();
        let number = *self.known.entry(std::ptr::from_ref(schema)).or_insert(next);
        if number == next {
            if next == MAX_SUBSCHEMAS {
                return Err(refused(&at, format!("more than {MAX_SUBSCHEMAS} subschemas")));
            }
            self.found.push((schema, at));
        }
        Ok(number)
    }

    fn node(&mut self, schema: &'s Value, at: &str) -> Result<Node, Violation> {
        let mut node = Node { times: 1, steps: 1, ..Node::default() };
        let Some(object) = schema.as_object() else { return Ok(node) };
        node.steps += object.len() as u64;
        self.same_value(&mut node, object, at)?;
        self.members(&mut node, object, at)?;
        self.items(&mut node, object, at)?;
        if let Some(pattern) = object.get("pattern").and_then(Value::as_str) {
            node.byte_steps += self.pattern(pattern, &format!("{at}/pattern"))?;
        }
        // Formats and encodings go through a text a few times.
        let through = ["format", "contentEncoding", "contentMediaType"];
        node.byte_steps += 16 * through.iter().filter(|name| object.contains_key(**name)).count() as u64;
        // They are compared with the value, or looked for in it.
        let compared = ["enum", "const", "required", "dependentRequired", "type"];
        node.steps += compared.iter().filter_map(|name| object.get(*name)).map(size).sum::<u64>();
        node.unique_items = object.get("uniqueItems") == Some(&Value::Bool(true));
        if object.contains_key("unevaluatedProperties") || object.contains_key("unevaluatedItems") {
            self.unevaluated += 1;
            node.times = UNEVALUATED_TIMES;
            if self.unevaluated > MAX_UNEVALUATED {
                let message = format!("more than {MAX_UNEVALUATED} subschemas ask what others left unevaluated");
                return Err(refused(at, message));
            }
        }
        Ok(node)
    }

    fn same_value(&mut self, node: &mut Node, object: &'s Map<String, Value>, at: &str) -> Result<(), Violation> {
        if let Some(name) = DYNAMIC.into_iter().find(|name| object.contains_key(*name)) {
            return Err(refused(&format!("{at}/{name}"), "dynamic references are not allowed; use $ref".into()));
        }
        if let Some(reference) = object.get("$ref") {
            let place = format!("{at}/$ref");
            let (target, to) = self.resolve(reference, &place)?;
            node.same_value.push(self.reach(target, to)?);
        }
        for name in SAME_VALUE {
            if let Some(schema) = object.get(name) {
                node.same_value.push(self.reach(schema, format!("{at}/{name}"))?);
            }
        }
        for name in SAME_VALUE_LISTS {
            node.same_value.extend(self.list(object.get(name), &format!("{at}/{name}"))?);
        }
        for name in SAME_VALUE_MAPS {
            // What depends on a member may also be a list of other members.
            let of_schemas = self.map(object.get(name), &format!("{at}/{name}"))?;
            node.same_value.extend(of_schemas.into_iter().map(|(_, number)| number));
        }
        Ok(())
    }

    fn members(&mut self, node: &mut Node, object: &'s Map<String, Value>, at: &str) -> Result<(), Violation> {
        let properties = self.map(object.get("properties"), &format!("{at}/properties"))?;
        node.properties = properties.into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
        node.steps += node.properties.len() as u64;
        let place = format!("{at}/patternProperties");
        for (pattern, number) in self.map(object.get("patternProperties"), &place)? {
            let steps = self.pattern(pattern, &format!("{place}/{}", segment(pattern)))?;
            node.pattern_properties.push((steps, number));
        }
        for name in ["additionalProperties", "unevaluatedProperties"] {
            if let Some(schema) = object.get(name) {
                node.other_properties.push(self.reach(schema, format!("{at}/{name}"))?);
            }
        }
        if let Some(schema) = object.get("propertyNames") {
            node.property_names.push(self.reach(schema, format!("{at}/propertyNames"))?);
        }
        Ok(())
    }

    fn items(&mut self, node: &mut Node, object: &'s Map<String, Value>, at: &str) -> Result<(), Violation> {
        node.prefix_items = self.list(object.get("prefixItems"), &format!("{at}/prefixItems"))?;
        // Until 2019 a list under `items` was what `prefixItems` is now.
        node.prefix_items.extend(self.list(object.get("items"), &format!("{at}/items"))?);
        for name in ["items", "additionalItems", "unevaluatedItems", "contains"] {
            if let Some(schema) = object.get(name).filter(|schema| !schema.is_array()) {
                node.items.push(self.reach(schema, format!("{at}/{name}"))?);
            }
        }
        Ok(())
    }

    fn list(&mut self, value: Option<&'s Value>, at: &str) -> Result<Vec<usize>, Violation> {
        let items = value.and_then(Value::as_array).into_iter().flatten().enumerate();
        items.map(|(index, schema)| self.reach(schema, format!("{at}/{index}"))).collect()
    }

    fn map(&mut self, value: Option<&'s Value>, at: &str) -> Result<Vec<(&'s str, usize)>, Violation> {
        let members = value.and_then(Value::as_object).into_iter().flatten();
        let schemas = members.filter(|(_, schema)| schema.is_object() || schema.is_boolean());
        let mut reach = |name: &str, schema| self.reach(schema, format!("{at}/{}", segment(name)));
        schemas.map(|(name, schema)| reach(name, schema).map(|number| (name.as_str(), number))).collect()
    }

    /// What a reference means: a place in the same schema.
    fn resolve(&self, reference: &Value, at: &str) -> Result<(&'s Value, String), Violation> {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let Some(pointer) = pointer.filter(|pointer| pointer.is_empty() || pointer.starts_with('/')) else {
            let message = "expected a reference within the schema, such as #/$defs/name";
            return Err(refused(at, message.into()));
        };
        let pointer = percent_decode_str(pointer).decode_utf8_lossy();
        match self.root.pointer(&pointer) {
            Some(target) => Ok((target, pointer.into_owned())),
            None => Err(refused(at, "the schema has nothing at this place".into())),
        }
    }

    /// Steps that a pattern takes for a byte: more where its automaton is larger.
    fn pattern(&mut self, pattern: &str, at: &str) -> Result<u64, Violation> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err(refused(at, format!("more than {MAX_PATTERNS} patterns")));
        }
        let mut refusal = None;
        for size in PATTERN_SIZES {
            match RegexBuilder::new(pattern).size_limit(size).build() {
                Ok(_) => return Ok((size / PATTERN_BYTES_A_STEP) as u64),
                // The validator writes some classes of its dialect otherwise, and has its own say.
                Err(regex::Error::Syntax(_)) => return Ok((MAX_PATTERN_BYTES / PATTERN_BYTES_A_STEP) as u64),
                Err(error) => refusal = Some(error),
            }
        }
        let reason = match refusal {
            Some(regex::Error::CompiledTooBig(limit)) => format!("the pattern takes more than {limit} bytes compiled"),
            _ => "the pattern cannot be used".to_owned(),
        };
        Err(refused(at, reason))
    }
}

/// Rejects what nests too deep, and identifiers below the root: references would begin at those.
fn check_levels(schema: &Value) -> Result<(), Violation> {
    let mut left = vec![(schema, String::new(), 0)];
    while let Some((value, at, level)) = left.pop() {
        if level > MAX_LEVELS {
            return Err(refused(&at, format!("the schema nests deeper than {MAX_LEVELS} levels")));
        }
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    let at = format!("{at}/{}", segment(name));
                    if level > 0 && matches!(name.as_str(), "$id" | "id") && is_identifier(name, value, schema) {
                        return Err(refused(&at, "only the whole schema may have an identifier".into()));
                    }
                    left.push((value, at, level + 1));
                }
            }
            Value::Array(items) => {
                left.extend(items.iter().enumerate().map(|(index, item)| (item, format!("{at}/{index}"), level + 1)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a text under this name is an identifier: `id` is one in drafts 3 and 4 alone.
fn is_identifier(name: &str, value: &Value, root: &Value) -> bool {
    let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let is_early = ["draft-03", "draft-04"].iter().any(|early| draft.contains(early));
    value.is_string() && (name == "$id" || is_early)
}

/// How many values there are in a value, with one more for each 64 bytes of a text.
pub(super) fn size(value: &Value) -> u64 {
    let (mut size, mut left) = (0, vec![value]);
    while let Some(value) = left.pop() {
        size += 1;
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(object) => left.extend(object.values()),
            Value::String(text) => size += text.len() as u64 / 64,
            _ => {}
        }
    }
    size
}
