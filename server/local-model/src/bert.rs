//! Computes embeddings with a BERT model from a folder with the layout of sentence-transformers.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail, ensure};
use candle_core::{Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, DTYPE};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
const TOKENIZER: &str = "tokenizer.json";
const POOLING: &str = "1_Pooling/config.json";
const SENTENCES: &str = "sentence_bert_config.json";
/// A model's digest covers the length of the weights and at most this number of bytes at the end of the weights.
const FINGERPRINT_BYTES: usize = 1 << 16;

/// A model that runs in this process.
pub struct Model {
    name: String,
    bert: BertModel,
    tokenizer: Tokenizer,
    pooling: Pooling,
}

/// The method that combines the vectors of a text's tokens into one vector.
#[derive(Clone, Copy)]
enum Pooling {
    Mean,
    /// The vector of the first token.
    First,
}

#[derive(Deserialize)]
struct PoolingConfig {
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
}

#[derive(Deserialize)]
struct SentenceConfig {
    max_seq_length: Option<usize>,
}

impl Model {
    /// Loads a model. If `name` is empty, the model is named after a digest of its weights.
    pub fn open(folder: &Path, name: &str) -> anyhow::Result<Model> {
        let config: Config = json(folder, CONFIG)?;
        match config.model_type.as_deref() {
            None | Some("bert") => {}
            Some(other) => bail!("{CONFIG}: model_type is '{other}'; expected bert"),
        }
        let pooling = if folder.join(POOLING).exists() { pooling(json(folder, POOLING)?)? } else { Pooling::Mean };
        let longest = match folder.join(SENTENCES).exists() {
            true => json::<SentenceConfig>(folder, SENTENCES)?.max_seq_length,
            false => None,
        };
        let tokenizer = tokenizer(
            folder,
            longest.map_or(config.max_position_embeddings, |longest| longest.min(config.max_position_embeddings)),
        )?;
        let weights = std::fs::read(folder.join(WEIGHTS)).with_context(|| WEIGHTS)?;
        let name = if name.is_empty() { name_of(&weights) } else { name.to_owned() };
        let weights = VarBuilder::from_buffered_safetensors(weights, DTYPE, &Device::Cpu).with_context(|| WEIGHTS)?;
        let bert = BertModel::load(weights, &config).with_context(|| format!("{WEIGHTS} and {CONFIG}"))?;
        let model = Model { name, bert, tokenizer, pooling };
        // Embeds a word, so that a broken model prevents the start instead of limiting every search to the text.
        model.vectors(&["word".to_owned()]).context("cannot embed a test word")?;
        Ok(model)
    }

    /// Returns the name under which the model's vectors are stored.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the vectors of texts in order, each normalized to length 1. Fails if `texts` is empty.
    pub fn vectors(&self, texts: &[String]) -> anyhow::Result<Vec<Vec<f32>>> {
        let encodings = self.tokenizer.encode_batch(texts.to_vec(), true).map_err(|error| anyhow!(error))?;
        ensure!(!encodings.is_empty(), "expected at least one text to embed");
        let rows = |of: fn(&tokenizers::Encoding) -> &[u32]| -> candle_core::Result<Tensor> {
            let rows: Vec<Vec<u32>> = encodings.iter().map(|encoding| of(encoding).to_vec()).collect();
            Tensor::new(rows, &Device::Cpu)
        };
        let mask = rows(tokenizers::Encoding::get_attention_mask)?;
        let tokens = self.bert.forward(
            &rows(tokenizers::Encoding::get_ids)?,
            &rows(tokenizers::Encoding::get_type_ids)?,
            Some(&mask),
        )?;
        let pooled = match self.pooling {
            Pooling::First => tokens.narrow(1, 0, 1)?.squeeze(1)?,
            Pooling::Mean => {
                let mask = mask.to_dtype(DTYPE)?.unsqueeze(2)?;
                tokens.broadcast_mul(&mask)?.sum(1)?.broadcast_div(&mask.sum(1)?)?
            }
        };
        let lengths = pooled.sqr()?.sum_keepdim(1)?.sqrt()?;
        Ok(pooled.broadcast_div(&lengths)?.to_vec2()?)
    }
}

fn json<T: DeserializeOwned>(folder: &Path, name: &str) -> anyhow::Result<T> {
    let text = std::fs::read(folder.join(name)).with_context(|| name.to_owned())?;
    serde_json::from_slice(&text).with_context(|| name.to_owned())
}

fn pooling(config: PoolingConfig) -> anyhow::Result<Pooling> {
    match config {
        PoolingConfig { pooling_mode_mean_tokens: true, pooling_mode_cls_token: false } => Ok(Pooling::Mean),
        PoolingConfig { pooling_mode_mean_tokens: false, pooling_mode_cls_token: true } => Ok(Pooling::First),
        _ => bail!("{POOLING}: exactly one of pooling_mode_mean_tokens and pooling_mode_cls_token must be true"),
    }
}

fn tokenizer(folder: &Path, longest: usize) -> anyhow::Result<Tokenizer> {
    let failed = |error: tokenizers::Error| anyhow!("{TOKENIZER}: {error}");
    let mut tokenizer = Tokenizer::from_file(folder.join(TOKENIZER)).map_err(failed)?;
    let truncation = TruncationParams { max_length: longest, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).map_err(failed)?;
    // The file may require padding to a fixed length; padding to the longest text is enough.
    let padding = tokenizer.get_padding().cloned().unwrap_or_default();
    tokenizer.with_padding(Some(PaddingParams { strategy: tokenizers::PaddingStrategy::BatchLongest, ..padding }));
    Ok(tokenizer)
}

fn name_of(weights: &[u8]) -> String {
    let mut digest = Sha256::new();
    digest.update(weights.len().to_be_bytes());
    digest.update(&weights[weights.len().saturating_sub(FINGERPRINT_BYTES)..]);
    format!("local:{}", hex::encode(&digest.finalize()[..8]))
}
