//! The log as a source of rows: events in the order of their positions, read page by page as they are asked for.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::reader::{Reader, Streams};
use crate::error::{Error, Result};
use crate::model::event::Event;
use crate::model::value::Value;
use crate::pipeline::{EventScan, Filter, Positions, Table};
use crate::store::{self, log::EventRef};

/// Events read at a time, and how many such pages are on their way at once.
const PAGE: usize = 128;
const AT_ONCE: usize = 3;
/// Places listed at a time, at least.
const LISTED: usize = 1_024;

/// The events that a scan asks for.
pub struct EventTable<'a> {
    pub reader: &'a Reader<'a>,
    pub scan: &'a EventScan,
    /// What the pipeline looks at.
    pub fields: Option<&'a BTreeSet<Arc<str>>>,
    pub streams: Streams<'a>,
}

impl Table for EventTable<'_> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let limit = self.scan.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let payloads = self.fields.is_none_or(|fields| fields.contains("payload"))
            || !self.scan.filter.as_deref().is_none_or(leaves_payloads);
        let Positions { first, last } = Positions::of(self.scan.filter.as_deref());
        let wanted = Wanted {
            version: None,
            at: None,
            after: first.saturating_sub(1),
            position: self.reader.position.min(last),
            fields: (!payloads).then(Default::default),
        };
        let pages = Pages::new(self.reader, &self.streams, wanted);
        let rows = pages.filter_map(|event| {
            let row = event.row();
            match &self.scan.filter {
                None => Some(row),
                Some(filter) => match filter.matches_row(&row, self.reader.context) {
                    Ok(matches) => matches.then_some(row),
                    Err(error) => self.reader.fail(error),
                },
            }
        });
        Box::new(rows.take(limit))
    }
}

/// What of the log a walk needs; the rest is not read, as far as it can be told without reading it.
pub struct Wanted {
    /// Up to this version, and to this time of happening.
    pub version: Option<u64>,
    pub at: Option<i64>,
    /// Behind this position, and up to this one.
    pub after: u64,
    pub position: u64,
    /// Top-level fields of payloads; `None` is all of them.
    pub fields: Option<Arc<BTreeSet<Arc<str>>>>,
}

impl Wanted {
    /// Whether an event may be wanted, from what its commit tells of it.
    fn may_take(&self, event_ref: &EventRef) -> bool {
        event_ref.position <= self.position
            && self.version.is_none_or(|version| event_ref.version <= version)
            && self.at.zip(event_ref.occurred_at).is_none_or(|(at, occurred_at)| occurred_at <= at)
    }
}

/// Walks the events of the streams that are read. While those of one page are looked at, the next are on their way.
pub struct Pages<'a> {
    reader: &'a Reader<'a>,
    streams: &'a Streams<'a>,
    wanted: Wanted,
    ahead: std::vec::IntoIter<Arc<Event>>,
    /// Places of events that are to be read, up to `position`.
    refs: VecDeque<EventRef>,
    position: u64,
    reading: VecDeque<JoinHandle<store::Result<Vec<Event>>>>,
    /// The ids whose streams are read one after the other, instead of the whole log.
    few: Option<std::vec::IntoIter<Arc<Event>>>,
}

impl<'a> Pages<'a> {
    pub fn new(reader: &'a Reader<'a>, streams: &'a Streams<'a>, wanted: Wanted) -> Pages<'a> {
        let few = match few_streams(reader, streams, &wanted) {
            None => None,
            Some(Ok(events)) => Some(events.into_iter()),
            Some(Err(error)) => {
                reader.fail::<()>(error);
                Some(Vec::new().into_iter())
            }
        };
        let (refs, reading, ahead) = Default::default();
        let position = wanted.after;
        Pages { reader, streams, wanted, ahead, refs, position, reading, few }
    }

    /// Makes the next events ready; `false` where there are no more.
    fn next_page(&mut self) -> Result<bool> {
        out_of_time(self.reader)?;
        let state = self.reader.state;
        while self.reading.len() < AT_ONCE {
            if self.refs.is_empty() {
                if self.position >= self.wanted.position {
                    break;
                }
                if let Some(events) = state.folded.last_events(self.position, PAGE) {
                    if !self.reading.is_empty() {
                        break;
                    }
                    self.position = events.last().map_or(self.wanted.position, |last| last.position);
                    self.ahead = events.into_iter();
                    return Ok(true);
                }
                self.list_places()?;
                continue;
            }
            let page: Vec<EventRef> = self.refs.drain(..PAGE.min(self.refs.len())).collect();
            let (state, fields) = (state.clone(), self.wanted.fields.clone());
            let read = async move { state.log.read_event_refs(&page, fields.as_deref()).await };
            self.reading.push_back(self.reader.handle.spawn(read));
        }
        let Some(read) = self.reading.pop_front() else { return Ok(false) };
        let events = self.reader.handle.block_on(read).map_err(Error::internal)??;
        self.ahead = events.into_iter().map(Arc::new).collect::<Vec<_>>().into_iter();
        Ok(true)
    }

    fn list_places(&mut self) -> Result<()> {
        let listed = self.reader.handle.block_on(self.reader.state.log.event_refs_after(self.position, LISTED))?;
        self.position = listed.last().map_or(self.wanted.position, |last| last.position);
        for event_ref in listed.into_iter().filter(|event_ref| self.wanted.may_take(event_ref)) {
            let stream = match self.streams.is_all() {
                true => None,
                false => self.reader.state.folded.get(&event_ref.aggregate_id),
            };
            let is_read = match stream {
                Some(stream) => {
                    self.admits(&event_ref.aggregate_id, &stream.aggregate_type, stream.project_id.as_deref())?
                }
                None => true,
            };
            if is_read {
                self.refs.push_back(event_ref);
            }
        }
        Ok(())
    }

    fn admits(&self, id: &str, aggregate_type: &str, project_id: Option<&str>) -> Result<bool> {
        Ok(self.streams.admits(id, aggregate_type, project_id, self.reader.context)?)
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
        if let Some(few) = &mut self.few {
            return few.next();
        }
        loop {
            while let Some(event) = self.ahead.next() {
                if event.position > self.wanted.position {
                    return None;
                }
                match self.admits(event.aggregate_id.as_str(), &event.aggregate_type, event.project_id.as_deref()) {
                    Ok(true) => return Some(event),
                    Ok(false) => {}
                    Err(error) => return self.reader.fail(error),
                }
            }
            if self.reader.failed.borrow().is_some() {
                return None;
            }
            match self.next_page() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return self.reader.fail(error),
            }
        }
    }
}

/// Whether a filter over events looks at none of their payloads.
fn leaves_payloads(filter: &Filter) -> bool {
    Filter::fields(filter).is_some_and(|asked| !asked.contains("payload"))
}

/// Ends a walk that goes on for longer than the query may.
fn out_of_time(reader: &Reader<'_>) -> Result<()> {
    let context = reader.context;
    if (context.elapsed_us)() > context.limit_us {
        return Err(context.timeout().into());
    }
    Ok(())
}

/// All events of the streams that are asked for by id, in the order of the log; `None` where ids do not say which.
fn few_streams(reader: &Reader<'_>, streams: &Streams<'_>, wanted: &Wanted) -> Option<Result<Vec<Arc<Event>>>> {
    /// Past this many streams one walk over the log costs less.
    const FEW: usize = 100;
    let ids = streams.filter.aggregate_ids.as_ref().filter(|ids| ids.len() <= FEW)?;
    let read = || {
        let mut events = Vec::new();
        for aggregate in ids.iter().filter_map(|id| reader.state.folded.get(id)) {
            let project_id = aggregate.project_id.as_deref();
            if streams.admits(aggregate.id.as_str(), &aggregate.aggregate_type, project_id, reader.context)? {
                let stream = reader.state.log.read_stream(&aggregate.id, 1, aggregate.version);
                events.extend(reader.handle.block_on(stream)?.into_iter().map(Arc::new));
            }
        }
        events.retain(|event: &Arc<Event>| (wanted.after + 1..=wanted.position).contains(&event.position));
        events.sort_unstable_by_key(|event| event.position);
        Ok(events)
    };
    Some(read())
}
