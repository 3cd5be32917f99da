//! What is generated is checked in, and is what the code says.

use foldwork_server::{Config, config};
use foldwork_tests::expectation::{all_well, read, root, settle};

#[test]
fn the_document_is_what_the_handlers_say() {
    let document = foldwork_server::openapi(&Config::default());
    let text = serde_json::to_string_pretty(&document).expect("a document");
    all_well(settle(&root().join("openapi/openapi.json"), &format!("{text}\n")).err().into_iter().collect());
}

#[test]
fn the_shipped_configuration_is_the_defaults_and_names_every_setting() {
    let text = read(&root().join("config.toml"));
    assert_eq!(text, config::DEFAULTS, "the file that is compiled in is another one");
    let shipped: Config = toml::from_str(&text).expect("config.toml is valid");
    assert_eq!(shipped, Config::default());
    // Compared as tables, a setting that the file does not name is missing.
    let shipped: toml::Table = toml::from_str(&text).expect("config.toml is a table");
    let defaults = toml::Table::try_from(Config::default()).expect("the defaults are a table");
    assert_eq!(shipped, defaults);
}

#[test]
fn every_setting_is_explained() {
    let text = read(&root().join("config.toml"));
    let lines: Vec<&str> = text.lines().collect();
    let unexplained = lines
        .windows(2)
        .filter(|pair| pair[1].contains(" = ") && !pair[1].starts_with('#') && !pair[0].starts_with('#'));
    all_well(unexplained.map(|pair| format!("config.toml: no sentence above {}", pair[1])).collect());
}
