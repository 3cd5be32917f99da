//! Performs dry runs: calls a version of a plugin for events and returns the results, without writing anything.

use std::sync::Arc;

use crate::consumer::event_context::{EventContext, recall};
use crate::consumer::plugins::dry_run::DryRuns;
use crate::error::{Error, ErrorCode, Result};
use crate::hook::{PluginDescription, PluginDraft, VersionRefusal};
use crate::mailbox::members::Members;
use crate::model::aggregate::Aggregate;
use crate::model::event::{Event, NewEvent};
use crate::model::id::{AggregateId, ID_FORM, is_valid_name};
use crate::model::violation::Violation;
use crate::state::plugins::PluginVersion;
use crate::store::workspace::parked::StepId;
use crate::workspace::CallContext;
use crate::workspace::rights::Writer;

pub use crate::consumer::plugins::dry_run::{HookResult, Trial};

/// The maximum number of events in one dry run.
pub const MAX_TRIALS: usize = 200;
/// The number of read events at which a dry run stops searching for events for the plugin. The last read may exceed
/// this number.
const MAX_EXAMINED_EVENTS: usize = 20_000;

/// The maximum duration of all calls of a dry run together, in milliseconds. A dry run that reaches this duration
/// leaves out the remaining events.
const MAX_TRIAL_MS: f64 = 10_000.0;
/// The maximum size of the script of a draft, in bytes.
pub const MAX_SCRIPT_BYTES: usize = 256 << 10;
/// The maximum size of the manifest of a draft, in bytes.
pub const MAX_MANIFEST_BYTES: usize = 64 << 10;
/// The number of log positions that a dry run reads at a time. A dry run reads the log backward in parts of this
/// length, to find the last events for the plugin.
const LAST_PAGE: u64 = 64;

/// The version of a plugin that a dry run calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DryRunVersion {
    /// The version that the workspace has adopted, or the plugin's files if the plugin is not enabled.
    Usual,
    /// The version that the workspace has adopted.
    Loaded,
    /// The texts of a draft. A text that the draft lacks is read from the plugin's current files.
    Draft(PluginDraft),
}

/// The result of a dry run.
pub struct DryRun {
    pub trials: Vec<Trial>,
    /// The position of the last event of the dry run, if further events were left out because of the time limit.
    pub ended_at: Option<u64>,
}

/// The events of a dry run.
pub enum DryRunInput {
    Event(String),
    From {
        position: u64,
        limit: usize,
    },
    /// The last events for which the plugin is called.
    Last(usize),
    /// The events of parked steps.
    Steps(Vec<StepId>),
    /// An event that is not in the log.
    New(Box<NewEvent>),
}

impl Writer {
    /// Calls a version of a plugin for events. Returns the results without writing anything.
    pub async fn dry_run(&self, name: &str, version: DryRunVersion, input: DryRunInput) -> Result<DryRun> {
        self.context.refresh_graph().await?;
        let version = self.context.dry_run_version(name, version).await?;
        let state = self.context.state();
        let _one = state.plugins.begin_trial().await;
        let members = Members::new(self.context.access().clone(), state.record.id.clone());
        let (mut trials, mut ms) = (Vec::new(), 0.0);
        let contexts = self.context.dry_run_contexts(&version, input).await?;
        let mut dry_runs = DryRuns::new(state, &members, &version).await;
        let mut remaining = contexts.into_iter().peekable();
        while let Some(context) = remaining.next() {
            let position = context.event.position;
            let made = dry_runs.run(Arc::new(context)).await?;
            ms += made.iter().map(|trial| trial.ms).sum::<f64>();
            trials.extend(made);
            if ms >= MAX_TRIAL_MS && remaining.peek().is_some() {
                return Ok(DryRun { trials, ended_at: Some(position) });
            }
        }
        Ok(DryRun { trials, ended_at: None })
    }
}

/// Returns the error for a draft that the checks reject. If the mistake is in the manifest or script of the request,
/// the error points to this field of the request.
fn refused(refused: &VersionRefusal, draft: &PluginDraft) -> Error {
    let given = [("manifest", draft.manifest.is_some()), ("script", draft.script.is_some())];
    let field = given.into_iter().find(|(field, is_given)| *is_given && refused.file == *field);
    let pointer = field.map(|(field, _)| format!("/{field}")).unwrap_or_default();
    let violation = Violation { pointer, message: refused.to_string() };
    Error::Invalid {
        code: ErrorCode::PluginRefused,
        message: refused.to_string(),
        violations: vec![violation],
        index: None,
    }
}

impl CallContext {
    async fn dry_run_version(&self, name: &str, version: DryRunVersion) -> Result<Arc<PluginVersion>> {
        let plugins = &self.state().plugins;
        let draft = match (version, plugins.find(name)) {
            (DryRunVersion::Usual | DryRunVersion::Loaded, Some(plugin)) => return Ok(plugins.about(plugin)),
            (DryRunVersion::Loaded, None) => return Err(Error::not_found("plugin", name)),
            (DryRunVersion::Usual, None) => PluginDraft::default(),
            (DryRunVersion::Draft(draft), _) => draft,
        };
        let sizes = [
            ("script", draft.script.as_ref(), MAX_SCRIPT_BYTES),
            ("manifest", draft.manifest.as_ref(), MAX_MANIFEST_BYTES),
        ];
        for (field, text, most) in sizes {
            if let Some(length) = text.map(String::len).filter(|length| *length > most) {
                return Err(Error::invalid_at(
                    format!("/{field}"),
                    format!("the text has {length} bytes; at most {most} are allowed"),
                ));
            }
        }
        if !is_valid_name(name) {
            return Err(Error::not_found("plugin", name));
        }
        let (named, written): (Arc<str>, PluginDraft) = (name.into(), draft.clone());
        let loaded = plugins.releases.load(move |loader| loader.draft(&named, &written)).await?;
        let loaded = loaded.map_err(|reason| refused(&reason, &draft))?;
        loaded.map(|plugin| Arc::new(PluginVersion::new(plugin))).ok_or_else(|| Error::not_found("plugin", name))
    }

    async fn dry_run_contexts(&self, about: &PluginDescription, input: DryRunInput) -> Result<Vec<EventContext>> {
        let state = self.state();
        let mut contexts = Vec::new();
        let events = match input {
            DryRunInput::Event(event_id) => {
                let found = self.find_event(&event_id).await?;
                vec![found.ok_or_else(|| Error::not_found("event", &event_id))?]
            }
            DryRunInput::Last(limit) => self.last_events(about, limit).await?,
            DryRunInput::Steps(steps) => {
                let mut events = Vec::with_capacity(steps.len());
                for step in steps {
                    let found = state.events_after(step.position.saturating_sub(1), 1).await?.into_iter().next();
                    let found = found.filter(|event| event.position == step.position);
                    events.push(found.ok_or_else(|| Error::not_found("parked step", &step.text()))?);
                }
                events
            }
            DryRunInput::New(new) => return Ok(vec![self.hypothetical_context(*new)?]),
            DryRunInput::From { position, limit } => {
                let (mut position, mut examined) = (position, 0);
                while examined < MAX_EXAMINED_EVENTS && contexts.len() < limit {
                    let events = state.events_after(position, 256).await?;
                    let Some(last) = events.last() else { break };
                    (position, examined) = (last.position, examined + events.len());
                    for event in events {
                        if contexts.len() < limit && self.is_called(about, &event) {
                            contexts.extend(recall(state, event).await?);
                        }
                    }
                }
                Vec::new()
            }
        };
        for event in events {
            contexts.extend(recall(state, event).await?);
        }
        Ok(contexts)
    }

    /// Returns the last events for which a plugin is called, in the order of the log.
    async fn last_events(&self, about: &PluginDescription, limit: usize) -> Result<Vec<Arc<Event>>> {
        let state = self.state();
        let (mut found, mut end, mut examined) = (Vec::new(), state.folded.position(), 0);
        while end > 0 && examined < MAX_EXAMINED_EVENTS && found.len() < limit {
            let start = end.saturating_sub(LAST_PAGE);
            let (mut called, mut position) = (Vec::new(), start);
            while position < end {
                let events = state.events_after(position, (end - position) as usize).await?;
                let Some(last) = events.last() else { break };
                (position, examined) = (last.position, examined + events.len());
                called.extend(events.into_iter().filter(|event| event.position <= end && self.is_called(about, event)));
            }
            found.extend(called.into_iter().rev());
            end = start;
        }
        found.truncate(limit);
        found.reverse();
        Ok(found)
    }

    fn is_called(&self, about: &PluginDescription, event: &Event) -> bool {
        let state = self.state();
        let Some(definition) = state.types.get(&event.aggregate_type) else { return false };
        about.on.admits(&event.event_type, &definition.traits)
    }

    /// Returns the context of an event that is not appended, based on the current state of its aggregate.
    fn hypothetical_context(&self, new: NewEvent) -> Result<EventContext> {
        let state = self.state();
        let definition = state.types.get(&new.aggregate_type).ok_or_else(|| {
            let shown: String = new.aggregate_type.chars().take(64).collect();
            Error::invalid_at("/event/aggregate_type", format!("unknown aggregate type '{shown}'"))
        })?;
        let aggregate_id = AggregateId::parse(&new.aggregate_id).ok_or_else(|| {
            Error::invalid_at("/event/aggregate_id", format!("invalid aggregate id: expected {ID_FORM}"))
        })?;
        let before = state.folded.get(aggregate_id.as_str());
        let now = state.clock.now_ms();
        let event = Arc::new(Event {
            event_id: "dry-run".into(),
            aggregate_id,
            aggregate_type: new.aggregate_type.into(),
            event_type: new.event_type.into(),
            project_id: before.as_ref().and_then(|before| before.project_id.clone()),
            version: before.as_ref().map_or(1, |before| before.version + 1),
            position: state.folded.position() + 1,
            payload: Arc::new(new.payload),
            metadata: Arc::new(new.metadata),
            actor: self.actor(),
            occurred_at: new.occurred_at.unwrap_or(now),
            recorded_at: now,
            sent: Default::default(),
        });
        let after = Arc::new(Aggregate::fold(before.as_deref(), &event, &definition));
        Ok(EventContext { event, before, after, definition })
    }
}
