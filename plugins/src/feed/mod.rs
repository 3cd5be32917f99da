//! The plugin `feed`: published articles as an Atom feed.

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

/// Articles in a feed at most.
const LONGEST: usize = 50;

struct Feed {
    about: About,
}

impl Plugin for Feed {
    fn about(&self) -> &About {
        &self.about
    }
}

/// The plugin and its one endpoint.
pub fn plugin() -> Native {
    let about = About {
        name: "feed".into(),
        version: "1.0.0".into(),
        description: "Gives the articles published last as an Atom feed.".into(),
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
            summary: "The articles published last, as an Atom feed.",
            description: "At most 50 articles as they were published, the last one first. What is unpublished or deleted leaves \
                          the feed.",
            parameters: &[("project_id", "Articles of this project alone: its id or slug.")],
            media_type: "application/atom+xml",
        },
        handler: Handler::Content(|reader, request| Box::pin(answer(reader, request))),
    };
    Native { plugin: Arc::new(Feed { about }), endpoints: vec![endpoint], protocol: None }
}

async fn answer(reader: ContentReader, request: Request) -> Result<Answer> {
    let project = match request.parameter("project_id") {
        Some(id_or_slug) => Some(reader.project_named(id_or_slug).await?),
        None => None,
    };
    let project_id = project.as_ref().map(|project| project.id.as_str());
    let articles = reader.newest_published(project_id, LONGEST).await?;
    // Bodies may be long, and those who wait for other answers do not wait for these.
    let written = move || atom::write(reader.record(), project.as_deref(), &articles, &request);
    let feed = tokio::task::spawn_blocking(written).await.map_err(Error::internal)?.map_err(Error::internal)?;
    let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&feed)[..16]));
    Response::builder()
        .header(CONTENT_TYPE, "application/atom+xml; charset=utf-8")
        .header(ETAG, tag)
        .body(feed)
        .map_err(Error::internal)
}
