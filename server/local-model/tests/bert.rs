//! Tests that a model in a folder computes vectors. The tests use the tiny model of the fixture. If
//! `FOLDWORK_TEST_MODEL` names a folder, a test also uses the real model in this folder.

mod fixture;

use std::path::Path;

use foldwork_local_model::bert::Model;
use serde_json::json;
use tempfile::TempDir;

const SEED: u64 = 2026;
const TITLES: [&str; 4] =
    ["How to feed a kitten", "Changing the oil of a lorry", "Baking bread at home", "A history of Vienna"];
/// Queries, each with the index of the title that it should match.
const MEANT: [(&str, usize); 4] = [("cat", 0), ("truck maintenance", 1), ("loaf", 2), ("Austrian capital", 3)];

fn folder(seed: u64) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fixture::write(folder.path(), seed);
    folder
}

fn open(folder: &TempDir) -> Model {
    Model::open(folder.path(), "").expect("a model")
}

fn refusal(folder: &TempDir) -> String {
    format!("{:#}", Model::open(folder.path(), "").err().expect("no model"))
}

fn vectors(model: &Model, texts: &[&str]) -> Vec<Vec<f32>> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    model.vectors(&texts).expect("vectors")
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn are_the_same(a: &[f32], b: &[f32]) -> bool {
    (cosine(a, b) - 1.0).abs() < 1e-4
}

fn knows_what_words_mean(model: &Model) {
    let titles = vectors(model, &TITLES);
    for (query, meant) in MEANT {
        let query_vector = &vectors(model, &[query])[0];
        let likeness = |title: &usize| cosine(query_vector, &titles[*title]);
        let nearest = (0..TITLES.len()).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        assert_eq!(nearest, Some(meant), "{query}: {:?}", (0..TITLES.len()).map(|title| likeness(&title)));
    }
    let texts = vectors(model, &["one", "a much longer text than the one before"]);
    assert!(texts.iter().all(|text| are_the_same(text, text)), "vectors have length 1");
    assert!(are_the_same(&texts[0], &vectors(model, &["one"])[0]), "a text's vector is independent of other texts");
    assert!(!are_the_same(&texts[0], &texts[1]), "different words have different vectors");
}

#[test]
fn a_small_model_computes_unit_vectors_that_rank_related_words_first() {
    knows_what_words_mean(&open(&folder(SEED)));
}

#[test]
fn a_real_model_computes_unit_vectors_that_rank_related_words_first() {
    let Ok(folder) = std::env::var("FOLDWORK_TEST_MODEL") else {
        eprintln!("skipped: FOLDWORK_TEST_MODEL is not set to the folder of a model");
        return;
    };
    knows_what_words_mean(&Model::open(Path::new(&folder), "").expect("a model"));
}

#[test]
fn a_model_is_identified_by_its_weights_or_configured_name() {
    let (one, other) = (folder(SEED), folder(SEED + 1));
    let name = open(&one).name().to_owned();
    assert!(name.starts_with("local:"), "{name}");
    assert_eq!(open(&folder(SEED)).name(), name, "the same seed gives the same weights");
    assert_ne!(open(&other).name(), name);
    assert_eq!(Model::open(one.path(), "ours").expect("a model").name(), "ours");
}

#[test]
fn letter_case_is_ignored_and_word_pieces_are_recognized() {
    let model = open(&folder(SEED));
    let texts = vectors(&model, &["feeding a cat", "FEEDING a Kitten", "feeding a lorry", "unheard a lorry"]);
    assert!(are_the_same(&texts[0], &texts[1]));
    assert!(!are_the_same(&texts[0], &texts[2]), "a different word has a different vector");
    assert!(!are_the_same(&texts[2], &texts[3]), "an unknown word differs from a known word");
}

#[test]
fn texts_that_are_too_long_are_truncated() {
    let folder = folder(SEED);
    let long = "bread ".repeat(100);
    let whole = vectors(&open(&folder), &[&long, &format!("{long} cat"), "cat bread bread bread cat"]);
    assert!(are_the_same(&whole[0], &whole[1]), "the model has 16 positions");

    // Six tokens are four words, because the first and the last token are special tokens.
    fixture::write_json(folder.path(), "sentence_bert_config.json", &json!({ "max_seq_length": 6 }));
    let cut = vectors(&open(&folder), &["cat bread bread bread", "cat bread bread bread cat"]);
    assert!(are_the_same(&cut[0], &cut[1]));
    assert!(!are_the_same(&cut[0], &whole[2]));
}

#[test]
fn exactly_one_pooling_mode_is_accepted_and_the_mean_is_the_default() {
    let folder = folder(SEED);
    let pooled = |mean: bool, first: bool| {
        let modes = json!({ "pooling_mode_mean_tokens": mean, "pooling_mode_cls_token": first });
        fixture::write_json(folder.path(), "1_Pooling/config.json", &modes);
        Model::open(folder.path(), "").map(|model| vectors(&model, &["changing the oil"]).remove(0))
    };
    let mean = pooled(true, false).expect("vectors");
    let first = pooled(false, true).expect("vectors");
    assert!(!are_the_same(&mean, &first));
    for (mean, first) in [(true, true), (false, false)] {
        let refused = pooled(mean, first).expect_err("both or no pooling modes").to_string();
        assert!(refused.starts_with("1_Pooling/config.json: exactly one of"), "{refused}");
    }
    std::fs::remove_dir_all(folder.path().join("1_Pooling")).expect("removed");
    assert!(are_the_same(&vectors(&open(&folder), &["changing the oil"])[0], &mean), "the mean is the default");
}

#[test]
fn the_error_about_an_invalid_model_names_the_faulty_file() {
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        let missing = folder(SEED);
        std::fs::remove_file(missing.path().join(file)).expect("removed");
        let refused = refusal(&missing);
        assert!(refused.starts_with(file), "{refused}");
        let broken = folder(SEED);
        std::fs::write(broken.path().join(file), "{").expect("written");
        let refused = refusal(&broken);
        assert!(refused.starts_with(file), "{refused}");
    }
    for (setting, value, refused) in [
        ("model_type", json!("roberta"), "config.json: model_type is 'roberta'; expected bert"),
        ("hidden_size", json!(32), "model.safetensors and config.json: "),
    ] {
        let folder = folder(SEED);
        let mut config = fixture::config();
        config[setting] = value;
        fixture::write_json(folder.path(), "config.json", &config);
        let found = refusal(&folder);
        assert!(found.starts_with(refused), "{found}");
    }
}
