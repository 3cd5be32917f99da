//! The slugs of the articles in an imported file, and the warnings about articles that get another slug.

use std::sync::Arc;

use foldwork_engine::AppendOutcome;
use foldwork_engine::model::builtin::ARTICLE;
use foldwork_engine::model::event::{NewEvent, SlugsInLog};
use foldwork_engine::model::slug::SLUG;
use foldwork_engine::model::value::{Object, Value};

use crate::cli::progress::ProgressIndicator;
use crate::cli::sender::RenamedArticle;

/// The slugs of the articles in the lines that were read so far.
#[derive(Debug, Default)]
pub struct FileSlugs(Arc<SlugsInLog>);

/// The slug in a line of the file, or `None` if the line contains no slug.
pub type Sent = Option<String>;

impl FileSlugs {
    /// Records the slug of an event of an article.
    pub fn record(&mut self, event: &NewEvent) {
        if let (ARTICLE, Some(slug)) = (&*event.aggregate_type, slug_of(&event.payload)) {
            let ids = Arc::make_mut(&mut self.0).entry(slug.to_owned()).or_default();
            if !ids.contains(&event.aggregate_id) {
                ids.insert(event.aggregate_id.clone());
            }
        }
    }

    /// Adds the slugs that were read so far to each event in `events` that belongs to an article and comes from an
    /// export. Must be called before the events are appended. Returns the slug of each event.
    pub fn pass_to(&self, events: &mut [NewEvent]) -> Vec<Sent> {
        let pass = |event: &mut NewEvent| {
            if event.recorded.is_some() && event.aggregate_type == ARTICLE {
                event.slugs_in_log = Some(self.0.clone());
            }
            slug_of(&event.payload).map(str::to_owned)
        };
        events.iter_mut().map(pass).collect()
    }
}

/// Compares the slug in each appended event of an article with the slug in the line of the event. Warns about each
/// event with a different slug, and returns the number of these events.
pub fn warn(progress: &ProgressIndicator, appended: &AppendOutcome, sent: &[Sent], lines: &[u64]) -> u64 {
    let mut renamed_slugs = 0;
    let events = appended.events.iter().zip(&appended.repeated).zip(sent.iter().zip(lines)).enumerate();
    for (index, ((event, is_repeated), (sent, line))) in events {
        let slug = slug_of(&event.payload);
        if !is_repeated
            && *event.aggregate_type == *ARTICLE
            && slug != sent.as_deref()
            && let Some(slug) = slug
        {
            let renamed = RenamedArticle::new(index, event.aggregate_id.as_str(), slug, sent.as_deref());
            progress.note(&format!("warning: line {line}: {renamed}"));
            renamed_slugs += 1;
        }
    }
    renamed_slugs
}

fn slug_of(payload: &Object) -> Option<&str> {
    payload.get(SLUG).and_then(Value::as_str)
}
