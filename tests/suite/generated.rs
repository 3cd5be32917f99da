//! Tests that the generated files in the repository match the code.

use std::path::Path;

use foldwork_engine::error::ErrorCode;
use foldwork_server::{Config, config};
use foldwork_tests::expectation::{all_well, compare, read, root};
use strum::IntoEnumIterator;

use crate::tidy::sources;

#[test]
fn the_openapi_document_matches_the_handlers() {
    let document = foldwork_server::openapi(&Config::default());
    let text = serde_json::to_string_pretty(&document).expect("a document");
    all_well(compare(&root().join("openapi/openapi.json"), &format!("{text}\n")).err().into_iter().collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openapi_document_is_served_as_json_as_yaml_and_as_a_page() {
    let server = foldwork_tests::server::Server::start().await.expect("a server");
    let served = async |path: &str| {
        let request = poem::Request::builder().uri(path.parse().expect("a path")).finish();
        server.call(request).await.into_body().into_string().await.expect("a text")
    };
    let document = foldwork_server::openapi(&Config::default());
    let json: serde_json::Value = serde_json::from_str(&served("/openapi.json").await).expect("JSON");
    let yaml: serde_json::Value = serde_saphyr::from_str(&served("/openapi.yaml").await).expect("YAML");
    assert_eq!(json, yaml);
    // Ignores the addresses, because the served document contains the address by which the client reached the server.
    let without_addresses = |mut document: serde_json::Value| {
        let mut functions = document["paths"].as_object_mut().expect("paths").values_mut();
        functions.by_ref().for_each(|path| drop(path.as_object_mut().map(|path| path.remove("servers"))));
        document.as_object_mut().expect("a document").remove("servers");
        document
    };
    assert!(json["servers"][0]["url"].as_str().is_some_and(|url| url.starts_with("http://")));
    assert_eq!(without_addresses(json), without_addresses(document));
    // The page shows this document and not the unchanged document of the framework.
    let page = served("/docs").await;
    assert!(page.contains("list_articles") && page.contains("x-required-scope"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_an_unchanged_document_gets_304() {
    let server = foldwork_tests::server::Server::start().await.expect("a server");
    let ask = async |path: &str, known: &str| {
        let request = poem::Request::builder().uri(path.parse().expect("a path")).header("if-none-match", known);
        server.call(request.finish()).await
    };
    for path in ["/openapi.json", "/openapi.yaml", "/docs", "/docs/operators"] {
        let first = ask(path, "\"another\"").await;
        assert_eq!(first.status(), 200, "{path}");
        let tag = first.header("etag").expect("an entity tag").to_owned();
        let again = ask(path, &tag).await;
        assert_eq!(again.status(), 304, "{path}");
        assert_eq!(again.header("etag"), Some(tag.as_str()), "{path}");
        assert!(again.into_body().into_bytes().await.expect("a body").is_empty(), "{path}");
    }
}

#[test]
fn the_list_of_errors_matches_the_codes() {
    let rows = ErrorCode::iter().map(|code| {
        let (name, statuses) = (code.name(), code.statuses().replace(' ', ", "));
        // A row of a table is one line.
        let meaning = code.meaning().split_whitespace().collect::<Vec<_>>().join(" ");
        format!("| `{name}` | {statuses} | {meaning} | {} |\n", code.remedy())
    });
    let text = format!(
        "# Errors\n\nEvery error is JSON: `error` is a message for people, `code` is for programs, and `request_id` names the \
         request in the\nserver's log. Errors of a body have `details`, with a JSON pointer to each place. Errors of pipelines \
         have MongoDB's\nnumber as their `code`, and its name as `code_name`. The codes stay; new ones may be added.\n\n\
         | code | status | meaning | what to do |\n| --- | --- | --- | --- |\n{}",
        rows.collect::<String>()
    );
    all_well(compare(&root().join("docs/errors.md"), &text).err().into_iter().collect());
}

#[test]
fn the_shipped_configuration_has_every_setting() {
    let text = read(&root().join("config.toml"));
    assert_eq!(text, config::DEFAULTS, "the compiled-in file differs from config.toml");
    // No setting has a default elsewhere, so a missing setting is an error.
    let shipped: Config = toml::from_str(&text).expect("config.toml is valid");
    assert_eq!(shipped, Config::default());
}

#[test]
fn messages_name_only_existing_settings() {
    let shipped: toml::Table = toml::from_str(config::DEFAULTS).expect("config.toml is a table");
    let (mut failures, mut named) = (Vec::new(), 0);
    let files = ["engine/src", "server/src"].iter().flat_map(|folder| sources(folder));
    let names_former = |path: &Path| ["former_names.rs", "former_values.rs"].iter().any(|file| path.ends_with(file));
    for path in files.filter(|path| !names_former(path)) {
        let text = read(&path);
        // Comments also name fields of bodies in this form.
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for (section, name) in line.split('`').skip(1).step_by(2).filter_map(|quoted| quoted.split_once('.')) {
                let Some(section) = shipped.get(section) else { continue };
                named += 1;
                if section.get(name).is_none() && !name.starts_with('{') {
                    failures.push(format!("{}: unknown setting in: {}", path.display(), line.trim()));
                }
            }
        }
    }
    assert!(named > 5, "only {named} messages name a setting");
    all_well(failures);
}

#[test]
fn every_setting_has_a_description() {
    let text = read(&root().join("config.toml"));
    let lines: Vec<&str> = text.lines().collect();
    let unexplained = lines
        .windows(2)
        .filter(|pair| pair[1].contains(" = ") && !pair[1].starts_with('#') && !pair[0].starts_with('#'));
    all_well(unexplained.map(|pair| format!("config.toml: no comment above {}", pair[1])).collect());
}
