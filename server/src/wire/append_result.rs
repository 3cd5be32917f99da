//! The JSON of the outcome of an append in responses.

use std::borrow::Cow;
use std::sync::Arc;

use foldwork_engine::AppendOutcome;
use foldwork_engine::model::builtin::ARTICLE;
use foldwork_engine::model::event::Event;
use foldwork_engine::model::slug::{self, SLUG};
use foldwork_engine::model::value::Value;
use poem_openapi::Object;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::Type;
use serde::Serialize;

use super::closed_sets::{OneOf, SlugReasons};
use super::event::EventBody;
use super::json::described_by;

/// An event whose article got another slug than the slug in the request.
#[derive(Object, Serialize)]
pub struct RenamedSlug {
    /// The event's index in the request.
    index: u64,
    aggregate_id: String,
    /// The slug that the article got.
    slug: String,
    /// The rejected slug of the event. Null if the event restores an article and contains no slug.
    refused: Option<String>,
    /// The reason why the server rejected the slug.
    reason: OneOf<SlugReasons>,
}

/// The outcome of an append.
#[derive(Object, Serialize)]
pub struct AppendedBody {
    /// The events of the request, in order.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Vec<EventBody>>,
    /// The number of events that this request appended.
    appended: u64,
    /// The number of events that were already in the log.
    repeated: u64,
    /// The events whose articles got another slug. Present only if the request sets `rename_slugs`.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed: Option<Vec<RenamedSlug>>,
}

impl AppendedBody {
    /// Creates the outcome of an append. The outcome contains the events if `with_events` is set. `renamed` is the list
    /// of renamed slugs.
    pub fn new(appended: &AppendOutcome, with_events: bool, renamed: Option<Vec<RenamedSlug>>) -> AppendedBody {
        let repeated = appended.repeated.iter().filter(|repeated| **repeated).count() as u64;
        let data = with_events.then(|| appended.events.iter().map(|event| EventBody::from(&**event)).collect());
        AppendedBody { data, appended: appended.events.len() as u64 - repeated, repeated, renamed }
    }
}

/// Returns the events whose slug differs from the slug in the request.
pub fn renamed(slugs: &[Option<Value>], appended: &AppendOutcome) -> Vec<RenamedSlug> {
    let is_renamed = |(_, (event, slug)): &(_, (&Arc<Event>, &Option<Value>))| {
        *event.aggregate_type == *ARTICLE && event.payload.get(SLUG) != slug.as_ref()
    };
    let renamed =
        (0..).zip(appended.events.iter().zip(slugs)).filter(is_renamed).filter_map(|(index, (event, sent))| {
            let slug = event.payload.get(SLUG)?.as_str()?.to_owned();
            let refused = sent.as_ref().and_then(Value::as_str).map(str::to_owned);
            let is_valid = refused.as_deref().is_none_or(slug::is_valid);
            let reason = if is_valid { "taken" } else { "invalid" }.into();
            Some(RenamedSlug { index, aggregate_id: event.aggregate_id.to_string(), slug, refused, reason })
        });
    renamed.collect()
}

/// The response to an append to one stream: the last event and, if the request contains `events`, all events. One type
/// contains the fields of both forms, so that generated clients need not distinguish two types of response.
#[derive(Serialize)]
pub struct AppendResponse {
    #[serde(flatten)]
    pub last: EventBody,
    #[serde(flatten)]
    pub batch: Option<AppendedBody>,
}

described_by!(AppendResponse as "AppendResponse", |registry| {
    EventBody::register(registry);
    AppendedBody::register(registry);
    let schema = |name: Cow<'static, str>| registry.schemas.get(&*name).cloned().unwrap_or(MetaSchema::ANY);
    let (mut schema, batch) = (schema(EventBody::name()), schema(AppendedBody::name()));
    schema.title = Some("AppendResponse".to_owned());
    schema.description =
        Some("The appended event, or the last event of a list (`events`), with `data`, `appended` and `repeated`.");
    // Slugs are renamed only by the operation for imports.
    let batch = batch.properties.into_iter().filter(|(name, _)| *name != "renamed");
    let left_out = MetaSchema { read_only: true, ..MetaSchema::ANY };
    schema.properties.extend(batch.map(|(name, field)| (name, field.merge(left_out.clone()))));
    schema
});
