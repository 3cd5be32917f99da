//! Combines events in order into request bodies of limited size.

use std::mem;

/// The maximum size of a batch in bytes. A larger event forms a batch alone.
const MAX_BYTES: usize = 512 * 1024;
/// The maximum number of events in a batch.
const MAX_EVENTS: usize = 256;
const OPENING: &str = r#"{"events":["#;
/// The end of a request body. With `rename_slugs`, the server gives an article another slug if the slug is taken or not
/// valid.
const CLOSING: &str = r#"],"rename_slugs":true}"#;

/// A batch of events, which one request sends.
#[derive(Debug, Default)]
pub struct RequestBatch {
    /// The body of the request.
    pub body: String,
    /// The line numbers of the events in the source, in the order of the events. The first line has the number 1.
    pub lines: Vec<u64>,
    /// The distinct projects that the events name.
    pub projects: Vec<String>,
    /// The position in the source after the last event of the batch, for the progress bar.
    pub read: u64,
}

impl RequestBatch {
    /// Adds an event's JSON to the batch. If the event does not fit, returns a closed batch with the earlier events,
    /// and this batch then contains only the new event.
    pub fn push(&mut self, json: &str, project: Option<&str>, line: u64, read: u64) -> Option<RequestBatch> {
        let full = if self.fits(json) { None } else { self.take() };
        self.body.push_str(if self.lines.is_empty() { OPENING } else { "," });
        self.body.push_str(json);
        self.lines.push(line);
        self.read = read;
        if let Some(project) = project
            && !self.projects.iter().any(|known| known == project)
        {
            self.projects.push(project.to_owned());
        }
        full
    }

    /// Closes and returns the batch, and leaves an empty batch. Returns `None` if the batch is empty.
    pub fn take(&mut self) -> Option<RequestBatch> {
        if self.lines.is_empty() {
            return None;
        }
        let mut batch = mem::take(self);
        batch.body.push_str(CLOSING);
        Some(batch)
    }

    fn fits(&self, json: &str) -> bool {
        let bytes = self.body.len() + 1 + json.len() + CLOSING.len();
        self.lines.is_empty() || (self.lines.len() < MAX_EVENTS && bytes <= MAX_BYTES)
    }

    /// Returns the number of events in the batch.
    pub fn len(&self) -> u64 {
        self.lines.len() as u64
    }
}

/// Returns the place of events for an error message: the line of the event at `index`. Without `index`, returns the
/// first and last line of all events. `lines` contains the line of each event.
pub fn whereabouts(lines: &[u64], index: Option<usize>) -> String {
    match (index.and_then(|index| lines.get(index)), lines) {
        (Some(line), _) | (None, [line]) => format!("line {line}"),
        (None, [first, .., last]) => format!("lines {first} to {last}"),
        (None, []) => "no event".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(events: &[String]) -> Vec<RequestBatch> {
        let mut open = RequestBatch::default();
        let mut batches: Vec<RequestBatch> = Vec::new();
        for (number, event) in (1..).zip(events) {
            batches.extend(open.push(event, Some("p"), number, number));
        }
        batches.extend(open.take());
        batches
    }

    #[test]
    fn a_batch_is_a_request_body_with_events_in_order() {
        let batches = batches(&["{\"n\":1}".into(), "{\"n\":2}".into()]);
        assert_eq!(batches.len(), 1);
        assert_eq!(batches[0].body, r#"{"events":[{"n":1},{"n":2}],"rename_slugs":true}"#);
        assert_eq!(batches[0].projects, ["p"]);
        assert_eq!(batches[0].read, 2);
    }

    #[test]
    fn a_batch_ends_at_256_events() {
        let sizes: Vec<u64> = batches(&vec!["{}".to_owned(); 600]).iter().map(RequestBatch::len).collect();
        assert_eq!(sizes, [256, 256, 88]);
    }

    #[test]
    fn a_batch_ends_at_its_byte_limit_unless_one_event_exceeds_the_limit() {
        let large = format!("\"{}\"", "x".repeat(MAX_BYTES));
        let third = format!("\"{}\"", "x".repeat(MAX_BYTES / 3));
        let events = [third.clone(), third.clone(), third.clone(), large, third];
        let batches = batches(&events);
        assert_eq!(batches.iter().map(RequestBatch::len).collect::<Vec<_>>(), [2, 1, 1, 1]);
        assert!([0, 1, 3].iter().all(|&index| batches[index].body.len() <= MAX_BYTES));
        assert_eq!(whereabouts(&batches[2].lines, None), "line 4");
    }

    #[test]
    fn an_empty_input_makes_no_batch() {
        assert!(batches(&[]).is_empty());
    }

    #[test]
    fn events_of_a_batch_are_located_by_their_lines() {
        let batch = &batches(&vec!["{}".to_owned(); 5])[0];
        assert_eq!(whereabouts(&batch.lines, None), "lines 1 to 5");
        assert_eq!(whereabouts(&batch.lines, Some(2)), "line 3");
    }
}
