//! Tests of the graph: the opening and closing of edges, traversals, and reads of the past.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use super::*;
use crate::model::builtin;
use crate::model::facts::{EdgeFact, Target};
use crate::model::graph::Direction;
use crate::model::value::{Object, Value};

/// The articles at the follower's position, by id.
#[derive(Default)]
struct Articles {
    known: BTreeMap<String, Arc<Aggregate>>,
    position: u64,
    graph: Arc<Graph>,
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
    EdgeFact { kind: "links_to".into(), to, weight: 1.0, link: None }
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
        let found = vec![("linker".into(), Facts { edges: edges.to_vec(), ..Facts::default() })];
        let enriched = EnrichedEvent { event: &event, before: before.as_deref(), after: &after, found };
        let changes = self.graph.take(self, enriched);
        let shown = |edge: &Arc<Edge>| {
            let closed = edge.valid_to.map(|at| format!(" until {at}")).unwrap_or_default();
            format!("{} to {} of {} from {}{closed}", edge.from, edge.to, edge.event_id, edge.valid_from)
        };
        changes.edges.iter().map(shown).collect()
    }

    fn around(&self, id: &str, direction: Direction, depth: u32) -> Vec<String> {
        let walk = Traversal { kinds: Kinds::default(), direction, depth, most: 100 };
        let id = AggregateId::parse(id).expect("an id");
        self.graph.walk(&id, &walk).nodes.into_iter().map(|(id, distance)| format!("{id} {distance}")).collect()
    }
}

#[test]
fn an_edge_is_open_while_its_target_exists() {
    let mut articles = Articles::default();
    assert_eq!(articles.event("a", "created", &[("slug", "one")], &[link(slug("two"))]), [""; 0]);
    // The target appears, so the edge opens. The edge contains the id of the event in which the plugin found the edge.
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
fn an_edge_names_its_target_by_an_id_a_label_or_a_field() {
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

fn page(link: &str, references: &[&str]) -> EdgeFact {
    let references = references.iter().map(|reference| Arc::from(*reference)).collect();
    EdgeFact { kind: "links_to".into(), to: Target::Page(references), weight: 1.0, link: Some(link.into()) }
}

impl Articles {
    /// Returns the broken links of an article.
    fn broken(&self, id: &str) -> Vec<String> {
        let facts = self.graph.facts(id).unwrap_or_default();
        facts.values().flat_map(|facts| facts.broken.iter()).map(|link| link.to_string()).collect()
    }
}

#[test]
fn a_link_to_a_page_follows_the_first_matching_reference_or_is_broken() {
    let mut articles = Articles::default();
    let edges = [page("a", &["/docs/a", "/docs/b/a"]), page("n", &["n.md"]), page("../self", &["/docs/b.md"])];
    assert_eq!(articles.event("from", "created", &[("path", "docs/b.md")], &edges), [""; 0]);
    // A link to the article itself is not broken.
    assert_eq!(articles.broken("from"), ["a", "n"]);
    let opened = articles.event("second", "created", &[("path", "docs/b/a.md")], &[]);
    assert_eq!(opened, ["from to second of e-1 from 2"]);
    assert_eq!(articles.broken("from"), ["n"]);
    // A page that matches an earlier reference replaces the target.
    assert_eq!(
        articles.event("first", "created", &[("path", "docs/a/index.md")], &[]),
        ["from to second of e-1 from 2 until 3", "from to first of e-1 from 3"]
    );
    assert_eq!(
        articles.event("file", "created", &[("path", "docs/a.md")], &[]),
        ["from to first of e-1 from 3 until 4", "from to file of e-1 from 4"]
    );
    // The renamed page keeps its address, but another page is now nearer to the link.
    assert_eq!(
        articles.event("first", "updated", &[("path", "docs/A.md")], &[]).len() + articles.broken("from").len(),
        1
    );
    assert_eq!(
        articles.event("file", "deleted", &[], &[]),
        ["from to file of e-1 from 4 until 6", "from to first of e-1 from 6"]
    );
    assert_eq!(articles.event("first", "deleted", &[], &[]).len(), 2);
    assert_eq!(articles.event("second", "deleted", &[], &[]), ["from to second of e-1 from 7 until 8"]);
    assert_eq!(articles.broken("from"), ["a", "n"]);
    assert_eq!(articles.event("from", "deleted", &[], &[]), [""; 0]);
    assert_eq!(articles.broken("from"), [""; 0]);
}

#[test]
fn a_reference_by_name_matches_no_page_if_several_pages_have_the_name() {
    let mut articles = Articles::default();
    articles.event("one", "created", &[("path", "x/n.md")], &[]);
    let edges = [page("n", &["/n.md", "*/n.md"])];
    assert_eq!(articles.event("from", "created", &[("path", "from.md")], &edges), ["from to one of e-2 from 2"]);
    assert_eq!(articles.event("two", "created", &[("path", "y/n.md")], &[]), ["from to one of e-2 from 2 until 3"]);
    assert_eq!(articles.broken("from"), ["n"]);
    assert_eq!(articles.event("one", "deleted", &[], &[]), ["from to two of e-2 from 4"]);
}

#[test]
fn an_edge_that_names_a_page_points_to_the_nearest_page_with_that_name() {
    let mut articles = Articles::default();
    articles.event("far", "created", &[("path", "n.md")], &[]);
    articles.event("near", "created", &[("path", "x/y/n.md")], &[]);
    let edges = [page("n", &["n.md"])];
    assert_eq!(articles.event("from", "created", &[("path", "x/from.md")], &edges), ["from to near of e-3 from 3"]);
    // The article itself moves, so another page is the nearest.
    assert_eq!(
        articles.event("from", "updated", &[("path", "z/from.md")], &edges),
        ["from to near of e-3 from 3 until 4", "from to far of e-3 from 4"]
    );
    assert_eq!(
        articles.event("near", "updated", &[("path", "z/N.md")], &[]),
        ["from to far of e-3 from 4 until 5", "from to near of e-3 from 5"]
    );
}

#[test]
fn repeating_a_desired_edge_changes_nothing_unless_its_weight_differs() {
    let mut articles = Articles::default();
    articles.event("b", "created", &[("slug", "two")], &[]);
    articles.event("a", "created", &[], &[link(slug("two"))]);
    assert_eq!(articles.event("a", "updated", &[("title", "x")], &[link(slug("two"))]), [""; 0]);
    let heavier = EdgeFact { weight: 2.0, ..link(slug("two")) };
    assert_eq!(articles.event("a", "updated", &[], &[link(slug("two")), heavier]), ["a to b of e-2 from 2"]);
}

#[test]
fn a_walk_follows_the_requested_direction_up_to_the_requested_depth() {
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
fn a_restored_graph_applies_later_events_like_the_original() {
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
    articles.graph.replace(restored, 2);
    assert_eq!(articles.event("c", "created", &[("slug", "three")], &[]), ["a to c of e-1 from 3"]);
    assert_eq!(articles.event("b", "deleted", &[], &[]), ["a to b of e-1 from 2 until 4"]);
}

/// Returns the nodes that a read reaches from `a`.
fn reached(past: &PastGraph<'_>) -> Vec<String> {
    let walk = Traversal { kinds: Kinds::default(), direction: Direction::Out, depth: 1, most: 100 };
    let Ok(found) = past.walk_while(&[AggregateId::parse("a").expect("an id")], &walk, || Ok::<(), Infallible>(()));
    assert_eq!(found.edges.len() + 1, found.nodes.len(), "each edge occurs once");
    found.nodes.into_iter().map(|(id, _)| id.to_string()).collect()
}

fn kept(graph: &Graph) -> Vec<Arc<Edge>> {
    let mut kept = Vec::new();
    let Ok(()) = graph.read_closed().visit(|edge| {
        kept.push(edge.clone());
        Ok::<(), Infallible>(())
    });
    kept
}

#[test]
fn a_read_of_the_past_finds_an_edge_that_closes_during_the_read() {
    let mut articles = Articles::default();
    articles.event("b", "created", &[("slug", "two")], &[]);
    articles.event("a", "created", &[], &[link(slug("two"))]);
    let graph = articles.graph.clone();
    let past = PastGraph::begin(&graph, PastMoment::Position(2));
    assert!(!past.needs_store);
    articles.event("a", "updated", &[], &[]);
    assert_eq!(reached(&past), ["a", "b"]);
    assert_eq!(reached(&PastGraph::begin(&graph, PastMoment::Position(3))), ["a"]);
    // The closed edge is stored. The graph keeps the edge in memory for the read that began before.
    let closed = kept(&graph);
    graph.set_stored(&closed);
    assert_eq!(reached(&past), ["a", "b"]);
    let mut later = PastGraph::begin(&graph, PastMoment::Time(2));
    assert!(later.needs_store && PastGraph::begin(&graph, PastMoment::Position(2)).needs_store);
    later.add(closed[0].clone());
    assert_eq!(reached(&later), ["a", "b"]);
    drop(past);
    assert!(kept(&graph).is_empty());
    assert_eq!(reached(&later), ["a", "b"]);
    assert!(!PastGraph::begin(&graph, PastMoment::Position(3)).needs_store);
}

#[test]
fn a_closed_edge_stays_in_memory_until_the_edge_is_stored_and_unused() {
    let mut articles = Articles::default();
    articles.event("b", "created", &[("slug", "two")], &[]);
    articles.event("a", "created", &[], &[link(slug("two"))]);
    articles.event("c", "created", &[], &[link(slug("two"))]);
    articles.event("a", "updated", &[], &[]);
    let graph = articles.graph.clone();
    let first = kept(&graph);
    assert_eq!(first.len(), 1);
    let read = graph.read_closed();
    articles.event("c", "updated", &[], &[]);
    // The second edge is stored first, so neither edge is removed.
    graph.set_stored(&kept(&graph)[1..]);
    assert_eq!(kept(&graph).len(), 2);
    graph.set_stored(&first);
    assert_eq!(kept(&graph).len(), 2);
    drop(read);
    assert!(kept(&graph).is_empty());
    articles.event("c", "updated", &[], &[link(slug("two"))]);
    let read = graph.read_closed();
    articles.event("c", "updated", &[], &[]);
    // The store contains the closed edge, but the read that began before still needs the edge in memory.
    graph.replace(Edges::default(), 9);
    assert_eq!(kept(&graph).len(), 1);
    drop(read);
    assert!(kept(&graph).is_empty());
    assert!(PastGraph::begin(&graph, PastMoment::Position(8)).needs_store);
}
