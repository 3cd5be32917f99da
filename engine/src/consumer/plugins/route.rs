//! Routing: calls the `route` hooks for events and appends the tasks that the hooks assign.

use std::iter;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::attempt::refused_result;
use super::circuits::Circuits;
use super::dispatch::{self, Dispatcher};
use super::parking::ParkingBuffer;
use super::pending_calls::{Input, PendingCalls};
use super::roster::Roster;
use super::step_end::StepEnd;
use crate::consumer::event_context::EventContext;
use crate::error::Result;
use crate::hook::{Candidates, Failure, Hook, Outcome, Plugin, RouteInput};
use crate::mailbox::members::Members;
use crate::model::aggregate::{Aggregate, no_facts};
use crate::model::depth::{MAX_CONTENT_DEPTH, too_deep};
use crate::model::facts::{Assignee, Assignment};
use crate::model::graph::facts_of;
use crate::model::task::review::{self, Review};
use crate::model::task::title;
use crate::model::value::{Object, Value};
use crate::state::State;
use crate::state::plugins::PluginIndex;

/// The input of a `route` hook.
pub struct PreparedRoute {
    context: Arc<EventContext>,
    /// The aggregate after the event, with its facts.
    aggregate: Arc<Aggregate>,
    agents: Arc<[Value]>,
}

impl PreparedRoute {
    /// Prepares the input of a plugin's hook for an event, with the current facts and the agents that are candidates.
    pub fn prepare(
        state: &State,
        roster: &mut Roster,
        candidates: Candidates,
        context: &Arc<EventContext>,
    ) -> PreparedRoute {
        let facts = state.graph.facts(context.after.id.as_str());
        let facts = facts.map_or_else(no_facts, |facts| facts_of(&facts));
        let aggregate = Arc::new(Aggregate { facts, ..Aggregate::clone(&context.after) });
        PreparedRoute {
            context: context.clone(),
            aggregate,
            agents: roster.shown(candidates, &context.definition.traits),
        }
    }
}

impl Input for PreparedRoute {
    fn context(&self) -> &Arc<EventContext> {
        &self.context
    }
}

/// Calls the hook `route`. Fails if an assignment is invalid.
pub fn call(plugin: &dyn Plugin, input: &PreparedRoute) -> Outcome<Vec<Assignment>> {
    let assigned = plugin.route(&RouteInput {
        event: &input.context.event,
        aggregate: &input.aggregate,
        definition: &input.context.definition,
        agents: &input.agents,
    })?;
    match assigned.value.iter().enumerate().find_map(|(index, assignment)| Some((index, refused(assignment)?))) {
        Some((index, (place, reason))) => Err(refused_result(format!("assignments[{index}].{place}: {reason}"))),
        None => Ok(assigned),
    }
}

/// Returns the place of an invalid value in an assignment and the allowed values, or `None` if the assignment is valid.
/// The limits are the same as for a request that creates a task.
fn refused(assignment: &Assignment) -> Option<(String, String)> {
    if let Some(Err(allowed)) = assignment.title.as_deref().map(title::check) {
        return Some(("title".into(), allowed));
    }
    if !assignment.metadata.nests_within(MAX_CONTENT_DEPTH) {
        return Some(("metadata".into(), too_deep(MAX_CONTENT_DEPTH)));
    }
    if !review::is_in(&assignment.metadata) {
        return None;
    }
    let wrong = review::check(&assignment.metadata.clone().into()).into_iter().next()?;
    Some((wrong.pointer.trim_start_matches('/').replace('/', "."), wrong.message))
}

/// Returns the assignee that each escalation step of a new task names.
fn escalation(metadata: &Object) -> Vec<Option<Assignee>> {
    if !review::is_in(metadata) {
        return Vec::new();
    }
    let steps = Review::of(Some(&metadata.clone().into())).escalation();
    steps.into_iter().map(|step| step.to).collect()
}

/// A check of the assignees that plugins name. Each member is looked up only once per batch.
pub struct Assignees {
    members: Members,
    known: FxHashSet<Arc<str>>,
}

impl Assignees {
    pub fn new(members: Members) -> Assignees {
        Assignees { members, known: FxHashSet::default() }
    }

    /// Checks the assignees of assignments and of their escalation steps. Returns a failure for an agent that is
    /// unknown or gets no work, and for a user who is not a member of the workspace, because nobody would see the task.
    pub async fn check(&mut self, roster: &Roster, assigned: &[Assignment]) -> Result<Result<(), Failure>> {
        for (index, assignment) in assigned.iter().enumerate() {
            let steps = escalation(&assignment.metadata).into_iter().enumerate();
            let escalated = steps.filter_map(|(step, to)| {
                Some((format!("assignments[{index}].metadata.review.escalate.{step}.to: "), to?))
            });
            for (place, named) in iter::once((String::new(), assignment.assignee.clone())).chain(escalated) {
                if let Some(reason) = self.refused(roster, &named).await? {
                    return Ok(Err(refused_result(format!("{place}{reason}"))));
                }
            }
        }
        Ok(Ok(()))
    }

    /// Returns the reason why an assignee cannot get tasks.
    async fn refused(&mut self, roster: &Roster, named: &Assignee) -> Result<Option<String>> {
        Ok(match named {
            Assignee::Agent(id) if roster.agent(id).is_none() => {
                Some(format!("the agent '{id:.64}' is not registered or is disabled, or its plugin is not enabled"))
            }
            Assignee::User(id) if !self.is_member(id).await? => {
                Some(format!("the user '{id:.64}' is not a member of the workspace"))
            }
            _ => None,
        })
    }

    async fn is_member(&mut self, id: &Arc<str>) -> Result<bool> {
        if self.known.contains(id) {
            return Ok(true);
        }
        let is_member = self.members.contain(id).await?;
        self.known.extend(is_member.then(|| id.clone()));
        Ok(is_member)
    }
}

/// The router. Records the calls of the hook `route` for the events of a batch, then makes the calls and appends the
/// assigned tasks.
pub struct Router {
    state: Arc<State>,
    assignees: Assignees,
    waiting: PendingCalls<PreparedRoute>,
}

impl Router {
    pub fn new(state: &Arc<State>, members: Members) -> Router {
        Router {
            state: state.clone(),
            assignees: Assignees::new(members),
            waiting: PendingCalls::new(state, Hook::Route),
        }
    }

    /// Records the calls that an event requires, with their inputs.
    pub fn record(&mut self, roster: &mut Roster, context: &Arc<EventContext>) {
        let plugins = &self.state.plugins;
        let called = plugins.called(Hook::Route, &context.event.event_type, &context.definition.traits);
        for plugin in called {
            let candidates = plugins.about(plugin).candidates;
            let input = PreparedRoute::prepare(&self.state, roster, candidates, context);
            self.waiting.push(plugin, Arc::new(input));
        }
    }

    /// Calls the hooks and appends the tasks that the hooks assign.
    pub async fn run(
        &mut self,
        circuits: &mut Circuits,
        roster: &Roster,
        parking: &mut ParkingBuffer,
        dispatcher: &Dispatcher,
    ) -> Result<(), StepEnd> {
        let mut waiting = self.waiting.drain();
        // Members may have been removed since the last batch.
        self.assignees.known.clear();
        while let Some(completed) = waiting.next(circuits, parking, call).await? {
            let plugin = completed.plugin;
            for (input, assigned) in completed.values.into_iter().filter(|(_, assigned)| !assigned.is_empty()) {
                let outcome = self.assign(plugin, &input.context, roster, assigned, dispatcher).await?;
                parking.settle(circuits, plugin, Hook::Route, input.call_subject(), outcome);
            }
        }
        Ok(())
    }

    /// Appends the tasks of a plugin's assignments one by one. Appends no task if one of the assignees cannot get
    /// tasks. Returns the reason of the first rejection.
    pub async fn assign(
        &mut self,
        plugin: PluginIndex,
        context: &EventContext,
        roster: &Roster,
        assigned: Vec<Assignment>,
        dispatcher: &Dispatcher,
    ) -> Result<Result<(), Failure>> {
        if let Err(failure) = self.assignees.check(roster, &assigned).await? {
            return Ok(Err(failure));
        }
        let name = self.state.plugins.name(plugin);
        dispatcher.append_each(name, dispatch::tasks(context, name, assigned)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::facts::Priority;
    use crate::model::json;

    #[test]
    fn an_assignment_has_the_same_limits_as_a_new_task() {
        let assignment = |title: Option<&str>, metadata: &str| Assignment {
            assignee: Assignee::Agent("a".into()),
            title: title.map(str::to_owned),
            priority: Priority::Normal,
            metadata: json::read(metadata.as_bytes()).expect("JSON"),
            due_in_s: None,
        };
        assert_eq!(refused(&assignment(None, "{}")), None);
        assert_eq!(
            refused(&assignment(Some(&"x".repeat(500)), r#"{"review": {"allowed_decisions": ["approve"]}}"#)),
            None
        );
        let place = |title: Option<&str>, metadata: &str| refused(&assignment(title, metadata)).map(|(place, _)| place);
        assert_eq!(place(Some(&"x".repeat(501)), "{}"), Some("title".to_owned()));
        assert_eq!(place(Some(" "), "{}"), Some("title".to_owned()));
        let deep = format!(r#"{{"m": {}{}}}"#, "[".repeat(MAX_CONTENT_DEPTH), "]".repeat(MAX_CONTENT_DEPTH));
        assert_eq!(place(None, &deep), Some("metadata".to_owned()));
        assert_eq!(place(None, r#"{"review": 7}"#), Some("metadata.review".to_owned()));
    }
}
