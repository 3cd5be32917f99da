//! Finds the aggregate types that a pipeline reads. Events of other aggregate types do not change the result of the
//! pipeline.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::logical::{LogicalPlan, PlanNode, PlanSource, PlanStep};
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::source::streams::StreamFilter;

/// Returns the types whose events or states a plan reads, or `None` if the plan may read any type. The plan must not be
/// optimized, so that the result does not depend on the options.
pub fn read_types(plan: &LogicalPlan) -> Option<BTreeSet<Arc<str>>> {
    let mut types = BTreeSet::new();
    add_plan(plan, &mut types)?;
    Some(types)
}

/// Adds the types that a plan reads. Returns `None` if the plan may read any type.
fn add_plan(plan: &LogicalPlan, types: &mut BTreeSet<Arc<str>>) -> Option<()> {
    let filters: &[Filter] = match &plan.source {
        PlanSource::Documents(_) => return add_nodes(&plan.nodes, types),
        PlanSource::Events(events) => &events.filters,
        PlanSource::States(states) => &states.event_filters,
    };
    let following = plan.nodes.iter().map_while(|node| match &node.step {
        PlanStep::Match(filter) => Some(filter),
        _ => None,
    });
    let mut streams = StreamFilter::default();
    for conjunct in filters.iter().chain(following).flat_map(Filter::conjuncts) {
        streams.take_set(&conjunct, "_id");
    }
    types.extend(streams.aggregate_types?);
    add_nodes(&plan.nodes, types)
}

/// Adds the types that the plans inside the steps read. Returns `None` if a plan may read any type.
fn add_nodes(nodes: &[PlanNode], types: &mut BTreeSet<Arc<str>>) -> Option<()> {
    nodes.iter().try_for_each(|node| match &node.step {
        PlanStep::Facet(facets) => facets.iter().try_for_each(|(_, nodes)| add_nodes(nodes, types)),
        PlanStep::Lookup(lookup) => add_plan(&lookup.plan, types),
        PlanStep::GraphLookup(lookup) => add_plan(&lookup.plan, types),
        PlanStep::Union(plan) => add_plan(plan, types),
        // An edge may lead to an aggregate of any type.
        PlanStep::Follow(_) => None,
        PlanStep::Match(_)
        | PlanStep::Project(_)
        | PlanStep::Group(_)
        | PlanStep::Sort { .. }
        | PlanStep::Limit(_)
        | PlanStep::Skip(_)
        | PlanStep::Count(_)
        | PlanStep::Unwind(_)
        | PlanStep::ReplaceRoot(_)
        | PlanStep::Bucket(_)
        | PlanStep::BucketAuto(_)
        | PlanStep::Sample(_)
        | PlanStep::Redact(_)
        | PlanStep::Windows(_)
        | PlanStep::Densify(_) => Some(()),
    })
}
