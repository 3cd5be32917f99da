//! A right that is held for long: it ends when its key is revoked, its user leaves the workspace or gets a lower role
//! there, in this process or another one, or what was shown expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::select_all;
use tokio::sync::watch;

use super::Access;
use crate::error::Result;
use crate::model::access::{Caller, Role};
use crate::store::members::Ground;

/// How often it is looked what other processes have ended, while rights are held.
const LOOK: Duration = Duration::from_millis(300);
/// The longest wait between two looks at the clock: it may be set while somebody waits for a time to come.
const CLOCK_LOOK: Duration = Duration::from_millis(500);

/// The grounds on which rights are held in this process, each with what tells that it is gone.
#[derive(Default)]
pub struct HeldRights {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    gone: HashMap<Ground, watch::Sender<bool>>,
    /// Whether a task looks for what other processes end.
    is_watched: bool,
}

impl HeldRights {
    /// Ends the rights that are held on a ground.
    pub fn end(&self, ground: &Ground) {
        if let Some(gone) = self.held().gone.remove(ground) {
            gone.send_replace(true);
        }
    }

    /// Ends the rights of a user in a workspace that take a higher role than is given; all of them where none is.
    pub fn end_above(&self, workspace_id: &str, user_id: &str, role: Option<Role>) {
        self.held().gone.retain(|ground, gone| {
            let is_over = matches!(ground, Ground::Member(workspace, user, least)
                if **workspace == *workspace_id && **user == *user_id && Some(*least) > role);
            if is_over {
                gone.send_replace(true);
            }
            !is_over
        });
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right of a caller, for as long as it is held.
pub struct Standing {
    access: Arc<Access>,
    expires_at: Option<i64>,
    grounds: Vec<HeldGround>,
    /// Whether the grounds were looked for in the store since they are held: they may have gone just before.
    is_checked: bool,
}

struct HeldGround {
    ground: Ground,
    gone: watch::Receiver<bool>,
}

impl Access {
    /// Holds the right of a caller.
    pub fn standing(self: &Arc<Self>, caller: &Caller) -> Standing {
        let member = Ground::Member(caller.workspace_id.clone(), caller.user_id.clone(), caller.role);
        let grounds = caller.key_id.clone().map(Ground::Key).into_iter().chain([member]);
        let mut held = self.held.held();
        let mut hold = |ground: Ground| {
            let gone = held.gone.entry(ground.clone()).or_insert_with(|| watch::Sender::new(false)).subscribe();
            HeldGround { ground, gone }
        };
        let grounds = grounds.map(&mut hold).collect();
        if !self.exclusive && !std::mem::replace(&mut held.is_watched, true) {
            tokio::spawn(watch_grounds(self.clone()));
        }
        Standing { access: self.clone(), expires_at: caller.expires_at, grounds, is_checked: false }
    }
}

impl Standing {
    /// Returns when the right has ended.
    pub async fn ended(&mut self) {
        let Standing { access, expires_at, grounds, is_checked } = self;
        tokio::select! {
            () = expired(access, *expires_at) => {}
            () = gone(access, grounds, is_checked) => {}
        }
    }
}

impl Standing {
    /// Whether the right is held still, as the store knows it now.
    pub async fn is_held(&self) -> Result<bool> {
        if self.expires_at.is_some_and(|end| end <= self.access.clock.now_ms()) {
            return Ok(false);
        }
        let grounds: Vec<Ground> = self.grounds.iter().map(|held| held.ground.clone()).collect();
        Ok(self.access.control.existing_grounds(&grounds).await?.len() == grounds.len())
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let mut held = self.access.held.held();
        for HeldGround { ground, .. } in &self.grounds {
            // The last one that holds it is this one.
            if held.gone.get(ground).is_some_and(|gone| gone.receiver_count() <= 1) {
                held.gone.remove(ground);
            }
        }
    }
}

async fn expired(access: &Access, expires_at: Option<i64>) {
    let Some(expires_at) = expires_at else { return std::future::pending().await };
    loop {
        let left_ms = expires_at.saturating_sub(access.clock.now_ms());
        match u64::try_from(left_ms) {
            Ok(left_ms) if left_ms > 0 => tokio::time::sleep(CLOCK_LOOK.min(Duration::from_millis(left_ms))).await,
            _ => return,
        }
    }
}

async fn gone(access: &Access, grounds: &mut [HeldGround], is_checked: &mut bool) {
    if !*is_checked {
        let names: Vec<Ground> = grounds.iter().map(|held| held.ground.clone()).collect();
        match access.control.existing_grounds(&names).await {
            Ok(existing) if existing.len() < names.len() => return,
            Ok(_) => *is_checked = true,
            Err(error) => tracing::warn!(%error, "whether a right is held still was not found out"),
        }
    }
    // Where the sender is gone, it told so before.
    let each = grounds.iter_mut().map(|held| Box::pin(async { drop(held.gone.wait_for(|gone| *gone).await) }));
    select_all(each).await;
}

/// Asks the store for all grounds at once, for as long as rights are held.
async fn watch_grounds(access: Arc<Access>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let grounds: Vec<Ground> = {
            let mut held = access.held.held();
            if held.gone.is_empty() {
                held.is_watched = false;
                return;
            }
            held.gone.keys().cloned().collect()
        };
        match access.control.existing_grounds(&grounds).await {
            Ok(existing) => {
                grounds.iter().filter(|ground| !existing.contains(ground)).for_each(|ground| access.held.end(ground));
            }
            Err(error) => tracing::warn!(%error, "what was ended elsewhere was not found out"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;

    use super::*;
    use crate::access::keys::NewKey;
    use crate::clock::{Clock, SystemClock};
    use crate::model::access::Scope;
    use crate::store::Store;

    async fn opened(store: &Store) -> Arc<Access> {
        Arc::new(Access::open(store, Arc::new(SystemClock)).await.expect("access"))
    }

    /// A store with a workspace, and a key of it.
    async fn held(access: &Access, expires_at: Option<i64>) -> (Caller, Arc<str>) {
        let (workspace, _) = access.provision("one", None).await.expect("a workspace");
        let new = NewKey { name: "key".into(), scopes: vec![Scope::ApiRead], expires_at, ..NewKey::default() };
        let made = access.create_key(&workspace.id, &workspace.owner_id, new, None, None).await.expect("a key");
        let caller = access.authenticate(&made.secret.expect("its secret"), None).await.expect("a caller");
        (caller, workspace.id)
    }

    #[tokio::test]
    async fn a_right_ends_when_its_key_is_revoked_here() {
        let access = opened(&Store::connect("mem://").await.expect("a store")).await;
        let (caller, workspace_id) = held(&access, None).await;
        let (mut standing, mut other) = (access.standing(&caller), access.standing(&caller));
        let mut ended = pin!(standing.ended());
        assert!(poll!(ended.as_mut()).is_pending());
        access.revoke_key(&workspace_id, caller.key_id().expect("a key"), None).await.expect("revoked");
        ended.await;
        other.ended().await;
    }

    #[tokio::test]
    async fn a_right_that_is_held_too_late_has_ended() {
        let access = opened(&Store::connect("mem://").await.expect("a store")).await;
        let (caller, workspace_id) = held(&access, None).await;
        access.revoke_key(&workspace_id, caller.key_id().expect("a key"), None).await.expect("revoked");
        access.standing(&caller).ended().await;
    }

    #[tokio::test]
    async fn a_right_ends_when_another_process_revokes_its_key() {
        let store = Store::connect("mem://").await.expect("a store");
        let (here, there) = (opened(&store.share()).await, opened(&store.share()).await);
        let (caller, workspace_id) = held(&here, None).await;
        let mut standing = here.standing(&caller);
        there.revoke_key(&workspace_id, caller.key_id().expect("a key"), None).await.expect("revoked");
        standing.ended().await;
    }

    #[tokio::test]
    async fn a_right_ends_with_its_time() {
        let access = opened(&Store::connect("mem://").await.expect("a store")).await;
        let (caller, _) = held(&access, Some(SystemClock.now_ms() + 1_000)).await;
        let mut standing = access.standing(&caller);
        standing.ended().await;
        assert!(caller.expires_at().is_some_and(|expires_at| expires_at <= SystemClock.now_ms()));
    }

    #[tokio::test]
    async fn nothing_is_kept_of_rights_that_nobody_holds() {
        let access = opened(&Store::connect("mem://").await.expect("a store")).await;
        let (caller, _) = held(&access, None).await;
        let (first, second) = (access.standing(&caller), access.standing(&caller));
        drop(first);
        assert_eq!(access.held.held().gone.len(), 2, "the key and the membership");
        drop(second);
        assert!(access.held.held().gone.is_empty());
    }
}
