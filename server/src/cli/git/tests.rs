//! Tests the import of git histories with temporary repositories.

use std::fs;
use std::path::PathBuf;

use git2::{Oid, Repository, Signature, Time};
use serde_json::{Value, json};

use super::outbox::ImportProgress;
use super::walk::ProjectArticles;
use super::*;

/// A repository in a temporary folder, which is removed on drop.
pub struct Scratch {
    pub folder: PathBuf,
    pub repository: Repository,
}

impl Scratch {
    pub fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("foldwork-git-{}", uuid::Uuid::now_v7())).join("My Notes");
        fs::create_dir_all(&folder).expect("a temporary folder");
        let repository = Repository::init(&folder).expect("a repository");
        Self { folder, repository }
    }

    /// Commits a tree with exactly these files. Each item of `files` is the path and the content of a file.
    pub fn commit(&self, minute: i64, files: &[(&str, &[u8])]) -> Oid {
        let parents: Vec<Oid> = self.repository.head().ok().and_then(|head| head.target()).into_iter().collect();
        self.commit_on(Some("HEAD"), &parents, minute, files)
    }

    pub fn commit_on(&self, reference: Option<&str>, parents: &[Oid], minute: i64, files: &[(&str, &[u8])]) -> Oid {
        let mut index = git2::Index::new().expect("an index");
        for (path, bytes) in files {
            index.add(&self.entry(path, bytes)).expect("added");
        }
        let tree = index.write_tree_to(&self.repository).expect("a tree");
        self.commit_tree(reference, parents, minute, tree)
    }

    pub fn commit_tree(&self, reference: Option<&str>, parents: &[Oid], minute: i64, tree: Oid) -> Oid {
        let tree = self.repository.find_tree(tree).expect("a tree");
        let who = Signature::new("Somebody", "somebody@example.org", &Time::new(1_700_000_000 + minute * 60, 120))
            .expect("a signature");
        let parents: Vec<_> = parents.iter().map(|&id| self.repository.find_commit(id).expect("a commit")).collect();
        let parents: Vec<_> = parents.iter().collect();
        let message = format!("Change {minute}\n\nMore about it.\n");
        self.repository.commit(reference, &who, &who, &message, &tree, &parents).expect("a commit")
    }

    /// Writes a tree that libgit2 would not write. Each item of `entries` is the mode, the name and the content of an
    /// entry. The items are in the order of the names.
    pub fn tree(&self, entries: &[(&str, &str, &[u8])]) -> Oid {
        let entry = |(mode, name, bytes): &(&str, &str, &[u8])| {
            let id = self.repository.blob(bytes).expect("a blob");
            [format!("{mode} {name}\0").as_bytes(), id.as_bytes()].concat()
        };
        let bytes: Vec<u8> = entries.iter().flat_map(entry).collect();
        self.repository.odb().expect("a database").write(git2::ObjectType::Tree, &bytes).expect("a tree")
    }

    fn entry(&self, path: &str, bytes: &[u8]) -> git2::IndexEntry {
        let zero = git2::IndexTime::new(0, 0);
        git2::IndexEntry {
            ctime: zero,
            mtime: zero,
            dev: 0,
            ino: 0,
            mode: if path.starts_with("link") { 0o120_000 } else { 0o100_644 },
            uid: 0,
            gid: 0,
            file_size: 0,
            id: self.repository.blob(bytes).expect("a blob"),
            flags: 0,
            flags_extended: 0,
            path: path.as_bytes().to_vec(),
        }
    }

    pub fn events(&self, paths: &[&str]) -> Vec<Value> {
        self.read(paths, ImportProgress::default(), ProjectArticles::default()).0
    }

    /// Returns the events of an import into a project with these articles, and the outcome.
    pub fn read(&self, paths: &[&str], progress: ImportProgress, held: ProjectArticles) -> (Vec<Value>, Summary) {
        let paths: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
        let reading = SourceReader {
            place: SourcePlace::Git(self.folder.clone()),
            project: "notes".to_owned(),
            held: ProjectArticles { seed: "root".to_owned(), ..held },
            progress,
            globs: glob_set(&paths).expect("valid globs"),
            is_everything: paths.is_empty(),
            only_compare: false,
            reported: HashSet::new(),
            now: "2030-01-01T00:00:00Z".parse().expect("a time"),
        };
        let mut events = Vec::new();
        let read = reading.run(&ProgressIndicator::start(None), &mut |batch| {
            let sent = batch.events.iter().map(|event| serde_json::from_str::<Value>(&event.json).expect("an event"));
            events.extend(sent);
            Ok(())
        });
        (events, read.expect("read"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.folder.parent().expect("a parent folder"));
    }
}

fn blob(bytes: &[u8]) -> String {
    Oid::hash_object(git2::ObjectType::Blob, bytes).expect("an id").to_string()
}

pub fn of_type<'a>(events: &'a [Value], event_type: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event_type"] == event_type).collect()
}

pub const LONG: &[u8] = b"# Guide\n\nOne line.\nAnother line.\nA third line.\nA fourth line.\n";

#[test]
fn an_article_follows_changes_renames_and_removal_of_its_file() {
    let scratch = Scratch::new();
    let first = scratch.commit(0, &[("docs/guide.md", LONG), ("code.rs", b"fn main() {}")]);
    let longer = [LONG, b"A fifth line.\n".as_slice()].concat();
    scratch.commit(1, &[("docs/guide.md", &longer), ("code.rs", b"")]);
    scratch.commit(2, &[("manual/the guide.md", &longer), ("code.rs", b"")]);
    let last = scratch.commit(3, &[("code.rs", b"")]);

    let events = scratch.events(&[]);
    let types: Vec<_> = events.iter().map(|event| event["event_type"].as_str().unwrap_or_default()).collect();
    assert_eq!(types, ["article.created", "article.updated", "article.updated", "article.deleted"]);
    assert!(events.iter().all(|event| event["aggregate_id"] == events[0]["aggregate_id"]));
    assert_eq!(
        events[0]["payload"],
        json!({
            "slug": "docs-guide", "title": "Guide", "body": String::from_utf8_lossy(LONG), "tags": ["docs"],
            "path": "docs/guide.md", "folder": "docs",
        })
    );
    assert_eq!(events[1]["payload"], json!({"body": String::from_utf8_lossy(&longer)}));
    assert_eq!(
        events[2]["payload"],
        json!({"slug": "manual-the-guide", "tags": ["manual"], "path": "manual/the guide.md", "folder": "manual"})
    );
    assert_eq!(events[3]["payload"], json!({}));
    assert_eq!(
        events[0]["metadata"],
        json!({
            "source": "git", "commit": first.to_string(), "subject": "Change 0", "path": "docs/guide.md",
            "commit_time": "2023-11-14T22:13:20.000Z", "blob": blob(LONG),
        })
    );
    assert_eq!(events[3]["metadata"]["commit"], last.to_string());
    assert_eq!(events[0]["occurred_at"], "2023-11-14T22:13:20.000Z");
    assert!(!json!(events).to_string().to_lowercase().contains("somebody"));
}

#[test]
fn a_new_commit_does_not_change_the_events_of_earlier_commits() {
    let scratch = Scratch::new();
    scratch.commit(0, &[("a.md", b"one")]);
    scratch.commit(1, &[("a.md", b"two"), ("b.MD", b"x")]);
    let before = scratch.events(&[]);
    assert_eq!(before, scratch.events(&[]));
    scratch.commit(2, &[("a.md", b"three"), ("b.MD", b"x")]);
    let after = scratch.events(&[]);
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), before.len() + 1);
}

#[test]
fn a_file_that_reappears_is_a_new_article() {
    let scratch = Scratch::new();
    scratch.commit(0, &[("a.md", b"one")]);
    scratch.commit(1, &[("other.md", b"something else entirely, and longer than that")]);
    scratch.commit(2, &[("a.md", b"one"), ("other.md", b"something else entirely, and longer than that")]);
    let events = scratch.events(&[]);
    let created = of_type(&events, "article.created");
    assert_eq!(created.len(), 3);
    assert_ne!(created[0]["aggregate_id"], created[2]["aggregate_id"]);
    assert_eq!(created[0]["payload"]["slug"], created[2]["payload"]["slug"]);
}

#[test]
fn removed_front_matter_unsets_its_fields() {
    let scratch = Scratch::new();
    scratch.commit(0, &[("a.md", b"---\ntitle: T\ndescription: D\n---\nx\n")]);
    scratch.commit(1, &[("a.md", b"---\ntitle: T\n---\nx\n")]);
    scratch.commit(2, &[("a.md", b"---\ntitle: 'T'\n---\nx\n")]);
    let events = scratch.events(&[]);
    assert_eq!(events[0]["payload"]["description"], "D");
    assert_eq!(events[1]["payload"], json!({"front_matter": {"title": "T"}, "$unset": ["description"]}));
    assert_eq!(events[2]["payload"], json!({}));
}

#[test]
fn a_merge_counts_as_one_change() {
    let scratch = Scratch::new();
    let root = scratch.commit(0, &[("a.md", b"one")]);
    let side = scratch.commit_on(None, &[root], 1, &[("a.md", b"side")]);
    let side = scratch.commit_on(None, &[side], 2, &[("a.md", b"side, more")]);
    let main = scratch.commit(3, &[("a.md", b"one"), ("b.md", b"main")]);
    let merge = scratch.commit_on(Some("HEAD"), &[main, side], 4, &[("a.md", b"side, more"), ("b.md", b"main")]);
    let events = scratch.events(&[]);
    assert_eq!(events.len(), 3);
    assert_eq!(events[2]["metadata"]["commit"], merge.to_string());
    assert_eq!(events[2]["payload"]["body"], "side, more");
}

#[test]
fn a_merge_with_swapped_parents_creates_no_duplicate_articles() {
    let scratch = Scratch::new();
    let other: &[u8] = b"# Plan\n\nNothing of this is in any other file.\nNot even this line.\nOr this one.\n";
    let root = scratch.commit(0, &[("a.md", b"one")]);
    let main = scratch.commit_on(None, &[root], 1, &[("a.md", b"one"), ("guide.md", LONG)]);
    let main = scratch.commit_on(None, &[main], 2, &[("a.md", b"one"), ("docs/guide.md", LONG)]);
    let side = scratch.commit_on(None, &[root], 3, &[("a.md", b"two"), ("plan.md", other)]);
    let merged: [(&str, &[u8]); 3] = [("a.md", b"two"), ("docs/guide.md", LONG), ("plan.md", other)];
    let mut articles = Vec::new();
    for (minute, parents) in [(4, [main, side]), (5, [side, main])] {
        let merge = scratch.commit_on(None, &parents, minute, &merged);
        scratch.repository.set_head_detached(merge).expect("moved");
        let events = scratch.events(&[]);
        assert!(of_type(&events, "article.deleted").is_empty());
        let created: std::collections::BTreeSet<String> =
            of_type(&events, "article.created").iter().map(|event| event["aggregate_id"].to_string()).collect();
        assert_eq!(created.len(), 3);
        articles.push(created);
    }
    assert_eq!(articles[0], articles[1]);
}

#[test]
fn a_file_that_two_merges_add_under_different_paths_has_two_articles() {
    let scratch = Scratch::new();
    let root = scratch.commit(0, &[("a.md", b"one")]);
    let side = scratch.commit_on(None, &[root], 1, &[("a.md", b"one"), ("guide.md", LONG)]);
    let more = scratch.commit_on(None, &[side], 2, &[("a.md", b"two"), ("guide.md", LONG)]);
    let merge = scratch.commit_on(None, &[root, side], 3, &[("a.md", b"one"), ("guide.md", LONG)]);
    let moved = scratch.commit_on(None, &[merge], 4, &[("a.md", b"one"), ("docs/guide.md", LONG)]);
    let both: [(&str, &[u8]); 3] = [("a.md", b"two"), ("docs/guide.md", LONG), ("guide.md", LONG)];
    let merge = scratch.commit_on(None, &[moved, more], 5, &both);
    scratch.repository.set_head_detached(merge).expect("moved");
    let events = scratch.events(&[]);
    let ids: std::collections::BTreeSet<String> =
        of_type(&events, "article.created").iter().map(|event| event["aggregate_id"].to_string()).collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn globs_select_articles_with_their_whole_history() {
    let scratch = Scratch::new();
    scratch.commit(0, &[("draft/guide.md", LONG), ("notes.md", b"n")]);
    scratch.commit(1, &[("docs/deep/guide.md", LONG), ("notes.md", b"n")]);
    let all = scratch.events(&[]);
    assert_eq!(all.len(), 3);
    let chosen = scratch.events(&["docs/**"]);
    assert_eq!(
        chosen.iter().map(|event| &event["event_type"]).collect::<Vec<_>>(),
        ["article.created", "article.updated"]
    );
    assert!(chosen.iter().all(|event| all.contains(event)));
    assert_eq!(scratch.events(&["./docs/"]), chosen);
    assert_eq!(scratch.events(&["**/*.md"]).len(), 3);
    assert_eq!(scratch.events(&["*.md"]).len(), 1);
    assert!(scratch.events(&["docs/*.md"]).is_empty());
    assert!(glob_set(&["a[".to_owned()]).is_err());
}

#[test]
fn only_files_with_a_markdown_extension_are_imported() {
    let scratch = Scratch::new();
    let files: [(&str, &[u8]); 7] = [
        ("a.mkd", b"a"),
        ("b.MKDN", b"b"),
        ("c.mkdown", b"c"),
        ("d.mdown", b"d"),
        ("e.markdown", b"e"),
        ("f.mdx", b"f"),
        ("g.txt", b"g"),
    ];
    scratch.commit(0, &files);
    assert_eq!(scratch.events(&[]).len(), 6);
}

#[test]
fn a_file_is_skipped_until_it_contains_text() {
    let scratch = Scratch::new();
    let large = vec![b'x'; 512 * 1024 + 1];
    scratch.commit(0, &[("a.md", b"\xff\xfe"), ("b.md", &large), ("link.md", b"a.md"), ("c.txt", b"c")]);
    assert!(scratch.events(&[]).is_empty());
    scratch.commit(1, &[("a.md", b"text"), ("link.md", b"a.md")]);
    let events = scratch.events(&[]);
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["event_type"], &events[0]["payload"]["body"]), (&json!("article.created"), &json!("text")));
}

#[test]
fn articles_of_two_paths_that_yield_the_same_slug_get_different_slugs() {
    let scratch = Scratch::new();
    scratch.commit(0, &[("a/b.md", b"one"), ("a-b.md", b"two")]);
    let events = scratch.events(&[]);
    let mut slugs: Vec<_> = events.iter().map(|event| event["payload"]["slug"].to_string()).collect();
    slugs.sort();
    assert_eq!(slugs, ["\"a-b\"", "\"a-b-2\""]);
}

#[test]
fn an_empty_repository_has_no_events_and_its_project_has_the_name_of_the_folder() {
    let scratch = Scratch::new();
    assert!(scratch.events(&[]).is_empty());
    assert_eq!(project_slug(&FileSource::repository(&scratch.folder).expect("opened")), "my-notes");
}

#[test]
fn a_folder_outside_a_repository_is_rejected() {
    let scratch = Scratch::new();
    assert!(FileSource::repository(scratch.folder.parent().expect("a parent folder")).is_err());
}

#[test]
fn renames_are_found_even_if_git_settings_disable_or_limit_rename_detection() {
    let scratch = Scratch::new();
    let mut config = scratch.repository.config().expect("a configuration");
    config.set_i32("diff.renameLimit", 1).expect("set");
    config.set_str("diff.renames", "false").expect("set");
    let text = |number: usize, more: &str| {
        let lines: String = (0..20).map(|line| format!("Line {line} of text {number}, like no other.\n")).collect();
        format!("{lines}{more}").into_bytes()
    };
    let tree = |folder: &str, more: &str| -> Vec<(String, Vec<u8>)> {
        (0..5).map(|number| (format!("{folder}/{number}.md"), text(number, more))).collect()
    };
    for (minute, files) in [(0, tree("old", "")), (1, tree("new", "One more line.\n"))] {
        let files: Vec<(&str, &[u8])> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
        scratch.commit(minute, &files);
    }
    let events = scratch.events(&[]);
    assert_eq!((of_type(&events, "article.created").len(), of_type(&events, "article.updated").len()), (5, 5));
    assert!(of_type(&events, "article.deleted").is_empty());
}
