//! Embeddings of labels, from a model in a local folder or from a service with OpenAI's interface.

mod http;
#[cfg(feature = "local-model")]
mod local;

use std::sync::Arc;

use foldwork_engine::hook::Embed;

use crate::config::{Embedding, EmbeddingSource};

/// The name of the environment variable with the API key of the embedding service.
const KEY_VARIABLE: &str = "FOLDWORK_EMBEDDING_KEY";

/// Opens the configured embedding model, or returns `None` if no model is configured. Fails if a local model cannot be
/// loaded, or if the settings of a service are invalid, so that the server does not start.
pub fn open(settings: &Embedding) -> anyhow::Result<Option<Arc<dyn Embed>>> {
    Ok(match settings.source() {
        EmbeddingSource::Off => None,
        EmbeddingSource::Folder(folder) => Some(open_local(folder, &settings.model)?),
        EmbeddingSource::Service => {
            let key = std::env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty());
            Some(Arc::new(http::HttpModel::new(settings, key)?))
        }
    })
}

#[cfg(feature = "local-model")]
fn open_local(folder: &str, name: &str) -> anyhow::Result<Arc<dyn Embed>> {
    use anyhow::Context as _;

    let model = local::LocalModel::open(std::path::Path::new(folder), name);
    Ok(Arc::new(model.with_context(|| format!("search.embedding.url: cannot load the model in '{folder}'"))?))
}

#[cfg(not(feature = "local-model"))]
fn open_local(_folder: &str, _name: &str) -> anyhow::Result<Arc<dyn Embed>> {
    anyhow::bail!(
        "search.embedding.url: this program was built without local models; \
         build it with `cargo build --release --features local-model`, or set the URL of a service"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn refusal(folder: &str) -> String {
        let settings = Embedding { url: format!("file://{folder}"), ..Config::default().search.embedding };
        format!("{:#}", open(&settings).err().expect("no model"))
    }

    #[cfg(feature = "local-model")]
    #[test]
    fn a_folder_without_a_model_prevents_the_start() {
        let refusal = refusal("nowhere");
        assert!(
            refusal.starts_with("search.embedding.url: cannot load the model in 'nowhere': config.json"),
            "{refusal}"
        );
    }

    #[cfg(not(feature = "local-model"))]
    #[test]
    fn the_error_of_a_build_without_local_models_names_the_build_feature() {
        let refusal = refusal("nowhere");
        assert!(refusal.starts_with("search.embedding.url: "), "{refusal}");
        assert!(refusal.contains("cargo build --release --features local-model"), "{refusal}");
    }
}
