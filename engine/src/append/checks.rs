//! Checks of a new event against the types and streams at the end of the log. The appender runs these checks. Decisions
//! on effects also run these checks, because an effect may be appended later.

use std::sync::Arc;

use crate::append::view::View;
use crate::error::{Error, ErrorCode, Result};
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::depth::{self, MAX_KEPT_DEPTH};
use crate::model::event::{self, NewEvent, StreamExpectation};
use crate::model::fold::DELETED;
use crate::model::id::{self, AggregateId, ID_FORM};
use crate::model::pattern::PatternMatcher;
use crate::model::payload::{self, PayloadCheck};
use crate::model::view;
use crate::model::violation::Violations;
use crate::offload::in_place;

/// Returns the id of the event's aggregate. Fails if the id is invalid.
pub(super) fn aggregate_id(new: &NewEvent) -> Result<AggregateId> {
    AggregateId::parse(&new.aggregate_id)
        .ok_or_else(|| Error::invalid_at("/aggregate_id", format!("invalid aggregate id: expected {ID_FORM}")))
}

/// Returns whether the event begins the state of its aggregate. Such an event must have the required fields, and gets
/// the defaults of missing fields.
///
/// The first event of a stream begins the state. If the verb of the first event is not `created`, there are three
/// exceptions. An event that was recorded in another log does not begin the state, because a part of that log may begin
/// in the middle of a stream. An event of a built-in type does not begin the state, because streams of built-in types
/// could begin with any event before this rule existed. An event whose aggregate must exist (see `needs_aggregate`)
/// does not begin the state, because such an event is rejected. `created` without the flag `restore` begins the state
/// of a deleted aggregate again, unless the event was recorded in another log.
pub(super) fn is_first(new: &NewEvent, before: Option<&Aggregate>, definition: &Definition) -> bool {
    match before {
        Some(before) => before.deleted && new.restores_empty(),
        None if event::verb(&new.event_type) == payload::CREATED => true,
        None => new.recorded.is_none() && !definition.builtin && !needs_aggregate(new),
    }
}

/// Returns whether the event's aggregate must exist: the event updates or deletes the aggregate, the expectation is not
/// `StreamExpectation::Any`, and the event was not recorded in another log.
fn needs_aggregate(new: &NewEvent) -> bool {
    let is_change = matches!(event::verb(&new.event_type), payload::UPDATED | DELETED);
    is_change && new.expected != StreamExpectation::Any && new.recorded.is_none()
}

/// Fails if the event's aggregate must exist (see `needs_aggregate`) but does not.
pub(crate) fn check_exists(new: &NewEvent, before: Option<&Aggregate>) -> Result<()> {
    match before {
        None if needs_aggregate(new) => Err(Error::not_found("aggregate", &new.aggregate_id)),
        _ => Ok(()),
    }
}

/// Returns the error for an aggregate that does not belong to the project in the request.
pub(crate) fn other_project(project: &str) -> Error {
    let message = format!("the aggregate does not belong to the given project '{project:.64}'");
    Error::conflict(ErrorCode::ProjectMismatch, message)
}

/// Returns the error for a project that does not exist.
pub(crate) fn unknown_project(project: &str) -> Error {
    Error::invalid_at("/project_id", format!("unknown project '{project:.64}'"))
}

/// Fails if the event would create an aggregate that exists and is not deleted, because the event would overwrite the
/// aggregate's state. Accepts such an event if the expectation is `StreamExpectation::Any`, or if the event was
/// recorded in another log.
pub(super) fn check_is_new(new: &NewEvent, before: Option<&Aggregate>) -> Result<()> {
    let is_creation = event::verb(&new.event_type) == payload::CREATED;
    let is_accepted = !is_creation || new.expected == StreamExpectation::Any || new.recorded.is_some();
    match before.filter(|before| !is_accepted && !before.deleted) {
        Some(before) => Err(Error::aggregate_exists(&new.aggregate_id, before.version)),
        None => Ok(()),
    }
}

impl View<'_> {
    /// Checks the aggregate id, type, payload, metadata and project of a client's event. Does not check the expected
    /// version, or whether the aggregate exists or is deleted.
    pub fn check_event(&self, new: &NewEvent) -> Result<()> {
        let aggregate_id = aggregate_id(new)?;
        let before = self.aggregate(aggregate_id.as_str());
        self.check_type(new, before.as_deref(), false)?;
        self.check_stream(new, before.as_deref()).map(drop)
    }

    /// Checks that the aggregate type of an event exists, that the append may write to this type, and that the event
    /// type, payload and metadata are valid. If the event has no aggregate type, the type of its stream applies.
    /// `before` is the stream's aggregate.
    pub(super) fn check_type(
        &self,
        new: &NewEvent,
        before: Option<&Aggregate>,
        managed: bool,
    ) -> Result<Arc<Definition>> {
        let mut wrong = Violations::default();
        let type_name = match (&*new.aggregate_type, before) {
            ("", Some(before)) => &*before.aggregate_type,
            ("", None) => {
                let message = format!("required, because no aggregate has the id '{}' yet", new.aggregate_id);
                return Err(Error::invalid_at("/aggregate_type", message));
            }
            (given, _) => given,
        };
        let Some(definition) = self.definition(type_name) else {
            return Err(Error::invalid_at("/aggregate_type", format!("unknown aggregate type '{type_name:.64}'")));
        };
        if definition.managed && !managed {
            let message = format!(
                "the type '{}' is managed, so only its own operations may append its events",
                definition.type_name
            );
            return Err(Error::Forbidden { code: ErrorCode::ManagedType, message });
        }
        if new.recorded.is_some() && !managed {
            let message = "only an import may append an event with the actor and the time that another log recorded";
            return Err(Error::forbidden(ErrorCode::RecordedElsewhere, message));
        }
        let verb = new.event_type.strip_prefix(&*definition.type_name).and_then(|rest| rest.strip_prefix('.'));
        if !verb.is_some_and(id::is_valid_name) {
            let message = format!(
                "expected {}.<verb>, where <verb> has at most 64 lower-case letters, digits, _ and -, and begins with a letter",
                definition.type_name
            );
            wrong.add("/event_type", message);
        }
        let matching = PatternMatcher::new(&self.state.patterns);
        let target = |id: &str| {
            let found = self.aggregate(id).filter(|found| !found.deleted);
            found.map(|found| found.aggregate_type.clone())
        };
        let is_first = is_first(new, before, definition);
        let mut check = || {
            let at = "/payload";
            // The type may have been redefined since another log recorded the event. Managed types have one definition,
            // and their operations rely on it.
            if new.recorded.is_some() && !definition.managed {
                payload::check_shape(&new.payload, definition, at, &mut wrong);
            } else {
                let mut checking = PayloadCheck::new(&mut wrong);
                checking.matching = Some(&matching);
                checking.targets = Some(&target);
                checking.event_type = &new.event_type;
                checking.check(&new.payload, is_first, definition, at);
                view::check_stages(&new.payload, definition, at, &mut wrong);
            }
        };
        if payload::is_quick(&new.payload, definition, &matching) {
            check()
        } else {
            in_place(check)
        }
        if !new.metadata.nests_within(MAX_KEPT_DEPTH) {
            wrong.add("/metadata", depth::too_deep(MAX_KEPT_DEPTH));
        }
        wrong.finish(definition.clone()).map_err(Error::from)
    }

    /// Returns the id of the project that an event or a request names by its id or slug. Fails if the project does not
    /// exist.
    pub fn named_project(&self, project: Option<&str>) -> Result<Option<Arc<str>>> {
        project.map(|project| self.project_id(project).ok_or_else(|| unknown_project(project))).transpose()
    }

    /// Checks the type and project that an event names. The project must exist. If the stream already exists, the type
    /// and the project must match the stream. An event may leave out both. Returns the id of the stream's project, if
    /// any.
    pub(super) fn check_stream(&self, new: &NewEvent, before: Option<&Aggregate>) -> Result<Option<Arc<str>>> {
        let project_id = self.named_project(new.project.as_deref())?;
        let Some(before) = before else { return Ok(project_id) };
        if !new.aggregate_type.is_empty() && *before.aggregate_type != *new.aggregate_type {
            let message = format!(
                "the aggregate has the type '{}', but the event has the type '{:.64}'",
                before.aggregate_type, new.aggregate_type
            );
            return Err(Error::conflict(ErrorCode::AggregateTypeMismatch, message));
        }
        if let Some(project) = new.project.as_deref().filter(|_| project_id != before.project_id) {
            return Err(other_project(project));
        }
        Ok(before.project_id.clone())
    }
}
