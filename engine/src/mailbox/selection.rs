//! Selects tasks by columns of the resident states. Columns keep the selection fast for a large number of tasks.

use std::sync::{Arc, LazyLock};

use strum::VariantArray;

use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::facts::Priority;
use crate::model::task::record::field;
use crate::model::task::view::WaitingOn;
use crate::model::task::{SourceType, Status, Task};
use crate::pipeline::column::{CellKind, Cells, Column, Mask, SEGMENT, Segment, TextCode};
use crate::resident::Snapshot;
use crate::state::folded_states::FoldedStates;

/// The paths of the columns that a task list reads.
pub static PATHS: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| {
    let fields =
        [field::STATUS, field::ASSIGNEE_TYPE, field::ASSIGNEE_ID, field::SOURCE_TYPE, field::UNREAD, field::PRIORITY];
    fields.into_iter().map(Arc::from).collect()
});

/// A filter for lists of tasks. A task must meet all conditions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskFilter {
    pub statuses: Option<Vec<Status>>,
    /// The type of the assignee. The outer `None` selects all tasks, the inner `None` tasks without an assignee.
    pub assignee_type: Option<Option<&'static str>>,
    pub assignee_id: Option<String>,
    /// The id or slug of a project. Callers must replace a slug by the id before they call [`TaskFilter::admits`].
    pub project: Option<String>,
    pub source_type: Option<SourceType>,
    pub unread: Option<bool>,
    /// The party that must act next.
    pub waiting_on: Option<WaitingOn>,
    pub priorities: Option<Vec<Priority>>,
}

/// The limits of a page of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskLimit {
    pub tasks: usize,
    pub bytes: usize,
}

impl TaskLimit {
    /// No limit: all tasks fit on one page.
    pub const NONE: TaskLimit = TaskLimit { tasks: usize::MAX, bytes: usize::MAX };

    /// Returns a limit on the number of tasks, without a limit on the size.
    pub fn tasks(tasks: usize) -> TaskLimit {
        TaskLimit { tasks, bytes: usize::MAX }
    }

    /// Returns the number of bytes that a task adds to a page, or 0 if the size is not limited.
    fn bytes_of(&self, task: &Aggregate) -> usize {
        if self.bytes == usize::MAX { 0 } else { Task::new(task).listed_bytes() }
    }
}

/// Builds the columns that a task list reads, so that the first list does not wait for the columns. Does nothing if
/// there are no tasks.
pub fn prepare(folded: &FoldedStates) {
    let has_tasks = |snapshot: &Snapshot| snapshot.base().is_some_and(|base| base.types.texts().code(TASK).is_some());
    if has_tasks(&folded.snapshot_with(&[])) {
        folded.snapshot_with(&PATHS.iter().collect::<Vec<_>>());
    }
}

/// Returns a page of the selected tasks, newest first. The page contains only tasks whose first event is before the
/// position `before`. Also returns the value of `before` for the next page, or `None` on the last page. The page ends
/// at the limit that is reached first. The first selected task is on the page even if the task is larger than the size
/// limit.
pub fn select(
    snapshot: &Snapshot,
    selection: &TaskFilter,
    before: u64,
    limit: TaskLimit,
) -> (Vec<Arc<Aggregate>>, Option<u64>) {
    let (mut selected, mut bytes): (Vec<Arc<Aggregate>>, usize) = (Vec::new(), 0);
    let end = snapshot.first_row_at(before);
    for segment in (0..end.div_ceil(SEGMENT)).rev() {
        let mask = selection.mask(snapshot, segment);
        let rows: Vec<usize> = mask.rows().map(|row| segment * SEGMENT + row as usize).collect();
        for task in rows.into_iter().rev().filter(|row| *row < end).filter_map(|row| snapshot.at(row)) {
            if !selection.admits(task) {
                continue;
            }
            bytes = bytes.saturating_add(limit.bytes_of(task));
            if selected.len() == limit.tasks || (bytes > limit.bytes && !selected.is_empty()) {
                let next = selected.last().map(|last| last.first_position);
                return (selected, next);
            }
            selected.push(task.clone());
        }
    }
    (selected, None)
}

/// Calls `visit` with each selected task, oldest first.
pub fn visit(snapshot: &Snapshot, selection: &TaskFilter, mut visit: impl FnMut(&Aggregate)) {
    for segment in 0..snapshot.len().div_ceil(SEGMENT) {
        let mask = selection.mask(snapshot, segment);
        let tasks = mask.rows().filter_map(|row| snapshot.at(segment * SEGMENT + row as usize));
        tasks.filter(|task| selection.admits(task)).for_each(|task| visit(task));
    }
}

impl TaskFilter {
    /// Returns whether an aggregate is a task that meets all conditions.
    pub fn admits(&self, aggregate: &Aggregate) -> bool {
        if &*aggregate.aggregate_type != TASK || aggregate.deleted {
            return false;
        }
        let task = Task::new(aggregate);
        let matches = |expected: Option<&str>, actual: Option<&str>| expected.is_none() || expected == actual;
        self.statuses.as_ref().is_none_or(|statuses| statuses.contains(&task.status()))
            && self.assignee_type.is_none_or(|kind| task.text(field::ASSIGNEE_TYPE) == kind)
            && matches(self.assignee_id.as_deref(), task.text(field::ASSIGNEE_ID))
            && matches(self.project.as_deref(), aggregate.project_id.as_deref())
            && matches(self.source_type.map(SourceType::name), task.text(field::SOURCE_TYPE))
            && self.unread.is_none_or(|unread| task.is_unread() == unread)
            && self.waiting_on.is_none_or(|party| WaitingOn::of(&task) == party)
            && self.priorities.as_ref().is_none_or(|priorities| {
                let priority = task.text(field::PRIORITY).unwrap_or(Priority::default().name());
                priorities.iter().any(|selected| selected.name() == priority)
            })
    }

    /// Returns the rows of a segment that may meet the conditions. The result includes all matching rows, and may
    /// include other rows.
    fn mask(&self, snapshot: &Snapshot, segment: usize) -> Mask {
        let rows = snapshot.len().saturating_sub(segment * SEGMENT).min(SEGMENT);
        let mut mask = Mask::all(rows);
        let Some(base) = snapshot.base() else { return mask };
        let selected_texts = [
            (Some(&base.types), Some(TASK)),
            (Some(&base.projects), self.project.as_deref()),
            (snapshot.column(field::ASSIGNEE_TYPE), self.assignee_type.flatten()),
            (snapshot.column(field::ASSIGNEE_ID), self.assignee_id.as_deref()),
            (snapshot.column(field::SOURCE_TYPE), self.source_type.map(SourceType::name)),
        ];
        for (column, text) in selected_texts.into_iter().filter_map(|(column, text)| column.zip(text)) {
            narrow(&mut mask, column, segment, &[text]);
        }
        // A task without a status is pending, and a task without a priority is normal. Rows without a value therefore
        // cannot be excluded if pending or normal tasks are selected.
        if let (Some(priorities), Some(column)) = (&self.priorities, snapshot.column(field::PRIORITY))
            && !priorities.contains(&Priority::Normal)
        {
            let names: Vec<&str> = priorities.iter().map(|priority| priority.name()).collect();
            narrow(&mut mask, column, segment, &names);
        }
        if let (Some(statuses), Some(column)) = (&self.statuses, snapshot.column(field::STATUS)) {
            if statuses.contains(&Status::Pending) {
                let others = Status::VARIANTS.iter().filter(|status| !statuses.contains(status));
                exclude(&mut mask, column, segment, &others.map(|status| status.name()).collect::<Vec<_>>());
            } else {
                let names: Vec<&str> = statuses.iter().map(|status| status.name()).collect();
                narrow(&mut mask, column, segment, &names);
            }
        }
        if self.assignee_type == Some(None)
            && let Some(column) = snapshot.column(field::ASSIGNEE_TYPE)
            && let Some(segment) = column.segments().get(segment)
        {
            mask.and(&without_value(segment));
        }
        if let Some(is_unread) = self.unread
            && let Some(column) = snapshot.column(field::UNREAD)
            && let Some(segment) = column.segments().get(segment)
            && let Cells::Bools(unread) = segment.cells()
        {
            let mut selected = Mask::of(unread, |unread| *unread == is_unread);
            if !is_unread {
                selected.or(&without_value(segment));
            }
            mask.and(&selected);
        }
        mask
    }
}

/// Removes from the mask all rows whose cell contains none of these texts.
fn narrow(mask: &mut Mask, column: &Column, segment: usize, texts: &[&str]) {
    let Some(segment) = column.segments().get(segment) else { return };
    match segment.cells() {
        Cells::Texts(codes) => mask.and(&with_texts(column, segment, codes, texts)),
        Cells::Empty => *mask = Mask::none(mask.len()),
        // This kind of column cannot be compared with texts, so `admits` checks the states.
        _ => {}
    }
}

/// Removes from the mask all rows whose cell contains one of these texts.
fn exclude(mask: &mut Mask, column: &Column, segment: usize, texts: &[&str]) {
    if let Some(segment) = column.segments().get(segment)
        && let Cells::Texts(codes) = segment.cells()
    {
        let mut others = with_texts(column, segment, codes, texts);
        others.negate();
        mask.and(&others);
    }
}

fn with_texts(column: &Column, segment: &Segment, codes: &[TextCode], texts: &[&str]) -> Mask {
    let selected: Vec<TextCode> = texts.iter().filter_map(|text| column.texts().code(text)).collect();
    let mut mask = Mask::of(codes, |code| selected.contains(code));
    if !segment.is_plain() {
        let mut valueless = without_value(segment);
        valueless.negate();
        mask.and(&valueless);
    }
    mask
}

/// Returns the rows whose cells have no value.
fn without_value(segment: &Segment) -> Mask {
    match segment.is_plain() {
        true => Mask::none(segment.len()),
        false => Mask::of(segment.kinds(), |kind| matches!(kind, CellKind::Null | CellKind::Missing)),
    }
}
