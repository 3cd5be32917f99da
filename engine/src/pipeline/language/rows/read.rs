//! Warns about fields that a stage reads but that its rows do not have.

use std::sync::Arc;

use super::RowFields;
use crate::pipeline::expression::accumulator::Accumulator;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::filter::{FilterNode, Test};
use crate::pipeline::language::ast::Stage;
use crate::pipeline::value::context::Context;

/// The maximum length of a path to the items of an array. Longer paths are not checked, because declared names are
/// shorter. The limit also bounds the work: each level of a nested filter copies the paths of the levels below.
const MAX_PATH_BYTES: usize = 600;

impl RowFields {
    /// Warns about the fields that a stage reads but that the rows do not have.
    pub fn check(&self, stage: &Stage, query: &Context) {
        visit(stage, &mut |path| {
            if let Some(warning) = self.warning(path, query) {
                query.warn(warning);
            }
        });
        if let Stage::Lookup(lookup) = stage
            && let Some((_, foreign)) = &lookup.join
            && let Some(warning) = lookup.pipeline.first.warning(foreign.text(), query)
        {
            query.warn(warning);
        }
        if let Stage::GraphLookup(lookup) = stage {
            let from = lookup.search.connect_from.segments().join(".");
            for path in [&from, lookup.search.connect_to.text().as_ref()] {
                if let Some(warning) = lookup.pipeline.last.warning(path, query) {
                    query.warn(warning);
                }
            }
        }
    }
}

/// Visits the paths that a stage reads from its rows. Does not visit the paths in the sub-pipelines of the stage,
/// because these paths are checked against the rows of the sub-pipelines.
fn visit(stage: &Stage, visit: &mut dyn FnMut(&str)) {
    match stage {
        Stage::Match(filter) => {
            filter.visit_paths(visit);
            of_items(filter.node(), visit);
        }
        Stage::Project(projection) | Stage::Set(projection) | Stage::Unset(projection) => {
            projection.visit_reads(visit);
        }
        Stage::Group(group) => group.visit_paths(&mut |path| visit(&path.segments().join("."))),
        Stage::Sort(keys) => keys.iter().for_each(|key| visit(key.path.text())),
        Stage::Unwind(unwind) => visit(&unwind.path.segments().join(".")),
        Stage::SortByCount(expr) | Stage::ReplaceRoot(expr) => of_expr(expr, visit),
        Stage::Bucket(bucket) => {
            of_expr(&bucket.by, visit);
            of_fields(&bucket.fields, visit);
        }
        Stage::BucketAuto(bucket) => {
            of_expr(&bucket.by, visit);
            of_fields(&bucket.fields, visit);
        }
        Stage::Lookup(lookup) => {
            lookup.join.iter().for_each(|(local, _)| visit(local.text()));
            lookup.variables.iter().for_each(|(_, expr)| of_expr(expr, visit));
        }
        Stage::Windows(windows) => windows.visit_paths(visit),
        Stage::Fill(fill) => {
            fill.windows.iter().for_each(|windows| windows.visit_paths(visit));
            fill.values.iter().for_each(|values| values.visit_reads(visit));
        }
        Stage::Densify(densify) => {
            let paths = std::iter::once(&densify.field).chain(&densify.partition);
            paths.for_each(|path| visit(&path.segments().join(".")));
        }
        Stage::GraphLookup(lookup) => of_expr(&lookup.search.start, visit),
        Stage::Follow(follow) => visit(&follow.local.segments().join(".")),
        // The paths of `$redact` begin at the row and at each object inside the row.
        Stage::Redact(_) => {}
        Stage::Documents(_)
        | Stage::Fold(_)
        | Stage::Limit(_)
        | Stage::Skip(_)
        | Stage::Count(_)
        | Stage::Facet(_)
        | Stage::UnionWith(..)
        | Stage::Sample(_) => {}
    }
}

/// Visits the paths that `$elemMatch` conditions read from the items of arrays.
fn of_items(node: &FilterNode, visit: &mut dyn FnMut(&str)) {
    match node {
        FilterNode::And(nodes) | FilterNode::Or(nodes) | FilterNode::Nor(nodes) => {
            nodes.iter().for_each(|node| of_items(node, visit))
        }
        FilterNode::Not(node) => of_items(node, visit),
        FilterNode::Field(array, Test::ElemMatchObject(node)) => {
            let above = array.text();
            let mut inside = |path: &str| {
                if above.len() + path.len() < MAX_PATH_BYTES {
                    visit(&format!("{above}.{path}"));
                }
            };
            node.visit_paths(&mut inside);
            of_items(node, &mut inside);
        }
        FilterNode::Constant(_) | FilterNode::Expr(_) | FilterNode::Schema(_) | FilterNode::Field(..) => {}
    }
}

fn of_expr(expr: &Expr, visit: &mut dyn FnMut(&str)) {
    expr.visit_paths(&mut |path| visit(&path.segments().join(".")));
}

fn of_fields(fields: &[(Arc<str>, Accumulator)], visit: &mut dyn FnMut(&str)) {
    for (_, accumulator) in fields {
        accumulator.visit_paths(&mut |path| visit(&path.segments().join(".")));
    }
}
