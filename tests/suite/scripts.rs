//! Tests scripted plugins: shipped plugins load and pass their cases, broken plugins are rejected, and the host's
//! functions match their examples.

use std::collections::BTreeMap;

use foldwork_plugins::limits::CallLimits;
use foldwork_plugins::script::{Script, case, declaration};
use foldwork_plugins::{PluginFolder, SHIPPED, load};
use foldwork_server::Config;
use foldwork_tests::expectation::{all_well, compare, folders, read, root};

#[test]
fn shipped_plugins_load_and_pass_their_cases() {
    let mut failures = Vec::new();
    for (name, _) in SHIPPED {
        let folder = PluginFolder::shipped(name).expect("a shipped plugin");
        let script = Script::load(&folder, CallLimits::default()).expect("a script");
        let outcomes = case::run(&script, &folder).expect("cases");
        assert!(outcomes.len() > 2, "{name} has few cases");
        failures.extend(outcomes.into_iter().filter_map(|outcome| outcome.failure).map(|failure| failure.to_string()));
    }
    all_well(failures);
}

#[test]
fn the_default_plugins_load_in_order_without_a_folder_of_scripts() {
    let plugins = Config::default().plugins;
    let nowhere = root().join("tests/plugins/nowhere");
    let loaded = load(&plugins.enabled, &nowhere, &plugins.settings, plugins.limits).expect("plugins");
    let names: Vec<&str> = loaded.iter().map(|plugin| &*plugin.about().name).collect();
    assert_eq!(names, plugins.enabled);
}

#[test]
fn a_broken_plugin_is_rejected_with_the_place_of_the_error() {
    let mut failures = Vec::new();
    let folder = root().join("tests/plugins/refused");
    for path in folders("plugins/refused") {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let limits = CallLimits::default();
        let refused = load(std::slice::from_ref(&name), &folder, &BTreeMap::new(), limits)
            .map(|_| ())
            .map_err(|error| error.to_string().replace(&format!("{}/", folder.display()), "scripts/"));
        let text = refused.map_or_else(|error| error, |()| "the plugin is not rejected".into());
        failures.extend(compare(&path.join("expected.txt"), &format!("{text}\n")).err());
    }
    all_well(failures);
}

#[test]
fn an_error_names_the_expression_that_has_no_value() {
    let folder = PluginFolder::read(&root().join("tests/plugins/absent")).expect("a plugin");
    let script = Script::load(&folder, CallLimits { deadline_ms: 60_000, ..CallLimits::default() }).expect("a script");
    let outcomes = case::run(&script, &folder).expect("cases");
    assert_eq!(outcomes[0].logged, ["info: looks for argument", "debug: and prints"]);
    all_well(outcomes.into_iter().filter_map(|outcome| outcome.failure).map(|failure| failure.to_string()).collect());
}

/// Returns the code block after a sentence of the README.
fn block(after: &str) -> String {
    let readme = read(&root().join("scripts/README.md"));
    let (_, rest) = readme.split_once(after).expect("the sentence");
    let (_, rest) = rest.split_once("```").expect("a block");
    let (block, _) = rest.split_once("```").expect("the end of the block");
    block.split_once('\n').expect("the first line of the block").1.to_owned()
}

#[test]
fn the_tool_in_the_readme_lists_the_titles_of_an_author() {
    let folder = PluginFolder {
        name: "find_author".into(),
        location: "scripts/find_author".into(),
        manifest: block("`scripts/find_author/plugin.toml` contains"),
        script: block("`scripts/find_author/plugin.rhai` contains"),
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
    let script = Script::load(&folder, CallLimits::default()).expect("a script");
    let outcomes = case::run(&script, &folder).expect("cases");
    assert_eq!(outcomes.len(), 2);
    all_well(outcomes.into_iter().filter_map(|outcome| outcome.failure).map(|failure| failure.to_string()).collect());
}

#[test]
fn the_plugin_in_the_readme_passes_its_cases() {
    let folder = PluginFolder {
        name: "shouting".into(),
        location: "scripts/shouting".into(),
        manifest: block("`scripts/shouting/plugin.toml` describes"),
        script: block("`scripts/shouting/plugin.rhai` contains"),
        cases: block("`scripts/shouting/cases.toml` contains"),
    };
    let script = Script::load(&folder, CallLimits::default()).expect("a script");
    let outcomes = case::run(&script, &folder).expect("cases");
    assert_eq!(outcomes.len(), 2);
    all_well(outcomes.into_iter().filter_map(|outcome| outcome.failure).map(|failure| failure.to_string()).collect());
    let settings: toml::Table = toml::from_str(&block("Enable it in the server's `config.toml`")).expect("settings");
    assert!(settings["plugins"]["shouting"].is_table());
}

#[test]
fn unknown_settings_of_plugins_and_settings_of_the_wrong_type_are_rejected() {
    let refused = |plugin: &str, toml: &str| {
        let settings = BTreeMap::from([(plugin.to_owned(), toml::from_str(toml).expect("TOML"))]);
        let plugins = Config::default().plugins;
        let loaded = load(&plugins.enabled, &root().join("scripts"), &settings, plugins.limits).map(|_| ());
        loaded.expect_err("refused").to_string()
    };
    assert_eq!(
        refused("linker", "pattens = []"),
        "[plugins.linker]: the setting 'pattens' is unknown (settings are declared in plugin.toml under [settings]); did you mean 'patterns'?"
    );
    assert_eq!(
        refused("linker", "patterns = \"x\""),
        "[plugins.linker]: the setting 'patterns' is of type string, not array (settings are declared in plugin.toml under [settings])"
    );
    let settings = BTreeMap::from([("feed".to_owned(), toml::from_str("a = 1").expect("TOML"))]);
    let native = load(&["feed".to_owned()], &root().join("scripts"), &settings, CallLimits::default()).map(|_| ());
    assert_eq!(native.expect_err("refused").to_string(), "[plugins.feed]: the plugin 'feed' has no settings");
    assert_eq!(refused("liker", "a = 1"), "[plugins.liker]: the plugin 'liker' is not enabled; did you mean 'linker'?");
}

#[test]
fn unknown_and_repeated_names_of_enabled_plugins_are_rejected() {
    let refused = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let loaded = load(&names, &root().join("scripts"), &BTreeMap::new(), CallLimits::default()).map(|_| ());
        loaded.expect_err("refused").to_string()
    };
    assert!(refused(&["fed"]).ends_with("did you mean 'feed'?"));
    assert!(refused(&["likner"]).ends_with("did you mean 'linker'?"));
    assert_eq!(refused(&["linker", "linker"]), "[plugins] enabled: the plugin 'linker' is listed twice");
    assert_eq!(refused(&["limits"]), "[plugins] enabled: 'limits' is a current or former setting, not a plugin");
}

#[test]
fn the_declaration_file_matches_the_host_functions() {
    all_well(compare(&root().join("scripts/host.d.rhai"), &declaration::text()).err().into_iter().collect());
}

#[test]
fn examples_of_host_functions_are_true() {
    let examples = declaration::examples();
    assert!(examples.len() > 15, "{examples:?}");
    let failures = examples.into_iter().filter_map(|example| match declaration::holds(&example) {
        Ok(true) => None,
        Ok(false) => Some(format!("{example} is false")),
        Err(error) => Some(format!("{example}: {error}")),
    });
    all_well(failures.collect());
}
