//! A project in memory, for tests of imports. The project applies events as the server does.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::outbox::{ImportBatch, ImportProgress};
use super::source_reader::{SourcePlace, SourceReader, Summary};
use super::state::ArticleState;
use super::walk::{Article, ProjectArticles};
use super::{ProgressIndicator, glob_set};

/// A project in memory.
#[derive(Default)]
pub struct Model {
    /// Maps the id of each article to its fields, or to `None` if the article is deleted.
    pub articles: BTreeMap<String, Option<Map<String, Value>>>,
    /// All events that were appended.
    pub events: Vec<Value>,
    pub progress: ImportProgress,
    /// The times of the last events of the articles.
    times: BTreeMap<String, String>,
    batches: u64,
}

impl Model {
    /// Imports a source. With `stop`, the import is interrupted after this number of batches. Returns the events and
    /// the outcome.
    pub fn import(&mut self, place: &SourcePlace, stop: Option<usize>) -> (Vec<Value>, Option<Summary>) {
        let reading = SourceReader {
            place: place.clone(),
            project: "notes".to_owned(),
            held: self.held(),
            progress: self.progress.clone(),
            globs: glob_set(&[]).expect("valid globs"),
            is_everything: true,
            only_compare: false,
            reported: HashSet::new(),
            now: "2030-01-01T00:00:00Z".parse().expect("a time"),
        };
        let before = self.events.len();
        let mut left = stop;
        let read = reading.run(&ProgressIndicator::start(None), &mut |batch| {
            anyhow::ensure!(left != Some(0), "the test interrupts the import");
            left = left.map(|left| left - 1);
            self.append(&batch);
            Ok(())
        });
        let summary = match stop {
            Some(_) => read.ok(),
            None => Some(read.expect("read")),
        };
        (self.events[before..].to_vec(), summary)
    }

    /// Returns a project with the same articles and progress, but without events.
    pub fn copy(&self) -> Self {
        let (articles, times, progress) = (self.articles.clone(), self.times.clone(), self.progress.clone());
        Self { articles, times, progress, ..Self::default() }
    }

    /// Returns the texts of the articles by their paths.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        for fields in self.articles.values().flatten() {
            let text = |name: &str| fields[name].as_str().expect("a text").to_owned();
            assert_eq!(texts.insert(text("path"), text("body")), None, "two articles have the path {}", text("path"));
        }
        texts
    }

    /// Returns the id of the article with a path.
    pub fn id(&self, path: &str) -> String {
        let has_path =
            |fields: &Option<Map<String, Value>>| fields.as_ref().is_some_and(|fields| fields["path"] == path);
        let found = self.articles.iter().find(|(_, fields)| has_path(fields));
        found.expect("an article").0.clone()
    }

    fn held(&self) -> ProjectArticles {
        let article = |(id, fields): (&String, &Option<Map<String, Value>>)| {
            let fields = fields.as_ref()?;
            let path = fields["path"].as_str().expect("a path").to_owned();
            let (state, last) = (Some(ArticleState::new(fields)), self.times[id].parse().ok());
            Some(Article { id: id.clone(), path, state, last, ..Article::default() })
        };
        let articles = self.articles.iter().filter_map(article).collect();
        let is_deleted = |(id, _): &(&String, &String)| !matches!(self.articles.get(*id), Some(Some(_)));
        let ended = self.times.iter().filter(is_deleted).map(|(id, time)| (id.clone(), time.parse().expect("a time")));
        ProjectArticles {
            seed: "root".to_owned(),
            salt: self.batches,
            articles,
            deletion_times: ended.collect(),
            ..ProjectArticles::default()
        }
    }

    fn append(&mut self, batch: &ImportBatch) {
        for event in &batch.events {
            let event: Value = serde_json::from_str(&event.json).expect("an event");
            self.apply(&event);
            self.events.push(event);
        }
        self.progress = batch.progress.clone();
        self.batches += 1;
    }

    /// Applies an event, which must fit the state of its article.
    pub fn apply(&mut self, event: &Value) {
        let id = event["aggregate_id"].as_str().expect("an id").to_owned();
        let time = event["occurred_at"].as_str().unwrap_or_default().to_owned();
        let last = self.times.insert(id.clone(), time.clone());
        assert!(last.is_none_or(|last| last <= time), "{event} occurs before its predecessor");
        let payload = event["payload"].as_object().expect("a payload").clone();
        let state = self.articles.entry(id).or_default();
        match (event["event_type"].as_str().expect("a type"), &mut *state) {
            ("article.created", None) => *state = Some(payload),
            ("article.updated", Some(fields)) => {
                for (name, value) in payload {
                    if name == "$unset" {
                        value.as_array().into_iter().flatten().for_each(|name| {
                            fields.remove(name.as_str().expect("a name"));
                        });
                    } else {
                        fields.insert(name, value);
                    }
                }
            }
            ("article.deleted", Some(_)) => *state = None,
            _ => panic!("{event} does not fit its article"),
        }
        let slugs: Vec<&Value> = self.articles.values().flatten().map(|fields| &fields["slug"]).collect();
        let distinct: HashSet<String> = slugs.iter().map(|slug| slug.to_string()).collect();
        assert_eq!(distinct.len(), slugs.len(), "two articles have the same slug after {event}");
    }
}
