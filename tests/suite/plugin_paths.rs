//! Tests the paths that native plugins mount: each path belongs to one plugin and hides no operation of the server.

use foldwork_plugins::{SHIPPED, natives};
use foldwork_server::{API, Config};

#[test]
fn no_path_of_a_plugin_hides_an_operation() {
    let document = foldwork_server::openapi(&Config::default());
    let paths: Vec<&String> = document["paths"].as_object().expect("paths").keys().collect();
    for plugin in natives() {
        for endpoint in &plugin.endpoints {
            let path = format!("/plugins/{}/{}", plugin.name(), endpoint.path);
            let hidden = paths.iter().find(|known| known.replace("{name}", plugin.name()) == path);
            assert_eq!(hidden, None, "{API}{path} is an operation");
        }
    }
}

#[test]
fn plugin_names_are_unique() {
    let mut names: Vec<String> = natives().iter().map(|plugin| plugin.name().to_owned()).collect();
    names.extend(SHIPPED.iter().map(|(name, _)| (*name).to_owned()));
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}
