//! Enumerations: strings whose possible values the document lists.
//!
//! Parsing accepts any string. The code that reads the value rejects an unknown one, because that code knows the name
//! of the field for the error message.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Deref;

use foldwork_engine::hook::{Hook, OnError};
use foldwork_engine::model::access::{Role, Scope};
use foldwork_engine::model::agent::AgentStatus;
use foldwork_engine::model::definition::{FieldType, Fold};
use foldwork_engine::model::plan::PlanStatus;
use foldwork_engine::model::task::{Action, Status};
use foldwork_engine::pipeline::catalogue::Kind;
use foldwork_engine::workspace::articles::Perspective;
use foldwork_engine::workspace::search;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type};
use serde::{Deserialize, Serialize};

/// A set of allowed strings.
pub trait ClosedSet: Send + Sync + 'static {
    /// The name of the schema in the document, so that generated clients have one type for the set.
    const NAME: &'static str;
    const DESCRIPTION: &'static str;

    fn words() -> Vec<&'static str>;
}

/// A string that the document describes as one of a set.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub struct Word<S> {
    text: String,
    #[serde(skip)]
    set: PhantomData<fn() -> S>,
}

impl<S> Deref for Word<S> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl<S, T: Into<String>> From<T> for Word<S> {
    fn from(text: T) -> Word<S> {
        Word { text: text.into(), set: PhantomData }
    }
}

impl<S> Clone for Word<S> {
    fn clone(&self) -> Word<S> {
        Word::from(self.text.clone())
    }
}

impl<S: ClosedSet> Type for Word<S> {
    const IS_REQUIRED: bool = true;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        S::NAME.into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Reference(S::NAME.to_owned())
    }

    fn register(registry: &mut Registry) {
        registry.create_schema::<Self, _>(S::NAME.to_owned(), |_| {
            let enum_items = S::words().into_iter().map(Into::into).collect();
            MetaSchema { enum_items, description: Some(S::DESCRIPTION), ..MetaSchema::new("string") }
        });
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::empty())
    }
}

impl<S: ClosedSet> ParseFromJSON for Word<S> {
    fn parse_from_json(value: Option<serde_json::Value>) -> ParseResult<Self> {
        serde_json::from_value(value.unwrap_or_default()).map_err(ParseError::custom)
    }
}

impl<S: ClosedSet> ToJSON for Word<S> {
    fn to_json(&self) -> Option<serde_json::Value> {
        Some(self.text.clone().into())
    }
}

impl<S: ClosedSet> ParseFromParameter for Word<S> {
    fn parse_from_parameter(value: &str) -> ParseResult<Self> {
        Ok(Word::from(value))
    }
}

/// Declares sets with their descriptions, names and values.
macro_rules! closed_sets {
    ($(#[doc = $description:literal] $set:ident as $name:literal: $words:expr;)+) => {
        $(
            #[doc = $description]
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
    Scopes as "Scope": Scope::ALL.map(Scope::name);
    /// Whether an article is published. As a perspective, the revision to read.
    Publication as "PublicationStatus": Perspective::ALL.map(Perspective::name);
    /// The role of a member in a workspace.
    Roles as "Role": Role::ALL.map(Role::name);
    /// Whether a person has joined or is invited.
    Memberships as "MemberStatus": ["active", "invited"];
    /// The state of a plan.
    PlanStates as "PlanStatus": PlanStatus::ALL.map(PlanStatus::name);
    /// The outcome of a license validation.
    LicenseCodes as "LicenseCode": ["VALID", "ACTIVATION_LIMIT_REACHED", "DEVICE_REVOKED"];
    /// The outcome of a license validation as a state.
    LicenseStates as "LicenseStatus": ["active", "limit_reached", "revoked"];
    /// The order of events in a stream.
    EventOrder as "EventOrder": ["asc", "desc", "forward", "backward"];
    /// The direction of edges to follow from a node.
    EdgeDirection as "EdgeDirection": ["out", "in", "both"];
    /// The type of a field's values.
    FieldTypes as "FieldType": FieldType::ALL.map(FieldType::name);
    /// How a field's values fold.
    FieldFolds as "FieldFold": Fold::ALL.map(Fold::name);
    /// The kind of a word of the pipeline language.
    LanguageKinds as "OperatorKind": Kind::ALL.map(Kind::name);
    /// The measure by which a label matched a query best.
    MatchKinds as "MatchKind": search::kinds();
    /// A hook that a plugin implements.
    Hooks as "Hook": Hook::ALL.map(Hook::name);
    /// What happens when a plugin's step fails.
    FailurePolicies as "FailurePolicy": OnError::ALL.map(OnError::name);
    /// Whether an agent is online.
    AgentStatuses as "AgentStatus": AgentStatus::ALL.map(AgentStatus::name);
    /// Whether an agent gets work.
    AgentSwitch as "AgentSwitch": ["active", "disabled"];
    /// The status of a task.
    TaskStatuses as "TaskStatus": Status::ALL.map(Status::name);
    /// An action of a person on a task.
    TaskActions as "TaskAction": Action::ALL.map(Action::name);
    /// The priority of a task.
    Priorities as "TaskPriority": ["low", "normal", "high", "urgent"];
    /// The kind of a task's assignee.
    Assignees as "AssigneeType": ["agent", "user"];
    /// The kind of a task's assignee, or `none`.
    AssigneesOrNone as "AssigneeTypeOrNone": ["agent", "user", "none"];
    /// The kind of source that a task came from.
    Sources as "SourceType": ["agent", "event", "user", "api"];
    /// The party that a task waits for.
    WaitedFor as "WaitingOn": ["human", "agent", "none"];
    /// The role of a message's author.
    Speakers as "MessageRole": ["user", "agent", "system"];
    /// Whether a plugin is running.
    PluginStates as "PluginStatus": ["running", "stopped"];
}
