//! The known fields of the rows at one place of a pipeline, and the fields whose values are known to be dates, decimals
//! or ids of projects.
//!
//! As in MongoDB, reading a missing field is not an error, and neither a date nor a decimal equals a string. The known
//! fields are used to convert constants and to produce warnings. The conversion rejects a pipeline only if the pipeline
//! compares a date with a string that is not a date. Such a comparison would be true for no rows or for all rows.

mod after;
mod comparison;
pub mod constants;
mod expressions;
mod read;
mod united;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::SubpipelineSource;
use crate::model::event::{EVENT_FIELDS, EVENT_ID};
use crate::model::excerpt::excerpt_of;
use crate::model::value::Value;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::hint;
use crate::pipeline::value::known_types::{FieldKind, TypeNames, ValueForm, is_index};

/// The fields that the engine adds to states, in addition to the fields of their types.
const STATE_FIELDS: [&str; 11] = [
    "_id",
    "aggregate_type",
    "project_id",
    "_version",
    "_position",
    "_created_at",
    "_last_event_at",
    "_traits",
    "_facts",
    "_events",
    "_distance",
];
/// The maximum nesting depth of rows. A row is nested if a field of another row contains the row.
const MAX_DEPTH: u32 = 8;
/// The maximum number of field names in one warning.
const MAX_LISTED: usize = 8;

/// The known fields of the rows at one place of a pipeline.
#[derive(Debug, Clone)]
pub struct RowFields {
    base: BaseFields,
    /// The fields that stages have computed or removed. Each of these fields overrides the field of the same name in
    /// `base`.
    changed: Arc<BTreeMap<Arc<str>, ValueKind>>,
    depth: u32,
}

/// The fields of rows, apart from the fields that stages have changed.
#[derive(Debug, Clone)]
enum BaseFields {
    Events(TypeNames),
    States(TypeNames),
    /// The fields of the objects that states contain at this path.
    Objects(TypeNames, Arc<str>),
    /// No fields.
    Empty,
    /// Any fields.
    Any,
}

/// The kind of the values at a path.
#[derive(Debug, Clone)]
pub enum ValueKind {
    Date,
    Decimal,
    /// Values of several kinds, some of which may be dates or decimals.
    Mixed,
    /// The id of a project.
    Project,
    /// A number that the engine or a stage computes.
    Number,
    /// Values of an aggregate's field that have none of the kinds above. The aggregate types may describe these values
    /// further.
    Field(FieldSource),
    /// A value that is treated as neither a date nor a decimal. If the kind of a value that an operator binds to a
    /// variable is unknown, the kind of the variable is `Plain` as well.
    Plain,
    /// A value of an unknown kind.
    Any,
    /// No value, because the rows have no such field.
    Absent,
    /// A row, or several rows.
    Rows(Arc<RowFields>),
}

/// The field that values come from: the aggregate types, and the path of the field in the aggregates.
#[derive(Debug, Clone)]
pub struct FieldSource {
    types: TypeNames,
    path: Arc<str>,
    form: ValueForm,
}

impl FieldSource {
    /// Returns whether the types declare a field with this name inside the source field.
    fn may_contain(&self, name: &str, query: &Context) -> bool {
        let path = format!("{}.{name}", self.path);
        query.types.as_ref().is_some_and(|known| known.declares(&self.types, &path))
    }
}

impl RowFields {
    fn new(base: BaseFields) -> RowFields {
        RowFields { base, changed: Arc::default(), depth: 0 }
    }

    /// Returns the known fields of events of any type.
    pub fn events() -> RowFields {
        RowFields::new(BaseFields::Events(None))
    }

    /// Returns the known fields of states of any type.
    pub fn states() -> RowFields {
        RowFields::new(BaseFields::States(None))
    }

    /// Returns the known fields of the rows that enter a sub-pipeline. `from` is the source of the sub-pipeline. The
    /// rows of an aggregate type are states, or events if `stages` contains a `$fold`.
    pub fn begin(from: &SubpipelineSource, stages: &[Value]) -> RowFields {
        let folds = stages.iter().any(|stage| stage.get("$fold").is_some());
        match from {
            SubpipelineSource::Type(name) => {
                let types = Some(Arc::new([name.clone()].into()));
                RowFields::new(if folds { BaseFields::Events(types) } else { BaseFields::States(types) })
            }
            SubpipelineSource::Events => RowFields::events(),
            SubpipelineSource::Documents => RowFields::new(BaseFields::Any),
        }
    }

    /// Returns the kind of the values at a dotted path.
    pub fn kind(&self, path: &str, query: &Context) -> ValueKind {
        let (first, rest) = path.split_once('.').map_or((path, ""), |(first, rest)| (first, rest));
        // An index selects an item of an array. The item has the kind of the field.
        let ends = after_indexes(rest).is_empty();
        match self.changed.get(first) {
            Some(ValueKind::Rows(rows)) if !ends => rows.kind(after_indexes(rest), query),
            Some(ValueKind::Rows(_)) => ValueKind::Plain,
            Some(kind) if ends => kind.clone(),
            Some(ValueKind::Any | ValueKind::Mixed) => ValueKind::Any,
            Some(ValueKind::Absent) => ValueKind::Absent,
            Some(
                ValueKind::Date
                | ValueKind::Decimal
                | ValueKind::Project
                | ValueKind::Number
                | ValueKind::Field(_)
                | ValueKind::Plain,
            ) => ValueKind::Plain,
            None => self.base.kind(path, query),
        }
    }

    /// Returns the path by which a client can read the field `name`, or `None` if the rows are not known to have the
    /// field.
    pub fn path_of(&self, name: &str, query: &Context) -> Option<String> {
        let first = name.split('.').next().unwrap_or(name);
        let of_type = |types: &TypeNames| query.types.as_ref().is_some_and(|known| known.has_field(types, first));
        let is_field = match (self.changed.get(first), &self.base) {
            (Some(ValueKind::Absent), _) => false,
            (Some(_), _) => true,
            (None, BaseFields::Events(types)) if of_type(types) => return Some(format!("payload.{name}")),
            (None, BaseFields::Events(_)) => EVENT_FIELDS.contains(&first),
            (None, BaseFields::States(types)) => STATE_FIELDS.contains(&first) || of_type(types),
            (None, BaseFields::Objects(types, above)) => {
                query.types.as_ref().is_some_and(|known| known.may_have(types, &format!("{above}.{first}")))
            }
            (None, BaseFields::Empty | BaseFields::Any) => false,
        };
        is_field.then(|| name.to_owned())
    }

    /// Returns a warning if the rows are known to have no field at the path, or if no type declares the path but a type
    /// declares a similar path. Never warns about paths that begin with `_id`. The warning may suggest a field with a
    /// similar name.
    fn warning(&self, path: &str, query: &Context) -> Option<String> {
        let (first, rest) = path.split_once('.').map_or((path, ""), |(first, rest)| (first, rest));
        if matches!(first, "" | "_id") {
            return None;
        }
        match (self.changed.get(first), &self.base) {
            (Some(ValueKind::Rows(rows)), _) if !rest.is_empty() => rows.warning(after_indexes(rest), query),
            (Some(ValueKind::Absent), _) => {
                Some(format!("an earlier stage has removed the field '{}'", excerpt_of(first)))
            }
            (Some(_), _) | (None, BaseFields::Any) => None,
            (None, BaseFields::Events(types)) => of_event(types, first, rest, path, query),
            (None, BaseFields::States(types)) => of_state(types, first, path, query),
            (None, BaseFields::Objects(types, above)) => {
                let nearest = misspelt_inside(types, &format!("{above}.{path}"), query)?;
                let nearest = nearest.strip_prefix(&**above).unwrap_or(&nearest).trim_start_matches('.');
                Some(undeclared(path, nearest, ""))
            }
            (None, BaseFields::Empty) => Some(self.without(first)),
        }
    }

    /// Returns the warning about a missing field, for rows whose fields are all known.
    fn without(&self, name: &str) -> String {
        let known =
            || self.changed.iter().filter(|(_, kind)| !matches!(kind, ValueKind::Absent)).map(|(name, _)| &**name);
        let listed: Vec<String> = known().take(MAX_LISTED).map(|name| format!("'{}'", excerpt_of(name))).collect();
        let others = if known().nth(MAX_LISTED).is_some() { ", …" } else { "" };
        let hint = hint::did_you_mean(name, known()).map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("rows have no field '{}' here, only {}{others}{hint}", excerpt_of(name), listed.join(", "))
    }
}

impl BaseFields {
    fn kind(&self, path: &str, query: &Context) -> ValueKind {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        match self {
            BaseFields::Events(_) | BaseFields::States(_) if path == "project_id" => ValueKind::Project,
            BaseFields::Events(_) if matches!(path, "occurred_at" | "recorded_at") => ValueKind::Date,
            BaseFields::Events(_) if matches!(path, "version" | "position") => ValueKind::Number,
            BaseFields::Events(types) if first == "payload" && !rest.is_empty() => {
                ValueKind::Field(FieldSource { types: types.clone(), path: rest.into(), form: ValueForm::Payload })
            }
            BaseFields::Events(_) => ValueKind::Plain,
            BaseFields::States(types) => match first {
                "_created_at" | "_last_event_at" if rest.is_empty() => ValueKind::Date,
                "_version" | "_position" | "_distance" if rest.is_empty() => ValueKind::Number,
                "_events" if !after_indexes(rest).is_empty() => {
                    BaseFields::Events(types.clone()).kind(after_indexes(rest), query)
                }
                _ => field_kind(types, path, query),
            },
            BaseFields::Objects(types, above) => field_kind(types, &format!("{above}.{path}"), query),
            BaseFields::Empty => ValueKind::Absent,
            BaseFields::Any => ValueKind::Any,
        }
    }
}

/// Returns the common kind of values that have these kinds. Returns `None` if the common kind is unknown.
fn one_of(mut kinds: Vec<ValueKind>) -> Option<ValueKind> {
    let all = |is_kind: fn(&ValueKind) -> bool| !kinds.is_empty() && kinds.iter().all(is_kind);
    if all(|kind| matches!(kind, ValueKind::Date)) {
        return Some(ValueKind::Date);
    }
    if all(|kind| matches!(kind, ValueKind::Decimal)) {
        return Some(ValueKind::Decimal);
    }
    if all(|kind| matches!(kind, ValueKind::Number)) {
        return Some(ValueKind::Number);
    }
    if kinds.len() == 1 {
        return kinds.pop();
    }
    let is_mixed = kinds.iter().any(|kind| matches!(kind, ValueKind::Date | ValueKind::Decimal | ValueKind::Mixed));
    is_mixed.then_some(ValueKind::Mixed)
}

/// Removes the array indexes from the beginning of a path.
fn after_indexes(mut path: &str) -> &str {
    loop {
        match path.split_once('.') {
            Some((first, rest)) if is_index(first) => path = rest,
            None if is_index(path) => return "",
            _ => return path,
        }
    }
}

fn field_kind(types: &TypeNames, path: &str, query: &Context) -> ValueKind {
    match query.types.as_ref().map_or(FieldKind::Plain, |known| known.field_kind(types, path)) {
        FieldKind::Date => ValueKind::Date,
        FieldKind::Decimal => ValueKind::Decimal,
        FieldKind::Mixed => ValueKind::Mixed,
        FieldKind::Objects => {
            ValueKind::Rows(Arc::new(RowFields::new(BaseFields::Objects(types.clone(), path.into()))))
        }
        FieldKind::Plain => {
            ValueKind::Field(FieldSource { types: types.clone(), path: path.into(), form: ValueForm::State })
        }
    }
}

fn of_event(types: &TypeNames, first: &str, rest: &str, path: &str, query: &Context) -> Option<String> {
    if first == "payload" {
        return (!rest.is_empty()).then(|| misspelt(types, rest, "payload.", query)).flatten();
    }
    let is_known = first != EVENT_ID && EVENT_FIELDS.contains(&first);
    (!is_known).then(|| {
        let (first, path) = (excerpt_of(first), excerpt_of(path));
        format!("events have no field '{first}': use 'payload.{path}', or add $fold before this stage")
    })
}

fn of_state(types: &TypeNames, first: &str, path: &str, query: &Context) -> Option<String> {
    match first {
        "aggregate_id" => Some("after $fold the aggregate's id is '_id', not 'aggregate_id'".to_owned()),
        "event_type" => Some("after $fold rows are states, which have no 'event_type'".to_owned()),
        known if STATE_FIELDS.contains(&known) => None,
        // The names of a type's fields cannot begin with an underscore.
        other if other.starts_with('_') => {
            let hint = hint::did_you_mean(other, STATE_FIELDS).map(|hint| format!(": {hint}")).unwrap_or_default();
            Some(format!("states have no field '{}'{hint}", excerpt_of(other)))
        }
        _ => misspelt(types, path, "", query),
    }
}

/// Returns a warning if no aggregate of the given types has had the first field of a path. Also returns a warning if no
/// type declares the rest of the path, but a type declares a similar path. The warning shows `before` in front of each
/// path, for example `payload.` for the paths in events.
fn misspelt(types: &TypeNames, path: &str, before: &str, query: &Context) -> Option<String> {
    let known = query.types.as_ref()?;
    let first = path.split('.').next().unwrap_or(path);
    if known.has_field(types, first) {
        return misspelt_inside(types, path, query).map(|nearest| undeclared(path, &nearest, before));
    }
    // Another warning reports types that do not exist.
    if !known.has_any(types) {
        return None;
    }
    let hint = known.nearest_field(types, first).map(|nearest| format!(": did you mean '{before}{nearest}'?"));
    Some(format!("no aggregate has the field '{before}{}'{}", excerpt_of(first), hint.unwrap_or_default()))
}

/// Returns a declared path that is similar to `path`. Returns `None` if the types allow a value at `path`, or if no
/// declared path is similar.
fn misspelt_inside(types: &TypeNames, path: &str, query: &Context) -> Option<String> {
    let known = query.types.as_ref().filter(|known| !known.may_have(types, path))?;
    known.nearest_path(types, path)
}

/// Returns the warning about a path that no type declares. Objects may have undeclared fields, so the warning does not
/// claim that the field is missing.
fn undeclared(path: &str, nearest: &str, before: &str) -> String {
    let (path, nearest) = (excerpt_of(path), excerpt_of(nearest));
    format!("no type declares the field '{before}{path}': did you mean '{before}{nearest}'?")
}
