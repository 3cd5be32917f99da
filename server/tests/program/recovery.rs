//! Tests `foldwork keys reset`, and commands on a store that does not exist. `foldwork keys reset` creates a new owner
//! key for an operator who has lost all keys.

use std::path::Path;
use std::process::Output;

use crate::process::{Program, foldwork, key, output, text};

fn reset(folder: &Path, arguments: &[&str]) -> Output {
    let mut all = vec!["keys", "reset"];
    all.extend(arguments);
    output(&mut foldwork(folder, &all))
}

/// Returns the key on the only line of standard output.
fn only_line(output: &Output) -> String {
    let line = text(&output.stdout);
    let line = line.strip_suffix('\n').expect("a line");
    assert!(line.starts_with("sk_") && line.len() == 67, "{line}");
    line.to_owned()
}

fn opens(program: &Program, key: &str) -> bool {
    let bearer = format!("Bearer {key}");
    program.status("GET", "/api/v1/keys", &[("authorization", &bearer)], "") == 200
}

#[test]
fn an_export_without_a_store_fails_and_creates_no_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = output(&mut foldwork(folder.path(), &["export", "--offline", "--output", "all.ndjson"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("there is no store in"), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_key_reset_creates_an_owner_key_only_while_no_server_has_the_store_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = reset(folder.path(), &[]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("there is no store in"), "{}", text(&none.stderr));
    assert!(!folder.path().join("data").exists());

    let mut command = foldwork(folder.path(), &["serve"]);
    let mut program = Program::start(command.env("FOLDWORK_BOOTSTRAP_KEY", key('1')));
    assert!(opens(&program, &key('1')));
    let refused = reset(folder.path(), &[]);
    assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(1), String::new()));
    let expected = "another process, such as a server, has the store open; stop the other process first";
    assert!(text(&refused.stderr).contains(expected));
    program.terminate();
    assert_eq!(program.ended().code(), Some(0));

    let kept = reset(folder.path(), &[]);
    assert!(kept.status.success(), "{}", text(&kept.stderr));
    assert!(text(&kept.stderr).contains("are kept; --revoke revokes them"), "{}", text(&kept.stderr));
    let second = only_line(&kept);
    let revoked = reset(folder.path(), &["--revoke"]);
    assert!(text(&revoked.stderr).contains("are revoked"), "{}", text(&revoked.stderr));
    let third = only_line(&revoked);

    let program = Program::start(&mut foldwork(folder.path(), &["serve"]));
    assert!(opens(&program, &third));
    assert!(!opens(&program, &second) && !opens(&program, &key('1')));
}
