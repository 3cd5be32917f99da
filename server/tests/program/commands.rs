//! Runs every command that calls a server. The tests use a real server, and compare the requests with the OpenAPI
//! document.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::process::{Program, foldwork, key, output, text};
use crate::recorder::{Recorder, Sent};

/// The commands that call no server, or that start a server.
const WITHOUT_SERVER: [&str; 9] = [
    "serve",
    "demo",
    "openapi",
    "keys reset",
    "backup key",
    "backup verify",
    "restore",
    "plugins test",
    "plugins list",
];
const API: &str = "/api/v1";

/// A server behind a recorder, and the names of the commands that were run.
struct Session {
    recorder: Recorder,
    folder: tempfile::TempDir,
    run: BTreeSet<String>,
    _program: Program,
}

impl Session {
    fn start() -> Session {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = foldwork(folder.path(), &["serve", "--database", "mem://", "--files", "mem://"]);
        command
            .env("FOLDWORK_BOOTSTRAP_KEY", key('1'))
            .env("FOLDWORK_BACKUP__URL", format!("file://{}", folder.path().join("archive").display()))
            .env("FOLDWORK_BACKUP_KEY", text(&output(&mut foldwork(folder.path(), &["backup", "key"])).stdout).trim());
        let program = Program::start(&mut command);
        Session { recorder: Recorder::start(&program.address), folder, run: BTreeSet::new(), _program: program }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command with the owner's key. `name` is the part of `line` that names the command.
    fn call(&mut self, name: &str, line: &str) -> Output {
        assert!(line.starts_with(name), "{line}");
        self.run.insert(name.to_owned());
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let mut command = foldwork(self.folder.path(), &arguments);
        output(command.env("FOLDWORK_SERVER", self.recorder.url()).env("FOLDWORK_TOKEN", key('1')))
    }

    /// Runs a command that succeeds, and returns its standard output.
    fn ok(&mut self, name: &str, line: &str) -> String {
        let output = self.call(name, line);
        assert!(output.status.success(), "{line}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs a command that the server refuses, and returns its standard error.
    fn refused(&mut self, name: &str, line: &str) -> String {
        let output = self.call(name, line);
        assert!(!output.status.success(), "{line}: {}", text(&output.stdout));
        text(&output.stderr)
    }
}

#[test]
fn every_command_calls_only_operations_of_the_openapi_document() {
    let mut session = Session::start();
    call_keys(&mut session);
    call_members_and_workspaces(&mut session);
    call_imports_and_exports(&mut session);
    assert!(session.ok("dashboard", "dashboard").contains("/sign-in#sic_"));
    assert!(session.ok("rebuild graph", "rebuild graph").contains("rebuilt from"));
    assert!(session.ok("backup status", "backup status").contains("archive"));
    let all = leaves(session.path(), &[]);
    let missing: Vec<&String> =
        all.iter().filter(|name| !session.run.contains(*name) && !WITHOUT_SERVER.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "no test calls {missing:?}");
    let document = document(session.path());
    let sent = session.recorder.sent();
    let wrong: Vec<String> = sent.iter().filter_map(|sent| fault(&document, sent)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(sent.len() >= session.run.len(), "only {} requests were sent", sent.len());
}

fn call_keys(session: &mut Session) {
    let id_of = |session: &mut Session, name: &str| {
        let listed = session.ok("keys list", "keys list --json");
        let records = listed.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
        let found = records.filter(|record| record["name"] == name).find(|record| record["expires_at"].is_null());
        found.expect(name)["id"].as_str().expect("an id").to_owned()
    };
    let made = session.call("keys create", "keys create --name plain");
    assert!(text(&made.stdout).starts_with("sk_"));
    assert!(text(&made.stderr).contains("scopes: api:read, api:write (the default"), "{}", text(&made.stderr));
    let made = session.call("keys create", "keys create --name reader --scopes api:read");
    assert!(text(&made.stderr).contains("scopes: api:read\n"), "{}", text(&made.stderr));
    assert!(session.ok("keys list", "keys list").contains("reader"));
    let plain = id_of(session, "plain");
    let rotated = session.call("keys rotate", &format!("keys rotate {plain} --after 2h"));
    assert!(text(&rotated.stdout).starts_with("sk_"), "{}", text(&rotated.stderr));
    assert!(text(&rotated.stderr).contains(&format!("the old key {plain} ends at ")), "{}", text(&rotated.stderr));
    // The owner's key has created all other keys.
    let owner = id_of(session, "owner");
    let refused = session.refused("keys revoke", &format!("keys revoke {owner}"));
    assert!(
        refused.contains("derived_keys") && refused.contains("reader") && refused.contains("--cascade"),
        "{refused}"
    );
    let successor = id_of(session, "plain");
    assert_ne!(successor, plain);
    session.ok("keys revoke", &format!("keys revoke {successor} --cascade false"));
    session.ok("keys revoke", &format!("keys revoke {plain} --cascade true"));
    let reader = id_of(session, "reader");
    assert_eq!(session.ok("keys revoke", &format!("keys revoke {reader}")), format!("revoked {reader}\n"));
}

fn call_members_and_workspaces(session: &mut Session) {
    session.ok("members invite", "members invite ada@example.com --role viewer");
    let listed = session.ok("members list", "members list --json");
    let member = |status: &str| {
        let records = listed.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
        let found = records.into_iter().find(|record| record["status"] == status).expect("a member");
        found["id"].as_str().expect("an id").to_owned()
    };
    let (owner, invited) = (member("active"), member("invited"));
    session.ok("members role", &format!("members role {invited} editor"));
    let refused = session.refused("members role", &format!("members role {invited} owner --workspace-owner"));
    assert!(refused.contains("not_joined"), "{refused}");
    session.ok("members remove", &format!("members remove {invited} --reassign-to user:{owner}"));
    assert!(session.ok("plans set", &format!("plans set {owner} --status active")).contains("active"));
    assert!(session.ok("users list", "users list").contains(&owner));
    let listed = session.ok("workspaces list", "workspaces list --json");
    let record: Value = serde_json::from_str(listed.lines().next().expect("a workspace")).expect("a record");
    let workspace = record["id"].as_str().expect("an id");
    assert!(session.ok("workspaces rename", &format!("workspaces rename {workspace} renamed")).contains("renamed"));
    // The first workspace cannot be deleted, so no deletion is scheduled, and the restore changes nothing.
    let refused = session.refused("workspaces delete", &format!("workspaces delete {workspace}"));
    assert!(refused.contains("first_workspace"), "{refused}");
    session.call("workspaces restore", &format!("workspaces restore {workspace}"));
}

fn call_imports_and_exports(session: &mut Session) {
    let lines = [
        r#"{"definition": {"type_name": "note", "display_name": "Note", "traits": [], "fields": []}}"#,
        r#"{"aggregate_id": "a", "aggregate_type": "article", "event_type": "article.created", "project_id": "docs",
            "payload": {"title": "One"}}"#,
    ];
    let lines: Vec<String> = lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    std::fs::write(session.path().join("events.ndjson"), lines.join("\n")).expect("a file");
    assert!(session.ok("import", "import events.ndjson").contains("imported 1 "));
    git(session.path());
    let imported = session.ok("import git", "import git repository --strict");
    assert!(imported.starts_with("imported 1 event (1 article) into project `repository` in "), "{imported}");
    let again = session.ok("import git", "import git repository");
    assert!(again.starts_with("imported 0 events (1 article) into project `repository` in "), "{again}");
    let imported = session.ok("import folder", "import folder repository --project notes");
    assert!(imported.starts_with("imported 1 event (1 article) into project `notes` in "), "{imported}");
    publish(session);
    let exported = session.ok("export", "export --output all.ndjson --files files --types article.created");
    assert!(exported.contains("exported "), "{exported}");
    session.ok("export", "export --output rest.ndjson --after 1 --aggregate-type article");
    session.ok("import", "import all.ndjson --files files");
}

/// Imports an article twice, and twice more after its file has become a draft. Only the first import publishes the
/// article, and only the third import unpublishes it.
fn publish(session: &mut Session) {
    let file = session.path().join("repository/one.md");
    for (draft, expected) in [("false", [1, 0]), ("false", [1, 0]), ("true", [1, 1]), ("true", [1, 1])] {
        std::fs::write(&file, format!("---\ndraft: {draft}\n---\n# One\n\nText.\n")).expect("a file");
        session.ok("import folder", "import folder repository --project notes --publish");
        for (kind, number) in ["published", "unpublished"].into_iter().zip(expected) {
            session.ok("export", &format!("export --output {kind}.ndjson --types article.{kind}"));
            let events = std::fs::read_to_string(session.path().join(format!("{kind}.ndjson"))).expect("an export");
            let lines = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
            let count = lines.filter(|line| line["event_type"] == *format!("article.{kind}")).count();
            assert_eq!(count, number, "draft: {draft}: {events}");
        }
    }
}

/// Creates a repository with one commit.
fn git(folder: &Path) {
    let repository = folder.join("repository");
    std::fs::create_dir_all(&repository).expect("a folder");
    std::fs::write(repository.join("one.md"), "# One\n\nText.\n").expect("a file");
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "one.md"],
        &["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "one"],
    ] {
        let status = std::process::Command::new("git").args(arguments).current_dir(&repository).status();
        assert!(status.expect("git").success(), "git {arguments:?}");
    }
}

/// Returns the names of the commands at or below `path` that have no subcommands, according to `--help`.
fn leaves(folder: &Path, path: &[&str]) -> Vec<String> {
    let arguments: Vec<&str> = path.iter().copied().chain(["--help"]).collect();
    let help = text(&output(&mut foldwork(folder, &arguments)).stdout);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The continuation of a description is indented further.
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> =
        names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    if names.is_empty() {
        return vec![path.join(" ")];
    }
    names.iter().flat_map(|name| leaves(folder, &[path, &[*name]].concat())).collect()
}

fn document(folder: &Path) -> Value {
    serde_json::from_slice(&output(&mut foldwork(folder, &["openapi"])).stdout).expect("the document")
}

/// Returns the operation with a method and a path. The path is relative to the base of the API. A segment of the path
/// is `*` if the segment is only known at run time.
fn operation<'a>(document: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let segments: Vec<&str> = path.split('/').collect();
    let is_meant = |template: &str| {
        let parts: Vec<&str> = template.split('/').collect();
        parts.len() == segments.len()
            && parts.iter().zip(&segments).all(|(part, segment)| part.starts_with('{') || part == segment)
    };
    let paths = document["paths"].as_object()?;
    let found = paths.iter().filter(|(template, _)| is_meant(template));
    // A path without parameters is more specific.
    let (_, item) = found.min_by_key(|(template, _)| template.matches('{').count())?;
    item.get(method.to_ascii_lowercase())
}

/// Returns a message about the first way in which a request violates the document. Returns `None` if the document
/// allows the request, or if the request does not call the API.
fn fault(document: &Value, sent: &Sent) -> Option<String> {
    let (path, query) = sent.target.split_once('?').unwrap_or((&sent.target, ""));
    let path = path.strip_prefix(API)?;
    let line = format!("{} {}", sent.method, sent.target);
    // A path of a file is one parameter with encoded or plain slashes.
    let shortened = path.strip_prefix("/files/").map(|rest| format!("/files/{}", rest.replace('/', "%2F")));
    let Some(operation) = operation(document, &sent.method, shortened.as_deref().unwrap_or(path)) else {
        return Some(format!("{line}: the document has no such operation"));
    };
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has = |name: &str| parameters.iter().any(|known| known["in"] == "query" && known["name"] == *name);
    let names: Vec<&str> =
        query.split('&').filter_map(|pair| pair.split('=').next()).filter(|n| !n.is_empty()).collect();
    if let Some(unknown) = names.iter().find(|name| !has(name)) {
        return Some(format!("{line}: the operation has no query parameter {unknown}"));
    }
    // A command that requests pages must be able to request the next page.
    if names.contains(&"limit") && !has("cursor") && !has("after") {
        return Some(format!("{line}: the operation has pages, but no parameter cursor or after"));
    }
    unknown_field(document, operation, sent).map(|field| format!("{line}: the body has an unknown field {field}"))
}

/// Returns a field of a JSON body that the operation's schema does not declare, if any.
fn unknown_field(document: &Value, operation: &Value, sent: &Sent) -> Option<String> {
    let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(&sent.body) else { return None };
    let mut schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    if let Some(name) = schema["$ref"].as_str() {
        schema = document.pointer(name.trim_start_matches('#'))?;
    }
    let known = schema["properties"].as_object()?;
    body.keys().find(|field| !known.contains_key(*field)).cloned()
}

#[test]
fn the_command_plugins_list_reads_the_given_configuration_file() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("other.toml"), "[plugins]\nenabled = [\"linker\"]\n").expect("a file");
    let list = |file: &str| output(&mut foldwork(folder.path(), &["plugins", "list", "--config", file]));
    let listed = text(&list("other.toml").stdout);
    let linker = listed.lines().find(|line| line.starts_with("linker ")).expect("a line");
    assert_eq!(linker.split_whitespace().nth(2), Some("1"), "{listed}");
    assert!(!list("absent.toml").status.success());
}

#[test]
fn every_literal_path_in_the_source_of_the_commands_is_in_the_openapi_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let document = document(folder.path());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli");
    let mut paths = Vec::new();
    let mut folders = vec![source];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the source") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let code = std::fs::read_to_string(&path).expect("a file");
                let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
                paths.extend(code.split(".request(Method::").skip(1).filter_map(named_path));
            }
        }
    }
    assert!(paths.len() >= 20, "{paths:?}");
    let unknown: Vec<&(String, String)> =
        paths.iter().filter(|(method, path)| operation(&document, method, path).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Returns the method and the path of a call. `call` is the text after `.request(Method::`, for example
/// `GET, &["keys", id])`. Returns `None` if the path is no list or begins with a variable.
fn named_path(call: &str) -> Option<(String, String)> {
    let (method, rest) = call.split_once(',')?;
    let (segments, _) = rest.trim_start().strip_prefix("&[")?.split_once(']')?;
    let names =
        segments.split(',').map(str::trim).map(|segment| segment.strip_prefix('"').map(|name| &name[..name.len() - 1]));
    let names: Vec<Option<&str>> = names.collect();
    names.first().copied().flatten()?;
    let path: String = names.iter().map(|name| format!("/{}", name.unwrap_or("*"))).collect();
    Some((method.to_owned(), path))
}
