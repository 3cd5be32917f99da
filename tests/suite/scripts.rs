//! Scripted plugins: what is shipped loads and passes its cases, what is broken is refused, and the host's functions do
//! what their examples say.

use std::collections::BTreeMap;

use foldwork_plugins::script::{Script, case, declaration, limits::Limits};
use foldwork_plugins::{Folder, SHIPPED, load};
use foldwork_server::Config;
use foldwork_tests::expectation::{all_well, compare, folders, read, root};

#[test]
fn what_is_shipped_loads_and_passes_its_cases() {
    let mut failures = Vec::new();
    for (name, _) in SHIPPED {
        let folder = Folder::shipped(name).expect("shipped");
        let script = Script::load(&folder, Limits::default()).expect("a script");
        let outcomes = case::run(&script, &folder).expect("cases");
        assert!(outcomes.len() > 2, "{name} has few cases");
        failures.extend(outcomes.into_iter().filter_map(|outcome| outcome.failure).map(|failure| failure.to_string()));
    }
    all_well(failures);
}

#[test]
fn the_defaults_load_from_any_folder_in_their_order() {
    let plugins = Config::default().plugins;
    let nowhere = root().join("tests/plugins/nowhere");
    let loaded = load(&plugins.enabled, &nowhere, &plugins.settings, plugins.limits).expect("plugins");
    let names: Vec<&str> = loaded.iter().map(|plugin| &*plugin.about().name).collect();
    assert_eq!(names, plugins.enabled);
}

#[test]
fn a_broken_plugin_is_refused_and_the_message_says_where() {
    let mut failures = Vec::new();
    let folder = root().join("tests/plugins/refused");
    for path in folders("plugins/refused") {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let limits = Limits::default();
        let refused = load(std::slice::from_ref(&name), &folder, &BTreeMap::new(), limits)
            .map(|_| ())
            .map_err(|error| error.to_string().replace(&format!("{}/", folder.display()), "scripts/"));
        let text = refused.map_or_else(|error| error, |()| "it is not refused".into());
        failures.extend(compare(&path.join("expected.txt"), &format!("{text}\n")).err());
    }
    all_well(failures);
}

/// The block that follows a sentence of the README.
fn block(after: &str) -> String {
    let readme = read(&root().join("scripts/README.md"));
    let (_, rest) = readme.split_once(after).expect("the sentence");
    let (_, rest) = rest.split_once("```").expect("a block");
    let (block, _) = rest.split_once("```").expect("its end");
    block.split_once('\n').expect("its first line").1.to_owned()
}

#[test]
fn the_tool_of_the_readme_is_one() {
    let folder = Folder {
        name: "find_author".into(),
        location: "scripts/find_author".into(),
        manifest: block("`scripts/find_author/plugin.toml` says"),
        script: block("`scripts/find_author/plugin.rhai` does"),
        cases: r#"
            [[case]]
            name = "titles are listed"
            arguments = { author = "Ada" }
            rows = [{ title = "One" }, { title = "Two" }]
            expect = { author = "Ada", titles = ["One", "Two"] }

            [[case]]
            name = "an author is needed"
            error = "\"author\" is a required property"
        "#
        .into(),
    };
    let script = Script::load(&folder, Limits::default()).expect("a script");
    let outcomes = case::run(&script, &folder).expect("cases");
    assert_eq!(outcomes.len(), 2);
    all_well(outcomes.into_iter().filter_map(|outcome| outcome.failure).map(|failure| failure.to_string()).collect());
}

#[test]
fn the_plugin_of_the_readme_passes_its_cases() {
    let folder = Folder {
        name: "shouting".into(),
        location: "scripts/shouting".into(),
        manifest: block("`scripts/shouting/plugin.toml` says"),
        script: block("`scripts/shouting/plugin.rhai` does"),
        cases: block("`scripts/shouting/cases.toml` says"),
    };
    let script = Script::load(&folder, Limits::default()).expect("a script");
    let outcomes = case::run(&script, &folder).expect("cases");
    assert_eq!(outcomes.len(), 2);
    all_well(outcomes.into_iter().filter_map(|outcome| outcome.failure).map(|failure| failure.to_string()).collect());
    let settings: toml::Table = toml::from_str(&block("Enable it in `config.toml`")).expect("settings");
    assert!(settings["plugins"]["shouting"].is_table());
}

#[test]
fn settings_are_those_that_the_manifest_names() {
    let refused = |plugin: &str, toml: &str| {
        let settings = BTreeMap::from([(plugin.to_owned(), toml::from_str(toml).expect("TOML"))]);
        let plugins = Config::default().plugins;
        let loaded = load(&plugins.enabled, &root().join("scripts"), &settings, plugins.limits).map(|_| ());
        loaded.expect_err("refused").to_string()
    };
    assert_eq!(
        refused("linker", "pattens = []"),
        "[plugins.linker]: the setting 'pattens' is unknown (plugin.toml names them under [settings]); did you mean 'patterns'?"
    );
    assert_eq!(
        refused("linker", "patterns = \"x\""),
        "[plugins.linker]: the setting 'patterns' is of type string, not array (plugin.toml names them under [settings])"
    );
    let settings = BTreeMap::from([("feed".to_owned(), toml::from_str("a = 1").expect("TOML"))]);
    let native = load(&["feed".to_owned()], &root().join("scripts"), &settings, Limits::default()).map(|_| ());
    assert_eq!(native.expect_err("refused").to_string(), "[plugins.feed]: the plugin 'feed' has no settings");
    assert_eq!(refused("liker", "a = 1"), "[plugins.liker]: the plugin 'liker' is not enabled; did you mean 'linker'?");
}

#[test]
fn names_that_are_enabled_are_plugins_and_stand_there_once() {
    let refused = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let loaded = load(&names, &root().join("scripts"), &BTreeMap::new(), Limits::default()).map(|_| ());
        loaded.expect_err("refused").to_string()
    };
    assert!(refused(&["fed"]).ends_with("did you mean 'feed'?"));
    assert!(refused(&["likner"]).ends_with("did you mean 'linker'?"));
    assert_eq!(refused(&["linker", "linker"]), "[plugins] enabled: 'linker' stands there twice");
    assert_eq!(refused(&["limits"]), "[plugins] enabled: 'limits' is a setting, and names no plugin");
}

#[test]
fn the_declaration_is_what_the_host_offers() {
    all_well(compare(&root().join("scripts/host.d.rhai"), &declaration::text()).err().into_iter().collect());
}

#[test]
fn examples_of_the_functions_hold() {
    let examples = declaration::examples();
    assert!(examples.len() > 15, "{examples:?}");
    let failures = examples.into_iter().filter_map(|example| match declaration::holds(&example) {
        Ok(true) => None,
        Ok(false) => Some(format!("{example} is false")),
        Err(error) => Some(format!("{example}: {error}")),
    });
    all_well(failures.collect());
}
