//! A right is a type: each handle on a workspace has the operations that its right allows, and no other.
//!
//! Which operations these are stands with their resource, in a file beside this one.

use std::sync::Arc;

use super::articles::Perspective;
use super::entered::{Changing, Entered, Handle};
use crate::access::standing::Standing;
use crate::error::{Error, Result};
use crate::model::access::{Caller, Scope, WorkspaceRecord};

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
}

/// Decides who may be here: `api:write`, of the workspace's owner.
#[derive(Clone)]
pub struct Owner {
    pub(super) entered: Entered,
}

/// What a caller may do in a workspace, as a type: a handle of this type exists only for a caller who may.
pub trait Right: Handle + Sized {
    /// Scopes, one of which the caller holds.
    const ONE_OF: &[Scope];

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
        Ok(Listener { entered, agents: None })
    }
}

impl Right for Owner {
    const ONE_OF: &[Scope] = &[Scope::ApiWrite];

    fn of(entered: Entered) -> Result<Owner> {
        if entered.caller().user_id() != &*entered.record().owner_id {
            let message = "only the workspace's owner may do this".to_owned();
            return Err(Error::Forbidden { code: "owner_required", message });
        }
        Ok(Owner { entered })
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

impl ProfileReader {
    /// The workspace itself.
    pub fn record(&self) -> &WorkspaceRecord {
        self.entered.record()
    }
}

macro_rules! handle {    ($($handle:ident),*) => {$(
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
handle!(Reader, Writer, ContentReader, ProfileReader, Listener, Owner);

impl Changing for Writer {}
impl Changing for Owner {}

#[cfg(test)]
mod tests {
    use super::*;

    static_assertions::assert_not_impl_any!(Reader: Changing);
    static_assertions::assert_not_impl_any!(ContentReader: Changing);
    static_assertions::assert_not_impl_any!(ProfileReader: Changing);
    static_assertions::assert_not_impl_any!(Listener: Changing);
}
