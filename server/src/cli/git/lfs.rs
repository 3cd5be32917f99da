//! Reads the content of files in Git LFS. Git stores only a pointer to such a file. If a clone has the content, the
//! content is in the folder `lfs/objects` of the git directory.

use git2::Repository;
use sha2::{Digest, Sha256};

use super::files::{MAX_POINTER_BYTES, TOO_LARGE, id_in_pointer, read_file};

/// The folder of the git directory in which Git LFS stores the contents of files.
const FOLDER: &str = "lfs/objects";
/// The length of the id in a pointer. The id is the SHA-256 of the content in hexadecimal digits.
const ID_LEN: usize = 64;

/// Returns the content of the file to which the pointer `blob` refers, or the reason why the file cannot be an article.
/// Returns `None` if `blob` is not a valid pointer, or if the clone has no content with the digest in the pointer.
pub fn content(repository: &Repository, blob: &[u8]) -> Option<Result<Vec<u8>, &'static str>> {
    if blob.len() > MAX_POINTER_BYTES {
        return None;
    }
    let id = id_in_pointer(std::str::from_utf8(blob).ok()?)?;
    // An id with other characters could name a file in any folder.
    if id.len() != ID_LEN || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let folder = repository.commondir().join(FOLDER).join(id.get(..2)?).join(id.get(2..4)?);
    match read_file(&folder.join(id)).ok()? {
        Some(bytes) => (format!("{:x}", Sha256::digest(&bytes)) == id).then_some(Ok(bytes)),
        None => Some(Err(TOO_LARGE)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cli::git::tests::Scratch;

    #[test]
    fn a_file_in_git_lfs_is_imported_only_if_the_clone_has_its_content() {
        let (scratch, text) = (Scratch::new(), "# Large\n");
        let id = format!("{:x}", Sha256::digest(text));
        let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{id}\nsize {}\n", text.len());
        let outside = "version https://git-lfs.github.com/spec/v1\noid sha256:../../../config\nsize 1\n";
        scratch.commit(0, &[("a.md", pointer.as_bytes()), ("b.md", outside.as_bytes())]);
        assert!(scratch.events(&[]).is_empty());

        let folder = scratch.repository.path().join(FOLDER).join(&id[..2]).join(&id[2..4]);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(&id), text).expect("written");
        let events = scratch.events(&[]);
        assert_eq!((events.len(), &events[0]["payload"]["body"]), (1, &text.into()));

        fs::write(folder.join(&id), "The content of another file.").expect("written");
        assert!(scratch.events(&[]).is_empty());
    }
}
