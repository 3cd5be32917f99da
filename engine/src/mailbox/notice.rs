//! Creates and cancels the tasks that inform owners. The owners of a workspace are informed about its deletion, and the
//! owners of the first workspace about archives that cannot be restored.

use std::sync::Arc;

use uuid::Uuid;

use super::decision::{event, find, resolution};
use crate::append::view::View;
use crate::model::builtin::TASK;
use crate::model::date::format_date;
use crate::model::event::NewEvent;
use crate::model::facts::Priority;
use crate::model::task::record::field;
use crate::model::task::transition::{self, Circumstances};
use crate::model::task::{Act, SourceType, Status, Task, TaskEvent, Verb, title};
use crate::model::value::{Object, Value};

/// The actor that creates and cancels the tasks of this module.
const SYSTEM: &str = "system";
const DAY_MS: i64 = 86_400_000;

/// Returns the events that create the tasks about the deletion of a workspace: one event for each owner who does not
/// have a task about the deletion at `delete_at` yet.
pub fn announced(view: &View<'_>, owners: &[Arc<str>], delete_at: i64) -> Vec<NewEvent> {
    let new = owners.iter().filter(|owner| view.aggregate(&task_id(owner, delete_at)).is_none());
    new.map(|owner| deletion(owner, delete_at)).collect()
}

/// Returns the events that cancel the owners' open tasks about the deletion of the workspace at `delete_at`.
pub fn withdrawn(view: &View<'_>, owners: &[Arc<str>], delete_at: i64, now_ms: i64) -> Vec<NewEvent> {
    let canceled = |owner: &Arc<str>| {
        let id = task_id(owner, delete_at);
        let found = find(view.aggregate(&id), &id).ok()?;
        let task = Task::new(&found);
        let next = transition::next(&task, Act::Agent(Verb::Cancel), Circumstances::default())?;
        let reason = "the deletion of the workspace was canceled or has another date";
        let resolution = resolution("cancel", SYSTEM, now_ms, ("reason", Some(reason)));
        Some(event(&task, TaskEvent::Canceled, next, Object::from_iter([(field::RESOLUTION, resolution)])))
    };
    owners.iter().filter_map(canceled).collect()
}

/// Returns the id of an owner's task about a deletion.
fn task_id(owner: &str, delete_at: i64) -> String {
    named(&format!("deletion of the workspace/{delete_at}/{owner}"))
}

/// Returns one event for each operator. The event creates a task about an archive that cannot be restored. The
/// operators are the owners of the first workspace. An operator who already has a task about this archive from the same
/// day gets no second task.
pub fn unusable_archive(
    view: &View<'_>,
    operators: &[Arc<str>],
    workspace_id: &str,
    at: i64,
    problem: &str,
) -> Vec<NewEvent> {
    let day = at.div_euclid(DAY_MS);
    let task = |operator: &Arc<str>| {
        let id = named(&format!("archive of the workspace/{workspace_id}/{day}/{operator}"));
        view.aggregate(&id).is_none().then(|| {
            let title = format!("The backup of the workspace {workspace_id} cannot be restored: {problem}");
            let metadata = Object::from_iter([("workspace_id", Value::from(workspace_id))]);
            created(id, operator, title::cut(&title.into()).to_string(), metadata)
        })
    };
    operators.iter().filter_map(task).collect()
}

/// Derives the id of a task from a text that is unique to the task. Every server computes the same id.
fn named(name: &str) -> String {
    format!("task-{}", Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()))
}

/// Returns the event that creates a task about the deletion of a workspace.
fn deletion(owner: &Arc<str>, delete_at: i64) -> NewEvent {
    let delete_at_text = format_date(delete_at);
    let title = format!("This workspace will be deleted on {delete_at_text}. Export what you want to keep.");
    let metadata = Object::from_iter([("delete_at", Value::from(delete_at_text))]);
    created(task_id(owner, delete_at), owner, title, metadata)
}

fn created(id: String, owner: &Arc<str>, title: String, metadata: Object) -> NewEvent {
    let payload = Object::from_iter([
        (field::TITLE, Value::from(title)),
        (field::STATUS, Status::Pending.name().into()),
        (field::PRIORITY, Priority::High.name().into()),
        (field::ASSIGNEE_TYPE, "user".into()),
        (field::ASSIGNEE_ID, owner.clone().into()),
        (field::SOURCE_TYPE, SourceType::Api.name().into()),
        (field::SOURCE, Object::new().into()),
        (field::METADATA, metadata.into()),
        (field::UNREAD, true.into()),
        (field::ATTEMPT, 1.into()),
        (field::CREATED_BY, SYSTEM.into()),
    ]);
    NewEvent {
        aggregate_id: id,
        aggregate_type: TASK.into(),
        event_type: TaskEvent::Created.name().into(),
        payload,
        ..NewEvent::default()
    }
}
