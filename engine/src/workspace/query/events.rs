//! The log as a source of rows: events in the order of their positions, read page by page as they are asked for.

use std::sync::Arc;

use super::{Reader, Streams};
use crate::error::Result;
use crate::model::event::Event;
use crate::model::value::Value;
use crate::pipeline::{EventScan, Table};

/// Events read at a time.
const PAGE: usize = 256;

/// The events that a scan asks for.
pub struct EventTable<'a> {
    pub reader: &'a Reader<'a>,
    pub scan: &'a EventScan,
    pub streams: Streams<'a>,
}

impl Table for EventTable<'_> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let limit = self.scan.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let pages = Pages::new(self.reader, &self.streams);
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

/// Walks the events of the streams that are read.
pub struct Pages<'a> {
    reader: &'a Reader<'a>,
    streams: &'a Streams<'a>,
    ahead: std::vec::IntoIter<Arc<Event>>,
    position: u64,
    /// The ids whose streams are read one after the other, instead of the whole log.
    few: Option<std::vec::IntoIter<Arc<Event>>>,
}

impl<'a> Pages<'a> {
    pub fn new(reader: &'a Reader<'a>, streams: &'a Streams<'a>) -> Pages<'a> {
        let few = match few_streams(reader, streams) {
            None => None,
            Some(Ok(events)) => Some(events.into_iter()),
            Some(Err(error)) => {
                reader.fail::<()>(error);
                Some(Vec::new().into_iter())
            }
        };
        Pages { reader, streams, ahead: Vec::new().into_iter(), position: 0, few }
    }

    fn next_page(&mut self) -> Option<()> {
        let head = self.reader.position;
        if self.position >= head || self.reader.failed.borrow().is_some() {
            return None;
        }
        if let Err(error) = out_of_time(self.reader) {
            return self.reader.fail(error);
        }
        match self.reader.handle.block_on(self.reader.open.events_after(self.position, PAGE)) {
            Ok(events) => {
                self.position = events.last().map_or(head, |last| last.position);
                self.ahead = events.into_iter();
                Some(())
            }
            Err(error) => self.reader.fail(error),
        }
    }
}

impl Iterator for Pages<'_> {
    type Item = Arc<Event>;

    fn next(&mut self) -> Option<Arc<Event>> {
        if let Some(few) = &mut self.few {
            return few.next();
        }
        loop {
            for event in self.ahead.by_ref() {
                if event.position > self.reader.position {
                    return None;
                }
                let project_id = event.project_id.as_deref();
                let id = event.aggregate_id.as_str();
                match self.streams.admits(id, &event.aggregate_type, project_id, self.reader.context) {
                    Ok(true) => return Some(event),
                    Ok(false) => {}
                    Err(error) => return self.reader.fail(error),
                }
            }
            self.next_page()?;
        }
    }
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
fn few_streams(reader: &Reader<'_>, streams: &Streams<'_>) -> Option<Result<Vec<Arc<Event>>>> {
    /// Past this many streams one walk over the log costs less.
    const FEW: usize = 100;
    let ids = streams.filter.aggregate_ids.as_ref().filter(|ids| ids.len() <= FEW)?;
    let read = || {
        let mut events = Vec::new();
        for aggregate in ids.iter().filter_map(|id| reader.open.resident.get(id)) {
            let project_id = aggregate.project_id.as_deref();
            if streams.admits(aggregate.id.as_str(), &aggregate.aggregate_type, project_id, reader.context)? {
                let stream = reader.open.log.read_stream(&aggregate.id, 1, aggregate.version);
                events.extend(reader.handle.block_on(stream)?.into_iter().map(Arc::new));
            }
        }
        events.retain(|event: &Arc<Event>| event.position <= reader.position);
        events.sort_unstable_by_key(|event| event.position);
        Ok(events)
    };
    Some(read())
}
