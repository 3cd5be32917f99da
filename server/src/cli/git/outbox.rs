//! Collects the events of an import into batches. Each batch contains the progress of the import after the batch.

use jiff::Timestamp;

use super::events::{ArticleDiff, EventMoment, PreparedEvent};

/// The maximum size of a batch in bytes. A larger event forms a batch alone.
const MAX_BYTES: usize = 512 * 1024;
/// The maximum number of events in a batch. Tests use small batches, so that a small history needs several batches.
const MAX_EVENTS: usize = if cfg!(test) { 4 } else { 256 };

/// A batch of events, which are appended together.
#[derive(Debug, Default)]
pub struct ImportBatch {
    pub events: Vec<PreparedEvent>,
    pub progress: ImportProgress,
    /// The number of commits that were read.
    pub read: u64,
}

/// The progress of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportProgress {
    /// The last commit whose changes have all been appended, or the empty string.
    pub commit: String,
    /// The commit of which only some changes have been appended, or the empty string.
    pub towards: String,
    /// The latest time of the commits whose changes were appended or begun. Events that are appended later do not get
    /// an earlier time.
    pub at: Option<Timestamp>,
}

/// Collects the events of an import in the open batch, and passes full batches to their recipient. The default outbox
/// is closed: it sends no events.
#[derive(Default)]
pub struct Outbox<'a> {
    /// The slug of the project.
    pub project: String,
    /// The cause of the events that are collected now.
    pub moment: EventMoment,
    open: ImportBatch,
    bytes: usize,
    progress: ImportProgress,
    read: u64,
    /// The number of events so far.
    pub pushed: u64,
    /// The recipient of full batches. `None` if the history is only read, and nothing is sent.
    put: Option<&'a mut dyn FnMut(ImportBatch) -> anyhow::Result<()>>,
}

impl<'a> Outbox<'a> {
    pub fn new(
        project: &str,
        progress: ImportProgress,
        put: &'a mut dyn FnMut(ImportBatch) -> anyhow::Result<()>,
    ) -> Self {
        Self { project: project.to_owned(), progress, put: Some(put), ..Self::default() }
    }

    pub fn is_closed(&self) -> bool {
        self.put.is_none()
    }

    /// Begins the changes of a commit. Raises the time in the progress to the time of the commit before the first event
    /// is sent: if the import is interrupted within the commit, some of the commit's events may have been appended.
    pub fn begin(&mut self, moment: EventMoment) {
        self.progress.towards = moment.commit_id();
        self.progress.at = moment.at.max(self.progress.at);
        self.moment = moment;
    }

    /// Ends the changes of a commit.
    pub fn end(&mut self) {
        self.progress.commit = std::mem::take(&mut self.progress.towards);
        self.read += 1;
        if !self.open.events.is_empty() {
            self.open.progress = self.progress.clone();
            self.open.read = self.read;
        }
    }

    /// Adds the event of a change. Returns the time of the event, or the reason why the event cannot be sent.
    pub fn append(&mut self, change: ArticleDiff<'_>) -> anyhow::Result<Result<Option<Timestamp>, String>> {
        let time = change.time(&self.moment);
        match change.prepare(&self.project, &self.moment)? {
            Ok(event) => self.push(event).map(|()| Ok(time)),
            Err(reason) => Ok(Err(reason)),
        }
    }

    fn push(&mut self, event: PreparedEvent) -> anyhow::Result<()> {
        let is_full = self.open.events.len() >= MAX_EVENTS || self.bytes + event.json.len() > MAX_BYTES;
        if is_full && !self.open.events.is_empty() {
            self.flush()?;
        }
        self.pushed += 1;
        self.bytes += event.json.len();
        self.open.events.push(event);
        self.open.progress = self.progress.clone();
        self.open.read = self.read;
        Ok(())
    }

    /// Passes the open batch to its recipient. Does nothing if the batch is empty and the progress equals `sent`.
    /// `sent` is the progress that the project had recorded before the import.
    pub fn finish(mut self, sent: &ImportProgress) -> anyhow::Result<()> {
        if self.open.events.is_empty() && self.progress == *sent {
            return Ok(());
        }
        self.open.progress = self.progress.clone();
        self.flush()
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.bytes = 0;
        let batch = std::mem::take(&mut self.open);
        self.put.as_mut().map_or(Ok(()), |put| put(batch))
    }
}
