//! Embeddings from a model in a local folder, computed by this process.

use std::path::Path;

use foldwork_engine::hook::{Embed, EmbedFailure};
use foldwork_local_model::bert::Model;

pub struct LocalModel(Model);

impl LocalModel {
    pub fn open(folder: &Path, name: &str) -> anyhow::Result<LocalModel> {
        Ok(LocalModel(Model::open(folder, name)?))
    }
}

impl Embed for LocalModel {
    fn model(&self) -> &str {
        self.0.name()
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedFailure> {
        self.0.vectors(texts).map_err(|error| EmbedFailure(format!("{error:#}")))
    }
}
