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

pub struct Api;

/// The number of events over time.
#[derive(Object, Serialize)]
#[oai(rename = "EventHistogram")]
struct HistogramBody {
    /// The start of the range. The range includes both its start and its end.
    from: String,
    to: String,
    /// The time by which events are counted.
    by: OneOf<EventClocks>,
    /// The length of a bucket in milliseconds. The last bucket may end after `to`, but counts no later event.
    bucket_ms: u64,
    /// The number of events in all buckets.
    total: u64,
    /// The buckets in order, including buckets without events.
    buckets: Vec<BucketBody>,
}

/// A bucket: a part of the range.
#[derive(Object, Serialize)]
#[oai(rename = "EventBucket")]
struct BucketBody {
    /// The time at which the bucket begins.
    at: String,
    count: u64,
}

/// An event, with its cause and the events that it caused.
#[derive(Object, Serialize)]
#[oai(rename = "EventWithConsequences")]
struct CausedBody {
    #[oai(flatten)]
    #[serde(flatten)]
    event: EventBody,
    /// The event from which a plugin derived this event.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    caused_by: Option<ConsequenceBody>,
    /// The events that this event caused, in the order of the log, at most 200: events that plugins derived from this
    /// event, tasks that plugins assigned because of this event, results of scripted agents, and the effects of an
    /// approval.
    caused: Vec<ConsequenceBody>,
    /// Whether the event has more consequences than `caused` contains, or more edges than `edges` contains.
    more: bool,
    /// The edges that plugins found in this event, open or closed.
    edges: Vec<EdgeBody>,
}

/// An event that is the cause or a consequence of another event.
#[derive(Object, Serialize)]
#[oai(rename = "CausedEvent")]
struct ConsequenceBody {
    event_id: Text,
    event_type: Text,
    aggregate_id: Text,
    position: u64,
    /// The plugin that produced the consequence, or null for the effects of an approval.
    plugin: Option<Text>,
}

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Counts the events of the log over time.
    ///
    /// With `by=recorded`, the default, an event counts at the time of its append. In this case and without a filter,
    /// the server searches the log only for the first event of each bucket, and does not read the other events. With
    /// `by=occurred`, an event counts at the time that the client gave, for example in an import. All counts are exact.
    /// If a count takes longer than the time limit of a query, the response is the error of such a query. With
    /// `by=recorded`, a shorter range from `from` to `to` needs less time.
    #[oai(path = "/events/histogram", method = "get", operation_id = "count_events")]
    #[expect(clippy::too_many_arguments, reason = "one argument a parameter of the request")]
    async fn count_events(
        &self,
        access: ApiRead,
        /// The maximum number of buckets, 1 to 500; the default is 60. A bucket lasts at least a millisecond, so a
        /// shorter range has fewer buckets.
        buckets: Query<Option<u32>>,
        /// The time by which events are counted: `recorded` (the default) or `occurred`.
        by: Query<Option<OneOf<EventClocks>>>,
        /// The first time to count, RFC 3339; the default is the time of the first event.
        from: Query<Option<String>>,
        /// The last time to count, RFC 3339; the default is the time of the last event.
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
        Ok(JsonResponse::new(&HistogramBody::new(&counted, by)))
    }

    /// Returns an event with its cause and its consequences.
    ///
    /// `caused` has the known consequences of the event, and `edges` has the edges of the knowledge graph that plugins
    /// found in the event. Plugins run after the append, so the response may lack the results of plugins that have not
    /// run yet.
    #[oai(path = "/events/:event_id", method = "get", operation_id = "get_event")]
    async fn get_event(&self, access: ApiRead, event_id: Path<String>) -> ApiResult<JsonResponse<CausedBody>> {
        let found = access.0.event(&event_id).await?;
        let bytes = found.event.size_bytes();
        Ok(JsonResponse::large(&CausedBody::from(&found), bytes))
    }
}

fn read_clock(by: Option<&str>) -> Result<CountedBy, Error> {
    let Some(name) = by else { return Ok(CountedBy::default()) };
    let wrong = || Error::invalid(format!("the query parameter 'by' must be {}", names::<CountedBy>().join(" or ")));
    CountedBy::parse(name).ok_or_else(wrong)
}

impl HistogramBody {
    fn new(counted: &Histogram, by: CountedBy) -> HistogramBody {
        let bucket =
            |(number, count): (usize, &u64)| BucketBody { at: format_date(counted.begin(number)), count: *count };
        HistogramBody {
            from: format_date(counted.from),
            to: format_date(counted.to),
            by: by.name().into(),
            bucket_ms: counted.bucket_ms.unsigned_abs(),
            total: counted.counts.iter().sum(),
            buckets: counted.counts.iter().enumerate().map(bucket).collect(),
        }
    }
}

impl From<&EventCausality> for CausedBody {
    fn from(found: &EventCausality) -> CausedBody {
        let cause = |(event, plugin): (&Arc<Event>, Option<&Arc<str>>)| ConsequenceBody {
            event_id: event.event_id.clone().into(),
            event_type: event.event_type.clone().into(),
            aggregate_id: event.aggregate_id.text().into(),
            position: event.position,
            plugin: plugin.cloned().map(Text),
        };
        CausedBody {
            event: EventBody::from(&*found.event),
            caused_by: found.by.as_ref().map(|event| cause((event, found.plugin.as_ref()))),
            caused: found.events.iter().map(|(event, plugin)| cause((event, plugin.as_ref()))).collect(),
            more: found.more,
            edges: found.edges.iter().map(EdgeBody::from).collect(),
        }
    }
}
