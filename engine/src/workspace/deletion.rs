//! Lets operators list, rename and delete workspaces, and list users. Also reads the current record of a workspace, and
//! derives the id of a restore from the request that begins the restore.

use std::sync::Arc;

use super::Page;
use super::call_context::Operation;
use super::responses::IdempotentRequest;
use super::rights::{Administrator, ProfileReader};
pub use crate::access::workspaces::{ListedUser, ListedWorkspace};
use crate::error::Result;

/// A page of a list that is ordered by ids. The cursor is the id of the last item.
pub type PageById<T> = Page<T, Arc<str>>;

impl<T> PageById<T> {
    /// Creates a page of the first `limit` items. `items` contains one further item if there is a next page.
    fn first(mut items: Vec<T>, limit: usize, id: impl Fn(&T) -> Arc<str>) -> PageById<T> {
        let has_next = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| has_next).map(id);
        Page { items, next }
    }
}

impl ProfileReader {
    /// Returns the current record of the workspace from the store. Another server may have renamed the workspace since
    /// this server opened the workspace.
    pub async fn workspace(&self) -> Result<ListedWorkspace> {
        self.context.access().listed_workspace(&self.record().id).await
    }
}

impl Administrator {
    /// Returns the id of the restore that a request begins. Returns the same id for each repetition of the request.
    pub fn restore_id(&self, request: &IdempotentRequest) -> Arc<str> {
        self.context.derived_id(request, "restore").into()
    }

    /// Returns a page of the store's workspaces after the given id, in the order of their ids.
    pub async fn list_workspaces(&self, after: Option<&str>, limit: usize) -> Result<PageById<ListedWorkspace>> {
        let found = self.context.access().workspace_page(after, limit + 1).await?;
        Ok(PageById::first(found, limit, |workspace| workspace.record.id.clone()))
    }

    /// Returns a page of the store's users after the given id, in the order of their ids.
    pub async fn list_users(&self, after: Option<&str>, limit: usize) -> Result<PageById<ListedUser>> {
        let found = self.context.access().user_page(after, limit + 1).await?;
        Ok(PageById::first(found, limit, |user| user.record.id.clone()))
    }

    /// Changes the name of a workspace. Returns the changed workspace.
    pub async fn rename_workspace(&self, id: &str, name: &str) -> Result<ListedWorkspace> {
        let (id, name) = (id.to_owned(), name.to_owned());
        Operation::perform(self, |operation| async move { operation.access().rename_workspace(&id, &name).await }).await
    }

    /// Begins the grace period after which a workspace is deleted. A grace period that has already begun stays
    /// unchanged. Returns the workspace. Fails for the first workspace, which cannot be deleted.
    pub async fn delete_workspace(&self, id: &str) -> Result<ListedWorkspace> {
        let id = id.to_owned();
        Operation::perform(self, |operation| async move {
            let grace_ms = operation.state().settings.deletion_grace_ms;
            operation.access().delete_workspace(&id, grace_ms).await
        })
        .await
    }

    /// Cancels the planned deletion of a workspace, if there is one. Returns the workspace. Fails if the workspace was
    /// removed.
    pub async fn keep_workspace(&self, id: &str) -> Result<ListedWorkspace> {
        let id = id.to_owned();
        Operation::perform(self, |operation| async move { operation.access().keep_workspace(&id).await }).await
    }
}
