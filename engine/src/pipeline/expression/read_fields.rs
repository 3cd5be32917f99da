//! The fields that steps read from a row.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::expr::Expr;

/// The fields that steps read from a row.
#[derive(Debug, Default)]
pub struct ReadFields {
    pub names: BTreeSet<Arc<str>>,
    /// Whether a step reads the whole row.
    pub is_whole: bool,
    /// Whether a step returns fields in the order that they have in the row.
    pub keeps_order: bool,
}

impl ReadFields {
    /// Adds the first field of a path. The empty path denotes the whole row.
    pub fn add(&mut self, path: &str) {
        let first = path.split('.').next().unwrap_or(path);
        self.is_whole |= first.is_empty();
        if !self.names.contains(first) {
            self.names.insert(first.into());
        }
    }

    /// Adds the fields that an expression reads.
    pub fn add_inputs(&mut self, expr: &Expr) {
        expr.visit_paths(&mut |path| self.add(&path.segments().join(".")));
    }

    /// Returns the names of the fields, or `None` if a step reads the whole row.
    pub fn into_names(self) -> Option<BTreeSet<Arc<str>>> {
        (!self.is_whole).then_some(self.names)
    }
}
