//! Restricts a source to the fields that the steps read.

use std::sync::Arc;

use crate::pipeline::expression::accumulator::Accumulator;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::projection::ProjectionKind;
use crate::pipeline::expression::read_fields::ReadFields;
use crate::pipeline::plan::logical::{LogicalPlan, PlanNode, PlanSource, PlanStep};
use crate::pipeline::plan::options::Surroundings;

pub fn apply(plan: &mut LogicalPlan, around: &Surroundings) -> bool {
    let mut fields = ReadFields::default();
    if let Some(path) = &around.join {
        fields.add(path);
    }
    if !read(&plan.nodes, &mut fields) {
        return false;
    }
    let (filters, pruned) = match &mut plan.source {
        PlanSource::Documents(_) => return false,
        PlanSource::Events(events) => (&events.filters, &mut events.fields),
        PlanSource::States(states) => (&states.filters, &mut states.fields),
    };
    for filter in filters {
        filter.visit_paths(&mut |path| fields.add(path));
    }
    *pruned = fields.into_names();
    pruned.is_some()
}

/// If the first step of a plan builds new rows, restricts the plan's source to the fields that this step reads. The
/// rows after each step stay complete.
pub fn before_first(plan: &mut LogicalPlan) {
    let mut fields = ReadFields::default();
    let is_rebuilt = plan.nodes.first().is_some_and(|first| read(std::slice::from_ref(first), &mut fields));
    if !is_rebuilt || fields.is_whole {
        return;
    }
    match &mut plan.source {
        PlanSource::Documents(_) => {}
        PlanSource::Events(events) => events.fields = Some(fields.names),
        PlanSource::States(states) => {
            for filter in &states.filters {
                filter.visit_paths(&mut |path| fields.add(path));
            }
            states.fields = Some(fields.names);
        }
    }
}

/// Returns the fields that the steps read from their rows, or `None` if the steps read or return whole rows.
pub fn of_steps(nodes: &[PlanNode]) -> Option<ReadFields> {
    let mut fields = ReadFields::default();
    (read(nodes, &mut fields) && !fields.is_whole).then_some(fields)
}

/// Collects the fields that the steps read, up to the first step that builds new rows. Returns `false` if there is no
/// such step, or if `$unionWith` or `$redact` comes first.
fn read(nodes: &[PlanNode], fields: &mut ReadFields) -> bool {
    for node in nodes {
        match &node.step {
            PlanStep::Match(filter) => {
                filter.visit_paths(&mut |path| fields.add(path));
            }
            PlanStep::Sort { keys, .. } => {
                keys.iter().for_each(|key| fields.add(key.path.text()));
                fields.add("_id");
            }
            PlanStep::Limit(_) | PlanStep::Skip(_) | PlanStep::Sample(_) => {}
            PlanStep::Unwind(unwind) => fields.add(&unwind.path.segments().join(".")),
            PlanStep::Count(_) => return true,
            PlanStep::Lookup(lookup) => {
                if let Some((local, _)) = &lookup.join {
                    fields.add(local.text());
                }
                lookup.variables.iter().for_each(|(_, expr)| fields.add_inputs(expr));
            }
            PlanStep::Follow(follow) => fields.add(&follow.local.segments().join(".")),
            PlanStep::Project(projection) => {
                projection.visit_paths(&mut |path| fields.add(path));
                if projection.kind == ProjectionKind::Inclusion {
                    fields.keeps_order = true;
                    return true;
                }
            }
            PlanStep::Group(group) => return rebuilt(&group.id, &group.fields, fields),
            PlanStep::Bucket(bucket) => return rebuilt(&bucket.by, &bucket.fields, fields),
            PlanStep::BucketAuto(bucket) => return rebuilt(&bucket.by, &bucket.fields, fields),
            PlanStep::ReplaceRoot(expr) => return rebuilt(expr, &[], fields),
            PlanStep::Facet(facets) => return facets.iter().all(|(_, nodes)| read(nodes, fields)),
            PlanStep::Windows(windows) => {
                windows.visit_paths(&mut |path| fields.add(path));
                windows.write.visit_paths(&mut |path| fields.add(path));
                fields.add("_id");
            }
            PlanStep::GraphLookup(lookup) => fields.add_inputs(&lookup.search.start),
            // The added rows contain whole partition keys.
            PlanStep::Densify(densify) => {
                let paths = std::iter::once(&densify.field).chain(&densify.partition);
                paths.for_each(|path| fields.add(&path.segments().join(".")));
            }
            PlanStep::Union(_) | PlanStep::Redact(_) => return false,
        }
    }
    false
}

fn rebuilt(expr: &Expr, computed: &[(Arc<str>, Accumulator)], fields: &mut ReadFields) -> bool {
    fields.add_inputs(expr);
    for (_, accumulator) in computed {
        accumulator.visit_paths(&mut |path| fields.add(&path.segments().join(".")));
    }
    true
}
