//! The view of tasks for one caller, with the actions that the caller may take.

use crate::mailbox::person;
use crate::model::access::{Role, Scope};
use crate::model::aggregate::Aggregate;
use crate::model::task::Task;
use crate::model::task::content::TaskSender;
use crate::model::task::view::TaskView;
use crate::workspace::call_context::CallContext;

/// A filter for the actions on tasks. The filter keeps the actions that the caller of a request may take.
#[derive(Debug, Clone)]
pub struct Decider {
    /// The caller, or `None` if the caller cannot act on tasks as a person.
    sender: Option<TaskSender>,
}

impl Decider {
    /// Returns the view of a task with the actions that the caller may take.
    pub fn view(&self, task: &Aggregate) -> TaskView {
        let mut view = TaskView::from(task);
        let may = |action| self.sender.as_ref().is_some_and(|sender| person::may_act(&Task::new(task), action, sender));
        view.allowed_actions.retain(|action| may(*action));
        view
    }
}

impl CallContext {
    pub(in crate::workspace) fn decider(&self) -> Decider {
        let caller = self.caller();
        let holds = |scope: Scope| caller.holds(scope) && caller.unpaid(&[scope]).is_empty();
        let may_write = holds(Scope::ApiWrite) || holds(Scope::McpWrite);
        let is_person = caller.agents().is_none() && caller.role() >= Role::Editor;
        Decider { sender: (may_write && is_person).then(|| self.sender()) }
    }
}
