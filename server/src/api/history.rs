//! `/events/histogram`, the number of events over time, and `/events/:id`, one event with its cause and its
//! consequences.

use std::sync::Arc;

use foldwork_engine::Error;
use foldwork_engine::model::closed_set::names;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::event::Event;
use foldwork_engine::workspace::causes::EventCausality;
use foldwork_engine::workspace::query::histogram::{CountedBy, DEFAULT_BUCKETS, Histogram, HistogramQuery};
use poem_openapi::param::{Path, Query};
use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use super::events::EventParameters;
use super::graph::EdgeBody;
use super::section::Section;
use crate::auth::ApiRead;
use crate::http::error::ApiResult;
use crate::wire::body::JsonResponse;
use crate::wire::closed_sets::{EventClocks, OneOf};
use crate::wire::event::EventBody;
use crate::wire::json::Text;
use crate::wire::page::time;
use crate::wire::shown::shown;

pub struct Api;

shown! {
    /// The number of events over time.
    #[oai(rename = "EventHistogram")]
    struct HistogramBody from (counted, by): (&Histogram, CountedBy) where {
        let bucket =
            |(number, count): (usize, &u64)| BucketBody { at: format_date(counted.begin(number)), count: *count };
    };

    /// The start of the range. The range includes both its start and its end.
    from: String = format_date(counted.from),
    to: String = format_date(counted.to),
    /// The time by which events are counted.
    by: OneOf<EventClocks> = by.name().into(),
    /// The length of a bucket in milliseconds. The last bucket may end after `to`, but counts no event after `to`.
    bucket_ms: u64 = counted.bucket_ms.unsigned_abs(),
    /// The number of events in all buckets.
    total: u64 = counted.counts.iter().sum(),
    /// The buckets in order, including buckets without events.
    buckets: Vec<BucketBody> = counted.counts.iter().enumerate().map(bucket).collect(),
}

/// A bucket: a part of the range.
#[derive(Object, Serialize)]
#[oai(rename = "EventBucket")]
struct BucketBody {
    /// The time at which the bucket begins.
    at: String,
    count: u64,
}

shown! {
    /// An event, with its cause and the events that it caused.
    #[oai(rename = "EventWithConsequences")]
    struct CausedBody from found: &EventCausality;

    #[oai(flatten)]
    #[serde(flatten)]
    event: EventBody = EventBody::from(&*found.event),
    /// The event from which a plugin derived this event.
    @read_only caused_by: Option<ConsequenceBody> =
        found.by.as_ref().map(|event| ConsequenceBody::from((event, found.plugin.as_ref()))),
    /// The events that this event caused, at most 200, in the order of the log. The list contains events that plugins
    /// derived from this event, tasks that plugins assigned because of this event, results of scripted agents, and the
    /// effects of an approval.
    caused: Vec<ConsequenceBody> =
        found.events.iter().map(|(event, plugin)| ConsequenceBody::from((event, plugin.as_ref()))).collect(),
    /// Whether the event has more consequences than `caused` contains, or more edges than `edges` contains.
    more: bool = found.more,
    /// The edges that plugins found in this event, open or closed.
    edges: Vec<EdgeBody> = found.edges.iter().map(EdgeBody::from).collect(),
}

shown! {
    /// An event that is the cause or a consequence of another event.
    #[oai(rename = "CausedEvent")]
    struct ConsequenceBody from (event, plugin): (&Arc<Event>, Option<&Arc<str>>);

    event_id: Text = event.event_id.clone().into(),
    event_type: Text = event.event_type.clone().into(),
    aggregate_id: Text = event.aggregate_id.text().into(),
    position: u64 = event.position,
    /// The plugin that produced the consequence, or null for the effects of an approval.
    plugin: Option<Text> = plugin.cloned().map(Text),
}

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Counts the events of the log over time.
    ///
    /// With `by=recorded`, the default, an event counts at the time of its append. In this case and without a filter,
    /// the server searches the log only for the first event of each bucket, and does not read the other events. With
    /// `by=occurred`, an event counts at the time that the client gave, for example in an import. All counts are exact.
    /// If the request takes longer than a query may take, the response is 400 `query_timeout`. With `by=recorded`, a
    /// shorter range from `from` to `to` needs less time.
    #[oai(path = "/events/histogram", method = "get", operation_id = "count_events")]
    #[expect(clippy::too_many_arguments, reason = "one argument per parameter of the request")]
    async fn count_events(
        &self,
        access: ApiRead,
        /// The maximum number of buckets, 1 to 500; the default is 60. A bucket lasts at least a millisecond, so a time
        /// range never has more buckets than milliseconds.
        buckets: Query<Option<u32>>,
        /// The time by which events are counted: `recorded` (the default) or `occurred`.
        by: Query<Option<OneOf<EventClocks>>>,
        /// The inclusive start of the counted time range, RFC 3339; the default is the time of the first event.
        from: Query<Option<String>>,
        /// The inclusive end of the counted time range, RFC 3339; the default is the time of the last event.
        to: Query<Option<String>>,
        /// A comma-separated list of event types. Other events are left out.
        types: Query<Option<String>>,
        aggregate_type: Query<Option<String>>,
        project_id: Query<Option<String>>,
        /// Only events that this actor appended: `key:<id>`, `user:<id>`, `plugin:<name>` or `system`.
        actor: Query<Option<String>>,
    ) -> ApiResult<JsonResponse<HistogramBody>> {
        let by = read_clock(by.0.as_deref())?;
        let bound = |name, text: Option<String>| text.map(|text| time(name, &text)).transpose();
        let (from, to) = (bound("from", from.0)?, bound("to", to.0)?);
        let named =
            EventParameters { types: types.0, aggregate_type: aggregate_type.0, project: project_id.0, actor: actor.0 };
        let filter = named.filter(&access.0).await?;
        let buckets = buckets.0.map_or(DEFAULT_BUCKETS, |buckets| buckets as usize);
        let counted = access.0.histogram(HistogramQuery { buckets, by, from, to, filter }).await?;
        Ok(JsonResponse::new(&HistogramBody::from((&counted, by))))
    }

    /// Returns an event with its cause and its consequences.
    ///
    /// `caused` contains the known consequences of the event, and `edges` contains the edges of the knowledge graph
    /// that plugins found in the event. Plugins run after the append, so the response may lack the results of plugins
    /// that have not run yet.
    #[oai(path = "/events/:event_id", method = "get", operation_id = "get_event")]
    async fn get_event(&self, access: ApiRead, event_id: Path<String>) -> ApiResult<JsonResponse<CausedBody>> {
        let found = access.0.event(&event_id).await?;
        Ok(JsonResponse::large(found.event.size_bytes(), || CausedBody::from(&found)))
    }
}

fn read_clock(by: Option<&str>) -> Result<CountedBy, Error> {
    let Some(name) = by else { return Ok(CountedBy::default()) };
    let wrong = || Error::invalid(format!("the query parameter 'by' must be {}", names::<CountedBy>().join(" or ")));
    CountedBy::parse(name).ok_or_else(wrong)
}
