//! Creates, finds and reads tasks.

use std::sync::Arc;

use uuid::Uuid;

use crate::append::earlier_writes::earlier_append;
use crate::append::request::Decide;
use crate::append::view::View;
use crate::error::{Error, ErrorCode, Result};
use crate::mailbox::artifacts::first_versions;
use crate::mailbox::effect::EffectOrigin;
use crate::mailbox::person::{check_assignee, parts};
use crate::mailbox::selection::{self, select};
pub use crate::mailbox::selection::{TaskFilter, TaskLimit};
use crate::mailbox::{add_deliverers, find, signed};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::date::format_date;
use crate::model::depth::{self, MAX_CONTENT_DEPTH};
use crate::model::facts::{Assignee, Priority};
use crate::model::task::content::{ArtifactDraft, Stamp, TaskSender};
use crate::model::task::record::field;
use crate::model::task::view::{TimelineView, WaitingOn, WholeTask};
use crate::model::task::{SourceType, Status, review, title};
use crate::model::value::{Object, Value};
use crate::model::violation::Violations;
use crate::offload::on_blocking_thread;
use crate::state::stream_pages::StreamPages;
use crate::workspace::Page;
use crate::workspace::call_context::{CallContext, Operation, first_event};
use crate::workspace::responses::IdempotentRequest;
use crate::workspace::rights::{Reader, Writer};

/// The maximum length of an idempotency key, in bytes.
const MAX_KEY: usize = 255;
/// The maximum number of events in a timeline. A longer timeline shows only the last events.
const MAX_TIMELINE_EVENTS: u64 = 1_000;

/// A task to create.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    pub title: String,
    pub priority: Priority,
    pub assignee: Option<Assignee>,
    pub project: Option<String>,
    /// The kind of source. `None` means `api`.
    pub source_type: Option<SourceType>,
    pub source: Object,
    pub metadata: Object,
    /// The due date, in milliseconds since the epoch.
    pub due_at: Option<i64>,
    /// The artifacts that the task is created with.
    pub artifacts: Vec<ArtifactDraft>,
    /// An idempotency key that never expires. A second request with the same key returns the task of the first request,
    /// or fails if this task was deleted.
    pub idempotency_key: Option<String>,
    pub request: Option<IdempotentRequest>,
}

impl NewTask {
    fn check(&self) -> Result<()> {
        title::check(&self.title).map_err(|allowed| Error::invalid_at("/title", allowed))?;
        if self.idempotency_key.as_ref().is_some_and(|key| key.is_empty() || key.len() > MAX_KEY) {
            return Err(Error::invalid_at("/idempotency_key", format!("expected 1 to {MAX_KEY} bytes")));
        }
        let mut wrong = Violations::default();
        for (name, given) in [(field::SOURCE, &self.source), (field::METADATA, &self.metadata)] {
            if !given.nests_within(MAX_CONTENT_DEPTH) {
                wrong.add(format!("/{name}"), depth::too_deep(MAX_CONTENT_DEPTH));
            }
        }
        Ok(wrong.finish(())?)
    }

    /// Checks the review settings in the metadata, and that their schema compiles.
    async fn check_review(&self) -> Result<()> {
        if !review::is_in(&self.metadata) {
            return Ok(());
        }
        let metadata = Value::from(self.metadata.clone());
        let wrong = on_blocking_thread(move || Ok(review::check(&metadata))).await?;
        if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
    }

    /// Returns the approximate size of the input, in bytes.
    fn size_bytes(&self) -> usize {
        let parts = self.artifacts.iter().filter_map(|draft| draft.parts.as_ref()).flatten();
        self.title.len()
            + self.metadata.size_bytes()
            + self.source.size_bytes()
            + parts.map(Value::size_bytes).sum::<usize>()
    }

    fn payload(&self, stamp: &Stamp, artifacts: Option<Value>) -> Result<Object> {
        let (assignee_type, assignee_id) = parts(self.assignee.as_ref());
        let mut payload = Object::from_iter([
            (field::TITLE, Value::from(self.title.trim())),
            (field::STATUS, Status::Pending.name().into()),
            (field::PRIORITY, self.priority.name().into()),
            (field::ASSIGNEE_TYPE, assignee_type.into()),
            (field::ASSIGNEE_ID, assignee_id.into()),
            (field::SOURCE_TYPE, self.source_type.unwrap_or(SourceType::Api).name().into()),
            (field::SOURCE, self.source.clone().into()),
            (field::METADATA, self.metadata.clone().into()),
            (field::UNREAD, true.into()),
            (field::ATTEMPT, 1.into()),
            (field::CREATED_BY, stamp.by.as_str().into()),
        ]);
        payload.push_some(field::DUE_AT, self.due_at.map(format_date));
        if let Some(artifacts) = artifacts {
            payload.push(field::ARTIFACTS, artifacts);
            add_deliverers(&mut payload, None, stamp)?;
        }
        Ok(payload)
    }
}

impl Writer {
    /// Creates a task. Returns the task and whether an earlier request created it.
    pub async fn create_task(&self, new: NewTask) -> Result<(Arc<Aggregate>, bool)> {
        new.check()?;
        new.check_review().await?;
        // The id is derived from the key, so the key is unique for the lifetime of the log.
        let keyed_id = new.idempotency_key.as_ref().map(|key| format!("task-{}", self.context.keyed_id(key)));
        // A repeated request returns the task of the first request, even if the users and agents have left since.
        let is_repeat = self.context.is_used(keyed_id.as_deref()).await? || self.has_created(&new).await?;
        if !is_repeat {
            self.context.check_escalation(&new.metadata).await?;
            self.context.check_user(new.assignee.as_ref()).await?;
        }
        let stamp = self.context.stamp();
        let id = keyed_id.unwrap_or_else(|| stamp.seed.clone());
        let (request, given_bytes, task_id) = (new.request.clone(), new.size_bytes(), id.clone());
        let assignee = new.assignee.clone();
        let decide: Decide = Box::new(move |view: &View<'_>| {
            if let Some(known) = view.aggregate(&id) {
                return find(Some(known), &id).map(|_| Vec::new()).map_err(|_| taken());
            }
            check_assignee(view, new.assignee.as_ref())?;
            let artifacts = match new.artifacts.is_empty() {
                true => None,
                false => {
                    let subject = new.source.get("aggregate_id").and_then(Value::as_str);
                    let project = new.project.as_deref();
                    let origin = EffectOrigin { task_id: &id, subject, subject_version: None, project };
                    Some(first_versions(view, origin, &new.artifacts, &stamp)?)
                }
            };
            let created = first_event(&id, TASK, new.project.clone(), new.payload(&stamp, artifacts)?);
            Ok(vec![signed(created, &stamp, None)])
        });
        Operation::perform(self, |operation| async move {
            let appended = operation.append_decided(decide, request, given_bytes).await?;
            operation.settle_assignee(assignee.as_ref()).await?;
            match appended.events.is_empty() {
                true => Ok((find(operation.state().folded.get(&task_id), &task_id)?, true)),
                false => operation.context().created(&appended),
            }
        })
        .await
    }

    /// Returns whether an earlier request with the same `Idempotency-Key` has created a task. Fails if the key was used
    /// for another request.
    async fn has_created(&self, new: &NewTask) -> Result<bool> {
        let Some(request) = new.request.clone() else { return Ok(false) };
        Operation::perform(self, |operation| async move {
            Ok(earlier_append(operation.state(), operation.database(), &request).await?.is_some())
        })
        .await
    }
}

fn taken() -> Error {
    Error::conflict(
        ErrorCode::IdempotencyKeyTaken,
        "the id derived from the idempotency key belongs to a deleted task or to an aggregate that is not a task",
    )
}

impl Reader {
    /// Returns the task with this id.
    pub async fn task(&self, id: &str) -> Result<Arc<Aggregate>> {
        self.context.refresh().await?;
        find(self.context.state().folded.get(id), id)
    }

    /// Returns a task with its messages, its artifacts and the last `timeline` events of its timeline. `None` means
    /// [`MAX_TIMELINE_EVENTS`].
    pub async fn whole_task(&self, task: &Aggregate, timeline: Option<u64>) -> Result<WholeTask> {
        let timeline = timeline.unwrap_or(MAX_TIMELINE_EVENTS);
        if timeline > MAX_TIMELINE_EVENTS {
            return Err(Error::invalid(format!("`timeline` is {timeline}; expected 0 to {MAX_TIMELINE_EVENTS}")));
        }
        let first = task.version.saturating_sub(timeline) + 1;
        let mut pages = StreamPages::new(task.id.clone(), first..=task.version);
        let mut entries = Vec::new();
        while let Some(events) = pages.next(&self.context.state().db).await? {
            entries.extend(events.iter().map(TimelineView::from));
        }
        Ok(WholeTask { task: self.decider().view(task), ..WholeTask::new(task, entries) })
    }

    /// Returns a page of tasks, newest first. The cursor of the next page is the position of the event that created the
    /// last task on the page.
    pub async fn list_tasks(
        &self,
        filter: &TaskFilter,
        before: Option<u64>,
        limit: TaskLimit,
    ) -> Result<Page<Arc<Aggregate>>> {
        self.context.select_tasks(filter, before, limit).await
    }
}

impl CallContext {
    /// Returns a page of the tasks that match a filter, newest first. If reads are strong, the page also contains tasks
    /// that other servers have created.
    pub(super) async fn select_tasks(
        &self,
        filter: &TaskFilter,
        before: Option<u64>,
        limit: TaskLimit,
    ) -> Result<Page<Arc<Aggregate>>> {
        self.refresh().await?;
        let selection = TaskFilter {
            statuses: filter.statuses.clone().or(filter.waiting_on.map(WaitingOn::statuses)),
            project: self.project_id(filter.project.as_deref())?.map(|id| id.to_string()),
            ..filter.clone()
        };
        let snapshot = self.snapshot_with(&selection::PATHS).await?;
        let (items, next) = select(&snapshot, &selection, before.unwrap_or(u64::MAX), limit);
        Ok(Page { items, next })
    }

    /// Returns the stamp that records the caller and the time in task contents.
    pub(super) fn stamp(&self) -> Stamp {
        let clock = &self.state().clock;
        let (seed, by) = (clock.new_id().to_string(), self.caller().user_id().to_owned());
        Stamp { seed, by, at_ms: clock.now_ms(), sender: Some(Arc::new(self.sender())) }
    }

    /// Returns the caller as the sender of a request about a task.
    pub(super) fn sender(&self) -> TaskSender {
        let caller = self.caller();
        TaskSender {
            user_id: caller.user_id().into(),
            key_id: caller.key_id().map(Arc::from),
            role: caller.role(),
            lineage: caller.lineage(),
            agents: caller.agents().cloned(),
            decides_on_own: self.state().settings.own_deliveries,
        }
    }

    /// Returns whether an aggregate has the id that is derived from an idempotency key.
    async fn is_used(&self, keyed_id: Option<&str>) -> Result<bool> {
        let Some(id) = keyed_id else { return Ok(false) };
        self.refresh().await?;
        Ok(self.state().folded.get(id).is_some())
    }

    /// Returns the UUID derived from this workspace and an idempotency key of a task.
    fn keyed_id(&self, key: &str) -> Uuid {
        Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{}/task/{key}", self.record().id).as_bytes())
    }
}
