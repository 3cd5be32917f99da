//! The plugin `feed`: serves published articles as an Atom feed.

mod atom;
mod html;

use std::sync::Arc;

use foldwork_engine::hook::{About, Candidates, Hook, OnError, Plugin, Subscription};
use foldwork_engine::model::value::Object;
use foldwork_engine::{ContentReader, Error, Result};
use http::header::{CONTENT_TYPE, ETAG};
use http::{Method, Response};
use sha2::{Digest, Sha256};

use crate::mount::{self, Answer, Endpoint, Handler, Request};
use crate::native::Native;

/// The maximum number of articles in a feed.
const MAX_ARTICLES: usize = 50;

struct Feed {
    about: About,
}

impl Plugin for Feed {
    fn about(&self) -> &About {
        &self.about
    }
}

/// Returns the plugin with its endpoint.
pub fn plugin() -> Native {
    let about = About {
        name: "feed".into(),
        version: "1.0.0".into(),
        description: "Serves the most recently published articles as an Atom feed.".into(),
        hooks: vec![Hook::Mount],
        on: Subscription::default(),
        on_error: OnError::default(),
        settings: Object::new(),
        agent: None,
        tool: None,
        candidates: Candidates::default(),
    };
    let endpoint = Endpoint {
        method: Method::GET,
        path: "atom.xml",
        about: mount::About {
            operation_id: "get_feed",
            summary: "Returns the most recently published articles as an Atom feed.",
            description: "At most 50 published revisions, the most recent first. Unpublished and deleted articles are not \
                          in the feed.",
            parameters: &[("project_id", "Only articles of this project, by its id or slug.")],
            media_type: "application/atom+xml",
        },
        handler: Handler::Content(|reader, request| Box::pin(respond(reader, request))),
    };
    Native { plugin: Arc::new(Feed { about }), endpoints: vec![endpoint], protocol: None }
}

async fn respond(reader: ContentReader, request: Request) -> Result<Answer> {
    let project = match request.parameter("project_id") {
        Some(id_or_slug) => Some(reader.project_named(id_or_slug).await?),
        None => None,
    };
    let project_id = project.as_ref().map(|project| project.id.as_str());
    let articles = reader.newest_published(project_id, MAX_ARTICLES).await?;
    // Bodies may be long. The feed is written on another thread, so that it does not delay other responses.
    let render = move || atom::write(reader.record(), project.as_deref(), &articles, &request);
    let feed = tokio::task::spawn_blocking(render).await.map_err(Error::internal)?.map_err(Error::internal)?;
    let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&feed)[..16]));
    Response::builder()
        .header(CONTENT_TYPE, "application/atom+xml; charset=utf-8")
        .header(ETAG, tag)
        .body(feed)
        .map_err(Error::internal)
}
