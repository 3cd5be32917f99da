//! Uses an index for a `$lookup` without `localField` and `foreignField`, if the sub-pipeline begins with a `$match`
//! that contains the condition `{$expr: {$eq: ["$field", "$$variable"]}}`.

use std::sync::Arc;

use crate::model::value::Value;
use crate::pipeline::expression::expr;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::plan::logical::{LookupStep, PlanNode, PlanStep};
use crate::pipeline::value::path::FieldPath;

pub fn apply(nodes: &mut Vec<PlanNode>) -> bool {
    let mut changed = false;
    for node in nodes {
        if let PlanStep::Lookup(lookup) = &mut node.step
            && lookup.join.is_none()
            && lookup.probe.is_none()
            && !lookup.variables.is_empty()
        {
            lookup.probe = probe(lookup);
            changed |= lookup.probe.is_some();
        }
    }
    changed
}

fn probe(lookup: &LookupStep) -> Option<(FieldPath, Expr)> {
    let PlanStep::Match(filter) = &lookup.plan.nodes.first()?.step else { return None };
    filter.conjuncts().iter().find_map(|conjunct| equality(conjunct, lookup))
}

fn equality(conjunct: &Filter, lookup: &LookupStep) -> Option<(FieldPath, Expr)> {
    let equal = conjunct.spec().get("$expr")?.get("$eq")?;
    let [Value::String(a), Value::String(b)] = equal.as_array()? else { return None };
    [(a, b), (b, a)].into_iter().find_map(|(field, variable)| {
        let path = field.strip_prefix('$').filter(|path| !path.starts_with('$'))?;
        Some((FieldPath::parse(path).ok()?, of_variable(variable, lookup)?))
    })
}

/// Returns the expression for `text`, or `None` if `text` is not a path into a variable of the lookup.
fn of_variable(text: &Arc<str>, lookup: &LookupStep) -> Option<Expr> {
    let name = text.strip_prefix("$$")?.split('.').next()?;
    let known = lookup.variables.iter().any(|(variable, _)| **variable == *name);
    known.then(|| expr::variable(text, &lookup.names)).flatten()
}
