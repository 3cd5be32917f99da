//! Folded states as rows: from memory, from the stored snapshots, or folded from the log for one query.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use super::events::{EventSelection, Pages};
use super::reader::{QueryReader, StreamScan};
use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::event::Event;
use crate::model::fold::StreamFold;
use crate::model::id::AggregateId;
use crate::model::value::Value;
use crate::pipeline::column::{Cells, Column, Mask, SEGMENT, TextCode};
use crate::pipeline::memory::expanded_bytes;
use crate::pipeline::surrealql::node_query;
use crate::pipeline::{self, AsOf, Columns, Positions, StateScan, Table};
use crate::resident::BaseColumns;
use crate::store::workspace::nodes::{NodeSnapshot, UnreadableSnapshot};

/// The approximate size of an entry in the map of folded rows, without the row, in bytes.
const FOLDED_BYTES: usize = 64;

/// A reader of the states that a scan selects.
pub struct StateReader<'a> {
    pub reader: &'a QueryReader<'a>,
    pub scan: &'a StateScan,
    /// The fields that the pipeline reads. The rows of [`ResidentTable`] and [`PastTable`] contain only these fields.
    /// `None` means all fields.
    pub fields: Option<&'a BTreeSet<Arc<str>>>,
    pub streams: StreamScan<'a>,
}

/// The states in memory that a scan selects.
pub struct ResidentTable<'a> {
    pub states: StateReader<'a>,
    /// The types and projects that the scan selects, as their codes in columns. `None` if columns are not used.
    pub offered: Option<StateSelection<'a>>,
}

/// The types and projects that a scan selects. Each type or project is represented by its code in the columns.
pub struct StateSelection<'a> {
    base: &'a BaseColumns,
    /// For each type, whether the scan reads the type. The index is the code of the type.
    types: Vec<bool>,
    /// The codes of the projects that are read. `None` means all projects.
    projects: Option<Vec<TextCode>>,
}

impl<'a> StateSelection<'a> {
    pub fn new(StateReader { reader, scan, streams, .. }: &StateReader<'a>) -> Option<StateSelection<'a>> {
        let base = reader.snapshot.base()?;
        let is_selected =
            |name: &Arc<str>| scan.streams.aggregate_types.as_ref().is_none_or(|types| types.contains(name));
        let texts = base.types.texts();
        let types = texts.codes().map(|code| {
            texts.text(code).is_some_and(|name| is_selected(name) && reader.definitions.contains_key(&**name))
        });
        let ids = streams.filter.project_ids.as_ref();
        let projects = ids.map(|ids| ids.iter().filter_map(|id| base.projects.texts().code(id)).collect());
        Some(StateSelection { base, types: types.collect(), projects })
    }

    /// Removes from the mask the rows with a type or a project that the scan does not select. Also removes deleted
    /// rows, unless `deleted` is set.
    fn restrict(&self, segment: usize, mask: &mut Mask, deleted: bool) {
        let segment_of = |column: &'a Column| column.segments().get(segment).map(|segment| segment.cells());
        if !deleted && let Some(Cells::Bools(deleted)) = segment_of(&self.base.deleted) {
            mask.and(&Mask::of(deleted, |deleted| !*deleted));
        }
        if self.types.contains(&false)
            && let Some(Cells::Texts(types)) = segment_of(&self.base.types)
        {
            mask.and(&Mask::of(types, |code| {
                code.index().and_then(|code| self.types.get(code)).copied().unwrap_or_default()
            }));
        }
        if let Some(selected) = &self.projects {
            match segment_of(&self.base.projects) {
                Some(Cells::Texts(projects)) => mask.and(&Mask::of(projects, |code| selected.contains(code))),
                _ => *mask = Mask::none(mask.len()),
            }
        }
    }
}

impl Table for ResidentTable<'_> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let StateReader { reader, fields, .. } = self.states;
        let rows = self.states.selected();
        let rows = rows.map_while(move |aggregate| reader.value_of(self.states.row(&aggregate, fields)));
        Box::new(rows.flatten().take(self.states.limit()))
    }

    fn columns(&self) -> Option<&dyn Columns> {
        self.offered.as_ref().map(|_| self as &dyn Columns)
    }
}

impl Columns for ResidentTable<'_> {
    fn count(&self) -> usize {
        self.states.reader.snapshot.len()
    }

    fn column(&self, path: &str) -> Option<&Column> {
        self.states.reader.snapshot.column(path)
    }

    fn restrict(&self, segment: usize, mask: &mut Mask) -> pipeline::error::Result<()> {
        let StateReader { reader, scan, streams, .. } = &self.states;
        if let Some(offered) = &self.offered {
            offered.restrict(segment, mask, scan.deleted);
        }
        if scan.streams.filter.is_some() {
            let rows: Vec<u32> = mask.rows().collect();
            for row in rows {
                let Some(aggregate) = reader.snapshot.at(segment * SEGMENT + row as usize) else { continue };
                if !streams.admits_stream(aggregate, reader.context)? {
                    mask.clear(row as usize);
                }
            }
        }
        Ok(())
    }

    fn id(&self, row: usize) -> Option<Arc<str>> {
        self.states.reader.snapshot.at(row).map(|aggregate| aggregate.id.text())
    }

    fn row(&self, row: usize) -> Option<Value> {
        self.part(row, self.states.fields)
    }

    fn part(&self, row: usize, fields: Option<&BTreeSet<Arc<str>>>) -> Option<Value> {
        let aggregate = self.states.reader.snapshot.at(row)?;
        let definition = self.states.reader.definitions.get(&aggregate.aggregate_type)?;
        Some(aggregate.row_of(definition, fields))
    }
}

/// The states at the query's moment, which is earlier than the end of the log. States that have not changed since the
/// moment are taken from memory.
pub struct PastTable<'a> {
    states: StateReader<'a>,
    /// The rows of the selected states that have changed since the query's moment, by the id of the aggregate.
    folded: FxHashMap<AggregateId, Value>,
}

impl<'a> PastTable<'a> {
    /// Folds the states that have changed since the query's moment.
    pub fn new(states: StateReader<'a>) -> Result<PastTable<'a>> {
        let StateReader { reader, fields, .. } = states;
        let mut folded = FxHashMap::default();
        let limit = states.limit();
        let mut count = 0;
        for now in states.selected() {
            if count >= limit {
                break;
            }
            reader.context.tick()?;
            // The type and the project of a stream never change.
            if now.first_position > reader.position || !states.streams.admits_stream(&now, reader.context)? {
                continue;
            }
            if now.position <= reader.position {
                count += usize::from(limit < usize::MAX && states.row(&now, fields)?.is_some());
                continue;
            }
            let before = reader.context.bytes_left.get();
            let then = reader.state_at(now.clone())?;
            match then.map(|then| states.row(&then, fields)).transpose()?.flatten() {
                Some(row) => {
                    count += 1;
                    // Only the row is kept of the folded state.
                    reader.context.bytes_left.set(before);
                    reader.context.charge(FOLDED_BYTES + expanded_bytes(&row, reader.context)?)?;
                    folded.insert(now.id.clone(), row);
                }
                None => reader.context.bytes_left.set(before),
            }
        }
        Ok(PastTable { states, folded })
    }
}

impl Table for PastTable<'_> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let StateReader { reader, fields, .. } = self.states;
        let rows = self.states.selected().map_while(move |now| {
            if now.position > reader.position {
                return Some(self.folded.get(&now.id).cloned());
            }
            reader.value_of(self.states.row(&now, fields))
        });
        Box::new(rows.flatten().take(self.states.limit()))
    }
}

impl StateReader<'_> {
    /// Returns the rows of the stored snapshots that a scan selects. Snapshots may be older than the end of the log, so
    /// states with later events are taken from memory. The result is the same as if all states were taken from memory.
    pub fn stored(&self) -> Result<Vec<Value>> {
        let (reader, query) = (self.reader, node_query(self.scan));
        let log = &reader.state.db;
        // The checkpoint is read before the snapshots: a snapshot written between the two reads is newer than the
        // checkpoint, never older.
        let mut position = reader.handle.block_on(log.checkpoint(crate::state::NODES))?;
        let definition = |name: &str| reader.definitions.get(name).cloned();
        let found = reader.handle.block_on(log.select_nodes(&query.text, &query.bindings, definition))?;
        let mut states: IndexMap<AggregateId, Arc<Aggregate>> = IndexMap::new();
        let is_current = |snapshot: &NodeSnapshot| {
            let definition = reader.definitions.get(&snapshot.aggregate.aggregate_type);
            definition.is_none_or(|definition| definition.revision == snapshot.revision)
        };
        for found in found {
            let (id, aggregate) = match found {
                Ok(snapshot) if is_current(&snapshot) => {
                    (snapshot.aggregate.id.clone(), Some(Arc::new(snapshot.aggregate)))
                }
                // The snapshot has an older revision of its type or is unreadable. The state in memory has been folded
                // again under the current definition.
                Ok(NodeSnapshot { aggregate: Aggregate { id, .. }, .. }) | Err(UnreadableSnapshot { id, .. }) => {
                    let now = reader.state(id.as_str());
                    (id, now)
                }
            };
            states.extend(aggregate.map(|aggregate| (id, aggregate)));
        }
        // A snapshot may be newer than the query's position, but not newer than the checkpoint that is read after it.
        let end = reader.handle.block_on(log.checkpoint(crate::state::NODES))?.max(reader.position);
        while position < end {
            let events = reader.handle.block_on(reader.state.events_after(position, 256))?;
            let Some(last) = events.last() else { break };
            position = last.position;
            for event in &events {
                // States that changed after the checkpoint come from memory, because the snapshots may be older or
                // newer than the query's position, and the scan may not have selected them.
                match reader.state(event.aggregate_id.as_str()) {
                    Some(now) => states.insert(event.aggregate_id.clone(), now),
                    None => states.shift_remove(&event.aggregate_id),
                };
            }
        }
        self.rows_of(states.into_values(), |_| None)
    }

    /// Folds the log, up to a moment or over selected events. Returns the rows of the resulting states.
    pub fn folded(&self) -> Result<Vec<Value>> {
        let StateReader { reader, scan, streams, .. } = self;
        let mut states: IndexMap<AggregateId, StreamFold> = IndexMap::new();
        let mut kept: IndexMap<AggregateId, Vec<Value>> = IndexMap::new();
        let mut held = FoldCharge::new(reader);
        // Pages end at the position of the selection, but may contain later versions and times.
        let selection = self.event_selection();
        let (version, at) = (selection.version, selection.at);
        for event in Pages::new(reader, streams, selection, usize::MAX) {
            reader.context.tick()?;
            let is_later = version.is_some_and(|version| event.version > version);
            if is_later || at.is_some_and(|at| event.occurred_at > at) || !self.is_chosen(&event)? {
                continue;
            }
            let Some(definition) = reader.definitions.get(&event.aggregate_type) else { continue };
            states
                .entry(event.aggregate_id.clone())
                .or_insert_with(|| StreamFold::new(&event))
                .fold(&event, definition);
            held.add(event.size_bytes(), || states.values().map(StreamFold::size_bytes).sum())?;
            if scan.events {
                let row = event.row();
                reader.context.charge(event.size_bytes())?;
                kept.entry(event.aggregate_id.clone()).or_default().push(row);
            }
        }
        held.count(states.values().map(StreamFold::size_bytes).sum())?;
        let states = states.into_values().map(|folding| Arc::new(folding.into_aggregate()));
        self.rows_of(states, |id| kept.swap_remove(id))
    }

    /// Returns the maximum number of rows of a scan.
    fn limit(&self) -> usize {
        self.scan.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
    }

    /// Returns the current states that a scan must examine, in the order of their first events: the states with the ids
    /// that the scan names, or all states if the scan names no ids.
    fn selected(&self) -> Box<dyn Iterator<Item = Arc<Aggregate>> + '_> {
        match &self.scan.streams.aggregate_ids {
            Some(ids) => {
                let mut found: Vec<_> = ids.iter().filter_map(|id| self.reader.state(id)).collect();
                found.sort_unstable_by_key(|aggregate| aggregate.first_position);
                found.dedup_by_key(|aggregate| aggregate.first_position);
                Box::new(found.into_iter())
            }
            None => Box::new(self.reader.snapshot.iter().cloned()),
        }
    }

    /// Returns the part of the log that a fold must read. Payload fields that the query does not need are left out. The
    /// needed fields of the states stay the same, because each field of a state depends only on the same field of the
    /// payloads. If the scan returns or filters events, or if the fields that its filter reads are unknown, all payload
    /// fields are read.
    fn event_selection(&self) -> EventSelection {
        let StateReader { reader, scan, fields, streams } = self;
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
        let (mut version, mut at, mut position) = (None, None, reader.position);
        match scan.as_of {
            AsOf::Now => {}
            AsOf::At(ms) => at = Some(ms),
            AsOf::Version(last) => version = Some(unsigned(last)),
            AsOf::Position(last) => position = position.min(unsigned(last)),
        }
        let Positions { first, last } = Positions::of(scan.event_filter.as_deref());
        let (after, position) = (first.saturating_sub(1), position.min(last));
        let whole =
            scan.events || scan.event_filter.is_some() || (scan.filter.is_some() && streams.filter_fields.is_none());
        let fields = fields.filter(|_| !whole).map(|fields| {
            let filter_fields = streams.filter_fields.iter().flatten();
            Arc::new(fields.iter().chain(filter_fields).cloned().collect())
        });
        EventSelection { version, at, after, position, fields }
    }

    fn is_chosen(&self, event: &Event) -> Result<bool> {
        match &self.scan.event_filter {
            None => Ok(true),
            Some(filter) => Ok(filter.matches_row(&event.row(), self.reader.context)?),
        }
    }

    fn rows_of(
        &self,
        states: impl Iterator<Item = Arc<Aggregate>>,
        mut events: impl FnMut(&AggregateId) -> Option<Vec<Value>>,
    ) -> Result<Vec<Value>> {
        let StateReader { reader, scan, .. } = self;
        let mut states: Vec<_> = states.collect();
        states.sort_unstable_by_key(|aggregate| aggregate.first_position);
        let mut rows = Vec::new();
        for mut aggregate in states {
            if scan.limit.is_some_and(|limit| rows.len() as u64 >= limit) {
                break;
            }
            // Enrichment facts exist only for current states, in memory. A scan as of an earlier moment returns no
            // facts. A later page of a scan of current states returns the current facts, like `QueryReader::state_at`.
            if scan.as_of == AsOf::Now
                && let Some(now) = reader.state(aggregate.id.as_str()).filter(|now| !now.facts.is_empty())
            {
                Arc::make_mut(&mut aggregate).facts = now.facts.clone();
            }
            let Some(mut row) = self.row(&aggregate, None)? else { continue };
            if scan.events
                && let Value::Object(object) = &mut row
            {
                Arc::make_mut(object).push("_events", Value::from(events(&aggregate.id).unwrap_or_default()));
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Returns the row of a state if the scan selects the state.
    fn row(&self, aggregate: &Aggregate, fields: Option<&BTreeSet<Arc<str>>>) -> Result<Option<Value>> {
        let StateReader { reader, scan, streams, .. } = self;
        reader.context.tick()?;
        if (aggregate.deleted && !scan.deleted) || !streams.admits_stream(aggregate, reader.context)? {
            return Ok(None);
        }
        let Some(definition) = reader.definitions.get(&aggregate.aggregate_type) else { return Ok(None) };
        let whole = || aggregate.row_of(definition, fields);
        let Some(filter) = &scan.filter else { return Ok(Some(whole())) };
        // The filter rejects most rows, so the filter gets a row with only the fields that it reads.
        match &streams.filter_fields {
            Some(filter_fields)
                if !filter.matches_row(&aggregate.row_of(definition, Some(filter_fields)), reader.context)? =>
            {
                Ok(None)
            }
            Some(_) => Ok(Some(whole())),
            None => {
                let row = whole();
                Ok(filter.matches_row(&row, reader.context)?.then_some(row))
            }
        }
    }
}

/// Charges the query for the memory of the states that the query folds. The states are measured again whenever more
/// than `between` bytes of events have been folded, because an event may grow or shrink a state.
struct FoldCharge<'a> {
    reader: &'a QueryReader<'a>,
    counted: usize,
    folded: usize,
    /// The number of bytes of folded events after which the states are measured again.
    between: usize,
}

impl<'a> FoldCharge<'a> {
    /// The field `between` is the number of bytes that the query may still allocate, divided by this constant.
    const PART: i64 = 8;

    fn new(reader: &'a QueryReader<'a>) -> FoldCharge<'a> {
        let part = reader.context.bytes_left.get() / FoldCharge::PART;
        FoldCharge { reader, counted: 0, folded: 0, between: usize::try_from(part).unwrap_or(0) }
    }

    /// Counts the bytes of a folded event. Measures the states if more than `between` bytes of events were folded since
    /// the last measurement.
    fn add(&mut self, bytes: usize, measured: impl FnOnce() -> usize) -> Result<()> {
        self.folded = self.folded.saturating_add(bytes);
        if self.folded > self.between { self.count(measured()) } else { Ok(()) }
    }

    fn count(&mut self, bytes: usize) -> Result<()> {
        self.folded = 0;
        self.reader.context.give_back(std::mem::replace(&mut self.counted, bytes));
        Ok(self.reader.context.charge(bytes)?)
    }
}
