//! Tests that edges open and close with the right events.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::model::builtin;
use crate::model::facts::EdgeFact;
use crate::model::graph::Direction;
use crate::model::value::{Object, Value};

/// The articles at the follower's position, by id.
#[derive(Default)]
struct Articles {
    known: BTreeMap<String, Arc<Aggregate>>,
    position: u64,
    graph: Graph,
}

impl StateView for Articles {
    fn aggregate(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.known.get(id).cloned()
    }

    fn definition(&self, type_name: &str) -> Option<Arc<Definition>> {
        builtin::definitions().into_iter().find(|known| &*known.type_name == type_name).map(Arc::new)
    }

    fn aggregates(&self) -> Box<dyn Iterator<Item = Arc<Aggregate>> + '_> {
        Box::new(self.known.values().cloned())
    }
}

fn link(to: Target) -> EdgeFact {
    EdgeFact { kind: "links_to".into(), to, weight: 1.0 }
}

fn slug(slug: &str) -> Target {
    Target::Field("slug".into(), slug.into())
}

impl Articles {
    /// Applies one event of an article. `edges` are the edges that the plugin `linker` finds in the event.
    fn event(&mut self, id: &str, verb: &str, payload: &[(&str, &str)], edges: &[EdgeFact]) -> Vec<String> {
        self.position += 1;
        let before = self.known.get(id).cloned();
        let event = Event {
            version: before.as_ref().map_or(1, |before| before.version + 1),
            payload: Arc::new(payload.iter().map(|(name, value)| (*name, Value::from(*value))).collect::<Object>()),
            occurred_at: self.position as i64,
            ..Event::sample(id, &format!("article.{verb}"), self.position)
        };
        let definition = self.definition("article").expect("a built-in type");
        let after = Arc::new(Aggregate::fold(before.as_deref(), &event, &definition));
        self.known.insert(id.to_owned(), after.clone());
        let graph = std::mem::take(&mut self.graph);
        let found = vec![("linker".into(), Facts { edges: edges.to_vec(), ..Facts::default() })];
        let changes =
            graph.take(self, EnrichedEvent { event: &event, before: before.as_deref(), after: &after, found });
        self.graph = graph;
        let shown = |edge: &Arc<Edge>| {
            let closed = edge.valid_to.map(|at| format!(" until {at}")).unwrap_or_default();
            format!("{} to {} of {} from {}{closed}", edge.from, edge.to, edge.event_id, edge.valid_from)
        };
        changes.edges.iter().map(shown).collect()
    }

    fn around(&self, id: &str, direction: Direction, depth: u32) -> Vec<String> {
        let walk = Walk { kinds: Kinds::default(), direction, depth, most: 100 };
        let id = AggregateId::parse(id).expect("an id");
        self.graph.walk(&id, &walk).nodes.into_iter().map(|(id, distance)| format!("{id} {distance}")).collect()
    }
}

#[test]
fn an_edge_is_open_while_its_target_exists() {
    let mut articles = Articles::default();
    assert_eq!(articles.event("a", "created", &[("slug", "one")], &[link(slug("two"))]), [""; 0]);
    // The target appears, so the edge opens. The edge contains the id of the event in which the plugin found it.
    assert_eq!(articles.event("b", "created", &[("slug", "two")], &[]), ["a to b of e-1 from 2"]);
    // A younger article with the same slug is not the target.
    assert_eq!(articles.event("c", "created", &[("slug", "two")], &[]), [""; 0]);
    assert_eq!(
        articles.event("b", "updated", &[("slug", "three")], &[]),
        ["a to b of e-1 from 2 until 4", "a to c of e-1 from 4"]
    );
    assert_eq!(articles.event("c", "deleted", &[], &[]), ["a to c of e-1 from 4 until 5"]);
    assert_eq!(articles.event("c", "restored", &[], &[]), ["a to c of e-1 from 6"]);
    // The plugin no longer finds the edge, so the open edge closes.
    assert_eq!(articles.event("a", "updated", &[], &[]), ["a to c of e-1 from 6 until 7"]);
    assert_eq!(articles.event("c", "updated", &[("slug", "other")], &[]), [""; 0]);
}

#[test]
fn an_edge_names_its_target_by_id_label_or_field() {
    let mut articles = Articles::default();
    let desired = [
        link(Target::Id("b".into())),
        link(Target::Label("The C".into())),
        link(Target::Field("number".into(), "7".into())),
        link(slug("one")),
    ];
    articles.event("b", "created", &[("title", "B")], &[]);
    articles.event("c", "created", &[("title", "The C")], &[]);
    articles.event("d", "created", &[("number", "7")], &[]);
    // The article also refers to itself, which does not open an edge.
    assert_eq!(
        articles.event("a", "created", &[("slug", "one")], &desired),
        ["a to b of e-4 from 4", "a to c of e-4 from 4", "a to d of e-4 from 4"]
    );
    assert_eq!(articles.event("a", "deleted", &[], &desired).len(), 3);
}

#[test]
fn repeating_a_desired_edge_changes_nothing() {
    let mut articles = Articles::default();
    articles.event("b", "created", &[("slug", "two")], &[]);
    articles.event("a", "created", &[], &[link(slug("two"))]);
    assert_eq!(articles.event("a", "updated", &[("title", "x")], &[link(slug("two"))]), [""; 0]);
    let heavier = EdgeFact { weight: 2.0, ..link(slug("two")) };
    assert_eq!(articles.event("a", "updated", &[], &[link(slug("two")), heavier]), ["a to b of e-2 from 2"]);
}

#[test]
fn a_walk_follows_the_requested_direction() {
    let mut articles = Articles::default();
    for (id, to) in [("a", "b"), ("b", "c"), ("c", "a"), ("d", "b")] {
        articles.event(id, "created", &[("slug", id)], &[link(slug(to))]);
    }
    assert_eq!(articles.around("a", Direction::Out, 1), ["a 0", "b 1"]);
    assert_eq!(articles.around("a", Direction::Out, 3), ["a 0", "b 1", "c 2"]);
    assert_eq!(articles.around("b", Direction::In, 1), ["b 0", "a 1", "d 1"]);
    assert_eq!(articles.around("a", Direction::Both, 2), ["a 0", "b 1", "c 1", "d 2"]);
}

#[test]
fn a_restored_graph_continues_unchanged() {
    let mut articles = Articles::default();
    articles.event("a", "created", &[("slug", "one")], &[link(slug("two")), link(slug("three"))]);
    articles.event("b", "created", &[("slug", "two")], &[]);
    let mut restored = Edges::default();
    for (id, facts) in articles.graph.all_facts() {
        assert_eq!(restored.restore(&articles, id.as_str(), (*facts).clone(), &|_| true), (id, facts));
    }
    restored.restored(&articles);
    restored.restore_edges(articles.graph.outgoing("a").into_iter().map(|edge| (*edge).clone()));
    assert_eq!(restored.size(), (1, 1));
    articles.graph.replace(restored);
    assert_eq!(articles.event("c", "created", &[("slug", "three")], &[]), ["a to c of e-1 from 3"]);
    assert_eq!(articles.event("b", "deleted", &[], &[]), ["a to b of e-1 from 2 until 4"]);
}
