//! Enumerations: strings whose allowed values the OpenAPI document lists.
//!
//! Parsing accepts any string. The handler rejects unknown values with an error message that contains the field's name.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Deref;

use foldwork_engine::archive::{RestoreStatus, VerificationResult};
use foldwork_engine::hook::{Hook, OnError};
use foldwork_engine::model::access::{Role, Scope};
use foldwork_engine::model::agent::AgentStatus;
use foldwork_engine::model::closed_set::names;
use foldwork_engine::model::definition::{FieldType, Fold, UnknownFields};
use foldwork_engine::model::facts::Priority;
use foldwork_engine::model::graph::Direction;
use foldwork_engine::model::plan::PlanStatus;
use foldwork_engine::model::task::content::AuthorRole as Speaker;
use foldwork_engine::model::task::view::WaitingOn;
use foldwork_engine::model::task::{Action, SourceType, Status};
use foldwork_engine::pipeline::catalogue::NameKind;
use foldwork_engine::workspace::articles::Perspective;
use foldwork_engine::workspace::query::histogram::CountedBy;
use foldwork_engine::workspace::search;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type};
use serde::{Deserialize, Serialize};

use super::json::described_by;

/// A set of allowed strings.
pub trait ClosedSet: Send + Sync + 'static {
    /// The name of the schema in the OpenAPI document. With this name, generated clients have one type for each set.
    const NAME: &'static str;
    const DESCRIPTION: &'static str;

    fn words() -> Vec<&'static str>;
}

/// A string whose schema in the OpenAPI document is the set `S`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OneOf<S> {
    text: Cow<'static, str>,
    #[serde(skip)]
    set: PhantomData<fn() -> S>,
}

impl<S> Deref for OneOf<S> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl<S, T: Into<Cow<'static, str>>> From<T> for OneOf<S> {
    fn from(text: T) -> OneOf<S> {
        OneOf { text: text.into(), set: PhantomData }
    }
}

described_by!(OneOf<S> where S: ClosedSet as S::NAME, |_| {
    let enum_items = S::words().into_iter().map(Into::into).collect();
    MetaSchema { enum_items, description: Some(S::DESCRIPTION), ..MetaSchema::new("string") }
});

impl<S: ClosedSet> ParseFromJSON for OneOf<S> {
    fn parse_from_json(value: Option<serde_json::Value>) -> ParseResult<Self> {
        serde_json::from_value(value.unwrap_or_default()).map_err(ParseError::custom)
    }
}

impl<S: ClosedSet> ToJSON for OneOf<S> {
    fn to_json(&self) -> Option<serde_json::Value> {
        Some(self.text.as_ref().into())
    }
}

impl<S: ClosedSet> ParseFromParameter for OneOf<S> {
    fn parse_from_parameter(value: &str) -> ParseResult<Self> {
        Ok(OneOf::from(value.to_owned()))
    }
}

/// Declares closed sets, each with its description, its schema name and its values.
macro_rules! closed_sets {
    ($(#[doc = $description:literal] $set:ident as $name:literal: $words:expr;)+) => {
        $(
            #[doc = $description]
            #[derive(Clone)]
            pub struct $set;

            impl ClosedSet for $set {
                const NAME: &'static str = $name;
                const DESCRIPTION: &'static str = $description.trim_ascii();

                fn words() -> Vec<&'static str> {
                    $words.into_iter().collect()
                }
            }
        )+
    };
}
closed_sets! {
    /// A permission of a key.
    Scopes as "Scope": names::<Scope>();
    /// Whether an article is published. As the parameter `perspective`, the value selects the revision to read.
    Publication as "PublicationStatus": names::<Perspective>();
    /// The role of a member in a workspace.
    Roles as "Role": names::<Role>();
    /// Whether a person has joined or is invited.
    Memberships as "MemberStatus": ["active", "invited"];
    /// The state of a plan.
    PlanStates as "PlanStatus": names::<PlanStatus>();
    /// The outcome of a license validation.
    LicenseCodes as "LicenseCode": ["VALID", "ACTIVATION_LIMIT_REACHED", "DEVICE_REVOKED"];
    /// The status of a device after a license validation.
    LicenseStates as "LicenseStatus": ["active", "limit_reached", "revoked"];
    /// The order of events in a list.
    EventOrder as "EventOrder": ["asc", "desc", "forward", "backward"];
    /// The time that decides in which bucket an event is counted: the time of the event, or the time of the append.
    EventClocks as "EventClock": names::<CountedBy>();
    /// The direction of edges to follow from a node.
    EdgeDirection as "EdgeDirection": names::<Direction>();
    /// The type of a field's values.
    FieldTypes as "FieldType": names::<FieldType>();
    /// The rule that combines the values of a field.
    FieldFolds as "FieldFold": names::<Fold>();
    /// The rule for undeclared fields: the state contains the fields (`accept`), or the event is rejected (`reject`).
    UnknownFieldRules as "UnknownFieldRule": names::<UnknownFields>();
    /// The reason why an article got another slug: the requested slug is taken in its project, or is not valid.
    SlugReasons as "SlugReason": ["taken", "invalid"];
    /// The position in a pipeline at which a name is allowed.
    LanguageKinds as "OperatorKind": names::<NameKind>();
    /// The kind of match with the highest score in a search result, such as `exact` or `prefix`.
    MatchKinds as "MatchKind": search::kinds();
    /// A hook that a plugin implements.
    Hooks as "Hook": names::<Hook>();
    /// A hook that a replay runs again.
    ReplayedHooks as "ReplayedHook": [Hook::Enrich, Hook::Route, Hook::Work].map(Hook::name);
    /// The version of a plugin that a dry run calls: the loaded version, or the files in the plugin's folder.
    PluginSources as "PluginSource": ["loaded", "folder"];
    /// The policy for a plugin's failed steps.
    FailurePolicies as "FailurePolicy": names::<OnError>();
    /// Whether an agent is online (`active`), offline, or `disabled`. A disabled agent gets no work.
    AgentStatuses as "AgentStatus": names::<AgentStatus>();
    /// Whether an agent is assigned new tasks.
    AgentSwitch as "AgentSwitch": ["active", "disabled"];
    /// The status of a task.
    TaskStatuses as "TaskStatus": names::<Status>();
    /// An action of a person on a task.
    TaskActions as "TaskAction": names::<Action>();
    /// The priority of a task.
    Priorities as "TaskPriority": names::<Priority>();
    /// The kind of a task's assignee.
    Assignees as "AssigneeType": ["agent", "user"];
    /// The kind of a task's assignee, or `none`.
    AssigneesOrNone as "AssigneeTypeOrNone": ["agent", "user", "none"];
    /// The kind of source that created a task.
    Sources as "SourceType": names::<SourceType>();
    /// The party that a task waits for.
    WaitedFor as "WaitingOn": names::<WaitingOn>();
    /// The role of a message's author.
    Speakers as "MessageRole": names::<Speaker>();
    /// The location of the store: a folder, memory, or a database service.
    StoreKinds as "StoreKind": ["folder", "memory", "service"];
    /// Whether one server or several may use the store.
    ServerCounts as "ServerCount": ["one", "several"];
    /// The result of a verification. `partial`: only the segments were checked, and the states were not compared.
    VerificationOutcomes as "VerificationOutcome": names::<VerificationResult>();
    /// The state of a restore.
    RestoreStatuses as "RestoreStatus": names::<RestoreStatus>();
    /// The durability that an append waits for: `archived` means that the events are in the archive of backups.
    Durabilities as "Durability": ["archived"];
    /// Whether a plugin is running.
    PluginStates as "PluginStatus": ["running", "stopped"];
}
