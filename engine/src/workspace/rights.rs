//! Rights as types: each handle on a workspace has only the operations that its right allows.
//!
//! The operations of a handle are in the file of their resource, in this directory.

use std::sync::Arc;

use strum::VariantArray;

use super::articles::Perspective;
use super::call_context::{CallContext, Changing, Handle};
use super::mailbox::decider::Decider;
use crate::access::grant::Grant;
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::{Caller, Role, Scope, WorkspaceRecord};

/// A right in a workspace, represented by the type of its handle. A handle exists only for a caller who holds the
/// right, or another right that converts into this handle. Exception: the credential of a listener gives a [`Listener`]
/// without a scope.
pub trait Right: Handle + Sized {
    /// The scopes that grant the right. If `NEEDS_ALL` is set, the caller must hold all of the scopes. Otherwise, one
    /// of the scopes is enough.
    const ONE_OF: &[Scope];
    /// Whether the caller must hold all scopes of `ONE_OF`.
    const NEEDS_ALL: bool = false;
    /// The lowest role that the caller may have.
    const LEAST: Role = Role::Viewer;
    /// Whether this is the right to manage the installation. A lapsed plan does not block this right.
    const IS_OPERATOR: bool = false;
    /// Whether a key that is bound to agents may have the right.
    const IS_FOR_AGENTS: bool = false;
}

/// Makes a type the handle of a right. `$created` creates the handle from the context.
macro_rules! handle {
    ($handle:ident, $context:ident, $created:expr) => {
        impl Handle for $handle {
            fn of($context: CallContext) -> $handle {
                $created
            }

            fn context(&self) -> &CallContext {
                &self.context
            }
        }

        impl $handle {
            /// Returns the caller who holds the right.
            pub fn caller(&self) -> &Caller {
                self.context.caller()
            }

            /// Registers this right. The returned grant tells a long-running reader or listener when the right ends.
            pub fn grant(&self) -> Grant {
                self.context.grant()
            }

            /// Returns the record of the workspace.
            pub fn record(&self) -> &WorkspaceRecord {
                self.context.record()
            }

            /// Returns the current time, in milliseconds since the epoch. All deadlines of tasks use this clock.
            pub fn now_ms(&self) -> i64 {
                self.context.state().clock.now_ms()
            }

            /// Returns the [`Decider`] for the caller of this handle.
            pub fn decider(&self) -> Decider {
                self.context.decider()
            }
        }
    };
}

/// Declares rights whose handles have a single field: the call context. After the colon, each right lists the scopes
/// that grant the right, and the constants of [`Right`] that differ from their defaults.
macro_rules! rights {
    ($($(#[$doc:meta])+ $handle:ident: $one_of:expr $(, $constant:ident: $type:ty = $value:expr)*;)+) => {
        $(
            $(#[$doc])+
            #[derive(Clone)]
            pub struct $handle {
                pub(super) context: CallContext,
            }

            impl Right for $handle {
                const ONE_OF: &[Scope] = $one_of;
                $(const $constant: $type = $value;)*
            }

            handle!($handle, context, $handle { context });
        )+
    };
}

rights! {
    /// The right to read everything. Needs `api:read`.
    Reader: &[Scope::ApiRead], IS_FOR_AGENTS: bool = true;
    /// The right to change the contents of the workspace. Needs `api:write` and at least the role editor. An operation
    /// returns only the records that it has changed, because this right does not include reading other records.
    Writer: &[Scope::ApiWrite], LEAST: Role = Role::Editor;
    /// The right to work on the tasks of agents. Needs `api:write` and at least the role editor. A key that is bound to
    /// agents can change tasks only with this right, and can change only the tasks of its agents.
    AgentWriter: &[Scope::ApiWrite], LEAST: Role = Role::Editor, IS_FOR_AGENTS: bool = true;
    /// The right to read the caller's own profile. Needs `profile:read` or `api:read`.
    ProfileReader: &[Scope::ProfileRead, Scope::ApiRead], IS_FOR_AGENTS: bool = true;
    /// The right to manage members and access. Needs every scope and the role owner.
    Owner: Scope::VARIANTS, NEEDS_ALL: bool = true, LEAST: Role = Role::Owner;
    /// The right to manage the installation. Needs every scope and the role owner in the first workspace of the store.
    /// A lapsed plan does not block this right, since an operator who decides on plans must be able to repair their own
    /// plan.
    Administrator: Scope::VARIANTS, NEEDS_ALL: bool = true, LEAST: Role = Role::Owner, IS_OPERATOR: bool = true;
    /// The right to unlock apps on devices. Needs `extension:unlock`.
    Unlocker: &[Scope::ExtensionUnlock];
    /// The right to read everything on behalf of a model. Needs `mcp:read`, a scope that grants no other right.
    /// Converts into a [`Reader`].
    McpReader: &[Scope::McpRead], IS_FOR_AGENTS: bool = true;
    /// The right to make changes on behalf of a model. Needs at least the role editor, and `mcp:write`, a scope that
    /// grants no other right except [`Uploader`]. Converts into a [`Writer`].
    McpWriter: &[Scope::McpWrite], LEAST: Role = Role::Editor;
    /// The right to store the one file that a link was created for, on behalf of the link's creator. Needs `api:write`
    /// or `mcp:write`, and at least the role editor, which the creator must still hold. Converts into a [`Writer`].
    Uploader: &[Scope::ApiWrite, Scope::McpWrite], LEAST: Role = Role::Editor;
}

/// The right to read content: published content with `content:read`, and drafts as well with `api:read`.
#[derive(Clone)]
pub struct ContentReader {
    pub(super) context: CallContext,
    /// The perspective in which this caller sees the most content. `Published` shows only published content. `Draft`
    /// shows drafts as well.
    sees: Perspective,
}

impl Right for ContentReader {
    const ONE_OF: &[Scope] = &[Scope::ContentRead, Scope::ApiRead];
    const IS_FOR_AGENTS: bool = true;
}

handle!(ContentReader, context, content_reader(context));

fn content_reader(context: CallContext) -> ContentReader {
    let sees = if context.caller().holds(Scope::ApiRead) { Perspective::Draft } else { Perspective::Published };
    ContentReader { context, sees }
}

/// The right to listen for agents: to read their feeds and report their presence. With `acts`, also to renew their
/// leases and acknowledge their feeds. Allows no other change. Needs `api:read`, or a credential issued to a caller
/// with `api:read`.
#[derive(Clone)]
pub struct Listener {
    pub(super) context: CallContext,
    /// The agents that the handle may access. `None` means all agents of the workspace.
    pub(super) agents: Option<Arc<[Arc<str>]>>,
    /// Whether the caller may also act for the agents in `agents`.
    pub(super) acts: bool,
}

impl Right for Listener {
    const ONE_OF: &[Scope] = &[Scope::ApiRead];
    const IS_FOR_AGENTS: bool = true;
}

handle!(Listener, context, listener(context));

fn listener(context: CallContext) -> Listener {
    let acts = check::<AgentWriter>(context.caller()).is_ok();
    let agents = context.caller().agents().cloned();
    Listener { context, agents, acts }
}

/// Checks that a caller has a right. Reports a missing scope or role before a missing subscription.
pub fn check<R: Right>(caller: &Caller) -> Result<()> {
    let held: Vec<Scope> = R::ONE_OF.iter().copied().filter(|scope| caller.holds(*scope)).collect();
    if R::NEEDS_ALL && held.len() < R::ONE_OF.len() {
        return Err(Error::ScopesLacking { lacking: R::ONE_OF.to_vec() });
    }
    if held.is_empty() {
        return Err(Error::InsufficientScope { required: R::ONE_OF.to_vec() });
    }
    if caller.role() < R::LEAST {
        return Err(match R::LEAST {
            Role::Owner => Error::forbidden(ErrorCode::OwnerRequired, "this operation needs the role `owner`"),
            least => Error::forbidden(
                ErrorCode::InsufficientRole,
                format!("this operation needs the role `{}` or a higher role", least.name()),
            ),
        });
    }
    if caller.agents().is_some() && !R::IS_FOR_AGENTS {
        return Err(Error::forbidden(
            ErrorCode::AgentKey,
            "a key that is bound to agents can only read, work on the tasks of its agents, report their presence, and \
             revoke itself",
        ));
    }
    let unpaid = caller.unpaid(&held);
    let is_unpaid = if R::NEEDS_ALL { !unpaid.is_empty() } else { unpaid.len() == held.len() };
    if !R::IS_OPERATOR && is_unpaid {
        return Err(Error::SubscriptionRequired { required: unpaid });
    }
    Ok(())
}

impl McpReader {
    /// Converts the right to the handle whose operations only read.
    pub fn into_reader(self) -> Reader {
        Reader { context: self.context }
    }
}

impl McpWriter {
    /// Converts the right to the handle with the operations that change the workspace.
    pub fn into_writer(self) -> Writer {
        Writer { context: self.context }
    }
}

impl Uploader {
    /// Turns this right to upload a file into the handle that stores the file.
    pub(super) fn into_writer(self) -> Writer {
        Writer { context: self.context }
    }
}

impl ContentReader {
    /// Returns the requested perspective, limited to the widest perspective that the caller may use.
    pub(super) fn shown(&self, requested: Perspective) -> Perspective {
        match self.sees {
            Perspective::Draft => requested,
            Perspective::Published => Perspective::Published,
        }
    }
}

impl Owner {
    /// Returns a writer for the same caller. An owner may do everything that an editor may.
    pub(super) fn as_writer(&self) -> Writer {
        Writer { context: self.context.clone() }
    }
}

impl Changing for Writer {}
impl Changing for AgentWriter {}
impl Changing for Owner {}
impl Changing for Administrator {}
impl Changing for Unlocker {}

#[cfg(test)]
mod tests {
    use super::*;

    static_assertions::assert_not_impl_any!(Reader: Changing);
    static_assertions::assert_not_impl_any!(ContentReader: Changing);
    static_assertions::assert_not_impl_any!(ProfileReader: Changing);
    static_assertions::assert_not_impl_any!(Listener: Changing);
    static_assertions::assert_not_impl_any!(McpReader: Changing);
    static_assertions::assert_not_impl_any!(Uploader: Changing);
}
