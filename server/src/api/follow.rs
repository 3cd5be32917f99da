//! Following events live: server-sent events whose ids are positions, resumed by `Last-Event-ID`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foldwork_engine::model::event::Event;
use foldwork_engine::workspace::events::{Limit, LogFilter, PACE};
use foldwork_engine::workspace::feed::{Feed, Item};
use foldwork_engine::workspace::following::Following;
use foldwork_engine::{Error, Listener, Reader, Standing};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use poem::web::sse::Event as Message;
use poem::{Body, IntoResponse, Response};
use poem_openapi::ApiResponse;
use poem_openapi::registry::{MetaResponses, Registry};
use poem_openapi::types::Type;
use tokio::time::Instant;

use crate::http::offloading::aside;
use crate::http::shutdown::Shutdown;
use crate::http::streams::StreamPermit;
use crate::wire::body::Written;
use crate::wire::event::EventBody;

/// Events read for one turn of a stream.
const PAGE: usize = 200;
/// A comment is sent where nothing else was for so long.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const CONTENT_TYPE: &str = "text/event-stream";
const COMMENT: &[u8] = b":\n\n";
/// Bytes of messages that are written to a socket together; one that is longer is written alone.
const CHUNK: usize = 64 << 10;

/// A page of events, or a stream of them.
pub enum Log<T: Type> {
    Page(Written<T>),
    Stream(Box<Response>),
}

impl<T: Type> IntoResponse for Log<T> {
    fn into_response(self) -> Response {
        match self {
            Log::Page(page) => page.into_response(),
            Log::Stream(response) => *response,
        }
    }
}

impl<T: Type> ApiResponse for Log<T> {
    fn meta() -> MetaResponses {
        Written::<T>::meta()
    }

    fn register(registry: &mut Registry) {
        <Written<T> as ApiResponse>::register(registry);
    }
}

/// Where a stream of events begins.
pub enum Start {
    Log {
        after: u64,
        filter: LogFilter,
    },
    /// One aggregate's events.
    Aggregate(Following),
}

impl Start {
    /// Where a client who has one aggregate's events up to a version, or up to a position of the log, goes on.
    pub async fn of_aggregate(
        reader: &Reader,
        id: &str,
        after_version: Option<u64>,
        after: Option<u64>,
    ) -> Result<Start, Error> {
        let known_version = match after {
            Some(position) => reader.version_at(id, position).await?,
            None => 0,
        };
        let known_version = known_version.max(after_version.unwrap_or(0));
        Ok(Start::Aggregate(reader.follow_aggregate(id, known_version).await?))
    }

    /// The position in a `Last-Event-ID` header.
    pub fn position(last_event_id: Option<&str>) -> Result<Option<u64>, Error> {
        let wrong = |_| Error::invalid("Last-Event-ID must be a position");
        last_event_id.map(|id| id.trim().parse().map_err(wrong)).transpose()
    }
}

/// Whether the client asks for a stream: rather than for JSON, where it takes both.
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

/// The stream as an answer. It holds its place, and a page of so many bytes at a time, until the client leaves it or
/// its right or the server ends.
pub fn stream_of<T: Type>(
    reader: Reader,
    start: Start,
    page_bytes: usize,
    permit: StreamPermit,
    shutdown: Shutdown,
) -> Log<T> {
    let limit = Limit { events: PAGE, bytes: page_bytes };
    let standing = reader.standing();
    let follower = Follower { reader, limit, start, next_look: Instant::now(), _permit: permit };
    sent_until(events(follower), standing, shutdown)
}

/// The feed of an agent as a stream, like [`stream_of`].
pub fn stream_of_feed<T: Type>(
    listener: &Listener,
    feed: Feed,
    page_bytes: usize,
    permit: StreamPermit,
    shutdown: Shutdown,
) -> Log<T> {
    let limit = Limit { events: PAGE, bytes: page_bytes };
    let pages = stream::unfold((feed, permit), move |(mut feed, permit)| async move {
        match feed.wait(limit, KEEP_ALIVE).await {
            Ok(page) => Some((page.items, (feed, permit))),
            // The client comes back with the last id that it has seen.
            Err(error) => {
                tracing::warn!(%error, "the feed of an agent ended");
                None
            }
        }
    });
    let chunks = pages.flat_map(|items| stream::iter(chunks(items, put_told)));
    sent_until(chunks.boxed(), listener.standing(), shutdown)
}

fn put_told(item: &Item, chunk: &mut Vec<u8>) {
    let Item::Delivery(told) = item else { return };
    let text = aside(told.size_bytes(), || serde_json::to_string(&told.payload()).unwrap_or_default());
    let message = Message::message(text).event_type(told.news.name()).id(told.position().to_string());
    chunk.extend_from_slice(message.to_string().as_bytes());
}

/// The messages of a page put together, each chunk when the reader has taken the one before; a comment where there are
/// none.
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

/// A stream that ends with the right of whoever reads it, and with the server.
fn sent_until<T: Type>(chunks: BoxStream<'static, Bytes>, mut standing: Standing, shutdown: Shutdown) -> Log<T> {
    let end = async move {
        tokio::select! {
            () = shutdown.begun() => {}
            () = standing.ended() => {}
        }
    };
    let chunks = chunks.take_until(Box::pin(end)).map(Ok::<_, std::io::Error>);
    let response = Response::builder()
        .content_type(CONTENT_TYPE)
        .header("Cache-Control", "no-cache")
        // Proxies of nginx's kind hold back what they are not told to pass on.
        .header("X-Accel-Buffering", "no")
        .body(Body::from_bytes_stream(chunks));
    Log::Stream(Box::new(response))
}

/// A reader of events, and where it stands.
struct Follower {
    reader: Reader,
    limit: Limit,
    start: Start,
    /// When it looks next. At the log's end several events are sent together, where they come faster than this.
    next_look: Instant,
    _permit: StreamPermit,
}

impl Follower {
    /// The next events, waited for where there are none yet; there may be none after a while.
    async fn next(&mut self) -> Result<Vec<Arc<Event>>, Error> {
        tokio::time::sleep_until(self.next_look).await;
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
            self.next_look = Instant::now() + PACE;
        }
        Ok(events)
    }
}

/// Events as they are sent.
fn events(follower: Follower) -> BoxStream<'static, Bytes> {
    let pages = stream::unfold(follower, |mut follower| async move {
        match follower.next().await {
            Ok(events) => Some((events, follower)),
            // The client comes back with the last id that it has seen.
            Err(error) => {
                tracing::warn!(%error, "a stream of events ended");
                None
            }
        }
    });
    pages.flat_map(|events| stream::iter(chunks(events, put_event))).boxed()
}

/// Puts the message that tells of an event, written once for all who follow.
fn put_event(event: &Arc<Event>, chunk: &mut Vec<u8>) {
    let text = event.sent.text(|| {
        let text = aside(event.size_bytes(), || serde_json::to_string(&EventBody::from(&**event)).unwrap_or_default());
        Message::message(text).event_type(event.event_type.to_string()).id(event.position.to_string()).to_string()
    });
    chunk.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sent_in_chunks_and_a_page_without_any_is_a_comment() {
        let put = |length: &usize, chunk: &mut Vec<u8>| chunk.extend(std::iter::repeat_n(b'x', *length));
        let lengths = |page| chunks(page, put).map(|chunk| chunk.len()).collect::<Vec<_>>();
        assert_eq!(lengths(vec![10, 20, CHUNK, 30, 3 * CHUNK, 5]), [30 + CHUNK, 30 + 3 * CHUNK, 5]);
        assert_eq!(chunks(Vec::new(), put).collect::<Vec<_>>(), [COMMENT]);
        assert_eq!(chunks(vec![0], put).collect::<Vec<_>>(), [COMMENT]);
    }

    #[test]
    fn a_stream_is_for_those_who_ask_for_it_rather_than_for_json() {
        let streams =
            ["text/event-stream", "text/event-stream, */*", "Text/Event-Stream;q=0.9, application/json;q=0.5"];
        let pages =
            ["application/json, text/event-stream", "*/*", "application/json", "text/event-stream;q=0, */*", ""];
        assert!(streams.into_iter().all(|accept| is_stream(Some(accept))));
        assert!(!pages.into_iter().any(|accept| is_stream(Some(accept))) && !is_stream(None));
    }
}
