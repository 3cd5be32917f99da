//! Estimates the work of checking a value against a schema before the validator starts.

use serde_json::Value;

use super::graph::{Graph, SchemaNode, size};

/// The maximum number of steps that one [`SchemaMeter`] counts. A step takes about ten nanoseconds.
const MAX_STEPS: u64 = 40_000_000;
/// The number of steps that are counted for each evaluation, in addition to the steps of its keywords.
const STEPS_PER_EVALUATION: u64 = 10;
/// The maximum nesting depth of evaluations. Each level takes stack space.
const MAX_NESTED: usize = 256;

/// A counter of evaluations and steps. The counts are upper bounds, because they assume that no keyword ends the check
/// early.
#[derive(Debug, Default)]
pub struct SchemaMeter {
    steps: u64,
    pub(super) evaluations: u64,
}

impl SchemaMeter {
    /// Adds the evaluations and steps of checking a value. The error describes the limit that the check would exceed.
    pub(super) fn evaluate(&mut self, graph: &Graph, value: &Value) -> Result<(), &'static str> {
        self.at(graph, 0, value, 1, 0)
    }

    fn at(
        &mut self,
        graph: &Graph,
        place: usize,
        value: &Value,
        times: u64,
        nested: usize,
    ) -> Result<(), &'static str> {
        let Some(node) = graph.nodes.get(place) else { return Ok(()) };
        if nested >= MAX_NESTED {
            return Err("the schema and the value are nested too deeply to be checked");
        }
        self.evaluations = self.evaluations.saturating_add(times);
        self.take(times, STEPS_PER_EVALUATION.saturating_add(node.steps))?;
        let below = nested + 1;
        let repeats = times.saturating_mul(node.times);
        node.same_value.iter().try_for_each(|next| self.at(graph, *next, value, repeats, below))?;
        match value {
            Value::String(text) => self.take(times, text_steps(text, node.byte_steps))?,
            Value::Array(items) => {
                if node.unique_items {
                    self.take(times, size(value))?;
                }
                for (index, item) in items.iter().enumerate() {
                    let mut schemas = node.prefix_items.get(index).into_iter().chain(&node.items);
                    schemas.try_for_each(|next| self.at(graph, *next, item, times, below))?;
                }
            }
            Value::Object(members) => {
                members.iter().try_for_each(|(name, value)| self.member(graph, node, name, value, (times, below)))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn member(
        &mut self,
        graph: &Graph,
        node: &SchemaNode,
        name: &str,
        value: &Value,
        (times, nested): (u64, usize),
    ) -> Result<(), &'static str> {
        self.take(times, 1)?;
        if !node.property_names.is_empty() {
            let name = Value::from(name);
            node.property_names.iter().try_for_each(|next| self.at(graph, *next, &name, times, nested))?;
        }
        for (steps, next) in &node.pattern_properties {
            self.take(times, text_steps(name, *steps))?;
            self.at(graph, *next, value, times, nested)?;
        }
        match node.properties.get(name) {
            Some(next) => self.at(graph, *next, value, times, nested),
            None => node.other_properties.iter().try_for_each(|next| self.at(graph, *next, value, times, nested)),
        }
    }

    fn take(&mut self, times: u64, steps: u64) -> Result<(), &'static str> {
        self.steps = self.steps.saturating_add(times.saturating_mul(steps));
        if self.steps > MAX_STEPS { Err("checking the value against the schema takes too many steps") } else { Ok(()) }
    }
}

fn text_steps(text: &str, byte_steps: u64) -> u64 {
    let bytes = text.len() as u64;
    bytes.saturating_mul(byte_steps).saturating_add(bytes / 16)
}
