//! The plugin `feed`: serves published articles as an Atom feed.

mod atom;
mod html;

use foldwork_engine::{ContentReader, Error, Result};
use http::Method;
use http::header::{CONTENT_TYPE, ETAG};
use sha2::{Digest, Sha256};

use crate::mount::{self, Endpoint, EndpointRequest, Handler, Response};
use crate::native::{Native, mounted};

/// The maximum number of articles in a feed.
const MAX_ARTICLES: usize = 50;

/// Returns the plugin with its endpoint.
pub fn plugin() -> Native {
    let endpoint = Endpoint {
        method: Method::GET,
        path: "atom.xml",
        about: mount::EndpointDescription {
            operation_id: "get_feed",
            summary: "Returns the most recently published articles as an Atom feed.",
            description: "At most 50 published revisions, the most recent first. Unpublished and deleted articles are not \
                          in the feed.",
            parameters: &[("project_id", "Only articles of this project, by its id or slug.")],
            media_type: "application/atom+xml",
        },
        handler: Handler::Content(|reader, request| Box::pin(respond(reader, request))),
    };
    let description = "Serves the most recently published articles as an Atom feed.";
    Native { plugin: mounted("feed", description), endpoints: vec![endpoint], protocol: None }
}

async fn respond(reader: ContentReader, request: EndpointRequest) -> Result<Response> {
    let project = match request.parameter("project_id") {
        Some(id_or_slug) => Some(reader.project_named(id_or_slug).await?),
        None => None,
    };
    let project_id = project.as_ref().map(|project| project.id.as_str());
    let articles = reader.newest_published(project_id, MAX_ARTICLES).await?;
    // Another thread writes the feed, because the bodies of articles may be long and would delay other responses.
    let render = move || atom::write(reader.record(), project.as_deref(), &articles, &request);
    let feed = tokio::task::spawn_blocking(render).await.map_err(Error::internal)?.map_err(Error::internal)?;
    let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&feed)[..16]));
    http::Response::builder()
        .header(CONTENT_TYPE, "application/atom+xml; charset=utf-8")
        .header(ETAG, tag)
        .body(feed)
        .map_err(Error::internal)
}
