//! Tests imports of repositories: after merges, resets and rewritten histories, with files that cannot be articles, and
//! with slugs that move between articles.

use std::fs;

use git2::{Oid, Signature, Time};
use serde_json::{Value, json};

use super::model_project::Model;
use super::outbox::ImportProgress;
use super::tests::{LONG, Scratch, of_type};
use super::walk::ProjectArticles;
use super::*;

/// Moves HEAD to a commit and imports the repository. Returns the events of the import.
fn import_at(scratch: &Scratch, model: &mut Model, head: Oid) -> Vec<Value> {
    scratch.repository.set_head_detached(head).expect("moved");
    model.import(&SourcePlace::Git(scratch.folder.clone()), None).0
}

fn texts(expected: &[(&str, &[u8])]) -> std::collections::BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    expected.iter().map(|(path, bytes)| ((*path).to_owned(), text(bytes))).collect()
}

const OTHER: &[u8] = b"Nothing here is like the guide.\nNot this line.\nNor this one.\nAnd not the last.\n";

#[test]
fn a_merge_that_brings_a_renamed_and_rewritten_file_renames_its_article() {
    let (scratch, mut model) = (Scratch::new(), Model::default());
    let root = scratch.commit_on(None, &[], 0, &[("old.md", LONG), ("x.md", b"x")]);
    let side = scratch.commit_on(None, &[root], 1, &[("new.md", LONG), ("x.md", b"x")]);
    let side = scratch.commit_on(None, &[side], 2, &[("new.md", OTHER), ("x.md", b"x")]);
    let merge = scratch.commit_on(None, &[root, side], 3, &[("new.md", OTHER), ("x.md", b"x")]);
    let events = import_at(&scratch, &mut model, merge);
    assert!(of_type(&events, "article.deleted").is_empty());
    let renamed = of_type(&events, "article.updated");
    assert_eq!((renamed.len(), &renamed[0]["payload"]["path"]), (1, &json!("new.md")));
    assert_eq!(renamed[0]["aggregate_id"], of_type(&events, "article.created")[0]["aggregate_id"]);
    assert_eq!(model.texts(), texts(&[("new.md", OTHER), ("x.md", b"x")]));
}

#[test]
fn a_file_removed_on_an_imported_branch_stays_removed_after_the_merge() {
    let (scratch, mut model) = (Scratch::new(), Model::default());
    let root = scratch.commit_on(None, &[], 0, &[("a.md", LONG), ("b.md", OTHER)]);
    let side = scratch.commit_on(None, &[root], 1, &[("b.md", OTHER)]);
    import_at(&scratch, &mut model, side);
    let main = scratch.commit_on(None, &[root], 2, &[("a.md", LONG), ("b.md", b"new")]);
    let merge = scratch.commit_on(None, &[main, side], 3, &[("b.md", b"new")]);
    import_at(&scratch, &mut model, merge);
    assert_eq!(model.texts(), texts(&[("b.md", b"new")]));
}

#[test]
fn an_import_of_a_merge_reverts_changes_that_the_merged_branch_reverted() {
    let (scratch, mut model) = (Scratch::new(), Model::default());
    let root = scratch.commit_on(None, &[], 0, &[("a.md", b"one")]);
    let side = scratch.commit_on(None, &[root], 1, &[("a.md", b"edited"), ("draft.md", OTHER)]);
    import_at(&scratch, &mut model, side);
    let back = scratch.commit_on(None, &[side], 2, &[("a.md", b"one")]);
    let main = scratch.commit_on(None, &[root], 3, &[("a.md", b"one"), ("b.md", LONG)]);
    let merge = scratch.commit_on(None, &[main, back], 4, &[("a.md", b"one"), ("b.md", LONG)]);
    let events = import_at(&scratch, &mut model, merge);
    assert!(events.iter().all(|event| event["metadata"]["reconciled"] == true), "{events:?}");
    assert_eq!(model.texts(), texts(&[("a.md", b"one"), ("b.md", LONG)]));
}

#[test]
fn a_rewritten_history_creates_no_duplicate_articles() {
    for root_too in [false, true] {
        let (scratch, mut model) = (Scratch::new(), Model::default());
        let root = scratch.commit_on(None, &[], 0, &[("a.md", b"one")]);
        let note = scratch.commit_on(None, &[root], 1, &[("a.md", b"one"), ("note.md", LONG)]);
        import_at(&scratch, &mut model, note);
        let id = model.id("note.md");
        // The note is rebased on another commit, and then amended.
        let base: &[Oid] = if root_too { &[] } else { &[root] };
        let pulled = scratch.commit_on(None, base, 2, &[("a.md", b"two")]);
        let rebased = scratch.commit_on(None, &[pulled], 3, &[("a.md", b"two"), ("note.md", LONG)]);
        import_at(&scratch, &mut model, rebased);
        assert_eq!(model.texts(), texts(&[("a.md", b"two"), ("note.md", LONG)]));
        assert_eq!(model.id("note.md"), id);
        let amended = scratch.commit_on(None, &[pulled], 4, &[("a.md", b"two"), ("moved.md", LONG)]);
        import_at(&scratch, &mut model, amended);
        assert_eq!(model.texts(), texts(&[("a.md", b"two"), ("moved.md", LONG)]));
        assert_eq!(model.id("moved.md"), id);
    }
}

#[test]
fn an_import_follows_a_reset_and_a_fast_forward_of_the_branch() {
    let (scratch, mut model) = (Scratch::new(), Model::default());
    let root = scratch.commit_on(None, &[], 0, &[("a.md", b"one")]);
    let later = scratch.commit_on(None, &[root], 1, &[("a.md", b"two"), ("b.md", OTHER)]);
    import_at(&scratch, &mut model, later);
    import_at(&scratch, &mut model, root);
    assert_eq!(model.texts(), texts(&[("a.md", b"one")]));
    // HEAD moves forward again, to the same commit.
    import_at(&scratch, &mut model, later);
    assert_eq!(model.texts(), texts(&[("a.md", b"two"), ("b.md", OTHER)]));
    assert!(import_at(&scratch, &mut model, later).is_empty());
}

#[test]
fn event_times_follow_the_order_of_commits() {
    let scratch = Scratch::new();
    for minute in [10, 5, 20] {
        scratch.commit(minute, &[("a.md", format!("{minute}").as_bytes())]);
    }
    let events = scratch.events(&[]);
    let times = |at: &dyn Fn(&Value) -> Value| -> Vec<Value> { events.iter().map(at).collect() };
    let (early, middle, late) = ("2023-11-14T22:18:20.000Z", "2023-11-14T22:23:20.000Z", "2023-11-14T22:33:20.000Z");
    assert_eq!(times(&|event| event["occurred_at"].clone()), [middle, middle, late]);
    assert_eq!(times(&|event| event["metadata"]["commit_time"].clone()), [middle, early, late]);
}

#[test]
fn a_file_that_cannot_be_imported_is_reported_missing_and_other_files_are_imported() {
    let scratch = Scratch::new();
    let control = vec![1_u8; 400 * 1024];
    scratch.commit(0, &[("a.md", &control), ("b.md", b"two"), ("c.md", b"\xff\xfe")]);
    let (events, summary) = scratch.read(&[], ImportProgress::default(), ProjectArticles::default());
    assert_eq!((events.len(), summary.articles), (1, 1));
    assert_eq!(summary.missing.into_iter().collect::<Vec<_>>(), ["a.md", "c.md"]);
}

#[test]
fn a_deleted_article_is_created_again_when_its_file_becomes_text_again() {
    let (scratch, mut model) = (Scratch::new(), Model::default());
    let first = scratch.commit_on(None, &[], 0, &[("a.md", b"one")]);
    let broken = scratch.commit_on(None, &[first], 1, &[("a.md", b"\xff")]);
    let mended = scratch.commit_on(None, &[broken], 2, &[("a.md", b"three")]);
    let events = import_at(&scratch, &mut model, mended);
    let types: Vec<&Value> = events.iter().map(|event| &event["event_type"]).collect();
    assert_eq!(types, ["article.created", "article.deleted", "article.created"]);
    assert!(events.iter().all(|event| event["aggregate_id"] == events[0]["aggregate_id"]));
}

#[test]
fn the_subject_of_a_commit_is_cut_and_has_no_control_characters() {
    let scratch = Scratch::new();
    let tree = scratch
        .repository
        .find_tree(git2::Index::new().expect("an index").write_tree_to(&scratch.repository).expect("a tree"));
    let who = Signature::new("Somebody", "somebody@example.org", &Time::new(1_700_000_000, 0)).expect("a signature");
    let message = format!("A{}B", "\u{1}".repeat(10_000));
    let id =
        scratch.repository.commit(Some("HEAD"), &who, &who, &message, &tree.expect("a tree"), &[]).expect("a commit");
    let subject = history::Commit::read(&scratch.repository, id).expect("read").subject;
    assert!(subject.starts_with("A ") && subject.len() == 500, "{subject}");
}

#[test]
fn a_branch_without_commits_has_no_head() {
    let scratch = Scratch::new();
    assert_eq!(history::head(&scratch.repository).expect("read"), None);
    scratch.commit(0, &[("a.md", b"one")]);
    scratch.repository.set_head("refs/heads/elsewhere").expect("set");
    assert_eq!(history::head(&scratch.repository).expect("read"), None);
}

#[test]
fn an_import_without_a_common_commit_removes_the_fields_of_removed_front_matter() {
    let (one, other, mut model) = (Scratch::new(), Scratch::new(), Model::default());
    let first = one.commit_on(None, &[], 0, &[("a.md", b"---\ndescription: D\ntitle: a\n---\nx\n")]);
    import_at(&one, &mut model, first);
    let by_hand = model.articles.values_mut().flatten().next().expect("an article");
    by_hand.insert("date".to_owned(), "2020-01-01T00:00:00.000Z".into());
    // The other repository has no common commit, so the import only compares the article with the file.
    let later = other.commit_on(None, &[], 1, &[("a.md", b"x\n")]);
    let events = import_at(&other, &mut model, later);
    let payloads: Vec<&Value> = events.iter().map(|event| &event["payload"]).collect();
    assert_eq!(payloads, [&json!({"$unset": ["description", "front_matter"]})]);
    assert!(import_at(&other, &mut model, later).is_empty());
}

#[test]
fn a_file_with_an_unusual_mode_is_imported_as_a_regular_file() {
    for mode in ["100600", "100640", "100666", "100775"] {
        let scratch = Scratch::new();
        let [one, two] = [b"one", b"two"].map(|bytes| scratch.tree(&[(mode, "a.md", bytes)]));
        let first = scratch.commit_tree(None, &[], 0, one);
        let second = scratch.commit_tree(None, &[first], 1, two);
        scratch.repository.set_head_detached(second).expect("moved");
        let events = scratch.events(&[]);
        let bodies: Vec<&Value> = events.iter().map(|event| &event["payload"]["body"]).collect();
        assert_eq!(bodies, ["one", "two"], "{mode}");
    }
}

#[test]
fn symlinks_submodules_and_git_lfs_pointers_are_reported_missing() {
    let scratch = Scratch::new();
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 9\n", "0".repeat(64));
    let tree = scratch.tree(&[
        ("100644", "large.md", pointer.as_bytes()),
        ("120000", "link.md", b"text.md"),
        ("120000", "link.txt", b"text.md"),
        ("160000", "module.md", b""),
        ("100644", "text.md", b"text"),
    ]);
    let commit = scratch.commit_tree(None, &[], 0, tree);
    scratch.repository.set_head_detached(commit).expect("moved");
    let (events, summary) = scratch.read(&[], ImportProgress::default(), ProjectArticles::default());
    assert_eq!((events.len(), summary.articles), (1, 1));
    assert_eq!(summary.missing.into_iter().collect::<Vec<_>>(), ["large.md", "link.md", "module.md"]);
}

#[test]
fn a_clone_without_the_trees_of_earlier_commits_is_imported_in_one_step() {
    let scratch = Scratch::new();
    let first = scratch.commit(0, &[("docs/a.md", b"one")]);
    let second = scratch.commit(1, &[("docs/a.md", b"two")]);
    let tree = scratch.repository.find_commit(first).expect("a commit").tree_id().to_string();
    let (start, end) = tree.split_at(2);
    fs::remove_file(scratch.repository.path().join("objects").join(start).join(end)).expect("removed");
    let mut model = Model::default();
    let events = import_at(&scratch, &mut model, second);
    assert_eq!((events.len(), &events[0]["metadata"]["reconciled"]), (1, &json!(true)));
    let third = scratch.commit(2, &[("docs/a.md", b"three")]);
    let events = import_at(&scratch, &mut model, third);
    assert_eq!((events.len(), &events[0]["metadata"]["reconciled"]), (1, &Value::Null));
    assert_eq!(model.texts(), texts(&[("docs/a.md", b"three")]));
}

#[test]
fn a_repository_in_an_unsupported_format_is_rejected_with_a_remedy() {
    for (name, value, remedy) in
        [("objectformat", "sha256", "foldwork import folder"), ("refstorage", "reftable", "git refs migrate")]
    {
        let scratch = Scratch::new();
        let mut config = scratch.repository.config().expect("a configuration");
        config.set_i32("core.repositoryformatversion", 1).expect("set");
        config.set_str(&format!("extensions.{name}"), value).expect("set");
        let refused = FileSource::repository(&scratch.folder).err().expect("refused").to_string();
        assert!(refused.contains(remedy), "{refused}");
    }
}

/// Returns each article's path and slug, in order.
fn slugs(model: &Model) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fields = model.articles.values().flatten();
    let mut slugs: Vec<_> = fields.map(|fields| (text(&fields["path"]), text(&fields["slug"]))).collect();
    slugs.sort();
    slugs
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, slug)| ((*path).to_owned(), (*slug).to_owned())).collect()
}

#[test]
fn an_article_can_take_a_slug_that_another_article_releases_in_the_same_commit() {
    let file = |slug: &str, text: &str| format!("---\nslug: {slug}\n---\n{text}\n").into_bytes();
    // In the first case `a.md` gets the slug that `z.md` gives up. In the second case the files exchange their slugs.
    for (before, after) in [(("own", "latest"), ("latest", "old")), (("x", "y"), ("y", "x"))] {
        let (scratch, mut model) = (Scratch::new(), Model::default());
        let commit = |parents: &[Oid], minute: i64, (a, z): (&str, &str)| {
            scratch.commit_on(None, parents, minute, &[("a.md", &file(a, "A")), ("z.md", &file(z, "Z"))])
        };
        let first = commit(&[], 0, before);
        let second = commit(&[first], 1, after);
        let events = import_at(&scratch, &mut model, second);
        assert!(events.iter().all(|event| event["metadata"]["reconciled"].is_null()), "{events:?}");
        assert_eq!(slugs(&model), pairs(&[("a.md", after.0), ("z.md", after.1)]));
        assert!(import_at(&scratch, &mut model, second).is_empty());
    }
}

#[test]
fn the_slug_of_a_removed_file_is_assigned_to_a_file_that_waits_for_the_slug() {
    let (scratch, mut model) = (Scratch::new(), Model::default());
    let (one, other) = (b"---\nslug: latest\n---\nOne.\n", b"---\nslug: latest\n---\nSomething else.\n");
    let first = scratch.commit_on(None, &[], 0, &[("a.md", one), ("b.md", other)]);
    let second = scratch.commit_on(None, &[first], 1, &[("b.md", other)]);
    import_at(&scratch, &mut model, first);
    assert_eq!(slugs(&model), pairs(&[("a.md", "latest"), ("b.md", "b")]));
    import_at(&scratch, &mut model, second);
    assert_eq!(slugs(&model), pairs(&[("b.md", "latest")]));
    assert!(import_at(&scratch, &mut model, second).is_empty());
}
