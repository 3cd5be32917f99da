//! The limits of one call of a script.

use serde::{Deserialize, Serialize};

/// The limits of one call of a script. A manifest may override the limits for its plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallLimits {
    pub operations: u64,
    pub deadline_ms: u64,
    pub memory_bytes: u64,
    pub string_bytes: usize,
    pub array_items: usize,
    pub map_items: usize,
    pub call_levels: usize,
    pub expression_depth: usize,
    pub function_expression_depth: usize,
    pub variables: usize,
    pub functions: usize,
}

impl Default for CallLimits {
    fn default() -> CallLimits {
        CallLimits {
            operations: 500_000,
            deadline_ms: 250,
            memory_bytes: 64 << 20,
            string_bytes: 1 << 20,
            array_items: 10_000,
            map_items: 10_000,
            call_levels: 32,
            expression_depth: 64,
            function_expression_depth: 32,
            variables: 256,
            functions: 128,
        }
    }
}

impl CallLimits {
    /// Returns the lower of the two values for each limit.
    pub fn at_most(self, most: CallLimits) -> CallLimits {
        CallLimits {
            operations: self.operations.min(most.operations),
            deadline_ms: self.deadline_ms.min(most.deadline_ms),
            memory_bytes: self.memory_bytes.min(most.memory_bytes),
            string_bytes: self.string_bytes.min(most.string_bytes),
            array_items: self.array_items.min(most.array_items),
            map_items: self.map_items.min(most.map_items),
            call_levels: self.call_levels.min(most.call_levels),
            expression_depth: self.expression_depth.min(most.expression_depth),
            function_expression_depth: self.function_expression_depth.min(most.function_expression_depth),
            variables: self.variables.min(most.variables),
            functions: self.functions.min(most.functions),
        }
    }

    /// Rejects limits of 0, because rhai interprets 0 as "no limit". Also rejects limits that do not fit in 63 bits.
    pub fn check(&self) -> Result<(), String> {
        let counts = [
            ("operations", self.operations),
            ("deadline_ms", self.deadline_ms),
            ("memory_bytes", self.memory_bytes),
            ("string_bytes", self.string_bytes as u64),
            ("array_items", self.array_items as u64),
            ("map_items", self.map_items as u64),
            ("call_levels", self.call_levels as u64),
            ("expression_depth", self.expression_depth as u64),
            ("function_expression_depth", self.function_expression_depth as u64),
            ("variables", self.variables as u64),
            ("functions", self.functions as u64),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0 || i64::try_from(*count).is_err()) {
            Some((name, _)) => Err(format!("{name} must be at least 1 and fit in 63 bits")),
            None => Ok(()),
        }
    }
}

/// The limits that a manifest sets. If a limit is `None`, the limit of the host applies.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    operations: Option<u64>,
    deadline_ms: Option<u64>,
    memory_bytes: Option<u64>,
    string_bytes: Option<usize>,
    array_items: Option<usize>,
    map_items: Option<usize>,
    call_levels: Option<usize>,
    expression_depth: Option<usize>,
    function_expression_depth: Option<usize>,
    variables: Option<usize>,
    functions: Option<usize>,
}

impl Overrides {
    /// Returns the limits that the manifest sets. For each limit that the manifest does not set, returns the limit of
    /// the host.
    pub fn over(self, host: CallLimits) -> CallLimits {
        CallLimits {
            operations: self.operations.unwrap_or(host.operations),
            deadline_ms: self.deadline_ms.unwrap_or(host.deadline_ms),
            memory_bytes: self.memory_bytes.unwrap_or(host.memory_bytes),
            string_bytes: self.string_bytes.unwrap_or(host.string_bytes),
            array_items: self.array_items.unwrap_or(host.array_items),
            map_items: self.map_items.unwrap_or(host.map_items),
            call_levels: self.call_levels.unwrap_or(host.call_levels),
            expression_depth: self.expression_depth.unwrap_or(host.expression_depth),
            function_expression_depth: self.function_expression_depth.unwrap_or(host.function_expression_depth),
            variables: self.variables.unwrap_or(host.variables),
            functions: self.functions.unwrap_or(host.functions),
        }
    }
}
