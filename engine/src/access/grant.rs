//! Access rights of callers with long-running requests. A right ends when its key is revoked, when its user leaves the
//! workspace or gets a lower role there, or when its credential expires. A right also ends if another process revokes
//! the key or changes the membership.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::Access;
use crate::error::Result;
use crate::model::access::{Caller, Role};
use crate::store::control::members::GrantBasis;

/// The time between two checks for changes by other processes, while rights are held.
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// The maximum time between two reads of the clock, since the clock may be changed while a task waits.
const CLOCK_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The keys and memberships on which the rights held in this process depend. Each key or membership has a channel that
/// signals its end.
#[derive(Default)]
pub struct HeldRights {
    held: Mutex<GrantState>,
}

#[derive(Default)]
struct GrantState {
    ended: HashMap<GrantBasis, watch::Sender<bool>>,
    /// Whether a task periodically checks in the store whether the keys and memberships still exist. Another process
    /// may have ended a key or a membership, or changed the expiry of a key.
    is_watched: bool,
}

impl HeldRights {
    /// Ends the rights that depend on a key or a membership.
    pub fn end(&self, basis: &GrantBasis) {
        if let Some(ended) = self.held.lock().ended.remove(basis) {
            ended.send_replace(true);
        }
    }

    /// Ends each right of a user in a workspace if the right needs a higher role than `role`. `None` ends all rights of
    /// the user in the workspace.
    pub fn end_above(&self, workspace_id: &str, user_id: &str, role: Option<Role>) {
        self.held.lock().ended.retain(|basis, ended| {
            let is_over = matches!(basis, GrantBasis::Member(workspace, user, least)
                if **workspace == *workspace_id && **user == *user_id && Some(*least) > role);
            if is_over {
                ended.send_replace(true);
            }
            !is_over
        });
    }
}

/// A caller's access right during a long-running request, and the channels that signal the end of the right.
pub struct Grant {
    access: Arc<Access>,
    expires_at: Option<i64>,
    bases: Vec<(GrantBasis, watch::Receiver<bool>)>,
    /// Whether the store was checked after the right was registered. The check finds a key or a membership that ended
    /// just before the registration.
    is_checked: bool,
}

impl Access {
    /// Registers a caller's right. The returned grant signals the end of the right.
    pub fn grant(self: &Arc<Self>, caller: &Caller) -> Grant {
        let member = GrantBasis::Member(caller.workspace_id.clone(), caller.user_id.clone(), caller.role);
        let bases = caller.key_id.clone().map(GrantBasis::Key).into_iter().chain([member]);
        let mut held = self.held.held.lock();
        let mut hold = |basis: GrantBasis| {
            let ended = held.ended.entry(basis.clone()).or_insert_with(|| watch::Sender::new(false)).subscribe();
            (basis, ended)
        };
        let bases = bases.map(&mut hold).collect();
        if !self.exclusive && !std::mem::replace(&mut held.is_watched, true) {
            tokio::spawn(watch_bases(self.clone()));
        }
        Grant { access: self.clone(), expires_at: caller.expires_at, bases, is_checked: false }
    }

    /// Starts to check the held rights against the store. Needed after the expiry of a key changes, because existing
    /// grants still have the previous expiry.
    pub(super) fn watch_grants(self: &Arc<Self>) {
        let mut held = self.held.held.lock();
        if !held.ended.is_empty() && !std::mem::replace(&mut held.is_watched, true) {
            tokio::spawn(watch_bases(self.clone()));
        }
    }
}

impl Grant {
    /// Waits until the right has ended.
    pub async fn ended(&mut self) {
        let Grant { access, expires_at, bases, is_checked } = self;
        tokio::select! {
            () = expired(access, *expires_at) => {}
            () = any_ended(access, bases, is_checked) => {}
        }
    }

    /// Returns whether the right has not expired and its key and membership are still valid in the store.
    pub async fn is_held(&self) -> Result<bool> {
        if self.expires_at.is_some_and(|end| end <= self.access.clock.now_ms()) {
            return Ok(false);
        }
        let bases: Vec<GrantBasis> = self.bases.iter().map(|(basis, _)| basis.clone()).collect();
        Ok(self.access.control.existing_bases(&bases, self.access.clock.now_ms()).await?.len() == bases.len())
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let mut held = self.access.held.held.lock();
        for (basis, _) in &self.bases {
            // A count of 1 means that no other grant depends on this key or membership.
            if held.ended.get(basis).is_some_and(|ended| ended.receiver_count() <= 1) {
                held.ended.remove(basis);
            }
        }
    }
}

async fn expired(access: &Access, expires_at: Option<i64>) {
    let Some(expires_at) = expires_at else { return std::future::pending().await };
    loop {
        let left_ms = expires_at.saturating_sub(access.clock.now_ms());
        match u64::try_from(left_ms) {
            Ok(left_ms) if left_ms > 0 => {
                tokio::time::sleep(CLOCK_POLL_INTERVAL.min(Duration::from_millis(left_ms))).await
            }
            _ => return,
        }
    }
}

async fn any_ended(access: &Access, bases: &mut [(GrantBasis, watch::Receiver<bool>)], is_checked: &mut bool) {
    if !*is_checked {
        let names: Vec<GrantBasis> = bases.iter().map(|(basis, _)| basis.clone()).collect();
        match access.control.existing_bases(&names, access.clock.now_ms()).await {
            Ok(existing) if existing.len() < names.len() => return,
            Ok(_) => *is_checked = true,
            Err(error) => tracing::warn!(%error, bases = ?names, "failed to check whether a right is still valid"),
        }
    }
    // The sender signals the end before it is dropped, so a missing sender means the end as well.
    let each = bases.iter_mut().map(|(_, ended)| Box::pin(async { drop(ended.wait_for(|ended| *ended).await) }));
    select_all(each).await;
}

/// While rights are held, checks periodically in the store that the keys and memberships on which the rights depend are
/// still valid. Ends each right whose key or membership is no longer valid. Each check is one query.
async fn watch_bases(access: Arc<Access>) {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let bases: Vec<GrantBasis> = {
            let mut held = access.held.held.lock();
            if held.ended.is_empty() {
                held.is_watched = false;
                return;
            }
            held.ended.keys().cloned().collect()
        };
        match access.control.existing_bases(&bases, access.clock.now_ms()).await {
            Ok(existing) => {
                bases.iter().filter(|basis| !existing.contains(basis)).for_each(|basis| access.held.end(basis));
            }
            Err(error) => tracing::warn!(%error, "failed to check whether keys and memberships in use still exist"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;

    use super::*;
    use crate::access::keys::{DerivedKeys, NewKey};
    use crate::clock::{Clock, SystemClock};
    use crate::model::access::Scope;
    use crate::store::Store;

    async fn opened(store: &Store) -> Arc<Access> {
        Arc::new(Access::open(store, Arc::new(SystemClock)).await.expect("access"))
    }

    /// Returns a caller with a new key in a new workspace, and the workspace's id.
    async fn held(access: &Access, expires_at: Option<i64>) -> (Caller, Arc<str>) {
        let (workspace, _) = access.provision("one", None).await.expect("a workspace");
        let new = NewKey { name: "key".into(), scopes: vec![Scope::ApiRead], expires_at, ..NewKey::default() };
        let made = access.create_key(None, &workspace.id, &workspace.owner_id, new, None, None).await.expect("a key");
        let caller = access.authenticate(&made.secret.expect("its secret"), None).await.expect("a caller");
        (caller, workspace.id)
    }

    #[tokio::test]
    async fn a_grant_ends_when_this_process_revokes_its_key() {
        let access = opened(&Store::connect("mem://").await.expect("a store")).await;
        let (caller, workspace_id) = held(&access, None).await;
        let (mut grant, mut other) = (access.grant(&caller), access.grant(&caller));
        let mut ended = pin!(grant.ended());
        assert!(poll!(ended.as_mut()).is_pending());
        access
            .revoke_key(&workspace_id, caller.key_id().expect("a key"), None, DerivedKeys::Refuse)
            .await
            .expect("revoked");
        ended.await;
        other.ended().await;
    }

    #[tokio::test]
    async fn a_grant_issued_after_its_key_was_revoked_ends_immediately() {
        let access = opened(&Store::connect("mem://").await.expect("a store")).await;
        let (caller, workspace_id) = held(&access, None).await;
        access
            .revoke_key(&workspace_id, caller.key_id().expect("a key"), None, DerivedKeys::Refuse)
            .await
            .expect("revoked");
        access.grant(&caller).ended().await;
    }

    #[tokio::test]
    async fn a_grant_ends_when_another_process_revokes_its_key() {
        let store = Store::connect("mem://").await.expect("a store");
        let (here, there) = (opened(&store.share()).await, opened(&store.share()).await);
        let (caller, workspace_id) = held(&here, None).await;
        let mut grant = here.grant(&caller);
        there
            .revoke_key(&workspace_id, caller.key_id().expect("a key"), None, DerivedKeys::Refuse)
            .await
            .expect("revoked");
        grant.ended().await;
    }

    #[tokio::test]
    async fn a_grant_ends_when_it_expires() {
        let access = opened(&Store::connect("mem://").await.expect("a store")).await;
        let (caller, _) = held(&access, Some(SystemClock.now_ms() + 1_000)).await;
        let mut grant = access.grant(&caller);
        grant.ended().await;
        assert!(caller.expires_at().is_some_and(|expires_at| expires_at <= SystemClock.now_ms()));
    }

    #[tokio::test]
    async fn dropped_grants_leave_no_entries_in_the_list_of_held_grants() {
        let access = opened(&Store::connect("mem://").await.expect("a store")).await;
        let (caller, _) = held(&access, None).await;
        let (first, second) = (access.grant(&caller), access.grant(&caller));
        drop(first);
        assert_eq!(access.held.held.lock().ended.len(), 2, "the entries are not the key and the membership");
        drop(second);
        assert!(access.held.held.lock().ended.is_empty());
    }
}
