//! The knowledge graph: the facts that plugins found about each aggregate, and the edges between aggregates.

use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::aggregate::Aggregate;
use super::builtin::AGENT;
use super::closed_set::closed_set;
use super::definition::Definition;
use super::facts::{EdgeFact, Facts, Target};
use super::id::AggregateId;
use super::page::{self, PageKey};
use super::value::{Object, Value};

/// The maximum length of a label or field value that identifies a node, in bytes.
const MAX_ADDRESS: usize = 512;

/// An edge between two nodes. A later event can close an edge, but does not remove it.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    pub from: AggregateId,
    pub kind: Arc<str>,
    pub to: AggregateId,
    pub weight: f64,
    pub plugin: Arc<str>,
    /// The id of the event in which the plugin found the edge.
    pub event_id: Arc<str>,
    /// The position of the event that opened the edge. An edge is identified by its two nodes, its kind and this
    /// position.
    pub opened: u64,
    /// The time of the event that opened the edge, in milliseconds since the epoch.
    pub valid_from: i64,
    /// The time of the event that closed the edge, in milliseconds since the epoch. `None` for open edges.
    pub valid_to: Option<i64>,
    /// The position of the event that closed the edge. `None` for open edges, and for edges that older versions of the
    /// program closed.
    pub closed: Option<u64>,
}

/// The facts that one plugin found about an aggregate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PluginFacts {
    pub labels: Vec<Arc<str>>,
    pub desired: Vec<DesiredEdge>,
    pub derived: Arc<Object>,
    /// The links that lead to no existing target, in the order of their desired edges.
    pub broken: Arc<[Arc<str>]>,
}

/// The name of the field in `_facts.<plugin>` that contains the broken links of the plugin.
pub const BROKEN: &str = "broken";

/// An edge that a plugin requests. The edge is open while its target exists.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredEdge {
    pub edge: EdgeFact,
    /// The id of the event in which the plugin first found the edge. Later facts with the same edge do not change this
    /// id.
    pub event_id: Arc<str>,
}

/// The facts of all plugins about one aggregate, by plugin name.
///
/// Nearly every aggregate has facts, usually of few plugins. The list therefore has no spare capacity, which saves
/// memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EnrichmentFacts {
    /// The facts of each plugin, sorted by plugin name.
    list: Box<[(Arc<str>, PluginFacts)]>,
}

impl EnrichmentFacts {
    pub fn get(&self, plugin: &str) -> Option<&PluginFacts> {
        self.index_of(plugin).ok().and_then(|index| self.list.get(index)).map(|(_, plugin_facts)| plugin_facts)
    }

    /// Sets the facts of a plugin and returns the previous facts, if there were any.
    pub fn insert(&mut self, plugin: Arc<str>, plugin_facts: PluginFacts) -> Option<PluginFacts> {
        match self.index_of(&plugin) {
            Ok(index) => self.list.get_mut(index).map(|(_, known)| std::mem::replace(known, plugin_facts)),
            Err(index) => {
                let mut list = std::mem::take(&mut self.list).into_vec();
                list.reserve_exact(1);
                list.insert(index, (plugin, plugin_facts));
                self.list = list.into();
                None
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Splits the facts by plugin: first the facts of the plugins whose names satisfy `is_first`, then the facts of the
    /// other plugins.
    pub fn partition(self, is_first: impl Fn(&str) -> bool) -> (EnrichmentFacts, EnrichmentFacts) {
        let (first, others): (Vec<_>, Vec<_>) = self.list.into_iter().partition(|(plugin, _)| is_first(plugin));
        (EnrichmentFacts { list: first.into() }, EnrichmentFacts { list: others.into() })
    }

    /// Returns the approximate size of the facts in memory, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.list.iter().map(|(_, facts)| size_of::<(Arc<str>, PluginFacts)>() + facts.size_bytes()).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &PluginFacts)> {
        self.list.iter().map(|(name, plugin_facts)| (name, plugin_facts))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Arc<str>, &mut PluginFacts)> {
        self.list.iter_mut().map(|(name, plugin_facts)| (&*name, plugin_facts))
    }

    pub fn values(&self) -> impl Iterator<Item = &PluginFacts> {
        self.list.iter().map(|(_, plugin_facts)| plugin_facts)
    }

    fn index_of(&self, plugin: &str) -> Result<usize, usize> {
        self.list.binary_search_by(|(name, _)| (**name).cmp(plugin))
    }
}

impl FromIterator<(Arc<str>, PluginFacts)> for EnrichmentFacts {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, PluginFacts)>>(found: I) -> EnrichmentFacts {
        let mut facts = EnrichmentFacts::default();
        for (plugin, plugin_facts) in found {
            facts.insert(plugin, plugin_facts);
        }
        facts
    }
}

impl PluginFacts {
    /// Returns the plugin's facts after an event. `before` are the plugin's facts before the event.
    pub fn after(before: Option<&PluginFacts>, facts: Facts, event_id: &Arc<str>) -> PluginFacts {
        let since = |edge: &EdgeFact| {
            let known = before.into_iter().flat_map(|before| &before.desired);
            let mut same = known.filter(|desired| desired.edge.kind == edge.kind && desired.edge.to == edge.to);
            same.next().map_or_else(|| event_id.clone(), |desired| desired.event_id.clone())
        };
        let mut desired: Vec<DesiredEdge> = Vec::with_capacity(facts.edges.len());
        for edge in facts.edges {
            // If the facts contain an edge twice, the larger weight is kept.
            match desired.iter_mut().find(|desired| desired.edge.kind == edge.kind && desired.edge.to == edge.to) {
                Some(known) => known.edge.weight = known.edge.weight.max(edge.weight),
                None => desired.push(DesiredEdge { event_id: since(&edge), edge }),
            }
        }
        // The graph replaces the earlier broken links later, because this function cannot determine which targets
        // exist.
        let broken = before.map(|before| before.broken.clone()).unwrap_or_default();
        PluginFacts { labels: facts.labels, desired, derived: Arc::new(facts.derived), broken }
    }

    fn size_bytes(&self) -> usize {
        let labels: usize = self.labels.iter().map(|label| size_of::<Arc<str>>() + 16 + label.len()).sum();
        let texts = |desired: &DesiredEdge| {
            let link = desired.edge.link.as_ref().map_or(0, |link| link.len());
            let references = match &desired.edge.to {
                Target::Page(references) => references.iter().map(|text| size_of::<Arc<str>>() + text.len()).sum(),
                _ => 0,
            };
            link + references
        };
        let texts: usize = self.desired.iter().map(texts).sum();
        // The 128 bytes are an estimate for the texts of other targets and the event id.
        let desired = self.desired.len() * (size_of::<DesiredEdge>() + 128) + texts;
        labels + desired + self.broken.len() * size_of::<Arc<str>>() + self.derived.size_bytes()
    }

    /// Returns whether there are no facts.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.desired.is_empty() && self.derived.is_empty()
    }
}

/// Returns the derived data and the broken links of each plugin, as pipelines show them in `_facts`.
pub fn facts_of(facts: &EnrichmentFacts) -> Arc<Object> {
    let shown = facts.iter().map(|(name, plugin_facts)| (name, shown_facts(plugin_facts)));
    let shown = shown.filter(|(_, shown)| !shown.is_empty());
    let facts: Object = shown.map(|(name, shown)| (name.clone(), Value::Object(shown))).collect();
    if facts.is_empty() { super::aggregate::no_facts() } else { Arc::new(facts) }
}

fn shown_facts(plugin_facts: &PluginFacts) -> Arc<Object> {
    if plugin_facts.broken.is_empty() {
        return plugin_facts.derived.clone();
    }
    let mut shown = Object::clone(&plugin_facts.derived);
    shown.insert(BROKEN, plugin_facts.broken.iter().cloned().collect::<Value>());
    Arc::new(shown)
}

/// Returns the addresses of an aggregate. `by` selects the kind of the addresses: the label, the value of a field, or
/// the keys of a page. Returns an empty list if the aggregate is deleted or has no address of this kind. Agents have no
/// addresses by field.
pub fn addresses(aggregate: &Aggregate, definition: &Definition, by: &AddressedBy) -> Vec<Address> {
    if aggregate.deleted {
        return Vec::new();
    }
    match by {
        AddressedBy::Label => {
            let label = definition.label_of(&aggregate.state).and_then(|label| addressable(&label));
            label.map(Address::Label).into_iter().collect()
        }
        // The slug of an agent serves only to keep names unique. A target with this slug does not refer to the agent.
        AddressedBy::Field(_) if &*aggregate.aggregate_type == AGENT => Vec::new(),
        AddressedBy::Field(field) => {
            let text = match aggregate.state.get(field) {
                Some(Value::String(text)) => addressable(text),
                Some(Value::Int(number)) => Some(number.to_string().into()),
                _ => None,
            };
            text.map(|text| Address::Field(field.clone(), text)).into_iter().collect()
        }
        AddressedBy::Page => {
            let keys = page::keys(&aggregate.state).into_iter();
            keys.map(|key| Address::Page(aggregate.project_id.clone(), key)).collect()
        }
    }
}

fn addressable(text: &str) -> Option<Arc<str>> {
    (!text.is_empty() && text.len() <= MAX_ADDRESS).then(|| text.into())
}

closed_set!(Direction);

/// The direction in which edges are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Direction {
    Out,
    In,
    #[default]
    Both,
}

/// The part of an aggregate with which a target is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressedBy {
    Label,
    Field(Arc<str>),
    /// The path of a page, and the addresses in its front matter.
    Page,
}

/// A key under which nodes are indexed. A [`Target::Page`] has one address for each reference. Every other target has
/// one address. A node with none of a target's addresses does not match the target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    Id(Arc<str>),
    Label(Arc<str>),
    Field(Arc<str>, Arc<str>),
    /// A page of a project. A reference to a page matches only pages of the same project.
    Page(Option<Arc<str>>, PageKey),
}

impl Address {
    /// Returns the addresses of a target, in the order of its references. `project_id` is the project of the aggregate
    /// at which the edge starts.
    pub fn of(target: &Target, project_id: Option<&Arc<str>>) -> Vec<Address> {
        match target {
            Target::Id(id) => vec![Address::Id(id.clone())],
            Target::Label(label) => vec![Address::Label(label.clone())],
            Target::Field(field, value) => vec![Address::Field(field.clone(), value.clone())],
            Target::Page(references) => {
                let keys = references.iter().map(|reference| page::key_of(reference));
                keys.map(|key| Address::Page(project_id.cloned(), key)).collect()
            }
        }
    }
}

impl AddressedBy {
    /// Returns the part of an aggregate that is compared with a target, or `None` if the target is an id.
    pub fn of(target: &Target) -> Option<AddressedBy> {
        match target {
            Target::Id(_) => None,
            Target::Label(_) => Some(AddressedBy::Label),
            Target::Field(field, _) => Some(AddressedBy::Field(field.clone())),
            Target::Page(_) => Some(AddressedBy::Page),
        }
    }
}
