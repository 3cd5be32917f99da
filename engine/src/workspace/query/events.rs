//! The log as a source of rows: events in the order of their positions, read page by page on demand.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::places::EventPlaces;
use super::reader::{QueryReader, StreamScan};
use crate::error::{Error, Result};
use crate::model::event::Event;
use crate::model::value::Value;
use crate::pipeline::{self, EventScan, Filter, Positions, Table};
use crate::store;
use crate::store::workspace::log::{EventRef, take_part};

/// The maximum number of events in the first page that is read from the store. This page is small and is read alone,
/// since the query may not need further events.
const FIRST_PAGE: usize = 16;
/// The maximum number of events in each page after the first page.
const PAGE: usize = 128;
/// The maximum total size of the events in a page that is read from the store, in bytes. A larger event is read alone.
const PAGE_BYTES: usize = 4 << 20;
/// The maximum number of pages that are read concurrently.
const AT_ONCE: usize = 3;

/// The events that a scan selects.
pub struct EventTable<'a> {
    pub reader: &'a QueryReader<'a>,
    pub scan: &'a EventScan,
    /// The fields that the pipeline reads. `None` means all fields.
    pub fields: Option<&'a BTreeSet<Arc<str>>>,
    pub streams: StreamScan<'a>,
}

impl Table for EventTable<'_> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let limit = self.scan.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let payloads = self.fields.is_none_or(|fields| fields.contains("payload"))
            || !self.scan.filter.as_deref().is_none_or(ignores_payloads);
        let Positions { first, last } = Positions::of(self.scan.filter.as_deref());
        let selection = EventSelection {
            version: None,
            at: None,
            after: first.saturating_sub(1),
            position: self.reader.position.min(last),
            fields: (!payloads).then(Default::default),
        };
        let pages = Pages::new(self.reader, &self.streams, selection, limit);
        let rows = pages.filter_map(|event| {
            let row = event.row();
            match &self.scan.filter {
                None => Some(row),
                Some(filter) => self.reader.value_of(filter.matches_row(&row, self.reader.context))?.then_some(row),
            }
        });
        Box::new(rows.take(limit))
    }

    /// Returns the number of events if the scan reads whole streams up to now. Returns `None` for any other scan. Reads
    /// no events, because the version of a stream is the number of its events.
    fn count(&self) -> pipeline::error::Result<Option<u64>> {
        let reader = self.reader;
        if self.scan.filter.is_some() || self.scan.limit.is_some() || reader.position != reader.snapshot.position() {
            return Ok(None);
        }
        let mut count = 0u64;
        for stream in reader.snapshot.iter() {
            reader.context.tick()?;
            if self.streams.admits_stream(stream, reader.context)? {
                count = count.saturating_add(stream.version);
            }
        }
        Ok(Some(count))
    }
}

/// The part of the log that a scan needs. Where possible, events outside this part are not read.
pub struct EventSelection {
    /// The maximum version of an event. `None` means no limit.
    pub version: Option<u64>,
    /// The latest time at which a selected event occurred, in milliseconds since the epoch. `None` means no limit.
    pub at: Option<i64>,
    /// The position after which the selection begins.
    pub after: u64,
    /// The position of the last event of the selection.
    pub position: u64,
    /// The top-level fields of payloads that are read. `None` means all fields.
    pub fields: Option<Arc<BTreeSet<Arc<str>>>>,
}

impl EventSelection {
    /// Returns whether the selection may contain an event, given only the event's reference.
    pub fn may_take(&self, event_ref: &EventRef) -> bool {
        event_ref.position <= self.position
            && self.version.is_none_or(|version| event_ref.version <= version)
            && self.at.zip(event_ref.occurred_at).is_none_or(|(at, occurred_at)| occurred_at <= at)
    }
}

/// An iterator over the events of the selected streams. The next pages are read while one page is processed.
pub struct Pages<'a> {
    reader: &'a QueryReader<'a>,
    streams: &'a StreamScan<'a>,
    selection: EventSelection,
    ahead: std::vec::IntoIter<Arc<Event>>,
    /// The references of the next events to read. Refilled from `places` when no reference is left.
    refs: VecDeque<EventRef>,
    /// The remaining events of the scan, whose references are not in `refs` yet.
    places: EventPlaces,
    reading: VecDeque<JoinHandle<store::Result<Vec<Event>>>>,
    /// The maximum number of events in the next page that is read from the store.
    page: usize,
    /// The maximum number of pages read concurrently.
    at_once: usize,
}

impl<'a> Pages<'a> {
    /// Creates the iterator. `rows` is the number of events that the scan is likely to need. This number also limits
    /// the size of the first page.
    pub fn new(
        reader: &'a QueryReader<'a>,
        streams: &'a StreamScan<'a>,
        selection: EventSelection,
        rows: usize,
    ) -> Pages<'a> {
        let places = reader.value_of(EventPlaces::new(reader, streams, &selection));
        let places = places.unwrap_or(EventPlaces::Log { after: 0, end: 0 });
        let (ahead, refs, reading) = Default::default();
        Pages {
            reader,
            streams,
            selection,
            ahead,
            refs,
            places,
            reading,
            page: FIRST_PAGE.min(rows).max(1),
            at_once: 1,
        }
    }

    /// Loads the next events. Returns `false` if there are no more events.
    fn next_page(&mut self) -> Result<bool> {
        let state = self.reader.state;
        while self.reading.len() < self.at_once {
            if self.refs.is_empty() {
                self.reader.context.check_time()?;
                if self.places.are_in_memory(self.reader) {
                    // Pages that are already being read come first.
                    if !self.reading.is_empty() {
                        break;
                    }
                    if let Some(events) = self.places.in_memory(self.reader, PAGE) {
                        self.ahead = events.into_iter();
                        return Ok(true);
                    }
                }
                match self.places.list(self.reader, self.streams, &self.selection)? {
                    Some(listed) => self.refs.extend(listed),
                    None => break,
                }
                continue;
            }
            let page = take_part(&mut self.refs, self.page, PAGE_BYTES);
            let (state, fields) = (state.clone(), self.selection.fields.clone());
            let read = async move { state.db.read_event_refs(&page, fields.as_deref()).await };
            self.reading.push_back(self.reader.handle.spawn(read));
        }
        let Some(read) = self.reading.pop_front() else { return Ok(false) };
        let events = self.reader.handle.block_on(read).map_err(Error::internal)??;
        self.ahead = events.into_iter().map(Arc::new).collect::<Vec<_>>().into_iter();
        // The query needs more events, so the following pages are larger, and more pages are read ahead.
        (self.page, self.at_once) = (PAGE.min(self.page * 2), AT_ONCE.min(self.at_once + 1));
        self.reader.context.check_time()?;
        Ok(true)
    }

    fn admits(&self, event: &Event) -> Result<bool> {
        let project_id = event.project_id.as_deref();
        Ok(self.streams.admits(event.aggregate_id.as_str(), &event.aggregate_type, project_id, self.reader.context)?)
    }
}

impl Drop for Pages<'_> {
    fn drop(&mut self) {
        self.reading.iter().for_each(JoinHandle::abort);
    }
}

impl Iterator for Pages<'_> {
    type Item = Arc<Event>;

    fn next(&mut self) -> Option<Arc<Event>> {
        let reader = self.reader;
        loop {
            while let Some(event) = self.ahead.next() {
                if event.position > self.selection.position {
                    return None;
                }
                if reader.value_of(self.admits(&event))? {
                    return Some(event);
                }
            }
            if reader.failed.borrow().is_some() {
                return None;
            }
            if !reader.value_of(self.next_page())? {
                return None;
            }
        }
    }
}

/// Returns whether a filter over events reads no payload.
fn ignores_payloads(filter: &Filter) -> bool {
    Filter::fields(filter).is_some_and(|fields| !fields.contains("payload"))
}
