//! Rewrites a plan so that the plan reads fewer rows and does less work. The rewritten plan returns the same rows as
//! the original plan.

mod choose_source;
mod fuse_limits;
mod index_lookup;
mod merge_matches;
mod move_match;
pub mod order_conjuncts;
pub mod prune_fields;
mod push_limit;
mod push_match;

use super::logical::{LogicalPlan, PlanNode, PlanStep};
use super::options::{Options, SourceChoice, Surroundings};
use crate::model::value::Value;

/// A rewriting rule, which makes a plan cheaper or leaves it unchanged.
struct Rule {
    name: &'static str,
    apply: Apply,
    /// Whether the rule applies even without push-down. Rules that influence which rows cause errors always apply,
    /// because the errors of a pipeline must not depend on its source.
    always: bool,
    /// Whether the rule changes which rows reach a step. Such a rule does not apply to a list of steps if any of the
    /// steps uses random numbers. The random number of a row depends on the preceding rows. A pipeline must use the
    /// same random numbers as its preview, and a preview does not move filters.
    moves_filters: bool,
}

impl Rule {
    const fn new(name: &'static str, apply: Apply) -> Rule {
        Rule { name, apply, always: false, moves_filters: false }
    }

    const fn always(name: &'static str, apply: Apply) -> Rule {
        Rule { name, apply, always: true, moves_filters: false }
    }

    const fn moving(name: &'static str, apply: Apply) -> Rule {
        Rule { name, apply, always: true, moves_filters: true }
    }
}

/// The function of a rule. The function returns whether the plan changed.
enum Apply {
    /// A rewriting of steps, independent of their source.
    Nodes(fn(&mut Vec<PlanNode>) -> bool),
    /// A rewriting of a source together with the steps of its plan.
    Plan(fn(&mut LogicalPlan, &Surroundings) -> bool),
}

/// Returns the rules, in the order in which they apply.
fn rules() -> [Rule; 10] {
    [
        // Merges adjacent filters first, so that later rules process one filter.
        Rule::moving("merge_matches", Apply::Nodes(merge_matches::apply)),
        // Moves filters towards the source, where they exclude rows early.
        Rule::moving("move_match", Apply::Nodes(move_match::apply)),
        // Merges filters that became adjacent when they moved.
        Rule::moving("merge_matches", Apply::Nodes(merge_matches::apply)),
        // Orders the conjuncts of whole filters, before some of the conjuncts move to the source.
        Rule::always("order_conjuncts", Apply::Nodes(order_conjuncts::apply)),
        // Limits sorts to the rows that later steps need.
        Rule::new("fuse_limits", Apply::Nodes(fuse_limits::apply)),
        // Runs before filters are pushed, because the rule looks for a filter that cannot be pushed.
        Rule::new("index_lookup", Apply::Nodes(index_lookup::apply)),
        // Runs before the pushing rules, because the source determines which filters and limits can be pushed.
        Rule::new("choose_source", Apply::Plan(choose_source::apply)),
        Rule::new("push_match", Apply::Plan(push_match::apply)),
        // Runs after filters are pushed, because only a limit with no filter before it can be pushed.
        Rule::new("push_limit", Apply::Plan(push_limit::apply)),
        // Runs last, when the fields that the steps read are final.
        Rule::new("prune_fields", Apply::Plan(prune_fields::apply)),
    ]
}

/// Applies every rule that the options allow to the plan and to all plans inside the plan. Returns the names of the
/// rules that changed a plan.
pub fn optimize(plan: &mut LogicalPlan, options: &Options) -> Vec<&'static str> {
    let around = Surroundings { options, join: None };
    let mut applied = Vec::new();
    for rule in &rules() {
        let forced = rule.name == "choose_source" && options.source != SourceChoice::Auto;
        if (options.push_down || rule.always || forced) && rule.apply_to(plan, &around) && !applied.contains(&rule.name)
        {
            applied.push(rule.name);
        }
    }
    applied
}

/// Applies every rule to the plans inside the steps. Applies to the plan itself only the rules that change neither the
/// order nor the results of the steps. Skips the rules that the options do not allow.
pub fn optimize_inside(plan: &mut LogicalPlan, options: &Options) {
    let around = Surroundings { options, join: None };
    for rule in rules().iter().filter(|rule| options.push_down || rule.always) {
        rule.apply_inside(&mut plan.nodes, &around);
    }
    order_conjuncts::apply(&mut plan.nodes);
    if options.push_down {
        index_lookup::apply(&mut plan.nodes);
    }
    if options.push_down || options.source != SourceChoice::Auto {
        choose_source::apply(plan, &around);
    }
}

impl Rule {
    fn apply_to(&self, plan: &mut LogicalPlan, around: &Surroundings) -> bool {
        let changed = match self.apply {
            Apply::Nodes(_) => false,
            Apply::Plan(apply) => apply(plan, around),
        };
        self.apply_to_nodes(&mut plan.nodes, around) || changed
    }

    /// Applies the rule to `nodes`, and to the plans and steps nested in the nodes. If one of the nodes uses random
    /// numbers, a rule that moves filters changes only the nested plans and steps.
    fn apply_to_nodes(&self, nodes: &mut Vec<PlanNode>, around: &Surroundings) -> bool {
        let may_change = !self.moves_filters || !nodes.iter().any(|node| draws(&node.text));
        let changed = match self.apply {
            Apply::Nodes(apply) => may_change && apply(nodes),
            Apply::Plan(_) => false,
        };
        self.apply_inside(nodes, around) || changed
    }

    /// Applies the rule to the plans and steps nested in the nodes. Returns whether a plan or step changed.
    fn apply_inside(&self, nodes: &mut [PlanNode], around: &Surroundings) -> bool {
        let alone = Surroundings { options: around.options, join: None };
        let mut changed = false;
        for node in nodes {
            match &mut node.step {
                PlanStep::Facet(facets) => {
                    for (_, nodes) in facets {
                        changed |= self.apply_to_nodes(nodes, around);
                    }
                }
                PlanStep::Follow(follow) => changed |= self.apply_to_nodes(&mut follow.nodes, around),
                PlanStep::Lookup(lookup) => {
                    let join = lookup.join.as_ref().map(|(_, foreign)| foreign.text().to_string());
                    changed |= self.apply_to(&mut lookup.plan, &Surroundings { options: around.options, join });
                }
                PlanStep::GraphLookup(lookup) => changed |= self.apply_to(&mut lookup.plan, &alone),
                PlanStep::Union(plan) => changed |= self.apply_to(plan, &alone),
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
                | PlanStep::Densify(_) => {}
            }
        }
        changed
    }
}

/// Returns whether a specification contains the name of an operator that draws random numbers.
pub fn draws(spec: &Value) -> bool {
    match spec {
        Value::Object(object) => {
            object.iter().any(|(name, value)| matches!(&**name, "$rand" | "$sampleRate") || draws(value))
        }
        Value::Array(items) => items.iter().any(draws),
        _ => false,
    }
}
