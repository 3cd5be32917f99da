//! A right that is held for long: it ends when its key is revoked, in this process or another one, or expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::Access;
use crate::model::access::Caller;

/// How often it is looked what other processes have revoked, while rights are held.
const LOOK: Duration = Duration::from_millis(300);
/// The longest wait between two looks at the clock: it may be set while somebody waits for a time to come.
const CLOCK_LOOK: Duration = Duration::from_millis(500);

/// Keys by which rights are held in this process, each with what tells that it is revoked.
#[derive(Default)]
pub struct HeldKeys {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    revoked: HashMap<Arc<str>, watch::Sender<bool>>,
    /// Whether a task looks for what other processes revoke.
    is_watched: bool,
}

impl HeldKeys {
    /// Ends the rights that are held by a key.
    pub fn revoke(&self, key_id: &str) {
        if let Some(revoked) = self.held().revoked.remove(key_id) {
            revoked.send_replace(true);
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right of a caller, for as long as it is held.
pub struct Standing {
    access: Arc<Access>,
    expires_at: Option<i64>,
    key: Option<HeldKey>,
}

struct HeldKey {
    id: Arc<str>,
    revoked: watch::Receiver<bool>,
    /// Whether it was looked for in the store since it is held: it may have been revoked just before.
    is_checked: bool,
}

impl Access {
    /// Holds the right of a caller.
    pub fn standing(self: &Arc<Self>, caller: &Caller) -> Standing {
        let key = caller.key_id.clone().map(|id| {
            let mut held = self.held.held();
            let revoked = held.revoked.entry(id.clone()).or_insert_with(|| watch::Sender::new(false)).subscribe();
            if !self.exclusive && !std::mem::replace(&mut held.is_watched, true) {
                tokio::spawn(watch_revocations(self.clone()));
            }
            HeldKey { id, revoked, is_checked: false }
        });
        Standing { access: self.clone(), expires_at: caller.expires_at, key }
    }
}

impl Standing {
    /// Returns when the right has ended.
    pub async fn ended(&mut self) {
        let Standing { access, expires_at, key } = self;
        tokio::select! {
            () = expired(access, *expires_at) => {}
            () = revoked(access, key.as_mut()) => {}
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let Some(key) = &self.key else { return };
        let mut held = self.access.held.held();
        // The last one that holds it is this one.
        if held.revoked.get(&key.id).is_some_and(|revoked| revoked.receiver_count() <= 1) {
            held.revoked.remove(&key.id);
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

async fn revoked(access: &Access, key: Option<&mut HeldKey>) {
    let Some(key) = key else { return std::future::pending().await };
    if !key.is_checked {
        match access.control.existing_keys(std::slice::from_ref(&key.id)).await {
            Ok(existing) if existing.is_empty() => return,
            Ok(_) => key.is_checked = true,
            Err(error) => tracing::warn!(%error, key = %key.id, "whether the key still opens was not found out"),
        }
    }
    // Where the sender is gone, it told so before.
    let _ = key.revoked.wait_for(|revoked| *revoked).await;
}

/// Asks the store for all keys that are held at once, for as long as some are.
async fn watch_revocations(access: Arc<Access>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let ids: Vec<Arc<str>> = {
            let mut held = access.held.held();
            if held.revoked.is_empty() {
                held.is_watched = false;
                return;
            }
            held.revoked.keys().cloned().collect()
        };
        match access.control.existing_keys(&ids).await {
            Ok(existing) => {
                ids.iter().filter(|id| !existing.contains(&***id)).for_each(|id| access.held.revoke(id));
            }
            Err(error) => tracing::warn!(%error, "what was revoked elsewhere was not found out"),
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
        let new = NewKey { name: "key".into(), scopes: vec![Scope::ApiRead], expires_at };
        let made = access.create_key(&workspace.id, &workspace.owner_id, new, None).await.expect("a key");
        let caller = access.authenticate(&made.secret.expect("its secret")).await.expect("a caller");
        (caller, workspace.id)
    }

    #[tokio::test]
    async fn a_right_ends_when_its_key_is_revoked_here() {
        let access = opened(&Store::connect("mem://").await.expect("a store")).await;
        let (caller, workspace_id) = held(&access, None).await;
        let (mut standing, mut other) = (access.standing(&caller), access.standing(&caller));
        let mut ended = pin!(standing.ended());
        assert!(poll!(ended.as_mut()).is_pending());
        access.revoke_key(&workspace_id, caller.key_id().expect("a key")).await.expect("revoked");
        ended.await;
        other.ended().await;
    }

    #[tokio::test]
    async fn a_right_that_is_held_too_late_has_ended() {
        let access = opened(&Store::connect("mem://").await.expect("a store")).await;
        let (caller, workspace_id) = held(&access, None).await;
        access.revoke_key(&workspace_id, caller.key_id().expect("a key")).await.expect("revoked");
        access.standing(&caller).ended().await;
    }

    #[tokio::test]
    async fn a_right_ends_when_another_process_revokes_its_key() {
        let store = Store::connect("mem://").await.expect("a store");
        let (here, there) = (opened(&store.share()).await, opened(&store.share()).await);
        let (caller, workspace_id) = held(&here, None).await;
        let mut standing = here.standing(&caller);
        there.revoke_key(&workspace_id, caller.key_id().expect("a key")).await.expect("revoked");
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
        assert_eq!(access.held.held().revoked.len(), 1);
        drop(second);
        assert!(access.held.held().revoked.is_empty());
    }
}
