//! Warns about names that rows cannot have. Rows before `$fold` are events, and rows after it are states.
//!
//! As in MongoDB, reading a missing field is not an error.

use super::logical::{Node, Plan, Source, Step};
use crate::model::event::{EVENT_FIELDS, EVENT_ID};

/// Returns warnings about names in the plan and in the plans inside it.
pub fn warnings(plan: &Plan) -> Vec<String> {
    let mut found = Vec::new();
    check(plan, &mut found);
    found
}

fn check(plan: &Plan, found: &mut Vec<String>) {
    let mut warn = |warning: Option<String>| {
        if let Some(warning) = warning.filter(|warning| !found.contains(warning)) {
            found.push(warning);
        }
    };
    match &plan.source {
        Source::Documents(_) => {}
        Source::Events(_) => names(&plan.nodes, &mut |path| warn(of_event(path))),
        Source::States(states) => {
            for filter in &states.event_filters {
                filter.visit_paths(&mut |path| warn(of_event(path)));
            }
            names(&plan.nodes, &mut |path| warn(of_state(path)));
        }
    }
    for node in &plan.nodes {
        match &node.step {
            Step::Lookup(lookup) => check(&lookup.plan, found),
            Step::Union(plan) => check(plan, found),
            Step::Match(_)
            | Step::Project(_)
            | Step::Group(_)
            | Step::Sort { .. }
            | Step::Limit(_)
            | Step::Skip(_)
            | Step::Count(_)
            | Step::Unwind(_)
            | Step::ReplaceRoot(_)
            | Step::Facet(_)
            | Step::Bucket(_)
            | Step::BucketAuto(_)
            | Step::Follow(_)
            | Step::Sample(_)
            | Step::Redact(_) => {}
        }
    }
}

fn of_event(path: &str) -> Option<String> {
    let is_known = match first(path) {
        "" | "_id" => true,
        EVENT_ID => false,
        name => EVENT_FIELDS.contains(&name),
    };
    let first = first(path);
    (!is_known).then(|| format!("events have no field '{first}': use 'payload.{path}', or add $fold before this stage"))
}

fn of_state(path: &str) -> Option<String> {
    match first(path) {
        "aggregate_id" => Some("after $fold the aggregate's id is '_id', not 'aggregate_id'".to_owned()),
        "event_type" => Some("after $fold rows are states, which have no 'event_type'".to_owned()),
        _ => None,
    }
}

fn first(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

/// Visits the paths that steps read from the source's rows, up to the first step that may change the fields.
fn names(nodes: &[Node], visit: &mut dyn FnMut(&str)) {
    for node in nodes {
        match &node.step {
            Step::Match(filter) => {
                filter.visit_paths(visit);
            }
            Step::Sort { keys, .. } => keys.iter().for_each(|key| visit(key.path.text())),
            Step::Limit(_) | Step::Skip(_) | Step::Sample(_) => {}
            Step::Group(group) => {
                group.id.visit_paths(&mut |path| visit(&path.segments().join(".")));
                for (_, accumulator) in &group.fields {
                    accumulator.visit_paths(&mut |path| visit(&path.segments().join(".")));
                }
                return;
            }
            Step::Unwind(unwind) => return visit(&unwind.path.segments().join(".")),
            Step::Facet(facets) => return facets.iter().for_each(|(_, nodes)| names(nodes, visit)),
            Step::Project(_)
            | Step::Count(_)
            | Step::ReplaceRoot(_)
            | Step::Bucket(_)
            | Step::BucketAuto(_)
            | Step::Lookup(_)
            | Step::Follow(_)
            | Step::Union(_)
            | Step::Redact(_) => return,
        }
    }
}
