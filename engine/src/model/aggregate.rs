//! Aggregates: the state that results from folding a stream's events.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use super::definition::Definition;
use super::event::Event;
use super::fold::StreamFold;
use super::id::AggregateId;
use super::value::{Object, Value};

/// The payload key that lists the fields to remove from the state.
pub const UNSET: &str = "$unset";

/// The state of a stream after one of its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    pub id: AggregateId,
    pub aggregate_type: Arc<str>,
    pub project_id: Option<Arc<str>>,
    /// The version of the last folded event.
    pub version: u64,
    /// The position of the last folded event.
    pub position: u64,
    /// The position of the stream's first event. Lists of aggregates are sorted by this position.
    pub first_position: u64,
    /// The time at which the first folded event occurred, in milliseconds since the epoch.
    pub created_at: i64,
    /// The time at which the last folded event occurred, in milliseconds since the epoch.
    pub last_event_at: i64,
    pub deleted: bool,
    pub state: Arc<Object>,
    /// The data that plugins derived from the stream, by plugin. Plugins run after the fold, so the fold neither reads
    /// nor changes this data.
    pub facts: Arc<Object>,
}

/// Empty facts, shared by all aggregates without facts.
static NO_FACTS: LazyLock<Arc<Object>> = LazyLock::new(Arc::default);

/// Returns the empty facts of an aggregate for which no plugin has derived data.
pub fn no_facts() -> Arc<Object> {
    NO_FACTS.clone()
}

impl Aggregate {
    /// Returns an aggregate after the first event of a log, for tests.
    #[cfg(test)]
    pub fn sample(aggregate_type: &str, id: &str, state: Object) -> Aggregate {
        Aggregate {
            id: AggregateId::from(Arc::from(id)),
            aggregate_type: aggregate_type.into(),
            project_id: None,
            version: 1,
            position: 1,
            first_position: 1,
            created_at: 0,
            last_event_at: 0,
            deleted: false,
            state: Arc::new(state),
            facts: no_facts(),
        }
    }

    /// Returns the aggregate in its initial state, before its first event.
    pub(super) fn before(event: &Event) -> Aggregate {
        Aggregate {
            id: event.aggregate_id.clone(),
            aggregate_type: event.aggregate_type.clone(),
            project_id: event.project_id.clone(),
            version: 0,
            position: 0,
            first_position: event.position,
            created_at: event.occurred_at,
            last_event_at: event.occurred_at,
            deleted: false,
            state: Arc::default(),
            facts: no_facts(),
        }
    }

    /// Returns the aggregate after the next event of its stream.
    pub fn fold(before: Option<&Aggregate>, event: &Event, definition: &Definition) -> Aggregate {
        let mut folding = StreamFold::from(before.cloned().unwrap_or_else(|| Aggregate::before(event)));
        folding.fold(event, definition);
        folding.into_aggregate()
    }

    /// Folds a stream, oldest event first. Returns `None` if there are no events.
    pub fn fold_all<'a>(events: impl IntoIterator<Item = &'a Event>, definition: &Definition) -> Option<Aggregate> {
        let mut folding: Option<StreamFold> = None;
        for event in events {
            folding.get_or_insert_with(|| StreamFold::new(event)).fold(event, definition);
        }
        folding.map(StreamFold::into_aggregate)
    }

    /// Returns the approximate size of the aggregate in memory, in bytes.
    pub fn size_bytes(&self) -> usize {
        /// The approximate size of the struct, the id, and the entry in the map from ids to aggregates, in bytes.
        const BASE_BYTES: usize = 256;
        BASE_BYTES + self.state.size_bytes() + self.facts.size_bytes()
    }

    /// Returns the string in a field of the state, or `None` if the field is absent or not a string.
    pub fn text(&self, name: &str) -> Option<Arc<str>> {
        self.state.get(name)?.shared_str()
    }

    /// Returns the aggregate as a pipeline row: first the columns with the id, type and project, then the state's
    /// fields, then the remaining columns.
    pub fn row(&self, definition: &Definition) -> Value {
        self.row_of(definition, None)
    }

    /// Returns the pipeline row with only the given fields, in the order of the full row. `None` selects all fields.
    pub fn row_of(&self, definition: &Definition, fields: Option<&BTreeSet<Arc<str>>>) -> Value {
        let is_selected = |name: &str| fields.is_none_or(|fields| fields.contains(name));
        let mut row = Object::with_capacity(fields.map_or(self.state.len() + 9, BTreeSet::len));
        for (name, column) in IDENTITY.iter().filter(|(name, _)| is_selected(name)) {
            row.push(name.clone(), self.column(*column, definition));
        }
        for (name, value) in self.state.iter().filter(|(name, _)| is_selected(name)) {
            // A state field with the name of an identifying column is left out, because the name would appear twice in
            // the row.
            if !IDENTITY.iter().any(|(reserved, _)| reserved == name) {
                row.push(name.clone(), value.clone());
            }
        }
        for (name, column) in DESCRIPTION.iter().filter(|(name, _)| is_selected(name)) {
            row.push(name.clone(), self.column(*column, definition));
        }
        row.into()
    }

    /// Returns the value of a column of the pipeline row. Returns `None` if the row has no such column, and for the
    /// columns with the traits and the facts.
    pub fn field(&self, name: &str) -> Option<Cow<'_, Value>> {
        if let Some((_, column)) = IDENTITY.iter().find(|(known, _)| **known == *name) {
            return self.plain_column(*column).map(Cow::Owned);
        }
        if let Some(value) = self.state.get(name) {
            return Some(Cow::Borrowed(value));
        }
        let (_, column) = DESCRIPTION.iter().find(|(known, _)| **known == *name)?;
        self.plain_column(*column).map(Cow::Owned)
    }

    fn column(&self, column: RowColumn, definition: &Definition) -> Value {
        self.plain_column(column).unwrap_or_else(|| match column {
            RowColumn::Facts => Value::Object(self.facts.clone()),
            _ => definition.traits_value(),
        })
    }

    fn plain_column(&self, column: RowColumn) -> Option<Value> {
        Some(match column {
            RowColumn::Id => self.id.text().into(),
            RowColumn::AggregateType => self.aggregate_type.clone().into(),
            RowColumn::ProjectId => self.project_id.clone().into(),
            RowColumn::Version => Value::Int(self.version as i64),
            RowColumn::Position => Value::Int(self.position as i64),
            RowColumn::CreatedAt => Value::Date(self.created_at),
            RowColumn::LastEventAt => Value::Date(self.last_event_at),
            RowColumn::Traits | RowColumn::Facts => return None,
        })
    }
}

/// The columns of a pipeline row that are not fields of the state.
#[derive(Clone, Copy)]
enum RowColumn {
    Id,
    AggregateType,
    ProjectId,
    Version,
    Position,
    CreatedAt,
    LastEventAt,
    Traits,
    Facts,
}

/// The columns that a row has before the fields of the state. The memory contains the name of each column only once,
/// for all rows.
static IDENTITY: LazyLock<[(Arc<str>, RowColumn); 3]> = LazyLock::new(|| {
    [
        ("_id".into(), RowColumn::Id),
        ("aggregate_type".into(), RowColumn::AggregateType),
        ("project_id".into(), RowColumn::ProjectId),
    ]
});
/// The columns that a row has after the fields of the state.
static DESCRIPTION: LazyLock<[(Arc<str>, RowColumn); 6]> = LazyLock::new(|| {
    [
        ("_version".into(), RowColumn::Version),
        ("_position".into(), RowColumn::Position),
        ("_created_at".into(), RowColumn::CreatedAt),
        ("_last_event_at".into(), RowColumn::LastEventAt),
        ("_traits".into(), RowColumn::Traits),
        ("_facts".into(), RowColumn::Facts),
    ]
});
