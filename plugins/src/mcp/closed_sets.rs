//! Closed sets of words in the arguments and results of tools. Except for `open`, `closed` and `any`, the words are the
//! engine's own names, so new members are included automatically.

use std::borrow::Cow;

use foldwork_engine::model::task::Status;
use foldwork_engine::workspace::search;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::{IntoStaticStr, VariantArray};

/// A closed set whose members have names.
pub trait ClosedSet: Copy {
    fn all() -> Vec<Self>;

    fn name(self) -> &'static str;
}

/// A member of a closed set. In JSON, a member is represented by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneOf<S>(pub S);

impl<S: ClosedSet> JsonSchema for OneOf<S> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OneOf".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = S::all().into_iter().map(S::name).collect();
        json_schema!({"type": "string", "enum": names})
    }
}

impl<'de, S: ClosedSet> Deserialize<'de> for OneOf<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Cow<'de, str> = Deserialize::deserialize(deserializer)?;
        let found = S::all().into_iter().find(|member| member.name() == text);
        found.map(OneOf).ok_or_else(|| {
            let names: Vec<&str> = S::all().into_iter().map(S::name).collect();
            D::Error::custom(format!("'{text:.64}' is not allowed; expected one of {}", names.join(", ")))
        })
    }
}

impl<S: ClosedSet> Serialize for OneOf<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<S: VariantArray + Copy + Into<&'static str>> ClosedSet for S {
    fn all() -> Vec<S> {
        S::VARIANTS.to_vec()
    }

    fn name(self) -> &'static str {
        self.into()
    }
}

/// A selection of tasks by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum WantedTasks {
    Open,
    Closed,
    Any,
    #[strum(transparent)]
    Only(Status),
}

impl ClosedSet for WantedTasks {
    fn all() -> Vec<WantedTasks> {
        let several = [WantedTasks::Open, WantedTasks::Closed, WantedTasks::Any];
        several.into_iter().chain(Status::VARIANTS.iter().copied().map(WantedTasks::Only)).collect()
    }

    fn name(self) -> &'static str {
        self.into()
    }
}

/// The kind of match by which a search found an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchKind(pub &'static str);

impl ClosedSet for MatchKind {
    fn all() -> Vec<MatchKind> {
        search::kinds().map(MatchKind).to_vec()
    }

    fn name(self) -> &'static str {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use foldwork_engine::model::task::Action;

    use super::*;

    #[test]
    fn only_names_of_the_closed_set_are_parsed() {
        for filter in WantedTasks::all() {
            let text = serde_json::to_string(&OneOf(filter)).expect("JSON");
            assert_eq!(serde_json::from_str::<OneOf<WantedTasks>>(&text).expect("a word"), OneOf(filter));
        }
        assert!(serde_json::from_str::<OneOf<WantedTasks>>("\"opened\"").is_err());
        assert!(serde_json::from_str::<OneOf<Action>>("1").is_err());
    }

    #[test]
    fn the_schema_of_the_task_filter_lists_every_task_status() {
        let schema = OneOf::<WantedTasks>::json_schema(&mut SchemaGenerator::default());
        let names = schema.get("enum").and_then(|names| names.as_array()).expect("an enum");
        assert_eq!(names.len(), 3 + Status::VARIANTS.len());
        assert!(Status::VARIANTS.iter().all(|status| names.iter().any(|name| *name == status.name())));
    }
}
