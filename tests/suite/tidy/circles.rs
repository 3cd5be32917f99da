//! Finds dependency cycles.

use std::collections::{BTreeMap, BTreeSet};

/// The dependencies of each node.
pub type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Returns the strongly connected components: the maximal sets of nodes in which each node depends on every other node,
/// directly or indirectly. Single nodes are omitted.
pub fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let mut finished = Vec::new();
    let mut seen = BTreeSet::new();
    for node in arrows.keys() {
        visit(node, arrows, &mut seen, &mut finished);
    }
    let mut back = Arrows::new();
    for (from, all) in arrows {
        for to in all {
            back.entry(to.clone()).or_default().insert(from.clone());
        }
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for node in finished.iter().rev() {
        let mut circle = Vec::new();
        visit(node, &back, &mut seen, &mut circle);
        if circle.len() > 1 {
            circle.sort();
            found.push(circle);
        }
    }
    found
}

/// Appends to `finished` a node and its direct and indirect dependencies, without the nodes that are already in `seen`.
/// A node comes after its dependencies unless the nodes form a cycle.
fn visit(node: &str, arrows: &Arrows, seen: &mut BTreeSet<String>, finished: &mut Vec<String>) {
    if !seen.insert(node.to_owned()) {
        return;
    }
    for next in arrows.get(node).into_iter().flatten() {
        visit(next, arrows, seen, finished);
    }
    finished.push(node.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cycle_is_found_without_the_nodes_that_lead_to_it() {
        let arrows = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("d", "e"), ("e", "f"), ("f", "e"), ("g", "a")];
        let mut all = Arrows::new();
        for (from, to) in arrows {
            all.entry(from.to_owned()).or_default().insert(to.to_owned());
        }
        let mut found = circles(&all);
        found.sort();
        assert_eq!(found, [vec!["b", "c", "d"], vec!["e", "f"]]);
    }
}
