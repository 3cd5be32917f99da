//! The context of a call: a caller in a workspace. Changes run as operations, each in a separate task.
//!
//! A caller changes the contents of a workspace only through an [`Operation`], and an `Operation` exists only inside
//! its task. Therefore every such change is completed, even if the client disconnects.

use std::sync::Arc;

use tracing::Instrument;

use super::runtime::Runtime;
use crate::access::Access;
use crate::access::grant::Grant;
use crate::append::appender::Appender;
use crate::append::idempotency::IdempotentRequest;
use crate::append::request::{Append, AppendOutcome, Decide};
use crate::consumer::{WorkerSlot, WorkerTurn};
use crate::error::{Error, ErrorCode, Result};
use crate::mailbox::leases::Renewals;
use crate::model::access::{Caller, KeyRecord, WorkspaceRecord};
use crate::model::aggregate::Aggregate;
use crate::model::event::{NewEvent, StreamExpectation};
use crate::model::plan::PlanLimits;
use crate::model::value::Object;
use crate::named_locks::NamedLock;
use crate::state::State;
use crate::store::{self, Database};

/// The context in which a caller works in a workspace. The context only reads the contents of the workspace, but
/// gives access to the renewal of leases and to the presence of agents. The handles that grant rights are built on the
/// context.
#[derive(Clone)]
pub struct CallContext {
    access: Arc<Access>,
    runtime: Arc<Runtime>,
    caller: Caller,
    consistency: Consistency,
}

/// The consistency of a read. If several servers share the store, the consistency determines which events the read
/// includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consistency {
    /// All events that were appended before the read, on any server.
    #[default]
    Strong,
    /// The events that this server has read so far. An eventual read does not first read newer events from the store.
    /// An eventual read of data in memory therefore also works while the store does not respond. Lists of events and
    /// other stored data still need the store.
    Eventual,
}

/// Returns the error for a position or version that a log or stream has not reached yet.
pub(super) fn beyond(message: String) -> Error {
    Error::invalid_with_code(ErrorCode::PositionBeyondHead, message)
}

impl CallContext {
    pub fn new(access: Arc<Access>, runtime: Arc<Runtime>, caller: Caller, consistency: Consistency) -> CallContext {
        CallContext { access, runtime, caller, consistency }
    }

    /// Reads the events that other servers have appended, if reads are strong. Does nothing if reads are eventual.
    pub(super) async fn refresh(&self) -> Result<()> {
        if self.is_strong() { self.state().refresh().await } else { Ok(()) }
    }

    fn is_strong(&self) -> bool {
        self.consistency == Consistency::Strong
    }

    /// Refreshes the presence of agents from the store, if reads are strong. Does nothing if reads are eventual.
    pub(super) async fn refresh_presence(&self, now_ms: i64) -> Result<()> {
        if self.is_strong() { self.state().presence.refresh(now_ms).await } else { Ok(()) }
    }

    /// Refreshes the events and the graph from the store, if reads are strong. Does nothing if reads are eventual.
    pub(super) async fn refresh_graph(&self) -> Result<()> {
        self.refresh().await?;
        if self.is_strong() { self.runtime.worker_slot.apply_newest_changes(self.state()).await } else { Ok(()) }
    }

    /// Reads the versions of plugins that other servers have released, if reads are strong. If this read fails, the
    /// known versions stay. Does nothing if reads are eventual.
    pub(super) async fn refresh_versions(&self) {
        if self.is_strong()
            && let Err(error) = self.state().plugins.releases.refresh().await
        {
            let workspace = &self.state().record.id;
            tracing::warn!(%error, %workspace, "failed to read the released versions of plugins");
        }
    }

    /// Fails if the log has not reached a position. Without this check, a reader that follows the log from a position
    /// after the log's end would wait without an error. A reader can have such a position after the log was restored
    /// from an older copy.
    pub(super) async fn check_position(&self, position: u64) -> Result<()> {
        match self.end_for(position).await? {
            head if position > head => Err(beyond(format!("position {position} is after the log's end, {head}"))),
            _ => Ok(()),
        }
    }

    /// Returns the position of the log's end, as far as this server knows. If `position` is after the known end, first
    /// refreshes the state.
    pub(super) async fn end_for(&self, position: u64) -> Result<u64> {
        if position > self.state().folded.position() {
            // Another server may have appended events, so an eventual read is refreshed, too.
            self.state().refresh().await?;
        }
        Ok(self.state().folded.position())
    }

    /// Returns the aggregate with this type and id. Fails if the aggregate does not exist or is deleted.
    pub(super) fn live(&self, aggregate_type: &str, id: &str) -> Result<Arc<Aggregate>> {
        let found = self.state().folded.get(id);
        let live = found.filter(|found| &*found.aggregate_type == aggregate_type && !found.deleted);
        live.ok_or_else(|| Error::not_found(aggregate_type, id))
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(super) fn state(&self) -> &Arc<State> {
        &self.runtime.state
    }

    pub(super) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Returns the right to renew the leases of the workspace.
    pub(super) fn renewals(&self) -> &Renewals {
        &self.runtime.renewals
    }

    pub fn record(&self) -> &WorkspaceRecord {
        &self.state().record
    }

    /// Returns the name under which events record the caller: `key:<id>` or `user:<id>`.
    pub(super) fn actor(&self) -> Arc<str> {
        match self.caller.key_id() {
            Some(key) => format!("key:{key}").into(),
            None => format!("user:{}", self.caller.user_id()).into(),
        }
    }

    /// Returns the keys of the workspace, newest first.
    pub(super) async fn keys(&self) -> Result<Vec<KeyRecord>> {
        Ok(self.access.control().read_keys(&self.record().id).await?)
    }

    /// Returns whether a user is a member of this workspace.
    pub async fn is_member(&self, user_id: &str) -> Result<bool> {
        Ok(self.access.role_of(&self.record().id, user_id).await?.is_some())
    }

    /// Returns the limits of the workspace's plan.
    pub async fn limits(&self) -> Result<PlanLimits> {
        self.access.limits_of(&self.record().id).await
    }

    /// Registers the access right of the caller for a long-running request. The returned grant signals the end of the
    /// right.
    pub(super) fn grant(&self) -> Grant {
        self.access.grant(&self.caller)
    }
}

/// A handle on a workspace. `Engine::enter` and `Engine::listen` create handles. Some handles convert into other
/// handles.
pub trait Handle: Clone + Send + Sync + 'static {
    /// Returns the handle for a caller whose right has been checked.
    fn of(context: CallContext) -> Self;

    fn context(&self) -> &CallContext;
}

/// A handle that may change the workspace.
pub trait Changing: Handle {}

/// A running change to a workspace.
pub struct Operation {
    context: CallContext,
}

impl Operation {
    /// Runs a change to the workspace as a separate task, and waits for the task to end. The task continues even if the
    /// caller stops waiting.
    pub(super) async fn perform<T, F>(handle: &impl Changing, work: impl FnOnce(Operation) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let operation = Operation { context: handle.context().clone() };
        let running = operation.context.runtime.operations.begin();
        let work = work(operation);
        let task = async move {
            let result = work.await;
            drop(running);
            result
        };
        match tokio::spawn(task.in_current_span()).await {
            Ok(result) => result,
            Err(error) if error.is_cancelled() => Err(Error::Unavailable(store::Error::Closing)),
            Err(error) => Err(Error::internal(error)),
        }
    }

    pub fn caller(&self) -> &Caller {
        &self.context.caller
    }

    pub fn state(&self) -> &Arc<State> {
        self.context.state()
    }

    /// Waits until the graph worker is free, and reserves the worker until the returned turn is dropped.
    pub async fn worker(&self) -> Result<WorkerTurn<'_>> {
        self.worker_slot().lock(self.state(), self.appender()).await
    }

    pub fn context(&self) -> &CallContext {
        &self.context
    }

    pub fn access(&self) -> &Access {
        &self.context.access
    }

    pub fn appender(&self) -> &Appender {
        &self.context.runtime.appender
    }

    /// Returns the workspace's database, for changes of records outside the log.
    pub fn database(&self) -> &Database {
        self.appender().database()
    }

    /// Returns the slot of the worker that updates the graph.
    pub fn worker_slot(&self) -> &WorkerSlot {
        &self.context.runtime.worker_slot
    }

    /// Returns an aggregate in the state after the last of its events in `appended`, even if other operations have
    /// appended later events. If `appended` has no event of the aggregate, or repeats an earlier request, returns the
    /// current state.
    pub(super) fn state_after(&self, appended: &AppendOutcome, id: &str) -> Option<Arc<Aggregate>> {
        let own = appended.states.iter().rev().find(|after| after.id.as_str() == id);
        own.cloned().or_else(|| self.state().folded.get(id))
    }

    /// Appends events, which may be of managed types. `given_bytes` is the size of the data passed to the operation.
    /// `upload` is the id of the upload that a file refers to after the append.
    pub(super) async fn append(
        &self,
        decide: Decide,
        request: Option<IdempotentRequest>,
        given_bytes: usize,
        upload: Option<Arc<str>>,
    ) -> Result<AppendOutcome> {
        let decided = Append::decided(self.context.actor(), decide);
        let size_bytes = decided.size_bytes + given_bytes;
        self.appender().append(Append { request, size_bytes, upload, ..decided }).await
    }

    /// Waits for other requests with this idempotency key to end. Blocks later requests with the key until the returned
    /// lock is dropped.
    pub async fn lock(&self, key: &str) -> NamedLock {
        self.context.runtime.turns.lock(key).await
    }
}

/// Returns the event that creates an aggregate. The append fails if the aggregate already exists.
pub(super) fn first_event(id: &str, aggregate_type: &str, project: Option<String>, payload: Object) -> NewEvent {
    NewEvent { project, expected: StreamExpectation::None, ..event_of(id, aggregate_type, "created", payload) }
}

/// Returns an event of an aggregate, with the type `<aggregate_type>.<verb>`.
pub(super) fn event_of(id: &str, aggregate_type: &str, verb: &str, payload: Object) -> NewEvent {
    NewEvent {
        aggregate_id: id.to_owned(),
        aggregate_type: aggregate_type.into(),
        event_type: format!("{aggregate_type}.{verb}"),
        payload,
        ..NewEvent::default()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;
    use strum::VariantArray;
    use tokio::sync::oneshot;

    use super::*;
    use crate::clock::SystemClock;
    use crate::engine::Engine;
    use crate::model::access::{Role, Scope};
    use crate::state::EngineSettings;
    use crate::state::plugins::Plugins;
    use crate::store::Store;
    use crate::workspace::rights::{ContentReader, McpReader, McpWriter, Owner, Reader, Writer};

    async fn engine() -> Arc<Engine> {
        let store = Store::connect("mem://").await.expect("a store");
        let plugins = Plugins::none().expect("no plugins");
        Engine::open(store, Arc::new(SystemClock), EngineSettings::default(), plugins).await.expect("an engine")
    }

    async fn owner(engine: &Engine) -> Caller {
        let key = engine.first_start(None).await.expect("started").expect("a new store").key;
        engine.authenticate(&key).await.expect("a caller")
    }

    #[tokio::test]
    async fn an_operation_continues_when_its_caller_stops_waiting() {
        let engine = engine().await;
        let writer: Writer = engine.enter(owner(&engine).await).await.expect("a right");
        let (go, gone) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        {
            let operation = Operation::perform(&writer, |_| async move {
                gone.await.map_err(Error::internal)?;
                done.send(()).map_err(|()| Error::invalid("the receiver is gone"))
            });
            assert!(poll!(pin!(operation)).is_pending());
        }
        let mut ended = pin!(writer.context().runtime.operations.ended());
        assert!(poll!(ended.as_mut()).is_pending());
        go.send(()).expect("the operation is still waiting");
        is_done.await.expect("the operation ended");
        ended.await;
    }

    #[tokio::test]
    async fn a_panic_becomes_an_internal_error_and_ends_only_its_operation() {
        let engine = engine().await;
        let writer: Writer = engine.enter(owner(&engine).await).await.expect("a right");
        let failed = Operation::perform::<(), _>(&writer, |_| async { panic!("the operation panics") }).await;
        assert!(matches!(failed, Err(Error::Internal(_))));
        writer.context().runtime.operations.ended().await;
        assert!(Operation::perform(&writer, |_| async { Ok(1) }).await.is_ok());
    }

    #[tokio::test]
    async fn entering_a_workspace_requires_the_scopes_and_the_role_of_the_handle() {
        let engine = engine().await;
        let all = owner(&engine).await;
        let only = |scope: Scope| Caller { scopes: [scope].into(), ..all.clone() };
        let lacks = |error: Option<Error>| matches!(error, Some(Error::InsufficientScope { .. }));
        assert!(lacks(engine.enter::<Reader>(only(Scope::ApiWrite)).await.err()));
        assert!(lacks(engine.enter::<Writer>(only(Scope::ApiRead)).await.err()));
        let refused = engine.enter::<Owner>(only(Scope::ApiRead)).await.err();
        assert!(matches!(refused, Some(Error::ScopesLacking { .. })));
        assert!(lacks(engine.enter::<ContentReader>(only(Scope::ApiWrite)).await.err()));
        assert!(engine.enter::<ContentReader>(only(Scope::ContentRead)).await.is_ok());
        assert!(engine.enter::<Owner>(all.clone()).await.is_ok());
        for missing in Scope::VARIANTS {
            let scopes = Scope::VARIANTS.iter().copied().filter(|scope| scope != missing).collect();
            let lesser = Caller { scopes, ..all.clone() };
            let refused = engine.enter::<Owner>(lesser).await.err();
            assert!(matches!(refused, Some(Error::ScopesLacking { .. })), "the owner lacks the scope {missing}");
        }
        // The MCP scopes grant nothing on the API, and the API scopes grant nothing over MCP.
        assert!(engine.enter::<McpReader>(only(Scope::McpRead)).await.is_ok());
        assert!(engine.enter::<McpWriter>(only(Scope::McpWrite)).await.is_ok());
        assert!(lacks(engine.enter::<McpWriter>(only(Scope::McpRead)).await.err()));
        assert!(lacks(engine.enter::<McpReader>(only(Scope::ApiRead)).await.err()));
        assert!(lacks(engine.enter::<McpWriter>(only(Scope::ApiWrite)).await.err()));
        assert!(lacks(engine.enter::<Reader>(only(Scope::McpRead)).await.err()));
        assert!(lacks(engine.enter::<ContentReader>(only(Scope::McpRead)).await.err()));
        assert!(lacks(engine.enter::<Writer>(only(Scope::McpWrite)).await.err()));
        let editor = Caller { role: Role::Editor, ..all.clone() };
        let refused = engine.enter::<Owner>(editor).await.err();
        assert!(matches!(refused, Some(Error::Forbidden { code: ErrorCode::OwnerRequired, .. })));
    }
}
