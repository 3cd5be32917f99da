//! Folded states as rows: from memory, from the stored snapshots, or folded from the log for one query.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;

use super::events::{Pages, Wanted};
use super::reader::{Reader, Streams};
use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::event::Event;
use crate::model::fold::Folding;
use crate::model::id::AggregateId;
use crate::model::value::Value;
use crate::pipeline::column::{Cells, Column, Mask, SEGMENT};
use crate::pipeline::surrealql::node_query;
use crate::pipeline::{self, AsOf, Columns, Positions, StateScan, Table};
use crate::resident::Base;
use crate::store::nodes::{Snapshot, Unreadable};

/// The states in memory that a scan asks for.
pub struct ResidentTable<'a> {
    pub reader: &'a Reader<'a>,
    pub scan: &'a StateScan,
    /// What the pipeline looks at; rows need hold no more.
    pub fields: Option<&'a BTreeSet<Arc<str>>>,
    pub streams: Streams<'a>,
    /// What columns need to know of the scan, where they are made use of.
    pub offered: Option<Offered<'a>>,
}

/// The streams of a scan by the numbers that their types and projects have in columns.
pub struct Offered<'a> {
    base: &'a Base,
    /// By the type's number, whether it is read.
    types: Vec<bool>,
    /// The projects read; `None` is all of them.
    projects: Option<Vec<u32>>,
}

impl<'a> Offered<'a> {
    pub fn new(reader: &'a Reader<'a>, scan: &StateScan, streams: &Streams<'a>) -> Option<Offered<'a>> {
        let base = reader.snapshot.base()?;
        let wanted = |name: &Arc<str>| scan.streams.aggregate_types.as_ref().is_none_or(|types| types.contains(name));
        let texts = base.types.texts();
        let types = (0..texts.len() as u32)
            .map(|code| texts.text(code).is_some_and(|name| wanted(name) && reader.definitions.contains_key(&**name)));
        let ids = streams.project_ids.as_ref();
        let projects = ids.map(|ids| ids.iter().filter_map(|id| base.projects.texts().code(id)).collect());
        Some(Offered { base, types: types.collect(), projects })
    }

    /// Takes the rows of other types and projects out of the mask.
    fn restrict(&self, segment: usize, mask: &mut Mask, deleted: bool) {
        let segment_of = |column: &'a Column| column.segments().get(segment).map(|segment| segment.cells());
        if !deleted && let Some(Cells::Bools(deleted)) = segment_of(&self.base.deleted) {
            mask.and(&Mask::of(deleted, |deleted| !*deleted));
        }
        if self.types.contains(&false)
            && let Some(Cells::Texts(types)) = segment_of(&self.base.types)
        {
            mask.and(&Mask::of(types, |code| self.types.get(*code as usize).copied().unwrap_or_default()));
        }
        if let Some(wanted) = &self.projects {
            match segment_of(&self.base.projects) {
                Some(Cells::Texts(projects)) => mask.and(&Mask::of(projects, |code| wanted.contains(code))),
                _ => *mask = Mask::none(mask.len()),
            }
        }
    }
}

impl Table for ResidentTable<'_> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let limit = self.scan.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        // Ids tell which states are read; everything else looks at all of them.
        let states: Box<dyn Iterator<Item = Arc<Aggregate>> + '_> = match &self.scan.streams.aggregate_ids {
            Some(ids) => {
                let mut found: Vec<_> = ids.iter().filter_map(|id| self.reader.state(id)).collect();
                found.sort_unstable_by_key(|aggregate| aggregate.first_position);
                found.dedup_by_key(|aggregate| aggregate.first_position);
                Box::new(found.into_iter())
            }
            None => Box::new(self.reader.snapshot.iter().cloned()),
        };
        let rows = states.map_while(move |aggregate| {
            match row(self.reader, self.scan, &self.streams, &aggregate, self.fields) {
                Ok(row) => Some(row),
                Err(error) => self.reader.fail(error),
            }
        });
        Box::new(rows.flatten().take(limit))
    }

    fn columns(&self) -> Option<&dyn Columns> {
        self.offered.as_ref().map(|_| self as &dyn Columns)
    }
}

impl Columns for ResidentTable<'_> {
    fn count(&self) -> usize {
        self.reader.snapshot.len()
    }

    fn column(&self, path: &str) -> Option<&Column> {
        self.reader.snapshot.column(path)
    }

    fn restrict(&self, segment: usize, mask: &mut Mask) -> pipeline::error::Result<()> {
        if let Some(offered) = &self.offered {
            offered.restrict(segment, mask, self.scan.deleted);
        }
        if self.scan.streams.filter.is_some() {
            let rows: Vec<u32> = mask.rows().collect();
            for row in rows {
                let Some(aggregate) = self.reader.snapshot.at(segment * SEGMENT + row as usize) else { continue };
                let (id, project_id) = (aggregate.id.as_str(), aggregate.project_id.as_deref());
                let context = self.reader.context;
                if !self.streams.admits(id, &aggregate.aggregate_type, project_id, context)? {
                    mask.clear(row as usize);
                }
            }
        }
        Ok(())
    }

    fn id(&self, row: usize) -> Option<Arc<str>> {
        self.reader.snapshot.at(row).map(|aggregate| aggregate.id.text())
    }

    fn row(&self, row: usize) -> Option<Value> {
        self.part(row, self.fields)
    }

    fn part(&self, row: usize, fields: Option<&BTreeSet<Arc<str>>>) -> Option<Value> {
        let aggregate = self.reader.snapshot.at(row)?;
        let definition = self.reader.definitions.get(&aggregate.aggregate_type)?;
        Some(aggregate.row_of(definition, fields))
    }
}

/// The stored snapshots that a scan asks for. They stand where their follower stands, so later events are folded over
/// them: the answer is the same as from memory.
pub fn stored<'a>(reader: &'a Reader<'a>, scan: &'a StateScan, streams: &Streams<'a>) -> Result<Vec<Value>> {
    let mut resolved = scan.clone();
    resolved.streams.project_ids = streams.project_ids.clone();
    let query = node_query(&resolved);
    let log = &reader.state.log;
    // Before the snapshots are read: one written meanwhile is newer than needed, never older.
    let mut position = reader.handle.block_on(log.checkpoint(crate::core::NODES))?;
    let definition = |name: &str| reader.definitions.get(name).cloned();
    let found = reader.handle.block_on(log.select_nodes(&query.text, &query.bindings, definition))?;
    let mut states: IndexMap<AggregateId, Arc<Aggregate>> = IndexMap::new();
    let is_current = |snapshot: &Snapshot| {
        let definition = reader.definitions.get(&snapshot.aggregate.aggregate_type);
        definition.is_none_or(|definition| definition.revision == snapshot.revision)
    };
    for found in found {
        let (id, aggregate) = match found {
            Ok(snapshot) if is_current(&snapshot) => {
                (snapshot.aggregate.id.clone(), Some(Arc::new(snapshot.aggregate)))
            }
            // The state in memory was folded again: under the definition of now, or from the log when this was not readable.
            Ok(Snapshot { aggregate: Aggregate { id, .. }, .. }) | Err(Unreadable { id, .. }) => {
                let now = reader.state(id.as_str());
                (id, now)
            }
        };
        states.extend(aggregate.map(|aggregate| (id, aggregate)));
    }
    while position < reader.position {
        let events = reader.handle.block_on(reader.state.events_after(position, 256))?;
        let Some(last) = events.last() else { break };
        position = last.position;
        for event in &events {
            // What changed since is taken from memory: the snapshot may not even have been selected.
            if let Some(now) = reader.state(event.aggregate_id.as_str()) {
                states.insert(event.aggregate_id.clone(), now);
            }
        }
    }
    rows_of(reader, scan, streams, states.into_values(), |_| None)
}

/// The log folded as the scan asks: up to a moment, or only some of the events.
pub fn folded<'a>(
    reader: &'a Reader<'a>,
    scan: &'a StateScan,
    fields: Option<&BTreeSet<Arc<str>>>,
    streams: &Streams<'a>,
) -> Result<Vec<Value>> {
    let mut states: IndexMap<AggregateId, Folding> = IndexMap::new();
    let mut kept: IndexMap<AggregateId, Vec<Value>> = IndexMap::new();
    let mut held = Held::new(reader);
    for event in Pages::new(reader, streams, wanted(reader, scan, fields, streams), usize::MAX) {
        reader.context.tick()?;
        let in_time = match scan.as_of {
            AsOf::Now => true,
            AsOf::At(ms) => event.occurred_at <= ms,
            AsOf::Version(version) => u64::try_from(version).is_ok_and(|version| event.version <= version),
            AsOf::Position(position) => u64::try_from(position).is_ok_and(|position| event.position <= position),
        };
        if !in_time || !is_chosen(reader, scan, &event)? {
            continue;
        }
        let Some(definition) = reader.definitions.get(&event.aggregate_type) else { continue };
        states.entry(event.aggregate_id.clone()).or_insert_with(|| Folding::new(&event)).fold(&event, definition);
        held.add(event.size_bytes(), || states.values().map(Folding::size_bytes).sum())?;
        if scan.events {
            let row = event.row();
            reader.context.charge(event.size_bytes())?;
            kept.entry(event.aggregate_id.clone()).or_default().push(row);
        }
    }
    held.count(states.values().map(Folding::size_bytes).sum())?;
    let states = states.into_values().map(|folding| Arc::new(folding.into_aggregate()));
    rows_of(reader, scan, streams, states, |id| kept.swap_remove(id))
}

/// What the states of a fold take of the query's memory. An event may add to a state or replace what is in it: so states
/// are measured now and then, when events of some bytes were folded since.
struct Held<'a> {
    reader: &'a Reader<'a>,
    counted: usize,
    folded: usize,
    /// Bytes of events between two measurements.
    between: usize,
}

impl<'a> Held<'a> {
    /// The part of the query's memory between two measurements.
    const PART: i64 = 8;

    fn new(reader: &'a Reader<'a>) -> Held<'a> {
        let part = reader.context.bytes_left.get() / Held::PART;
        Held { reader, counted: 0, folded: 0, between: usize::try_from(part).unwrap_or(0) }
    }

    /// An event of so many bytes was folded.
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

/// The states at the query's moment, which is not the one of the states in memory. Those that have not changed since are
/// taken from there, the others are folded again.
pub fn then<'a>(
    reader: &'a Reader<'a>,
    scan: &'a StateScan,
    fields: Option<&BTreeSet<Arc<str>>>,
    streams: &Streams<'a>,
) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for now in reader.snapshot.iter() {
        if scan.limit.is_some_and(|limit| rows.len() as u64 >= limit) {
            break;
        }
        reader.context.tick()?;
        let project_id = now.project_id.as_deref();
        let id = now.id.as_str();
        // Type and project of a stream do not change.
        if now.first_position > reader.position
            || !streams.admits(id, &now.aggregate_type, project_id, reader.context)?
        {
            continue;
        }
        let Some(aggregate) = reader.then(now.clone())? else { continue };
        rows.extend(row(reader, scan, streams, &aggregate, fields)?);
    }
    Ok(rows)
}

/// What must be read of the log: each field of a state depends on that field of the payloads alone.
fn wanted(reader: &Reader<'_>, scan: &StateScan, fields: Option<&BTreeSet<Arc<str>>>, streams: &Streams<'_>) -> Wanted {
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
    let whole = scan.events || scan.event_filter.is_some() || (scan.filter.is_some() && streams.asked.is_none());
    let fields = fields.filter(|_| !whole).map(|fields| {
        let asked = streams.asked.iter().flatten();
        Arc::new(fields.iter().chain(asked).cloned().collect())
    });
    Wanted { version, at, after, position, fields }
}

fn is_chosen(reader: &Reader<'_>, scan: &StateScan, event: &Event) -> Result<bool> {
    match &scan.event_filter {
        None => Ok(true),
        Some(filter) => Ok(filter.matches_row(&event.row(), reader.context)?),
    }
}

fn rows_of(
    reader: &Reader<'_>,
    scan: &StateScan,
    streams: &Streams<'_>,
    states: impl Iterator<Item = Arc<Aggregate>>,
    mut events: impl FnMut(&AggregateId) -> Option<Vec<Value>>,
) -> Result<Vec<Value>> {
    let mut states: Vec<_> = states.collect();
    states.sort_unstable_by_key(|aggregate| aggregate.first_position);
    let mut rows = Vec::new();
    for mut aggregate in states {
        if scan.limit.is_some_and(|limit| rows.len() as u64 >= limit) {
            break;
        }
        // What is derived is kept as of now, beside the states in memory; of a past state nothing is.
        if scan.as_of == AsOf::Now
            && let Some(now) = reader.state(aggregate.id.as_str()).filter(|now| !now.facts.is_empty())
        {
            Arc::make_mut(&mut aggregate).facts = now.facts.clone();
        }
        let Some(mut row) = row(reader, scan, streams, &aggregate, None)? else { continue };
        if scan.events
            && let Value::Object(object) = &mut row
        {
            Arc::make_mut(object).push("_events", Value::from(events(&aggregate.id).unwrap_or_default()));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The row of a state, if the scan asks for it.
fn row(
    reader: &Reader<'_>,
    scan: &StateScan,
    streams: &Streams<'_>,
    aggregate: &Aggregate,
    fields: Option<&BTreeSet<Arc<str>>>,
) -> Result<Option<Value>> {
    reader.context.tick()?;
    let project_id = aggregate.project_id.as_deref();
    if (aggregate.deleted && !scan.deleted)
        || !streams.admits(aggregate.id.as_str(), &aggregate.aggregate_type, project_id, reader.context)?
    {
        return Ok(None);
    }
    let Some(definition) = reader.definitions.get(&aggregate.aggregate_type) else { return Ok(None) };
    let whole = || aggregate.row_of(definition, fields);
    let Some(filter) = &scan.filter else { return Ok(Some(whole())) };
    // Most rows go no further: they are looked at with what the filter reads of them, and no more.
    match &streams.asked {
        Some(asked) if !filter.matches_row(&aggregate.row_of(definition, Some(asked)), reader.context)? => Ok(None),
        Some(_) => Ok(Some(whole())),
        None => {
            let row = whole();
            Ok(filter.matches_row(&row, reader.context)?.then_some(row))
        }
    }
}
