//! The channels of a workspace with their members, and the task that follows the log and sends events to the members.
//!
//! The task that follows the log, called the follower, sends new events only to live members. A new member is not live:
//! its own task first reads the missed events from the log. The member becomes live when its task has caught up with
//! the follower. This transition needs the lock that the follower holds while sending, so that no event is lost or sent
//! twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foldwork_engine::metric::GaugeGuard;
use foldwork_engine::workspace::events::EventLimit;
use foldwork_engine::workspace::feed::{Feed, Item};
use foldwork_engine::{Error, Listener};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use super::broadcast::Broadcast;
use super::line::ChannelLine;
use super::presence::{ChannelPresence, Diff};
use crate::metric::{CHANNELS_JOINED, FEED_DELIVERIES};

/// The maximum number and size of the events that the follower reads in one step.
const PAGE: EventLimit = EventLimit { events: 256, bytes: 4 << 20 };
/// The maximum time that the follower waits for new events in one step.
const WAIT: Duration = Duration::from_secs(30);
/// The pause of the follower after an error of the store.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// The maximum number of members of a workspace that read the log concurrently.
const MAX_READERS: usize = 8;

/// The hubs of all workspaces with open sockets.
#[derive(Clone, Default)]
pub struct Hubs(Arc<Mutex<HashMap<Arc<str>, HubEntry>>>);

struct HubEntry {
    hub: Arc<Hub>,
    sockets: usize,
}

/// A socket's reference to its workspace's hub. The hub stops when the last reference is dropped.
pub struct HubGuard {
    hubs: Hubs,
    workspace: Arc<str>,
    pub hub: Arc<Hub>,
}

/// The channels of a workspace and their members.
pub struct Hub {
    channels: Mutex<Channels>,
    next_member: AtomicU64,
    /// The semaphore that limits the number of members that read the log concurrently.
    pub readers: Semaphore,
    follower: Mutex<Option<AbortHandle>>,
}

#[derive(Default)]
struct Channels {
    /// The log position up to which the follower has sent events to the live members.
    position: u64,
    by_agent: HashMap<Arc<str>, HubChannel>,
}

#[derive(Default)]
struct HubChannel {
    members: HashMap<u64, ChannelMember>,
    present: ChannelPresence,
}

/// A socket on a channel.
pub struct ChannelMember {
    pub line: Arc<ChannelLine>,
    /// Whether the member receives presence messages.
    pub sees_presence: bool,
    /// The log position after which a live member receives events, or `None` if the member is not live.
    live_after: Option<u64>,
}

impl ChannelMember {
    pub fn new(line: Arc<ChannelLine>, sees_presence: bool) -> ChannelMember {
        ChannelMember { line, sees_presence, live_after: None }
    }

    fn send(&self, message: &Arc<Broadcast>) {
        self.line.broadcast(message.clone());
    }
}

/// A membership of a channel. Dropping the membership removes the member from the channel.
pub struct ChannelMembership {
    hub: Arc<Hub>,
    pub agent: Arc<str>,
    pub id: u64,
    /// The follower's position when the member joined.
    pub joined_at: u64,
    _counted: GaugeGuard,
}

impl Drop for ChannelMembership {
    fn drop(&mut self) {
        self.hub.leave(&self.agent, self.id);
    }
}

impl Hubs {
    /// Returns a new reference to the hub of the listener's workspace. Starts the hub if the workspace has no open
    /// sockets.
    pub async fn enter(&self, listener: &Listener) -> Result<HubGuard, Error> {
        let workspace = listener.record().id.clone();
        let guard = |hub: Arc<Hub>| HubGuard { hubs: self.clone(), workspace: workspace.clone(), hub };
        if let Some(entry) = self.0.lock().get_mut(&workspace) {
            entry.sockets += 1;
            return Ok(guard(entry.hub.clone()));
        }
        let feed = listener.feed_of_all().await?;
        let mut entries = self.0.lock();
        let start = || HubEntry { hub: Hub::start(workspace.clone(), feed), sockets: 0 };
        let entry = entries.entry(workspace.clone()).or_insert_with(start);
        entry.sockets += 1;
        Ok(guard(entry.hub.clone()))
    }

    /// Returns the hub of a workspace, or `None` if the workspace has no open sockets.
    pub fn find(&self, workspace: &str) -> Option<Arc<Hub>> {
        self.0.lock().get(workspace).map(|entry| entry.hub.clone())
    }
}

impl Drop for HubGuard {
    fn drop(&mut self) {
        let mut entries = self.hubs.0.lock();
        let Some(entry) = entries.get_mut(&self.workspace) else { return };
        entry.sockets -= 1;
        if entry.sockets == 0 {
            entry.hub.stop();
            entries.remove(&self.workspace);
        }
    }
}

impl Hub {
    /// Starts a hub that follows the log from the feed's position.
    fn start(workspace: Arc<str>, feed: Feed) -> Arc<Hub> {
        let channels = Channels { position: feed.position(), ..Channels::default() };
        let hub = Arc::new(Hub {
            channels: Mutex::new(channels),
            next_member: AtomicU64::new(1),
            readers: Semaphore::new(MAX_READERS),
            follower: Mutex::default(),
        });
        let follower = tokio::spawn(follow(hub.clone(), workspace, feed)).abort_handle();
        *hub.follower.lock() = Some(follower);
        hub
    }

    fn stop(&self) {
        if let Some(follower) = self.follower.lock().take() {
            follower.abort();
        }
    }

    /// Adds a member to the channel of an agent. The member receives clients' messages immediately, but events only
    /// after [`Hub::go_live`].
    pub fn join(self: &Arc<Hub>, agent: Arc<str>, member: ChannelMember) -> ChannelMembership {
        let id = self.next_member.fetch_add(1, Ordering::Relaxed);
        let mut channels = self.channels.lock();
        let joined_at = channels.position;
        channels.by_agent.entry(agent.clone()).or_default().members.insert(id, member);
        ChannelMembership { hub: self.clone(), agent, id, joined_at, _counted: GaugeGuard::begin(&CHANNELS_JOINED) }
    }

    /// Marks a member of an agent's channel as live. The hub then sends the member all events after `position`. The
    /// member must already have received all events up to `position`. If the hub's follower of the log has already
    /// processed later events, changes nothing and returns `false`.
    pub fn go_live(&self, agent: &str, member: u64, position: u64) -> bool {
        let mut channels = self.channels.lock();
        let is_all = position >= channels.position;
        if is_all
            && let Some(member) = channels.by_agent.get_mut(agent).and_then(|channel| channel.members.get_mut(&member))
        {
            member.live_after = Some(position);
        }
        is_all
    }

    /// Sends a client's message to the members of a channel, except for the member `except`.
    pub fn send_broadcast(&self, agent: &str, message: &Arc<Broadcast>, except: Option<u64>) {
        let channels = self.channels.lock();
        let Some(channel) = channels.by_agent.get(agent) else { return };
        let others = channel.members.iter().filter(|(id, _)| Some(**id) != except);
        others.for_each(|(_, member)| member.send(message));
    }

    /// Sets a member's presence data, and sends the change to the channel. Returns false if the data of the channel
    /// would become too large, or if the channel no longer exists.
    pub fn track(&self, membership: &ChannelMembership, key: &str, meta: Map<String, Value>) -> bool {
        let reference = format!("{:x}", self.next_member.fetch_add(1, Ordering::Relaxed));
        let mut channels = self.channels.lock();
        let Some(channel) = channels.by_agent.get_mut(&membership.agent) else { return false };
        let diff = channel.present.track(membership.id, key, meta, reference);
        diff.inspect(|diff| channel.send_presence(diff)).is_some()
    }

    /// Removes a member's presence data, and sends the change to the channel.
    pub fn untrack(&self, membership: &ChannelMembership) {
        if let Some(channel) = self.channels.lock().by_agent.get_mut(&membership.agent)
            && let Some(diff) = channel.present.untrack(membership.id)
        {
            channel.send_presence(&diff);
        }
    }

    /// Returns the presence data of a channel as JSON.
    pub fn present(&self, agent: &str) -> String {
        self.channels.lock().by_agent.get(agent).map_or_else(|| "{}".to_owned(), |channel| channel.present.state())
    }

    fn leave(&self, agent: &str, member: u64) {
        let mut channels = self.channels.lock();
        let Some(channel) = channels.by_agent.get_mut(agent) else { return };
        channel.members.remove(&member);
        if channel.members.is_empty() {
            channels.by_agent.remove(agent);
        } else if let Some(diff) = channel.present.untrack(member) {
            channel.send_presence(&diff);
        }
    }

    /// Sends each delivery of a page to the live members of its channel, closes the channels of deleted agents, and
    /// advances the hub's position to `position`.
    fn route(&self, items: Vec<Item>, position: u64) {
        let mut channels = self.channels.lock();
        let mut delivered = 0;
        for item in items {
            match item {
                Item::Delivery(delivery) => {
                    let Some(channel) = channels.by_agent.get(&delivery.agent_id) else { continue };
                    let is_due =
                        |member: &&ChannelMember| member.live_after.is_some_and(|after| after < delivery.position());
                    let mut due = channel.members.values().filter(is_due).peekable();
                    if due.peek().is_some() {
                        let message = Broadcast::delivery(&delivery, false);
                        for member in due {
                            member.send(&message);
                            delivered += 1;
                        }
                    }
                }
                Item::AgentDeleted(agent) => {
                    let Some(channel) = channels.by_agent.remove(agent.as_str()) else { continue };
                    channel.members.values().for_each(|member| member.line.end("the agent was deleted"));
                }
            }
        }
        channels.position = channels.position.max(position);
        FEED_DELIVERIES.add(&[], delivered);
    }
}

impl HubChannel {
    fn send_presence(&self, diff: &Diff) {
        let message = Arc::new(Broadcast::Json { event: "presence_diff", payload: diff.payload() });
        self.members.values().filter(|member| member.sees_presence).for_each(|member| member.send(&message));
    }
}

/// Sends the events of the log to the live members until the hub stops.
async fn follow(hub: Arc<Hub>, workspace: Arc<str>, mut feed: Feed) {
    loop {
        match feed.wait(PAGE, WAIT).await {
            Ok(page) => hub.route(page.items, page.position),
            Err(error) => {
                tracing::warn!(%error, %workspace, "the events for the sockets of a workspace cannot be read");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}
