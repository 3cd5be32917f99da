//! Projection: applies events and the facts found in them to the graph, and applies changed agents and tasks to the
//! roster.

use std::sync::Arc;

use crate::consumer::event_context::{EventContext, FollowerView};
use crate::consumer::plugins::roster::Roster;
use crate::model::event::Event;
use crate::model::facts::Facts;
use crate::resident::graph::{Changes, EnrichedEvent, StateView};
use crate::state::State;
use crate::state::plugins::PluginIndex;

/// A projection of events to the graph in memory and to the roster.
pub struct GraphProjection {
    state: Arc<State>,
    pub roster: Roster,
}

impl GraphProjection {
    /// Creates a projection with the agents and tasks of a view.
    pub fn new(state: &Arc<State>, view: &FollowerView<'_>) -> GraphProjection {
        let mut roster = Roster::new(state.plugins.with_agents());
        view.aggregates().for_each(|aggregate| roster.observe(&aggregate));
        GraphProjection { state: state.clone(), roster }
    }

    /// Applies an event and the facts that plugins found in the event. The view must show the aggregates right after
    /// the event.
    pub fn take(
        &mut self,
        view: &FollowerView<'_>,
        context: &EventContext,
        found: Vec<(PluginIndex, Facts)>,
    ) -> Changes {
        let plugins = &self.state.plugins;
        let found = found.into_iter().map(|(plugin, facts)| (plugins.name(plugin).clone(), facts)).collect();
        let event =
            EnrichedEvent { event: &context.event, before: context.before.as_deref(), after: &context.after, found };
        let changes = self.state.graph.take(view, event);
        self.roster.observe(&context.after);
        changes
    }

    /// Applies facts that a plugin found in an event that was applied earlier. `position` is the follower's position.
    pub fn amend(&self, plugin: PluginIndex, event: &Event, facts: Facts, position: u64) -> Changes {
        let view = FollowerView::new(&self.state);
        self.state.graph.amend(&view, self.state.plugins.name(plugin), event, facts, position)
    }
}
