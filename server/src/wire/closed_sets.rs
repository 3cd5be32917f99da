//! Closed sets of words: texts of which the document names every one.
//!
//! What is not in the set is refused by who reads the word, since that one knows where it stood and says so.

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

/// The words that there are.
pub trait ClosedSet: Send + Sync + 'static {
    /// What the document calls the set, so that a generated client has one type for it.
    const NAME: &'static str;
    const DESCRIPTION: &'static str;

    fn words() -> Vec<&'static str>;
}

/// A text that the document shows as one of a set's words.
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

/// Declares sets by their words.
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
    /// What a key may do.
    Scopes as "Scope": Scope::ALL.map(Scope::name);
    /// Whether an article is published, and which of its revisions is asked for.
    Publication as "PublicationStatus": Perspective::ALL.map(Perspective::name);
    /// What somebody is in a workspace.
    Roles as "Role": Role::ALL.map(Role::name);
    /// Whether a member has come yet.
    Memberships as "MemberStatus": ["active", "invited"];
    /// Whether a plan holds.
    PlanStates as "PlanStatus": PlanStatus::ALL.map(PlanStatus::name);
    /// What a device is told.
    LicenseCodes as "LicenseCode": ["VALID", "ACTIVATION_LIMIT_REACHED", "DEVICE_REVOKED"];
    /// The same as a state.
    LicenseStates as "LicenseStatus": ["active", "limit_reached", "revoked"];
    /// The order of events in a stream.
    EventOrder as "EventOrder": ["asc", "desc", "forward", "backward"];
    /// Which edges of a node are followed.
    EdgeDirection as "EdgeDirection": ["out", "in", "both"];
    /// What the values of a field are.
    FieldTypes as "FieldType": FieldType::ALL.map(FieldType::name);
    /// How the values of a field fold.
    FieldFolds as "FieldFold": Fold::ALL.map(Fold::name);
    /// What kind of thing of the pipeline language.
    LanguageKinds as "OperatorKind": Kind::ALL.map(Kind::name);
    /// How a label answered a query best.
    MatchKinds as "MatchKind": search::kinds();
    /// What a plugin implements.
    Hooks as "Hook": Hook::ALL.map(Hook::name);
    /// What becomes of a step that fails.
    FailurePolicies as "FailurePolicy": OnError::ALL.map(OnError::name);
    /// Whether an agent is there.
    AgentStatuses as "AgentStatus": AgentStatus::ALL.map(AgentStatus::name);
    /// Whether an agent is given work.
    AgentSwitch as "AgentSwitch": ["active", "disabled"];
    /// Where a task stands.
    TaskStatuses as "TaskStatus": Status::ALL.map(Status::name);
    /// What a person does with a task.
    TaskActions as "TaskAction": Action::ALL.map(Action::name);
    /// How soon a task is to be looked at.
    Priorities as "TaskPriority": ["low", "normal", "high", "urgent"];
    /// Whom a task is given to.
    Assignees as "AssigneeType": ["agent", "user"];
    /// The same, or nobody.
    AssigneesOrNone as "AssigneeTypeOrNone": ["agent", "user", "none"];
    /// What a task came from.
    Sources as "SourceType": ["agent", "event", "user", "api"];
    /// Whose turn it is.
    WaitedFor as "WaitingOn": ["human", "agent", "none"];
    /// Who said something.
    Speakers as "MessageRole": ["user", "agent", "system"];
    /// Whether a plugin works.
    PluginStates as "PluginStatus": ["running", "stopped"];
}
