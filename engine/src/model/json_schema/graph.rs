//! A JSON Schema as a graph. The edges of a schema lead to the subschemas that check the same value as the schema, and
//! to the subschemas that check the values inside this value.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::refused;
use crate::model::violation::{Violation, segment};

/// The maximum size of a compiled pattern, in bytes.
pub(super) const MAX_PATTERN_BYTES: usize = 256 << 10;
/// The size classes of compiled patterns, in bytes. A larger pattern costs more steps.
const PATTERN_SIZES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, MAX_PATTERN_BYTES];
/// The number of bytes of a compiled pattern that count as one step for each byte of the matched text.
const PATTERN_BYTES_PER_STEP: usize = 256;
/// The maximum number of patterns in a schema.
const MAX_PATTERNS: usize = 32;
/// The maximum number of subschemas reachable from the root.
const MAX_SUBSCHEMAS: usize = 500;
/// The maximum nesting depth of the schema's JSON.
const MAX_LEVELS: usize = 64;
/// The maximum nesting depth of subschemas that apply to the same value.
pub(super) const MAX_NESTED: usize = 32;
/// The maximum number of evaluations of one value, including evaluations through references.
const MAX_EXPANDED: u64 = 1_000;
/// The maximum number of subschemas with `unevaluatedProperties` or `unevaluatedItems`. These two keywords evaluate
/// their sibling keywords again.
const MAX_UNEVALUATED: usize = 4;
/// The number of evaluations that are counted for each subschema that stands beside `unevaluatedProperties` or
/// `unevaluatedItems` and applies to the same value. These two keywords evaluate their sibling keywords again.
const UNEVALUATED_REPEATS: u64 = 8;

/// Keywords with a single subschema, which applies to the same value as the schema itself.
const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with a list of subschemas, which apply to the same value as the schema itself.
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with a map of subschemas, which apply to the same value as the schema itself.
const SAME_VALUE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords for references that the validator resolves only while it checks a value. A schema is rejected if a
/// subschema that is reachable from the root has such a keyword.
const DYNAMIC: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// The subschemas reachable from the root. The root comes first.
#[derive(Debug)]
pub(super) struct Graph {
    pub nodes: Vec<SchemaNode>,
}

/// A subschema, reduced to the properties that determine the cost of checking a value.
#[derive(Debug, Default)]
pub(super) struct SchemaNode {
    pub same_value: Vec<usize>,
    pub properties: HashMap<String, usize>,
    /// One entry for each pattern: the number of steps that matching takes for each byte of a member's name, and the
    /// index of the pattern's subschema.
    pub pattern_properties: Vec<(u64, usize)>,
    /// Indexes of the subschemas for the members that `properties` does not name.
    pub other_properties: Vec<usize>,
    pub property_names: Vec<usize>,
    pub prefix_items: Vec<usize>,
    pub items: Vec<usize>,
    /// The number of steps for checking a value, regardless of its length.
    pub steps: u64,
    /// The number of additional steps for each byte of a text.
    pub byte_steps: u64,
    pub unique_items: bool,
    /// The number of times that each subschema in `same_value` is evaluated.
    pub times: u64,
}

impl Graph {
    pub fn read(schema: &Value) -> Result<Graph, Violation> {
        check_levels(schema)?;
        let mut reading =
            SchemaReader { root: schema, found: Vec::new(), known: HashMap::new(), patterns: 0, unevaluated: 0 };
        reading.reach(schema, String::new())?;
        let mut nodes = Vec::new();
        while let Some((value, at)) = reading.found.get(nodes.len()).cloned() {
            nodes.push(reading.node(value, &at)?);
        }
        let graph = Graph { nodes };
        let mut expanded = vec![Expansion::Unknown; graph.nodes.len()];
        for place in 0..graph.nodes.len() {
            let at = |place: usize| reading.found.get(place).map_or("", |(_, at)| at.as_str());
            graph.expand(place, &mut expanded, 1).map_err(|(place, reason)| refused(at(place), reason))?;
        }
        Ok(graph)
    }

    /// Returns the number of evaluations that a subschema causes for one value, and the nesting depth of these
    /// evaluations. The values inside the value do not count. Fails if the subschema refers to itself for the same
    /// value, or exceeds a limit. The error contains the index of the subschema at fault, and the reason.
    fn expand(&self, place: usize, known: &mut [Expansion], nested: usize) -> Result<(u64, usize), (usize, String)> {
        match known.get(place) {
            Some(Expansion::Known(evaluations, depth)) => return Ok((*evaluations, *depth)),
            Some(Expansion::UnderWay) => {
                return Err((place, "the schema refers to itself endlessly for the same value".into()));
            }
            _ => {}
        }
        let too_deep = || (place, format!("schemas for the same value are nested more than {MAX_NESTED} levels deep"));
        if nested > MAX_NESTED {
            return Err(too_deep());
        }
        let Some(node) = self.nodes.get(place) else { return Ok((0, 0)) };
        known[place] = Expansion::UnderWay;
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
            let message = format!(
                "checking one value would take {evaluations} subschema evaluations; at most {MAX_EXPANDED} are allowed"
            );
            return Err((place, message));
        }
        known[place] = Expansion::Known(evaluations, depth);
        Ok((evaluations, depth))
    }
}

#[derive(Clone)]
enum Expansion {
    Unknown,
    UnderWay,
    Known(u64, usize),
}

/// The state while a schema is read.
struct SchemaReader<'s> {
    root: &'s Value,
    /// The subschemas reached so far, with their JSON pointers.
    found: Vec<(&'s Value, String)>,
    /// The index of each subschema, by its address in memory. The schema does not move while it is read.
    known: HashMap<*const Value, usize>,
    patterns: usize,
    unevaluated: usize,
}

impl<'s> SchemaReader<'s> {
    /// Returns the index of a subschema. Adds the subschema if it is reached for the first time.
    fn reach(&mut self, schema: &'s Value, at: String) -> Result<usize, Violation> {
        let next = self.found.len();
        let number = *self.known.entry(std::ptr::from_ref(schema)).or_insert(next);
        if number == next {
            if next == MAX_SUBSCHEMAS {
                return Err(refused(&at, format!("the schema has more than {MAX_SUBSCHEMAS} subschemas")));
            }
            self.found.push((schema, at));
        }
        Ok(number)
    }

    fn node(&mut self, schema: &'s Value, at: &str) -> Result<SchemaNode, Violation> {
        let mut node = SchemaNode { times: 1, steps: 1, ..SchemaNode::default() };
        let Some(object) = schema.as_object() else { return Ok(node) };
        node.steps += object.len() as u64;
        self.same_value(&mut node, object, at)?;
        self.members(&mut node, object, at)?;
        self.items(&mut node, object, at)?;
        if let Some(pattern) = object.get("pattern").and_then(Value::as_str) {
            node.byte_steps += self.pattern(pattern, &format!("{at}/pattern"))?;
        }
        // The checks of formats and encodings read a text several times.
        let through = ["format", "contentEncoding", "contentMediaType"];
        node.byte_steps += 16 * through.iter().filter(|name| object.contains_key(**name)).count() as u64;
        // The validator compares the checked value with the values of these keywords, or searches the checked value for
        // these values.
        let compared = ["enum", "const", "required", "dependentRequired", "type"];
        node.steps += compared.iter().filter_map(|name| object.get(*name)).map(size).sum::<u64>();
        node.unique_items = object.get("uniqueItems") == Some(&Value::Bool(true));
        if object.contains_key("unevaluatedProperties") || object.contains_key("unevaluatedItems") {
            self.unevaluated += 1;
            node.times = UNEVALUATED_REPEATS;
            if self.unevaluated > MAX_UNEVALUATED {
                let message =
                    format!("more than {MAX_UNEVALUATED} subschemas have unevaluatedProperties or unevaluatedItems");
                return Err(refused(at, message));
            }
        }
        Ok(node)
    }

    fn same_value(&mut self, node: &mut SchemaNode, object: &'s Map<String, Value>, at: &str) -> Result<(), Violation> {
        if let Some(name) = DYNAMIC.into_iter().find(|name| object.contains_key(*name)) {
            return Err(refused(&format!("{at}/{name}"), "dynamic references are not allowed; use $ref".into()));
        }
        if let Some(reference) = object.get("$ref") {
            let place = format!("{at}/$ref");
            let (target, to) = self.resolve(reference, &place)?;
            node.same_value.push(self.reach(target, to)?);
        }
        node.same_value.extend(self.keywords(object, &SAME_VALUE, at)?);
        for name in SAME_VALUE_LISTS {
            node.same_value.extend(self.list(object.get(name), &format!("{at}/{name}"))?);
        }
        for name in SAME_VALUE_MAPS {
            // The value of `dependencies` may also contain lists of member names.
            let of_schemas = self.map(object.get(name), &format!("{at}/{name}"))?;
            node.same_value.extend(of_schemas.into_iter().map(|(_, number)| number));
        }
        Ok(())
    }

    fn members(&mut self, node: &mut SchemaNode, object: &'s Map<String, Value>, at: &str) -> Result<(), Violation> {
        let properties = self.map(object.get("properties"), &format!("{at}/properties"))?;
        node.properties = properties.into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
        node.steps += node.properties.len() as u64;
        let place = format!("{at}/patternProperties");
        for (pattern, number) in self.map(object.get("patternProperties"), &place)? {
            let steps = self.pattern(pattern, &format!("{place}/{}", segment(pattern)))?;
            node.pattern_properties.push((steps, number));
        }
        node.other_properties = self.keywords(object, &["additionalProperties", "unevaluatedProperties"], at)?;
        node.property_names = self.keywords(object, &["propertyNames"], at)?;
        Ok(())
    }

    fn items(&mut self, node: &mut SchemaNode, object: &'s Map<String, Value>, at: &str) -> Result<(), Violation> {
        node.prefix_items = self.list(object.get("prefixItems"), &format!("{at}/prefixItems"))?;
        // Before draft 2020-12, a list in `items` had the meaning that `prefixItems` has now.
        node.prefix_items.extend(self.list(object.get("items"), &format!("{at}/items"))?);
        for name in ["items", "additionalItems", "unevaluatedItems", "contains"] {
            if let Some(schema) = object.get(name).filter(|schema| !schema.is_array()) {
                node.items.push(self.reach(schema, format!("{at}/{name}"))?);
            }
        }
        Ok(())
    }

    /// Returns the indexes of the subschemas that are the values of the given keywords. Adds new subschemas.
    fn keywords(&mut self, object: &'s Map<String, Value>, names: &[&str], at: &str) -> Result<Vec<usize>, Violation> {
        let given = names.iter().filter_map(|name| Some((name, object.get(*name)?)));
        given.map(|(name, schema)| self.reach(schema, format!("{at}/{name}"))).collect()
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

    /// Returns the subschema that a reference points to, and the JSON pointer of the subschema. The reference must
    /// point into the same schema.
    fn resolve(&self, reference: &Value, at: &str) -> Result<(&'s Value, String), Violation> {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let Some(pointer) = pointer.filter(|pointer| pointer.is_empty() || pointer.starts_with('/')) else {
            let message = "expected a reference within the schema, such as #/$defs/name";
            return Err(refused(at, message.into()));
        };
        let pointer = percent_decode_str(pointer).decode_utf8_lossy();
        match self.root.pointer(&pointer) {
            Some(target) => Ok((target, pointer.into_owned())),
            None => Err(refused(at, "the target of the reference does not exist in the schema".into())),
        }
    }

    /// Returns the number of steps that matching a pattern takes for each byte of the text. A larger automaton takes
    /// more steps. Fails if the pattern is too large, or if the schema has too many patterns.
    fn pattern(&mut self, pattern: &str, at: &str) -> Result<u64, Violation> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err(refused(at, format!("the schema has more than {MAX_PATTERNS} patterns")));
        }
        let mut refusal = None;
        for size in PATTERN_SIZES {
            match RegexBuilder::new(pattern).size_limit(size).build() {
                Ok(_) => return Ok((size / PATTERN_BYTES_PER_STEP) as u64),
                // The pattern may be valid in the validator's own dialect, so the maximum cost is assumed. The
                // validator reports actual syntax errors.
                Err(regex::Error::Syntax(_)) => return Ok((MAX_PATTERN_BYTES / PATTERN_BYTES_PER_STEP) as u64),
                Err(error) => refusal = Some(error),
            }
        }
        let reason = match refusal {
            Some(regex::Error::CompiledTooBig(limit)) => format!("the compiled pattern is larger than {limit} bytes"),
            _ => "the pattern cannot be compiled".to_owned(),
        };
        Err(refused(at, reason))
    }
}

/// Rejects schemas that are nested too deeply. Also rejects identifiers below the root. References inside a subschema
/// with an identifier would be relative to the subschema, but [`Graph`] resolves all references from the root.
fn check_levels(schema: &Value) -> Result<(), Violation> {
    let mut pending = vec![(schema, String::new(), 0)];
    while let Some((value, at, level)) = pending.pop() {
        if level > MAX_LEVELS {
            return Err(refused(&at, format!("the schema is nested more than {MAX_LEVELS} levels deep")));
        }
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    let at = format!("{at}/{}", segment(name));
                    if level > 0 && matches!(name.as_str(), "$id" | "id") && is_identifier(name, value, schema) {
                        return Err(refused(&at, "only the root of the schema may have an identifier".into()));
                    }
                    pending.push((value, at, level + 1));
                }
            }
            Value::Array(items) => {
                pending
                    .extend(items.iter().enumerate().map(|(index, item)| (item, format!("{at}/{index}"), level + 1)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether a member with this name and value is an identifier. `id` is an identifier only in drafts 3 and 4.
fn is_identifier(name: &str, value: &Value, root: &Value) -> bool {
    let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let is_early = ["draft-03", "draft-04"].iter().any(|early| draft.contains(early));
    value.is_string() && (name == "$id" || is_early)
}

/// Returns the size of a value: the number of nested values, including the value itself, plus one for each 64 bytes of
/// text.
pub(super) fn size(value: &Value) -> u64 {
    let (mut size, mut pending) = (0, vec![value]);
    while let Some(value) = pending.pop() {
        size += 1;
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(object) => pending.extend(object.values()),
            Value::String(text) => size += text.len() as u64 / 64,
            _ => {}
        }
    }
    size
}
