//! Appends events to one or several streams, and reads the events of a stream or of the log.

use std::time::Duration;

use foldwork_engine::model::event::{Event, NewEvent};
use foldwork_engine::model::slug::SLUG;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::events::{EventLimit, LogFilter, LogPage, ReadDirection};
use foldwork_engine::{AppendOutcome, Error, Reader, Writer};
use poem::web::Data;
use poem_openapi::param::{Header, Path, Query};
use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use super::durability::Durability;
use super::follow::{LogResponse, Start, is_stream, stream_of};
use super::long_poll::{LiveContext, wait_time};
use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::archiving::ServerArchive;
use crate::http::error::ApiResult;
use crate::http::routes::API;
use crate::wire::append_result::{AppendResponse, AppendedBody, renamed};
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{Durabilities, EventOrder, OneOf};
use crate::wire::event::EventBody;
use crate::wire::exact_numbers;
use crate::wire::idempotency::{CreationOutcome, CreationResponse, request_id};
use crate::wire::new_event::{AppendBody, BatchBody, new_events};
use crate::wire::page::{PageBody, Whole, cursor as cursor_at, limit, listed, read_cursor};

pub struct Api;

listed!(EventBody as "EventPage": "A page of events.");

/// A page of the log.
#[derive(Object, Serialize)]
#[oai(rename = "LogPage")]
struct LogPageBody {
    data: Vec<EventBody>,
    next_cursor: Option<String>,
    /// The position up to which the server searched the log, even if no event matched the filter. A client sends this
    /// position as `after` to continue after this page. With `direction=desc`, this is the position down to which the
    /// server searched, and a client sends the position as `before`.
    position: u64,
}

/// A request to append events.
struct AppendRequest {
    new: Vec<NewEvent>,
    /// Whether the request contains a list with exactly one event.
    list_of_one: bool,
    /// The idempotency key. The fingerprint of the request includes `operation` and the request's body (`text`).
    key: Option<String>,
    operation: String,
    text: Vec<u8>,
    durability: Durability,
}

impl AppendRequest {
    /// Appends the events, and waits for the requested durability. A repeated request with the same idempotency key
    /// appends nothing, and returns the events of the first request.
    async fn append(self, writer: &Writer) -> ApiResult<AppendOutcome> {
        let AppendRequest { new, list_of_one, key, operation, text, durability } = self;
        let user_id = writer.caller().user_id();
        let request = key.map(|key| request_id(user_id, &key, &operation, &text)).transpose()?;
        drop(text);
        let appended = in_place(writer.append_requested(new, request.as_ref()).await, list_of_one)?;
        durability.wait(writer, &appended).await?;
        Ok(appended)
    }
}

/// Adds the index 0 to an error about the only event of a list. The engine cannot distinguish a list of one event from
/// a single event.
fn in_place<T>(result: Result<T, Error>, list_of_one: bool) -> Result<T, Error> {
    if list_of_one { result.map_err(|error| error.at_event(0)) } else { result }
}

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Appends one event to a stream, or several events (`events`, at most 1,000) atomically.
    ///
    /// `aggregate_type` is needed only for the first event of a stream. The response is the event. If the body has
    /// `events`, the response is the last event, with all events in `data`, the number of new events in `appended`, and
    /// the number of repeated events in `repeated`. If the events are appended, but not archived in time
    /// (`Foldwork-Durability`), the response is 503 `not_archived`.
    #[oai(path = "/aggregates/:aggregate_id/events", method = "post", operation_id = "append_event")]
    #[expect(clippy::too_many_arguments, reason = "one argument per parameter of the request")]
    async fn append_event(
        &self,
        access: ApiWrite,
        aggregate_id: Path<String>,
        body: Body<AppendBody>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
        #[oai(name = "Foldwork-Durability")] durability: Header<Option<OneOf<Durabilities>>>,
        archiving: Data<&ServerArchive>,
    ) -> ApiResult<CreationResponse<AppendResponse>> {
        let durability = Durability::of(durability.as_deref(), &archiving)?;
        let Body { value, text } = body;
        let (mut new, is_batch) = value.into_events(&aggregate_id, if_match.as_deref())?;
        exact_numbers::keep_numbers(&text, &mut new);
        let appending = AppendRequest {
            list_of_one: is_batch && new.len() == 1,
            new,
            key: key.0,
            operation: format!("append_event/{}", *aggregate_id),
            text,
            durability,
        };
        let appended = appending.append(&access.0).await?;
        let last = appended.events.last().ok_or_else(|| Error::invalid_at("/events", "expected at least one event"))?;
        let last = EventBody::from(&**last);
        let batch = is_batch.then(|| AppendedBody::new(&appended, true, None));
        let location = format!("{}/aggregates/{}/events", API, *aggregate_id);
        Ok(CreationResponse::of(CreationOutcome {
            body: AppendResponse { last, batch },
            location,
            repeated: appended.is_repeat(),
        }))
    }

    /// Appends events to any streams, in order and atomically.
    ///
    /// This operation is meant for imports. A request contains at most 1,000 events, within the maximum size of a body.
    /// Events of one stream keep their order. An event whose `event_id` is already in the log is skipped and counted as
    /// repeated. If the content of the two events differs, the request is rejected (409 `event_id_conflict`). If the
    /// events are appended, but not archived in time (`Foldwork-Durability`), the response is 503 `not_archived`.
    #[oai(path = "/events", method = "post", operation_id = "append_events")]
    async fn append_events(
        &self,
        access: ApiWrite,
        body: Body<BatchBody>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
        /// `return=minimal` omits the events from the response.
        #[oai(name = "Prefer")]
        prefer: Header<Option<String>>,
        #[oai(name = "Foldwork-Durability")] durability: Header<Option<OneOf<Durabilities>>>,
        archiving: Data<&ServerArchive>,
    ) -> ApiResult<CreationResponse<AppendedBody>> {
        let durability = Durability::of(durability.as_deref(), &archiving)?;
        let Body { value: BatchBody { events, rename_slugs }, text } = body;
        let mut new = new_events(events)?;
        exact_numbers::keep_numbers(&text, &mut new);
        new.iter_mut().for_each(|event| event.renames_slug = rename_slugs.unwrap_or(false));
        let slugs: Vec<Option<Value>> = new.iter().map(|event| event.payload.get(SLUG).cloned()).collect();
        let (list_of_one, operation) = (new.len() == 1, "append_events".to_owned());
        let appending = AppendRequest { new, list_of_one, key: key.0, operation, text, durability };
        let appended = appending.append(&access.0).await?;
        let renamed = rename_slugs.filter(|renames| *renames).map(|_| renamed(&slugs, &appended));
        let with_events = !prefer.as_deref().is_some_and(|prefer| prefer.contains("return=minimal"));
        let body = AppendedBody::new(&appended, with_events, renamed);
        Ok(CreationResponse::of(CreationOutcome {
            body,
            location: format!("{}/events", API),
            repeated: appended.is_repeat(),
        }))
    }

    /// Lists the raw events of one stream.
    ///
    /// The response contains the events as they were appended, without folding. With `Accept: text/event-stream` the
    /// events are sent as server-sent events whose ids are positions, and new events follow as they are appended. A
    /// stream is always in the order `asc`, regardless of `direction`.
    #[oai(path = "/aggregates/:aggregate_id/events", method = "get", operation_id = "list_aggregate_events")]
    #[expect(clippy::too_many_arguments, reason = "one argument per parameter of the request")]
    async fn list_aggregate_events(
        &self,
        access: ApiRead,
        aggregate_id: Path<String>,
        /// The version after which the page begins. With `direction=desc`, the version before which the page begins.
        after_version: Query<Option<Whole>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The order: `asc` or `forward` (the default) returns the oldest event first, and `desc` or `backward` the
        /// newest.
        direction: Query<Option<OneOf<EventOrder>>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        #[oai(name = "Accept")] accept: Header<Option<String>>,
        #[oai(name = "Last-Event-ID")] last_event_id: Header<Option<String>>,
        live: LiveContext,
    ) -> ApiResult<LogResponse<PageBody<EventBody>>> {
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
        let list = format!("events/{}/{}", *aggregate_id, direction.name());
        let after = read_cursor(&list, cursor.as_deref())?.or(after_version.0.map(u64::from));
        let limit = EventLimit { events: limit(rows)?, bytes: live.page_bytes };
        let page = reader.stream(&aggregate_id, after, limit, direction).await?;
        let bytes = page.items.iter().map(Event::size_bytes).sum();
        let page = JsonResponse::large(bytes, || PageBody::new(page, &list, |event| EventBody::from(&event)));
        Ok(LogResponse::Page(page))
    }

    /// Lists the events of the workspace's log, in order.
    ///
    /// Positions begin at 1, have no gaps and never change. A client that sends the `position` of each response as the
    /// next `after` gets every event once. With `wait_ms`, the server waits for new events if there are none. With
    /// `Accept: text/event-stream`, the server streams new events as they are appended. With `direction=desc`, the page
    /// begins with the newest event; waiting and streaming are possible only in the order `asc`.
    #[oai(path = "/events", method = "get", operation_id = "list_events")]
    #[expect(clippy::too_many_arguments, reason = "one argument per parameter of the request")]
    async fn list_events(
        &self,
        access: ApiRead,
        /// The position after which the page begins.
        after: Query<Option<Whole>>,
        /// The position before which the page begins, with `direction=desc`.
        before: Query<Option<Whole>>,
        /// The order: `asc` (the default) returns the oldest event first, and `desc` the newest.
        direction: Query<Option<OneOf<EventOrder>>>,
        /// A comma-separated list of event types. Other events are left out.
        types: Query<Option<String>>,
        aggregate_type: Query<Option<String>>,
        project_id: Query<Option<String>>,
        /// Only events that this actor appended: `key:<id>`, `user:<id>`, `plugin:<name>` or `system`.
        actor: Query<Option<String>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The maximum time to wait for an event if there is none yet, in milliseconds; the default is 0. The server
        /// waits at most 30,000 milliseconds.
        wait_ms: Query<Option<Whole>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        #[oai(name = "Accept")] accept: Header<Option<String>>,
        #[oai(name = "Last-Event-ID")] last_event_id: Header<Option<String>>,
        live: LiveContext,
    ) -> ApiResult<LogResponse<LogPageBody>> {
        const LIST: &str = "events";
        let named =
            EventParameters { types: types.0, aggregate_type: aggregate_type.0, project: project_id.0, actor: actor.0 };
        let filter = named.filter(&access.0).await?;
        if read_direction(direction.as_deref())? == ReadDirection::Backward {
            let waits = wait_ms.0.is_some() || is_stream(accept.as_deref());
            let before = BackwardParameters { before: before.0, after: after.0, cursor: cursor.0, waits, rows };
            return Ok(LogResponse::Page(before.page(&access.0, &filter, live.page_bytes).await?));
        }
        if before.is_some() {
            return Err(Error::invalid("`before` requires `direction=desc`; use `after` to read forward").into());
        }
        if is_stream(accept.as_deref()) {
            let after = Start::position(last_event_id.as_deref())?.or(after.0.map(u64::from));
            let permit = live.streams.enter(&access.0.record().id)?;
            let start = Start::of_log(&access.0, after, filter).await?;
            return Ok(stream_of(access.0, start, permit, live));
        }
        let after = read_cursor(LIST, cursor.as_deref())?.or(after.0.map(u64::from)).unwrap_or(0);
        let limit = EventLimit { events: limit(rows)?, bytes: live.page_bytes };
        let (reader, wait) = (access.0, wait_time(wait_ms.0));
        let (page, page_now) =
            (reader.log(after, limit, &filter, wait), reader.log(after, limit, &filter, Duration::ZERO));
        let page = live.wait(reader.grant(), wait, page, page_now).await?;
        Ok(LogResponse::Page(log_page(&page, LIST)))
    }
}

/// The query parameters that select events.
pub struct EventParameters {
    pub types: Option<String>,
    pub aggregate_type: Option<String>,
    pub project: Option<String>,
    pub actor: Option<String>,
}

impl EventParameters {
    pub async fn filter(self, reader: &Reader) -> Result<LogFilter, Error> {
        let names = self.types.as_deref().unwrap_or_default().split(',').map(str::trim);
        let event_types = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let project_id = match &self.project {
            Some(project) => Some(reader.project_filter(project).await?),
            None => None,
        };
        Ok(LogFilter { event_types, aggregate_type: self.aggregate_type, project_id, actor: self.actor })
    }
}

/// The query parameters of a page of the log with the newest event first.
struct BackwardParameters {
    before: Option<Whole>,
    after: Option<Whole>,
    cursor: Option<String>,
    waits: bool,
    rows: Option<u64>,
}

impl BackwardParameters {
    async fn page(
        self,
        reader: &Reader,
        filter: &LogFilter,
        page_bytes: usize,
    ) -> Result<JsonResponse<LogPageBody>, Error> {
        const LIST: &str = "events/desc";
        if self.after.is_some() || self.waits {
            return Err(Error::invalid(
                "`after`, `wait_ms` and streaming are not allowed with `direction=desc`; use `before`",
            ));
        }
        let before = read_cursor(LIST, self.cursor.as_deref())?.or(self.before.map(u64::from));
        let limit = EventLimit { events: limit(self.rows)?, bytes: page_bytes };
        let page = reader.log_before(before, limit, filter).await?;
        Ok(log_page(&page, LIST))
    }
}

fn log_page(page: &LogPage, list: &str) -> JsonResponse<LogPageBody> {
    let bytes = page.items.iter().map(|event| event.size_bytes()).sum();
    JsonResponse::large(bytes, || LogPageBody {
        data: page.items.iter().map(|event| EventBody::from(&**event)).collect(),
        next_cursor: page.next.map(|next| cursor_at(list, next)),
        position: page.position,
    })
}

fn read_direction(direction: Option<&str>) -> Result<ReadDirection, Error> {
    match direction {
        None | Some("asc" | "forward") => Ok(ReadDirection::Forward),
        Some("desc" | "backward") => Ok(ReadDirection::Backward),
        Some(_) => Err(Error::invalid("`direction` must be `asc`, `forward`, `desc` or `backward`")),
    }
}
