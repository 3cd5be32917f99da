//! Following events live: server-sent events whose ids are positions, resumed by `Last-Event-ID`.

use std::time::Duration;

use foldwork_engine::model::event::Event;
use foldwork_engine::workspace::events::LogFilter;
use foldwork_engine::{Error, Reader};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use poem::web::sse::{Event as Sent, SSE};
use poem::{IntoResponse, Response};
use poem_openapi::ApiResponse;
use poem_openapi::registry::{MetaResponses, Registry};
use poem_openapi::types::Type;

use super::body::Written;
use super::wire::EventBody;
use crate::edge::Ending;

/// Events read for one turn of a stream.
const PAGE: usize = 200;
/// A comment is sent where nothing else was for so long.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

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
    /// One aggregate's events, after a version or after a position.
    Stream {
        id: String,
        after_version: Option<u64>,
        after: Option<u64>,
    },
}

impl Start {
    /// The position in a `Last-Event-ID` header.
    pub fn position(last_event_id: Option<&str>) -> Result<Option<u64>, Error> {
        let wrong = |_| Error::invalid("Last-Event-ID must be a position");
        last_event_id.map(|id| id.trim().parse().map_err(wrong)).transpose()
    }
}

/// Whether the client asks for a stream.
pub fn is_stream(accept: Option<&str>) -> bool {
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}

/// The stream as an answer. It ends with the server, and with the right by which it is read.
pub fn stream_of<T: Type>(reader: Reader, start: Start, ending: &Ending) -> Log<T> {
    let (after, filter, of) = match start {
        Start::Log { after, filter } => (after, filter, None),
        Start::Stream { id, after_version, after } => {
            (after.unwrap_or(0), LogFilter::default(), Some((id, after_version)))
        }
    };
    let (mut standing, ending) = (reader.standing(), ending.clone());
    let end = async move {
        tokio::select! {
            () = ending.begun() => {}
            () = standing.ended() => {}
        }
    };
    let events = events(reader, after, filter, of).take_until(Box::pin(end));
    Log::Stream(Box::new(SSE::new(events).keep_alive(KEEP_ALIVE).into_response()))
}

fn events(
    reader: Reader,
    after: u64,
    filter: LogFilter,
    of: Option<(String, Option<u64>)>,
) -> BoxStream<'static, Sent> {
    let pages = stream::unfold((reader, after, filter), |(reader, after, filter)| async move {
        match reader.log(after, PAGE, &filter, KEEP_ALIVE).await {
            Ok(page) => {
                let last = page.items.last().map(|event| event.position);
                let after = page.next.or(last).unwrap_or(after).max(after);
                Some((page.items, (reader, after, filter)))
            }
            // The client comes back with the last id that it has seen.
            Err(error) => {
                tracing::warn!(%error, "a stream of events ended");
                None
            }
        }
    });
    let wanted = move |event: &Event| match &of {
        None => true,
        Some((id, after_version)) => {
            event.aggregate_id.as_str() == id && after_version.is_none_or(|after| event.version > after)
        }
    };
    pages
        .flat_map(move |events| {
            let sent: Vec<Sent> = events.iter().filter(|event| wanted(event)).map(|event| sent(event)).collect();
            stream::iter(sent)
        })
        .boxed()
}

fn sent(event: &Event) -> Sent {
    let text = serde_json::to_string(&EventBody::from(event)).unwrap_or_default();
    Sent::message(text).event_type(event.event_type.to_string()).id(event.position.to_string())
}
