//! Before an import removes the articles of missing files, checks that the folder contains files of its last import. A
//! path alone does not identify a folder: the drive of the folder may not be mounted, and another machine may have
//! another folder at the same path.

use std::collections::HashSet;

use anyhow::ensure;

use super::project_state::ProjectState;
use super::source::FileSource;
use super::state::{ArticleState, BODY, Digest, digest};
use super::walk::{Article, fields_of};

/// Checks that a folder contains files of its last import. If the folder may have been moved, the check fails if the
/// folder contains fewer than half of these files under the same names. Otherwise, the check fails only if the folder
/// contains none of these files, not even under another name. After an import without files, the check never fails.
pub fn check(source: &FileSource, loaded: &ProjectState) -> anyhow::Result<()> {
    let FileSource::Folder(folder) = source else { return Ok(()) };
    let ProjectState { project, record, moved_from, held, .. } = loaded;
    // If a file's existence cannot be checked, the file may exist, and the import keeps its article.
    let is_there = |article: &&Article| !matches!(folder.join(&article.path).try_exists(), Ok(false));
    let (total, found) = (held.articles.len(), held.articles.iter().filter(is_there).count());
    let has_overlap = match moved_from {
        Some(_) => 2 * found >= total,
        None => total == 0 || found > 0 || has_text_of(source, &held.articles)?,
    };
    let (here, last) = (folder.display(), moved_from.as_ref().unwrap_or(&record.identity.root));
    ensure!(
        has_overlap,
        "{here} has {found} of the {total} files that were imported from {last} into project `{project}`, so the \
         articles of the other files would be removed; if this is another folder, set --project to another project; \
         if the files were moved or removed, import once with --replace"
    );
    Ok(())
}

/// Returns whether the text of a file of `source` is the text of one of `articles`. Such a file may have been renamed
/// since the last import.
fn has_text_of(source: &FileSource, articles: &[Article]) -> anyhow::Result<bool> {
    let bodies: HashSet<Digest> =
        articles.iter().filter_map(|article| article.state.as_ref().and_then(ArticleState::body)).collect();
    for (path, blob) in source.files(None)?.blobs {
        if let Ok(text) = source.text(&path, blob)?
            && let Some(body) = fields_of(&path, &text).get(BODY)
            && bodies.contains(&digest(body))
        {
            return Ok(true);
        }
    }
    Ok(false)
}
