//! Live streams of server-sent events. The ids of the events are positions. A client resumes a stream with
//! `Last-Event-ID`.
//!
//! The log's last events are served from memory as serialized text. The first reader of an event serializes the event
//! and stores the text in the field `sent` of [`Event`], and the other readers copy the text. The events that a stream
//! reads in one step are sent in few writes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foldwork_engine::model::event::Event;
use foldwork_engine::workspace::aggregate_follower::AggregateFollower;
use foldwork_engine::workspace::events::{EventLimit, LogFilter, READ_INTERVAL};
use foldwork_engine::workspace::feed::{Feed, Item};
use foldwork_engine::{Error, Grant, Listener, Reader};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use poem::web::sse::Event as Message;
use poem::{Body, IntoResponse, Response};
use poem_openapi::ApiResponse;
use poem_openapi::registry::{MetaResponses, Registry};
use poem_openapi::types::Type;
use tokio::time::Instant;

use super::long_poll::LiveContext;
use crate::http::offloading::offload;
use crate::http::shutdown::Shutdown;
use crate::http::streams::StreamPermit;
use crate::wire::body::JsonResponse;
use crate::wire::delivery;
use crate::wire::event::EventBody;

/// The maximum number of events that a stream reads in one step.
const PAGE: usize = 200;
/// The time after which an idle stream sends a comment.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const CONTENT_TYPE: &str = "text/event-stream";
const COMMENT: &[u8] = b":\n\n";
/// The size in bytes at which a chunk is full. A chunk may be larger, because a message is never split.
const CHUNK: usize = 64 << 10;

/// A response with events: a page, or a stream.
pub enum LogResponse<T: Type> {
    Page(JsonResponse<T>),
    Stream(Box<Response>),
}

impl<T: Type> IntoResponse for LogResponse<T> {
    fn into_response(self) -> Response {
        match self {
            LogResponse::Page(page) => page.into_response(),
            LogResponse::Stream(response) => *response,
        }
    }
}

impl<T: Type> ApiResponse for LogResponse<T> {
    fn meta() -> MetaResponses {
        JsonResponse::<T>::meta()
    }

    fn register(registry: &mut Registry) {
        <JsonResponse<T> as ApiResponse>::register(registry);
    }
}

/// The log or the aggregate that a stream reads, and the position at which the stream begins.
pub enum Start {
    Log {
        after: u64,
        filter: LogFilter,
    },
    /// The events of one aggregate.
    Aggregate(AggregateFollower),
}

impl Start {
    /// Returns the start of a stream of the log. The stream begins after the position `after`. Fails if this position
    /// is after the log's end.
    pub async fn of_log(reader: &Reader, after: Option<u64>, filter: LogFilter) -> Result<Start, Error> {
        let after = after.unwrap_or(0);
        // Checks the position first, because the response cannot become an error after the stream has begun.
        reader.check_position(after).await?;
        Ok(Start::Log { after, filter })
    }

    /// Returns the start of a stream of an aggregate's events. The stream begins after `after_version` or after the log
    /// position `after`, whichever is later.
    pub async fn of_aggregate(
        reader: &Reader,
        id: &str,
        after_version: Option<u64>,
        after: Option<u64>,
    ) -> Result<Start, Error> {
        let known_version = match after {
            Some(position) => {
                reader.check_position(position).await?;
                reader.version_at(id, position).await?
            }
            None => 0,
        };
        let known_version = known_version.max(after_version.unwrap_or(0));
        Ok(Start::Aggregate(reader.follow_aggregate(id, known_version).await?))
    }

    /// Parses the position in a `Last-Event-ID` header.
    pub fn position(last_event_id: Option<&str>) -> Result<Option<u64>, Error> {
        let wrong = |_| Error::invalid("Last-Event-ID must be the position of an event");
        last_event_id.map(|id| id.trim().parse().map_err(wrong)).transpose()
    }
}

/// Returns whether an `Accept` header prefers a stream: `text/event-stream` must have a higher weight than JSON.
pub fn is_stream(accept: Option<&str>) -> bool {
    let weight = |kind: &str| {
        let ranges = accept.into_iter().flat_map(|accept| accept.split(','));
        let parts = ranges.map(|range| range.split(';').map(str::trim));
        let mut named = parts.filter_map(|mut parts| parts.next()?.eq_ignore_ascii_case(kind).then_some(parts));
        let mut parameters = named.next()?;
        let weight = parameters.find_map(|parameter| parameter.strip_prefix("q="));
        Some(weight.and_then(|weight| weight.parse::<f32>().ok()).unwrap_or(1.0))
    };
    weight(CONTENT_TYPE).is_some_and(|stream| stream > weight("application/json").unwrap_or(0.0))
}

/// Returns the events as a streaming response. The stream keeps `permit` until the stream ends. At most one page of the
/// stream is in memory, and `page_bytes` limits the size of a page. The stream ends when the client disconnects, when
/// the client's access ends, when the server shuts down, or when the events cannot be read.
pub fn stream_of<T: Type>(reader: Reader, start: Start, permit: StreamPermit, live: LiveContext) -> LogResponse<T> {
    let limit = EventLimit { events: PAGE, bytes: live.page_bytes };
    let grant = reader.grant();
    let follower = StreamFollower { reader, limit, start, next_read: Instant::now(), _permit: permit };
    sent_until(events(follower), grant, live.shutdown)
}

/// Returns the notifications to an agent as a streaming response, like [`stream_of`]. The stream also ends when the
/// agent is deleted.
pub fn stream_of_feed<T: Type>(
    listener: &Listener,
    feed: Feed,
    permit: StreamPermit,
    live: LiveContext,
) -> LogResponse<T> {
    let limit = EventLimit { events: PAGE, bytes: live.page_bytes };
    let workspace = listener.record().id.clone();
    let pages = stream::unfold(Some((feed, permit, workspace)), move |reading| async move {
        let (mut feed, permit, workspace) = reading?;
        match feed.wait(limit, KEEP_ALIVE).await {
            Ok(mut page) => {
                let is_last = feed.has_ended() && ends(&mut page.items);
                Some((page.items, (!is_last).then_some((feed, permit, workspace))))
            }
            // Ends the stream. The client reconnects with the id of the last event that it received.
            Err(error) => {
                let agent = feed.agent();
                tracing::warn!(%error, %workspace, agent, "the feed of an agent could not be read; the stream ends");
                None
            }
        }
    });
    let chunks = pages.flat_map(|items| stream::iter(chunks(items, put_delivery)));
    sent_until(chunks.boxed(), listener.grant(), live.shutdown)
}

/// In a page of a deleted agent's feed, removes the item for the deletion and all later items. Returns whether the
/// stream ends after this page. The stream ends if the page contained the deletion, or if the page is empty. A page
/// may be empty because the agent was deleted before the feed began.
fn ends(items: &mut Vec<Item>) -> bool {
    let deletion = items.iter().position(|item| matches!(item, Item::AgentDeleted(_)));
    items.truncate(deletion.unwrap_or(items.len()));
    deletion.is_some() || items.is_empty()
}

fn put_delivery(item: &Item, chunk: &mut Vec<u8>) {
    let Item::Delivery(delivery) = item else { return };
    let payload = offload(delivery.size_bytes(), || delivery::payload(delivery));
    let message =
        Message::message(payload.0.get()).event_type(delivery.news.name()).id(delivery.position().to_string());
    chunk.extend_from_slice(message.to_string().as_bytes());
}

/// Combines the messages of a page into chunks lazily: the iterator builds one chunk per call. A page without messages
/// becomes a comment.
fn chunks<T>(page: Vec<T>, put: fn(&T, &mut Vec<u8>)) -> impl Iterator<Item = Bytes> {
    let mut rest = page.into_iter();
    let mut is_silent = true;
    std::iter::from_fn(move || {
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK
            && let Some(item) = rest.next()
        {
            put(&item, &mut chunk);
        }
        match (chunk.is_empty(), std::mem::take(&mut is_silent)) {
            (false, _) => Some(chunk.into()),
            (true, true) => Some(Bytes::from_static(COMMENT)),
            (true, false) => None,
        }
    })
}

/// Returns a streaming response that ends when the reader's access ends, or when the server shuts down.
fn sent_until<T: Type>(chunks: BoxStream<'static, Bytes>, mut grant: Grant, shutdown: Shutdown) -> LogResponse<T> {
    let end = async move {
        tokio::select! {
            () = shutdown.begun() => {}
            () = grant.ended() => {}
        }
    };
    let chunks = chunks.take_until(Box::pin(end)).map(Ok::<_, std::io::Error>);
    let response = Response::builder()
        .content_type(CONTENT_TYPE)
        .header("Cache-Control", "no-cache")
        // Proxies such as nginx buffer a response unless this header is set.
        .header("X-Accel-Buffering", "no")
        .body(Body::from_bytes_stream(chunks));
    LogResponse::Stream(Box::new(response))
}

/// The state of a stream: a reader, and the position in the log or in an aggregate up to which events were sent.
struct StreamFollower {
    reader: Reader,
    limit: EventLimit,
    start: Start,
    /// The earliest time of the next read. After the stream has reached the end of the log, a short wait collects new
    /// events, which are then sent together.
    next_read: Instant,
    _permit: StreamPermit,
}

impl StreamFollower {
    /// Returns the next events. If there is no next event yet, waits up to [`KEEP_ALIVE`] for new events. Returns an
    /// empty list if no event arrives in this time.
    async fn next(&mut self) -> Result<Vec<Arc<Event>>, Error> {
        tokio::time::sleep_until(self.next_read).await;
        let (events, is_end) = match &mut self.start {
            Start::Log { after, filter } => {
                let page = self.reader.log(*after, self.limit, filter, KEEP_ALIVE).await?;
                *after = page.position;
                (page.items, page.next.is_none())
            }
            Start::Aggregate(following) => {
                let events = following.next(self.limit, KEEP_ALIVE).await?;
                let is_end = events.len() < self.limit.events;
                (events, is_end)
            }
        };
        if is_end {
            self.next_read = Instant::now() + READ_INTERVAL;
        }
        Ok(events)
    }
}

/// Returns the follower's events as chunks of a streaming response.
fn events(follower: StreamFollower) -> BoxStream<'static, Bytes> {
    let pages = stream::unfold(follower, |mut follower| async move {
        match follower.next().await {
            Ok(events) => Some((events, follower)),
            // Ends the stream. The client reconnects with the id of the last event that it received.
            Err(error) => {
                tracing::warn!(
                    %error,
                    workspace = %follower.reader.record().id,
                    "the events of a stream could not be read; the stream ends"
                );
                None
            }
        }
    });
    pages.flat_map(|events| stream::iter(chunks(events, put_event))).boxed()
}

/// Appends an event's message to a chunk. All streams share the serialized message.
fn put_event(event: &Arc<Event>, chunk: &mut Vec<u8>) {
    let text = event.sent.text(|| {
        let text =
            offload(event.size_bytes(), || serde_json::to_string(&EventBody::from(&**event)).unwrap_or_default());
        Message::message(text).event_type(event.event_type.to_string()).id(event.position.to_string()).to_string()
    });
    chunk.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sent_in_chunks_and_an_empty_page_is_sent_as_a_comment() {
        let put = |length: &usize, chunk: &mut Vec<u8>| chunk.extend(std::iter::repeat_n(b'x', *length));
        let lengths = |page| chunks(page, put).map(|chunk| chunk.len()).collect::<Vec<_>>();
        assert_eq!(lengths(vec![10, 20, CHUNK, 30, 3 * CHUNK, 5]), [30 + CHUNK, 30 + 3 * CHUNK, 5]);
        assert_eq!(chunks(Vec::new(), put).collect::<Vec<_>>(), [COMMENT]);
        assert_eq!(chunks(vec![0], put).collect::<Vec<_>>(), [COMMENT]);
    }

    #[test]
    fn a_stream_is_sent_only_if_the_client_prefers_a_stream_to_json() {
        let streams =
            ["text/event-stream", "text/event-stream, */*", "Text/Event-Stream;q=0.9, application/json;q=0.5"];
        let pages =
            ["application/json, text/event-stream", "*/*", "application/json", "text/event-stream;q=0, */*", ""];
        assert!(streams.into_iter().all(|accept| is_stream(Some(accept))));
        assert!(!pages.into_iter().any(|accept| is_stream(Some(accept))) && !is_stream(None));
    }
}
