//! Lists references to the events of a scan. The references come from the log, from one stream, or from several streams
//! that are merged by position. Events are read only to find the first and the last selected version of a stream.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::events::EventSelection;
use super::reader::{QueryReader, StreamScan};
use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::store::workspace::log::EventRef;

/// The number of event references to list at a time. A listing of the log may read more references, because a commit
/// record lists all events of the commit.
const MIN_LISTED: usize = 1_024;
/// The maximum number of events that one read lists for a stream, if several streams are listed separately.
const MAX_LISTED_PER_STREAM: u64 = 64;
/// The maximum number of streams listed separately. For more streams, one scan of the log is cheaper.
const MAX_SEPARATE_STREAMS: usize = 100;

/// The events for which a scan has not listed references yet, in the order of the log.
pub enum EventPlaces {
    /// The events of the whole log, after the position `after` and up to the position `end`.
    Log { after: u64, end: u64 },
    /// The events of one stream.
    Stream { id: AggregateId, versions: RangeInclusive<u64> },
    /// The events of several streams.
    Streams(Vec<StreamHead>),
}

/// One of several streams that are listed separately, with the listed references to the events of this stream.
pub struct StreamHead {
    id: AggregateId,
    /// The versions that are not listed yet.
    versions: RangeInclusive<u64>,
    listed: VecDeque<EventRef>,
}

impl EventPlaces {
    /// Returns the places of the selected events. If the scan names at most [`MAX_SEPARATE_STREAMS`] ids, the streams
    /// with these ids are listed separately. Otherwise, the log is listed.
    pub fn new(reader: &QueryReader<'_>, streams: &StreamScan<'_>, selection: &EventSelection) -> Result<EventPlaces> {
        let Some(ids) = streams.filter.aggregate_ids.as_ref().filter(|ids| ids.len() <= MAX_SEPARATE_STREAMS) else {
            return Ok(EventPlaces::Log { after: selection.after, end: selection.position });
        };
        let mut heads: Vec<StreamHead> = Vec::new();
        for aggregate in ids.iter().filter_map(|id| reader.state.folded.get(id)) {
            let is_known = heads.iter().any(|head| head.id == aggregate.id);
            if is_known || !streams.admits_stream(&aggregate, reader.context)? {
                continue;
            }
            let versions = versions(reader, &aggregate, selection)?;
            heads.push(StreamHead { id: aggregate.id.clone(), versions, listed: VecDeque::new() });
        }
        match heads.len() {
            1 => Ok(heads.pop().map_or(EventPlaces::Streams(Vec::new()), |StreamHead { id, versions, .. }| {
                EventPlaces::Stream { id, versions }
            })),
            _ => Ok(EventPlaces::Streams(heads)),
        }
    }

    /// Returns whether the next events are in memory.
    pub fn are_in_memory(&self, reader: &QueryReader<'_>) -> bool {
        match self {
            EventPlaces::Log { after, end } => after < end && reader.state.folded.last_events(*after, 0).is_some(),
            EventPlaces::Stream { .. } | EventPlaces::Streams(_) => false,
        }
    }

    /// Returns at most `most` of the next events, or `None` if there are no more events or the next events are not in
    /// memory.
    pub fn in_memory(&mut self, reader: &QueryReader<'_>, most: usize) -> Option<Vec<Arc<Event>>> {
        let EventPlaces::Log { after, end } = self else { return None };
        if after >= end {
            return None;
        }
        let events = reader.state.folded.last_events(*after, most)?;
        *after = events.last().map_or(*end, |last| last.position);
        Some(events)
    }

    /// Returns the next event references. The list may be empty although more references follow. Returns `None` at the
    /// end.
    pub fn list(
        &mut self,
        reader: &QueryReader<'_>,
        streams: &StreamScan<'_>,
        selection: &EventSelection,
    ) -> Result<Option<Vec<EventRef>>> {
        match self {
            EventPlaces::Log { after, end } => {
                if after >= end {
                    return Ok(None);
                }
                let listed = reader.handle.block_on(reader.state.db.event_refs_after(*after, MIN_LISTED))?;
                *after = listed.last().map_or(*end, |last| last.position);
                reader.context.tick_many(listed.len())?;
                let taken = |event_ref: EventRef| {
                    let is_read = is_read(reader, streams, &event_ref);
                    is_read.map(|is_read| (is_read && selection.may_take(&event_ref)).then_some(event_ref)).transpose()
                };
                listed.into_iter().filter_map(taken).collect::<Result<_>>().map(Some)
            }
            EventPlaces::Stream { id, versions } => {
                if versions.is_empty() {
                    return Ok(None);
                }
                let (first, end) = (*versions.start(), *versions.end());
                let last = end.min(first.saturating_add(MIN_LISTED as u64 - 1));
                *versions = last + 1..=end;
                // A single stream is read by version. The events themselves contain their positions.
                let place = |version| EventRef::new(id.text(), version, 0);
                Ok(Some((first..=last).map(place).collect()))
            }
            EventPlaces::Streams(heads) => merged(reader, heads),
        }
    }
}

/// Returns the next event references of several streams, in the order of the log. Returns `None` at the end.
fn merged(reader: &QueryReader<'_>, heads: &mut Vec<StreamHead>) -> Result<Option<Vec<EventRef>>> {
    let mut places = Vec::new();
    while places.len() < MIN_LISTED {
        for head in heads.iter_mut().filter(|head| head.listed.is_empty() && !head.versions.is_empty()) {
            let (first, end) = (*head.versions.start(), *head.versions.end());
            let last = end.min(first.saturating_add(MAX_LISTED_PER_STREAM - 1));
            reader.context.check_time()?;
            let listed = reader.handle.block_on(reader.state.db.stream_refs(&head.id, first, last))?;
            head.versions = last + 1..=end;
            head.listed.extend(listed);
        }
        heads.retain(|head| !head.listed.is_empty());
        reader.context.tick_many(heads.len())?;
        let next = heads.iter_mut().min_by_key(|head| head.listed.front().map(|place| place.position));
        let Some(place) = next.and_then(|head| head.listed.pop_front()) else { break };
        places.push(place);
    }
    Ok((!places.is_empty()).then_some(places))
}

/// Returns the range of versions that contains the selected events of a stream.
fn versions(
    reader: &QueryReader<'_>,
    aggregate: &Aggregate,
    selection: &EventSelection,
) -> Result<RangeInclusive<u64>> {
    let version_at = |position| reader.handle.block_on(reader.state.version_at(aggregate, position));
    let first = if selection.after == 0 { 1 } else { version_at(selection.after)? + 1 };
    let last = version_at(selection.position)?;
    Ok(first..=selection.version.map_or(last, |version| last.min(version)))
}

/// Returns whether the scan reads the stream of an event. Also returns `true` if the stream is unknown: only
/// [`Pages`](super::events::Pages) checks the event itself later.
fn is_read(reader: &QueryReader<'_>, streams: &StreamScan<'_>, event_ref: &EventRef) -> Result<bool> {
    if streams.is_all() {
        return Ok(true);
    }
    let Some(stream) = reader.state.folded.get(&event_ref.aggregate_id) else { return Ok(true) };
    Ok(streams.admits_stream(&stream, reader.context)?)
}
