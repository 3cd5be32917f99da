//! A right is a type: each handle on a workspace has the operations that its right allows, and no other.
//!
//! Which operations these are stands with their resource, in a file beside this one.

use std::sync::Arc;

use super::articles::Perspective;
use super::entered::{Changing, Entered, Handle};
use crate::access::standing::Standing;
use crate::error::{Error, Result};
use crate::model::access::{Caller, Role, Scope, WorkspaceRecord};

/// Reads everything: `api:read`.
#[derive(Clone)]
pub struct Reader {
    pub(super) entered: Entered,
}

/// Changes what is in the workspace: `api:write`. It reads nothing that it has not changed.
#[derive(Clone)]
pub struct Writer {
    pub(super) entered: Entered,
}

/// Reads content: with `content:read` what is published, with `api:read` drafts too.
#[derive(Clone)]
pub struct ContentReader {
    pub(super) entered: Entered,
    /// The most that there is to see.
    sees: Perspective,
}

/// Reads who one is: `profile:read` or `api:read`.
#[derive(Clone)]
pub struct ProfileReader {
    pub(super) entered: Entered,
}

/// Listens for agents: reads their feeds, says that they are there and how far they have come, and changes nothing else.
/// `api:read`, or the credential that was handed out to somebody who holds it.
#[derive(Clone)]
pub struct Listener {
    pub(super) entered: Entered,
    /// The agents in reach; `None`: all of the workspace.
    pub(super) agents: Option<Arc<[Arc<str>]>>,
    /// Whether the caller may act for these agents, and not only listen.
    pub(super) acts: bool,
}

/// Decides who may be here: every scope, of the workspace's owner.
#[derive(Clone)]
pub struct Owner {
    pub(super) entered: Entered,
}

/// Runs the installation: every scope, of an owner of the workspace that the first start made. Lapsed plans are no
/// hindrance: who decides on plans must be able to mend their own.
#[derive(Clone)]
pub struct Operator {
    pub(super) entered: Entered,
}

/// Unlocks apps on devices: `extension:unlock`.
#[derive(Clone)]
pub struct Unlocker {
    pub(super) entered: Entered,
}

/// Reads everything on behalf of a model: `mcp:read`, which opens nothing else. What it reads by is a [`Reader`].
#[derive(Clone)]
pub struct McpReader {
    entered: Entered,
}

/// Changes things on behalf of a model: `mcp:write`, which opens nothing else. What it changes them by is a [`Writer`].
#[derive(Clone)]
pub struct McpWriter {
    entered: Entered,
}

/// Stores the one file that a link was made for, on behalf of whoever made it: `api:write` or `mcp:write`, as they have it
/// still. What it stores it by is a [`Writer`].
#[derive(Clone)]
pub struct Uploader {
    entered: Entered,
}

/// What a caller may do in a workspace, as a type: a handle of this type exists only for a caller who may.
pub trait Right: Handle + Sized {
    /// Scopes, one of which the caller holds.
    const ONE_OF: &[Scope];
    /// Whether the caller holds all of them.
    const NEEDS_ALL: bool = false;
    /// The least that the caller is in the workspace.
    const LEAST: Role = Role::Viewer;
    /// Whether it is the right of who runs the installation. A lapsed plan is no hindrance then.
    const IS_OPERATOR: bool = false;

    /// The handle of a caller who holds one of the scopes.
    fn of(entered: Entered) -> Result<Self>;
}

impl Right for Reader {
    const ONE_OF: &[Scope] = &[Scope::ApiRead];

    fn of(entered: Entered) -> Result<Reader> {
        Ok(Reader { entered })
    }
}

impl Right for Writer {
    const ONE_OF: &[Scope] = &[Scope::ApiWrite];
    const LEAST: Role = Role::Editor;

    fn of(entered: Entered) -> Result<Writer> {
        Ok(Writer { entered })
    }
}

impl Right for ContentReader {
    const ONE_OF: &[Scope] = &[Scope::ContentRead, Scope::ApiRead];

    fn of(entered: Entered) -> Result<ContentReader> {
        let sees = if entered.caller().holds(Scope::ApiRead) { Perspective::Draft } else { Perspective::Published };
        Ok(ContentReader { entered, sees })
    }
}

impl Right for ProfileReader {
    const ONE_OF: &[Scope] = &[Scope::ProfileRead, Scope::ApiRead];

    fn of(entered: Entered) -> Result<ProfileReader> {
        Ok(ProfileReader { entered })
    }
}

impl Right for Listener {
    const ONE_OF: &[Scope] = &[Scope::ApiRead];

    fn of(entered: Entered) -> Result<Listener> {
        let acts = check::<Writer>(entered.caller()).is_ok();
        Ok(Listener { entered, agents: None, acts })
    }
}

impl Right for Owner {
    const ONE_OF: &[Scope] = &Scope::ALL;
    const NEEDS_ALL: bool = true;
    const LEAST: Role = Role::Owner;

    fn of(entered: Entered) -> Result<Owner> {
        Ok(Owner { entered })
    }
}

impl Right for Operator {
    const ONE_OF: &[Scope] = &Scope::ALL;
    const NEEDS_ALL: bool = true;
    const LEAST: Role = Role::Owner;
    const IS_OPERATOR: bool = true;

    fn of(entered: Entered) -> Result<Operator> {
        Ok(Operator { entered })
    }
}

impl Right for Unlocker {
    const ONE_OF: &[Scope] = &[Scope::ExtensionUnlock];

    fn of(entered: Entered) -> Result<Unlocker> {
        Ok(Unlocker { entered })
    }
}

/// Refuses a caller who does not have a right. What is lacking is said before what is not paid for.
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
            Role::Owner => Error::forbidden("owner_required", "only the workspace's owner may do this"),
            least => Error::forbidden("insufficient_role", format!("this operation needs the role {}", least.name())),
        });
    }
    let unpaid = caller.unpaid(&held);
    let is_unpaid = if R::NEEDS_ALL { !unpaid.is_empty() } else { unpaid.len() == held.len() };
    if !R::IS_OPERATOR && is_unpaid {
        return Err(Error::SubscriptionRequired { required: unpaid });
    }
    Ok(())
}

impl Right for McpReader {
    const ONE_OF: &[Scope] = &[Scope::McpRead];

    fn of(entered: Entered) -> Result<McpReader> {
        Ok(McpReader { entered })
    }
}

impl Right for McpWriter {
    const ONE_OF: &[Scope] = &[Scope::McpWrite];
    const LEAST: Role = Role::Editor;

    fn of(entered: Entered) -> Result<McpWriter> {
        Ok(McpWriter { entered })
    }
}

impl Right for Uploader {
    const ONE_OF: &[Scope] = &[Scope::ApiWrite, Scope::McpWrite];
    const LEAST: Role = Role::Editor;

    fn of(entered: Entered) -> Result<Uploader> {
        Ok(Uploader { entered })
    }
}

impl McpReader {
    /// The handle of a tool that reads.
    pub fn into_reader(self) -> Reader {
        Reader { entered: self.entered }
    }
}

impl McpWriter {
    /// The handle of a tool that changes something.
    pub fn into_writer(self) -> Writer {
        Writer { entered: self.entered }
    }
}

impl Uploader {
    /// The handle by which the file is stored.
    pub(super) fn into_writer(self) -> Writer {
        Writer { entered: self.entered }
    }
}

impl Reader {
    /// The workspace itself.
    pub fn record(&self) -> &WorkspaceRecord {
        self.entered.record()
    }

    /// The right itself, for whoever reads for long: it ends where the key that was shown does.
    pub fn standing(&self) -> Standing {
        self.entered.standing()
    }
}

impl ContentReader {
    /// The workspace itself.
    pub fn record(&self) -> &WorkspaceRecord {
        self.entered.record()
    }

    /// What is shown to a caller who asks for this.
    pub(super) fn shown(&self, asked: Perspective) -> Perspective {
        match self.sees {
            Perspective::Draft => asked,
            Perspective::Published => Perspective::Published,
        }
    }
}

impl Owner {
    /// The same caller as one who writes: an owner may do all that an editor may.
    pub(super) fn as_writer(&self) -> Writer {
        Writer { entered: self.entered.clone() }
    }
}

impl ProfileReader {
    /// The workspace itself.
    pub fn record(&self) -> &WorkspaceRecord {
        self.entered.record()
    }
}

macro_rules! handle {
    ($($handle:ident),*) => {$(
        impl Handle for $handle {
            fn entered(&self) -> &Entered {
                &self.entered
            }
        }

        impl $handle {
            pub fn caller(&self) -> &Caller {
                self.entered.caller()
            }
        }
    )*};
}
handle!(
    Reader,
    Writer,
    ContentReader,
    ProfileReader,
    Listener,
    Owner,
    Operator,
    Unlocker,
    McpReader,
    McpWriter,
    Uploader
);

impl Changing for Writer {}
impl Changing for Owner {}
impl Changing for Operator {}
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
