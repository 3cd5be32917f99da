//! What turns labels into vectors: a model in a folder, or a service that speaks OpenAI's protocol.

mod http;
mod local;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use foldwork_engine::hook::Embed;

use crate::config::{Embedding, EmbeddingKind};

/// The environment's name of the service's key.
const KEY_VARIABLE: &str = "FOLDWORK_EMBEDDING_KEY";

/// What the settings ask for. A model that cannot be read stops the start.
pub fn open(settings: &Embedding) -> anyhow::Result<Option<Arc<dyn Embed>>> {
    Ok(match settings.kind {
        EmbeddingKind::Off => None,
        EmbeddingKind::Local => {
            let folder = Path::new(&settings.path);
            let model = local::Local::open(folder, &settings.model);
            let model = model.with_context(|| format!("search.embedding.path: no model in '{}'", folder.display()))?;
            Some(Arc::new(model))
        }
        EmbeddingKind::Http => Some(Arc::new(http::Http::new(settings, std::env::var(KEY_VARIABLE).ok())?)),
    })
}
