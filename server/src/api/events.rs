//! Events: appending to one or several streams, and reading a stream or the log.

use std::sync::Arc;
use std::time::Duration;

use foldwork_engine::model::builtin::ARTICLE;
use foldwork_engine::model::event::{Event, Expected};
use foldwork_engine::model::slug::SLUG;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::answers::RequestId;
use foldwork_engine::workspace::events::{Direction, Limit, LogFilter};
use foldwork_engine::{Appended, Error, Writer};
use poem_openapi::param::{Header, Path, Query};
use poem_openapi::{Object, OpenApi, Union};
use serde::Serialize;

use super::follow::{Log, Start, is_stream, stream_of};
use super::live::{Live, wait_time};
use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::http::etag::expected;
use crate::http::offloading::offload;
use crate::http::routes::API;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{EventOrder, OneOf};
use crate::wire::event::EventBody;
use crate::wire::idempotency::{Created, Outcome, idempotent};
use crate::wire::new_event::{AppendBody, BatchBody, new_events};
use crate::wire::page::{Listed, PageBody, Whole, cursor as cursor_at, limit, read_cursor};
use crate::wire::written;

pub struct Api;

/// An event whose article got another slug than the request has.
#[derive(Object, Serialize)]
struct RenamedSlug {
    /// The event's index in the request.
    index: u64,
    aggregate_id: String,
    slug: String,
}

/// The outcome of an append.
#[derive(Object, Serialize)]
struct AppendedBody {
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Vec<EventBody>>,
    /// The number of events that this request appended. `repeated` is the number of events that were already in the
    /// log.
    appended: u64,
    repeated: u64,
    /// The events whose articles got another slug, because of `rename_slugs`.
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed: Option<Vec<RenamedSlug>>,
}

impl Listed for EventBody {
    const PAGE: &'static str = "EventPage";
    const DESCRIPTION: &'static str = "A page of events.";
}

/// A page of the log.
#[derive(Object, Serialize)]
#[oai(rename = "LogPage")]
struct LogPageBody {
    data: Vec<EventBody>,
    #[oai(nullable)]
    next_cursor: Option<String>,
    /// The position up to which the server searched the log, even if no event matched the filter. A client sends this
    /// position as `after` to continue after this page.
    position: u64,
}

/// The response to an append: the event for one event, otherwise the counts.
#[derive(Union, Serialize)]
#[oai(one_of = true)]
#[serde(untagged)]
enum AppendAnswer {
    One(Box<EventBody>),
    Many(AppendedBody),
}

/// Adds the index to an error about the only event of a list. The engine cannot distinguish such a list from a single
/// event.
fn in_place<T>(result: Result<T, Error>, list_of_one: bool) -> Result<T, Error> {
    if list_of_one { result.map_err(|error| error.at_event(0)) } else { result }
}

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Appends one event to a stream, or several (`events`) atomically.
    ///
    /// If the body is one event, the response is that event. If the body has `events`, the response has `data`,
    /// `appended` and `repeated`.
    #[oai(path = "/aggregates/:aggregate_id/events", method = "post", operation_id = "append_event")]
    async fn append_event(
        &self,
        access: ApiWrite,
        aggregate_id: Path<String>,
        body: Body<AppendBody>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<Created<AppendAnswer>> {
        let Body { value, text } = body;
        let (events, is_batch) = value.into_events();
        let mut new = new_events(events, Some(&aggregate_id), is_batch)?;
        written::keep_numbers(&text, &mut new);
        if let Some(first) = new.first_mut().filter(|first| first.expected == Expected::Any) {
            first.expected = expected(if_match.as_deref())?;
        }
        let list_of_one = is_batch && new.len() == 1;
        let operation = format!("append_event/{}", *aggregate_id);
        let make = async move |writer: Writer, request: Option<RequestId>| {
            let appended = in_place(writer.append_requested(new, request.as_ref()).await, list_of_one)?;
            let location = format!("{}/aggregates/{}/events", API, *aggregate_id);
            let repeated = appended.is_repeat();
            let body = match appended.events.first().filter(|_| !is_batch) {
                Some(event) => AppendAnswer::One(Box::new(EventBody::from(&**event))),
                None => AppendAnswer::Many(appended_body(&appended, true)),
            };
            Ok(Outcome { body, location, repeated })
        };
        idempotent(&access.0, key.0, &operation, &text, make).await
    }

    /// Appends events to any streams, in order and atomically.
    ///
    /// This operation is meant for imports. The number of events is limited only by the maximum size of a request body.
    /// Events of one stream keep their order. An event whose `event_id` is already in the log is skipped and counted as
    /// repeated.
    #[oai(path = "/events", method = "post", operation_id = "append_events")]
    async fn append_events(
        &self,
        access: ApiWrite,
        body: Body<BatchBody>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
        /// `return=minimal` omits the events from the response.
        #[oai(name = "Prefer")]
        prefer: Header<Option<String>>,
    ) -> ApiResult<Created<AppendedBody>> {
        let Body { value: BatchBody { events, rename_slugs }, text } = body;
        let mut new = new_events(events, None, true)?;
        written::keep_numbers(&text, &mut new);
        new.iter_mut().for_each(|event| event.renames_slug = rename_slugs.unwrap_or(false));
        let list_of_one = new.len() == 1;
        let with_events = !prefer.as_deref().is_some_and(|prefer| prefer.contains("return=minimal"));
        let make = async move |writer: Writer, request: Option<RequestId>| {
            let slugs: Vec<Option<Value>> = new.iter().map(|event| event.payload.get(SLUG).cloned()).collect();
            let appended = in_place(writer.append_requested(new, request.as_ref()).await, list_of_one)?;
            let repeated = appended.is_repeat();
            let renamed = rename_slugs.filter(|renames| *renames).map(|_| renamed(&slugs, &appended));
            let body = AppendedBody { renamed, ..appended_body(&appended, with_events) };
            Ok(Outcome { body, location: format!("{}/events", API), repeated })
        };
        idempotent(&access.0, key.0, "append_events", &text, make).await
    }

    /// Lists the raw events of one stream.
    ///
    /// The response has the events as they were appended, without folding. With `Accept: text/event-stream` the events
    /// are sent as server-sent events whose ids are positions, and new events follow as they are appended.
    #[oai(path = "/aggregates/:aggregate_id/events", method = "get", operation_id = "list_aggregate_events")]
    #[expect(clippy::too_many_arguments, reason = "one argument a parameter of the request")]
    async fn list_aggregate_events(
        &self,
        access: ApiRead,
        aggregate_id: Path<String>,
        /// The version after which the page begins or, with `direction=desc`, before which the page begins.
        after_version: Query<Option<Whole>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The order: `asc` (the default, or `forward`) returns the oldest event first, and `desc` (or `backward`) the
        /// newest.
        direction: Query<Option<OneOf<EventOrder>>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        #[oai(name = "Accept")] accept: Header<Option<String>>,
        #[oai(name = "Last-Event-ID")] last_event_id: Header<Option<String>>,
        live: Live,
    ) -> ApiResult<Log<PageBody<EventBody>>> {
        let reader = access.0;
        let direction = read_direction(direction.as_deref())?;
        if is_stream(accept.as_deref()) {
            let permit = live.streams.enter(&reader.record().id)?;
            let after = Start::position(last_event_id.as_deref())?;
            // Returns an error for a missing stream before the streaming response begins.
            let start = Start::of_aggregate(&reader, &aggregate_id, after_version.0.map(u64::from), after);
            let start = start.await?;
            return Ok(stream_of(reader, start, permit, live));
        }
        let list = format!("events/{}/{direction:?}", *aggregate_id);
        let after = read_cursor(&list, cursor.as_deref())?.or(after_version.0.map(u64::from));
        let limit = Limit { events: limit(rows)?, bytes: live.page_bytes };
        let page = reader.stream(&aggregate_id, after, limit, direction).await?;
        let bytes = page.items.iter().map(Event::size_bytes).sum();
        let page = offload(bytes, || PageBody::new(page, &list, |event| EventBody::from(&event)));
        Ok(Log::Page(JsonResponse::large(&page, bytes)))
    }

    /// Lists the events of the workspace's log, in order.
    ///
    /// Positions begin at 1, have no gaps and never change. A client that sends the `position` of each response as the
    /// next `after` sees every event once. With `wait_ms`, the server waits for new events if there are none. With
    /// `Accept: text/event-stream`, the server streams new events as they are appended.
    #[oai(path = "/events", method = "get", operation_id = "list_events")]
    #[expect(clippy::too_many_arguments, reason = "one argument a parameter of the request")]
    async fn list_events(
        &self,
        access: ApiRead,
        /// The position after which the page begins.
        after: Query<Option<Whole>>,
        /// A comma-separated list of event types. Other events are left out.
        types: Query<Option<String>>,
        aggregate_type: Query<Option<String>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The maximum time to wait for an event if there is none yet, in milliseconds.
        wait_ms: Query<Option<Whole>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        #[oai(name = "Accept")] accept: Header<Option<String>>,
        #[oai(name = "Last-Event-ID")] last_event_id: Header<Option<String>>,
        live: Live,
    ) -> ApiResult<Log<LogPageBody>> {
        const LIST: &str = "events";
        let event_types =
            types.as_deref().unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
        let filter =
            LogFilter { event_types: event_types.map(str::to_owned).collect(), aggregate_type: aggregate_type.0 };
        if is_stream(accept.as_deref()) {
            let after = Start::position(last_event_id.as_deref())?.or(after.0.map(u64::from)).unwrap_or(0);
            let permit = live.streams.enter(&access.0.record().id)?;
            return Ok(stream_of(access.0, Start::Log { after, filter }, permit, live));
        }
        let after = read_cursor(LIST, cursor.as_deref())?.or(after.0.map(u64::from)).unwrap_or(0);
        let limit = Limit { events: limit(rows)?, bytes: live.page_bytes };
        let (reader, wait) = (access.0, wait_time(wait_ms.0));
        let (page, page_now) =
            (reader.log(after, limit, &filter, wait), reader.log(after, limit, &filter, Duration::ZERO));
        let page = live.wait(reader.grant(), wait, page, page_now).await?;
        let bytes = page.items.iter().map(|event| event.size_bytes()).sum();
        let page = offload(bytes, || LogPageBody {
            data: page.items.iter().map(|event| EventBody::from(&**event)).collect(),
            next_cursor: page.next.map(|next| cursor_at(LIST, next)),
            position: page.position,
        });
        Ok(Log::Page(JsonResponse::large(&page, bytes)))
    }
}

fn read_direction(direction: Option<&str>) -> Result<Direction, Error> {
    match direction {
        None | Some("asc" | "forward") => Ok(Direction::Forward),
        Some("desc" | "backward") => Ok(Direction::Backward),
        Some(_) => Err(Error::invalid("direction must be asc or desc")),
    }
}

fn appended_body(appended: &Appended, with_events: bool) -> AppendedBody {
    let repeated = appended.repeated.iter().filter(|repeated| **repeated).count() as u64;
    let data = with_events.then(|| appended.events.iter().map(|event| EventBody::from(&**event)).collect());
    AppendedBody { data, appended: appended.events.len() as u64 - repeated, repeated, renamed: None }
}

/// Returns the events whose slug differs from the one in the request.
fn renamed(slugs: &[Option<Value>], appended: &Appended) -> Vec<RenamedSlug> {
    let is_renamed = |(_, (event, slug)): &(_, (&Arc<Event>, &Option<Value>))| {
        *event.aggregate_type == *ARTICLE && event.payload.get(SLUG) != slug.as_ref()
    };
    let renamed = (0..).zip(appended.events.iter().zip(slugs)).filter(is_renamed).filter_map(|(index, (event, _))| {
        let slug = event.payload.get(SLUG)?.as_str()?.to_owned();
        Some(RenamedSlug { index, aggregate_id: event.aggregate_id.to_string(), slug })
    });
    renamed.collect()
}
