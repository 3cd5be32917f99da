//! Tests imports of folders into a server in memory: folders with the same name, and folders that are moved, replaced
//! or missing.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::local_server::{LocalServer, pairs};
use super::*;

/// Creates a folder `docs` with one file, whose text is the name of the folder above.
fn docs(parent: &Path, above: &str) -> SourcePlace {
    let folder = parent.join(above).join("docs");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("a.md"), above).expect("written");
    SourcePlace::Folder(folder)
}

/// Imports a folder into a project that the user names.
async fn import_into(served: &LocalServer, project: &str, place: &SourcePlace) -> anyhow::Result<Outcome> {
    import_with(served, place, Options { project: Some(project.to_owned()), ..Options::default() }).await
}

async fn import_with(served: &LocalServer, place: &SourcePlace, options: Options) -> anyhow::Result<Outcome> {
    import(&served.client, &ProgressIndicator::start(None), place, &options).await
}

/// Creates a folder `docs` with these files. The text of each file is its path.
fn docs_with(parent: &Path, above: &str, files: &[&str]) -> PathBuf {
    let folder = parent.join(above).join("docs");
    fs::create_dir_all(&folder).expect("a folder");
    for file in files {
        fs::write(folder.join(file), file).expect("written");
    }
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_folder_with_the_same_name_gets_a_project_of_its_own() {
    let (served, parent) = (LocalServer::start().await, tempfile::tempdir().expect("a folder"));
    let (work, private) = (docs(parent.path(), "work"), docs(parent.path(), "private"));
    for appended in [1, 0] {
        let (one, other) = (served.import(&work).await, served.import(&private).await);
        assert_eq!((one.project.as_str(), other.project.as_str()), ("docs", "docs-2"));
        assert_eq!((one.appended, other.appended), (appended, appended));
        assert_eq!(served.texts().await, pairs(&[("a.md", "private"), ("a.md", "work")]));
    }
    // Both folders can be imported into one project, and no import removes articles of the other folder.
    let outcome = import_into(&served, "docs", &private).await.expect("imported");
    assert_eq!((outcome.project.as_str(), outcome.appended), ("docs", 1));
    assert_eq!(served.texts().await, pairs(&[("a.md", "private"), ("a.md", "private"), ("a.md", "work")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn importing_a_moved_folder_into_its_named_project_keeps_its_articles() {
    let (served, parent) = (LocalServer::start().await, tempfile::tempdir().expect("a folder"));
    served.import(&docs(parent.path(), "work")).await;
    let id = served.articles().await[0]["_id"].clone();
    fs::rename(parent.path().join("work"), parent.path().join("moved")).expect("moved");
    let place = docs(parent.path(), "moved");
    let outcome = import_into(&served, "docs", &place).await.expect("imported");
    assert_eq!((outcome.appended, &served.articles().await[0]["_id"]), (1, &id));
    // The record contains the new path, so the project belongs to the folder even without the option.
    let outcome = served.import(&place).await;
    assert_eq!((outcome.project.as_str(), outcome.appended), ("docs", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_folder_continues_an_import_record_without_a_path() {
    let (served, parent) = (LocalServer::start().await, tempfile::tempdir().expect("a folder"));
    let work = docs(parent.path(), "work");
    served.import(&work).await;
    let record = served.aggregates("import_record").await[0]["_id"].clone();
    served
        .append(json!([{
            "aggregate_id": record, "aggregate_type": "import_record", "event_type": "import_record.advanced",
            "payload": {"root": ""},
        }]))
        .await;
    let outcome = served.import(&work).await;
    assert_eq!((outcome.project.as_str(), outcome.appended), ("docs", 0));
    assert_eq!(served.import(&docs(parent.path(), "private")).await.project, "docs-2");
    assert_eq!(served.texts().await, pairs(&[("a.md", "private"), ("a.md", "work")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_folder_is_imported_as_soon_as_it_can_be_opened() {
    let (served, parent) = (LocalServer::start().await, tempfile::tempdir().expect("a folder"));
    let place = SourcePlace::Folder(parent.path().join("work").join("docs"));
    let (options, mut imported) = (Options::default(), None);
    assert!(watch::import_if_changed(&served.client, &place, &options, &mut imported).await.is_err());
    docs(parent.path(), "work");
    for is_new in [true, false] {
        let summary = watch::import_if_changed(&served.client, &place, &options, &mut imported).await;
        assert_eq!(summary.expect("imported").is_some(), is_new);
    }
    assert_eq!(served.texts().await, pairs(&[("a.md", "work")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_folder_with_fewer_than_half_of_the_imported_files_is_rejected() {
    let (served, parent) = (LocalServer::start().await, tempfile::tempdir().expect("a folder"));
    let work = docs_with(parent.path(), "work", &["a.md", "b.md", "c.md"]);
    served.import(&SourcePlace::Folder(work.clone())).await;
    let texts = served.texts().await;
    fs::remove_dir_all(&work).expect("removed");
    let other = SourcePlace::Folder(docs_with(parent.path(), "other", &["a.md"]));
    let refused = import_into(&served, "docs", &other).await.expect_err("refused").to_string();
    let work = work.display().to_string();
    assert!(refused.contains("has 1 of the 3 files") && refused.contains(&work), "{refused}");
    assert_eq!(served.texts().await, texts);
    // The rejected import has not changed the path in the record.
    let refused = import_into(&served, "docs", &other).await.expect_err("refused").to_string();
    assert!(refused.contains(&work), "{refused}");
    let options = Options { project: Some("docs".to_owned()), replace: true, ..Options::default() };
    assert_eq!(import_with(&served, &other, options).await.expect("imported").appended, 2);
    assert_eq!(served.texts().await, pairs(&[("a.md", "a.md")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_is_rejected_if_several_missing_folders_have_the_name_of_its_folder() {
    let (served, parent) = (LocalServer::start().await, tempfile::tempdir().expect("a folder"));
    for above in ["one", "two"] {
        let folder = docs_with(parent.path(), above, &["a.md"]);
        import_into(&served, "docs", &SourcePlace::Folder(folder)).await.expect("imported");
    }
    for above in ["one", "two"] {
        fs::remove_dir_all(parent.path().join(above)).expect("removed");
    }
    let three = SourcePlace::Folder(docs_with(parent.path(), "three", &["a.md"]));
    let refused = import_into(&served, "docs", &three).await.expect_err("refused").to_string();
    assert!(refused.contains("several folders with the name `docs`"), "{refused}");
    assert_eq!(served.texts().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_of_an_emptied_folder_is_rejected_without_the_replace_option() {
    let (served, parent) = (LocalServer::start().await, tempfile::tempdir().expect("a folder"));
    let folder = docs_with(parent.path(), "work", &["a.md", "b.md"]);
    let place = SourcePlace::Folder(folder.clone());
    served.import(&place).await;
    // The folder is empty, like the mount point of a drive that is not mounted.
    ["a.md", "b.md"].into_iter().for_each(|file| fs::remove_file(folder.join(file)).expect("removed"));
    let refused = import_with(&served, &place, Options::default()).await.expect_err("refused").to_string();
    assert!(refused.contains("has 0 of the 2 files") && refused.contains("--replace"), "{refused}");
    assert_eq!(served.texts().await, pairs(&[("a.md", "a.md"), ("b.md", "b.md")]));
    let options = Options { replace: true, ..Options::default() };
    assert_eq!(import_with(&served, &place, options).await.expect("imported").appended, 2);
    assert!(served.texts().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_folder_and_a_new_folder_at_the_old_path_can_share_a_project() {
    let (served, parent) = (LocalServer::start().await, tempfile::tempdir().expect("a folder"));
    served.import(&docs(parent.path(), "work")).await;
    fs::rename(parent.path().join("work"), parent.path().join("moved")).expect("moved");
    import_into(&served, "docs", &docs(parent.path(), "moved")).await.expect("imported");
    let second = docs(parent.path(), "work");
    assert_eq!(import_into(&served, "docs", &second).await.expect("imported").appended, 1);
    assert_eq!(served.texts().await, pairs(&[("a.md", "moved"), ("a.md", "work")]));
    assert_eq!(import_into(&served, "docs", &second).await.expect("imported").appended, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_stays_in_its_project_after_the_record_of_another_folder_is_deleted() {
    let (served, parent) = (LocalServer::start().await, tempfile::tempdir().expect("a folder"));
    let (work, private) = (docs(parent.path(), "work"), docs(parent.path(), "private"));
    served.import(&work).await;
    assert_eq!(served.import(&private).await.project, "docs-2");
    let records = served.aggregates("import_record").await;
    let path = parent.path().join("work/docs").canonicalize().expect("a path").display().to_string();
    let first = records.iter().find(|record| record["root"] == path.as_str()).expect("a record");
    let event = json!({
        "aggregate_id": first["_id"], "aggregate_type": "import_record", "event_type": "import_record.deleted",
    });
    served.append(json!([event])).await;
    let outcome = served.import(&private).await;
    assert_eq!((outcome.project.as_str(), outcome.appended), ("docs-2", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_import_prints_a_note_if_the_folder_may_be_in_another_project() {
    let (served, parent) = (LocalServer::start().await, tempfile::tempdir().expect("a folder"));
    let (work, private) = (docs(parent.path(), "work"), docs(parent.path(), "private"));
    import_into(&served, "notes", &work).await.expect("imported");
    let opened = |place: &SourcePlace| {
        let source = place.open().expect("opened");
        (source.identity().expect("an identity"), project_slug(&source))
    };
    let (identity, slug) = opened(&private);
    let notes = RefCell::new(Vec::new());
    let note = |text: &str| notes.borrow_mut().push(text.to_owned());
    let reader = WorkspaceReader { client: &served.client, note: &note, source: &identity, knows: &|_| false };
    reader.load(None, &slug).await.expect("loaded");
    let (own, other) = (identity.root.clone(), opened(&work).0.root);
    let written = notes.take().concat();
    let expected = format!("{own} is imported into project `docs`; project `notes` has the articles of {other}");
    assert!(written.contains(&expected) && written.contains("--project notes"), "{written}");
    reader.load(Some("docs"), &slug).await.expect("loaded");
    served.import(&private).await;
    reader.load(None, &slug).await.expect("loaded");
    assert!(notes.take().is_empty());
}
