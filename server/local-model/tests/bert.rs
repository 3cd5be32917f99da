//! A model in a folder, from its files to vectors: a very small one that is made here, and a real one where
//! `FOLDWORK_TEST_MODEL` says where its folder is.

mod fixture;

use std::path::Path;

use foldwork_local_model::bert::Model;
use serde_json::json;
use tempfile::TempDir;

const SEED: u64 = 2026;
const TITLES: [&str; 4] =
    ["How to feed a kitten", "Changing the oil of a lorry", "Baking bread at home", "A history of Vienna"];
/// What is asked, and the title that is meant.
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
    assert!(texts.iter().all(|text| are_the_same(text, text)), "vectors have the length 1");
    assert!(are_the_same(&texts[0], &vectors(model, &["one"])[0]), "a text means the same beside another");
    assert!(!are_the_same(&texts[0], &texts[1]), "other words mean something else");
}

#[test]
fn a_small_model_knows_what_words_mean() {
    knows_what_words_mean(&open(&folder(SEED)));
}

#[test]
fn a_real_model_knows_what_words_mean() {
    let Ok(folder) = std::env::var("FOLDWORK_TEST_MODEL") else {
        eprintln!("skipped: FOLDWORK_TEST_MODEL does not say where a model is");
        return;
    };
    knows_what_words_mean(&Model::open(Path::new(&folder), "").expect("a model"));
}

#[test]
fn a_model_is_known_by_its_weights_or_as_it_is_called() {
    let (one, other) = (folder(SEED), folder(SEED + 1));
    let name = open(&one).name().to_owned();
    assert!(name.starts_with("local:"), "{name}");
    assert_eq!(open(&folder(SEED)).name(), name, "a seed makes the same weights");
    assert_ne!(open(&other).name(), name);
    assert_eq!(Model::open(one.path(), "ours").expect("a model").name(), "ours");
}

#[test]
fn letter_case_and_parts_of_words_are_understood() {
    let model = open(&folder(SEED));
    let texts = vectors(&model, &["feeding a cat", "FEEDING a Kitten", "feeding a lorry", "unheard a lorry"]);
    assert!(are_the_same(&texts[0], &texts[1]));
    assert!(!are_the_same(&texts[0], &texts[2]), "another word");
    assert!(!are_the_same(&texts[2], &texts[3]), "a word that the model does not have is not one that it has");
}

#[test]
fn what_is_too_long_is_cut() {
    let folder = folder(SEED);
    let long = "bread ".repeat(100);
    let whole = vectors(&open(&folder), &[&long, &format!("{long} cat"), "cat bread bread bread cat"]);
    assert!(are_the_same(&whole[0], &whole[1]), "the model has 16 places");

    // With the marks at its beginning and end, four words are left.
    fixture::write_json(folder.path(), "sentence_bert_config.json", &json!({ "max_seq_length": 6 }));
    let cut = vectors(&open(&folder), &["cat bread bread bread", "cat bread bread bread cat"]);
    assert!(are_the_same(&cut[0], &cut[1]));
    assert!(!are_the_same(&cut[0], &whole[2]));
}

#[test]
fn a_text_is_the_mean_of_its_tokens_or_its_first() {
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
        let refused = pooled(mean, first).expect_err("one of them").to_string();
        assert!(refused.starts_with("1_Pooling/config.json: allowed is one of"), "{refused}");
    }
    std::fs::remove_dir_all(folder.path().join("1_Pooling")).expect("removed");
    assert!(are_the_same(&vectors(&open(&folder), &["changing the oil"])[0], &mean), "the mean is the default");
}

#[test]
fn what_is_no_model_is_refused_with_the_file_that_is_wrong() {
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
        ("model_type", json!("roberta"), "config.json: model_type is 'roberta'; allowed is bert"),
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
