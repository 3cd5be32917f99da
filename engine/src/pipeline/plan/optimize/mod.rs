//! Rewrites a plan so that less is read and less is done; what comes out are the same rows.

mod choose_source;
mod fuse_limits;
mod index_lookup;
mod merge_matches;
mod move_match;
mod order_conjuncts;
mod prune_fields;
mod push_limit;
mod push_match;
mod surroundings;

use super::logical::{Node, Plan, Step};
use super::options::{Options, SourceChoice};
use surroundings::Surroundings;

/// Something that makes a plan cheaper, or leaves it alone.
struct Rule {
    name: &'static str,
    apply: Apply,
    /// Whether it is applied even where nothing is pushed down: it decides which errors are spared, and these are to be the
    /// same whatever a pipeline is read from.
    always: bool,
}

impl Rule {
    const fn new(name: &'static str, apply: Apply) -> Rule {
        Rule { name, apply, always: false }
    }

    const fn always(name: &'static str, apply: Apply) -> Rule {
        Rule { name, apply, always: true }
    }
}

/// A rule says whether it changed anything.
enum Apply {
    /// Works on steps, whatever rows they are given.
    Nodes(fn(&mut Vec<Node>) -> bool),
    /// Works on a source and the steps over it.
    Plan(fn(&mut Plan, &Surroundings) -> bool),
}

/// Applies every rule to the plan and all plans inside it. Returns the names of those that changed something.
pub fn optimize(plan: &mut Plan, options: &Options) -> Vec<&'static str> {
    let rules = [
        // Adjacent filters first, so that a later rule sees one.
        Rule::always("merge_matches", Apply::Nodes(merge_matches::apply)),
        // Filters go towards the source, where they spare the most.
        Rule::always("move_match", Apply::Nodes(move_match::apply)),
        // Those that met on their way become one again.
        Rule::always("merge_matches", Apply::Nodes(merge_matches::apply)),
        // Whole filters are ordered, before some of their parts go to the source.
        Rule::always("order_conjuncts", Apply::Nodes(order_conjuncts::apply)),
        // Sorts learn how many rows are wanted of them.
        Rule::new("fuse_limits", Apply::Nodes(fuse_limits::apply)),
        // Before filters are pushed: it looks for one that cannot be.
        Rule::new("index_lookup", Apply::Nodes(index_lookup::apply)),
        // The source decides what can be pushed into it, so it comes before the pushing.
        Rule::new("choose_source", Apply::Plan(choose_source::apply)),
        Rule::new("push_match", Apply::Plan(push_match::apply)),
        // Only a limit that no filter precedes any more may be pushed.
        Rule::new("push_limit", Apply::Plan(push_limit::apply)),
        // Last, when it is settled what the steps read.
        Rule::new("prune_fields", Apply::Plan(prune_fields::apply)),
    ];
    let around = Surroundings { options, join: None };
    let mut applied = Vec::new();
    for rule in &rules {
        let forced = rule.name == "choose_source" && options.source != SourceChoice::Auto;
        if (options.push_down || rule.always || forced) && rule.apply_to(plan, &around) && !applied.contains(&rule.name)
        {
            applied.push(rule.name);
        }
    }
    applied
}

impl Rule {
    fn apply_to(&self, plan: &mut Plan, around: &Surroundings) -> bool {
        let changed = match self.apply {
            Apply::Nodes(apply) => apply(&mut plan.nodes),
            Apply::Plan(apply) => apply(plan, around),
        };
        self.apply_inside(&mut plan.nodes, around) || changed
    }

    /// Applies the rule to the plans and steps that stages hold.
    fn apply_inside(&self, nodes: &mut [Node], around: &Surroundings) -> bool {
        let mut changed = false;
        for node in nodes {
            match &mut node.step {
                Step::Facet(facets) => {
                    for (_, nodes) in facets {
                        if let Apply::Nodes(apply) = self.apply {
                            changed |= apply(nodes);
                        }
                        changed |= self.apply_inside(nodes, around);
                    }
                }
                Step::Follow(follow) => {
                    if let Apply::Nodes(apply) = self.apply {
                        changed |= apply(&mut follow.nodes);
                    }
                    changed |= self.apply_inside(&mut follow.nodes, around);
                }
                Step::Lookup(lookup) => {
                    let join = lookup.join.as_ref().map(|(_, foreign)| foreign.text().to_string());
                    changed |= self.apply_to(&mut lookup.plan, &Surroundings { options: around.options, join });
                }
                Step::Union(plan) => {
                    changed |= self.apply_to(plan, &Surroundings { options: around.options, join: None });
                }
                Step::Match(_)
                | Step::Project(_)
                | Step::Group(_)
                | Step::Sort { .. }
                | Step::Limit(_)
                | Step::Skip(_)
                | Step::Count(_)
                | Step::Unwind(_)
                | Step::ReplaceRoot(_)
                | Step::Bucket(_)
                | Step::BucketAuto(_)
                | Step::Sample(_)
                | Step::Redact(_) => {}
            }
        }
        changed
    }
}
