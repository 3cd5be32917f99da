//! Paths of files, of the form `WORKSPACE/PROJECT/TYPE/AGGREGATE/NAME`, and their validation.

use uuid::Uuid;

use super::id::{self, AggregateId, ID_FORM, NAME_FORM};

/// The placeholder in a path for a missing project, type or aggregate. No id starts with this character.
pub const NONE: &str = "_";
/// The maximum length of a path, in bytes.
pub const MAX_LENGTH: usize = 1_024;
/// The maximum length of a file's name, in bytes.
const MAX_FILENAME: usize = 255;

/// The path of a file, with five segments. No segment is empty, `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePath {
    text: String,
}

/// The project and the aggregate that a file belongs to. Each part is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOwner {
    /// The id of a project. In requests of clients, a project's slug is also allowed.
    pub project: Option<String>,
    pub aggregate_type: Option<String>,
    pub aggregate_id: Option<String>,
}

impl FilePath {
    /// Builds the path of a file. The error contains the name of the invalid part and a description of the problem.
    pub fn new(workspace_id: &str, place: &FileOwner, filename: &str) -> Result<FilePath, (&'static str, String)> {
        check_filename(filename).map_err(|message| ("filename", message))?;
        if let Some(name) = place.aggregate_type.as_deref().filter(|name| !id::is_valid_name(name)) {
            return Err(("aggregate_type", format!("{} is not a type name: expected {NAME_FORM}", shown(name))));
        }
        for (field, id) in [("aggregate_id", &place.aggregate_id), ("project_id", &place.project)] {
            if let Some(id) = id.as_deref().filter(|id| !id::is_valid_id(id)) {
                return Err((field, format!("{} is not an id: expected {ID_FORM}", shown(id))));
            }
        }
        let or_none = |part: &Option<String>| part.clone().unwrap_or_else(|| NONE.to_owned());
        let [project, aggregate_type, aggregate_id] =
            [&place.project, &place.aggregate_type, &place.aggregate_id].map(or_none);
        let text = format!("{workspace_id}/{project}/{aggregate_type}/{aggregate_id}/{filename}");
        if text.len() > MAX_LENGTH {
            return Err(("filename", format!("the path is longer than {MAX_LENGTH} bytes")));
        }
        Ok(FilePath { text })
    }

    /// Splits a path into workspace, owner and filename. The caller must validate the parts with [`FilePath::new`].
    pub fn read(text: &str) -> Result<(String, FileOwner, String), String> {
        check_segments(text)?;
        let segments: Vec<&str> = text.split('/').collect();
        let &[workspace, project, aggregate_type, aggregate_id, filename] = segments.as_slice() else {
            return Err("expected a path of the form workspace/project/type/aggregate/filename".into());
        };
        let non_empty = |part: &str| (part != NONE).then(|| part.to_owned());
        let place = FileOwner {
            project: non_empty(project),
            aggregate_type: non_empty(aggregate_type),
            aggregate_id: non_empty(aggregate_id),
        };
        Ok((workspace.to_owned(), place, filename.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the id of the file at a path. All files that were ever at a path share one id, and therefore one
    /// history.
    pub fn aggregate_id(path: &str) -> AggregateId {
        Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("file/{path}").as_bytes()).into()
    }
}

/// Checks that the length, the characters and the segments of `text` are allowed in a path.
pub fn check_segments(text: &str) -> Result<(), String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("the path is longer than {MAX_LENGTH} bytes"));
    }
    if text.chars().any(|letter| letter.is_control() || letter == '\\') {
        return Err("control characters and backslashes are not allowed in a path".into());
    }
    match text.split('/').find(|segment| matches!(*segment, "" | "." | "..")) {
        Some("") => Err("empty segments are not allowed in a path".into()),
        Some(segment) => Err(format!("the segment '{segment}' is not allowed in a path")),
        None => Ok(()),
    }
}

fn check_filename(filename: &str) -> Result<(), String> {
    if filename.is_empty() || filename.len() > MAX_FILENAME {
        return Err(format!("expected 1 to {MAX_FILENAME} bytes, found {}", filename.len()));
    }
    if filename.contains('/') {
        return Err("slashes are not allowed in a filename".into());
    }
    check_segments(filename)
}

fn shown(text: &str) -> String {
    format!("'{}'", text.chars().take(64).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_parses_into_its_parts() {
        for place in [
            FileOwner::default(),
            FileOwner {
                project: Some("p-1".into()),
                aggregate_type: Some("article".into()),
                aggregate_id: Some("a.b:c".into()),
            },
        ] {
            let path = FilePath::new("w", &place, "naïve name.pdf").expect("a path");
            let read = FilePath::read(path.as_str()).expect("a path");
            assert_eq!(read, ("w".to_owned(), place, "naïve name.pdf".to_owned()));
        }
    }

    #[test]
    fn paths_with_invalid_segments_are_rejected() {
        for filename in ["", ".", "..", "a/b", "../b", "a\\b", "a\0b", "a\nb", "\u{85}", &"x".repeat(256)] {
            assert!(FilePath::new("w", &FileOwner::default(), filename).is_err(), "{filename:?}");
        }
        for id in ["", "..", "_", "a/b", "a b", &"x".repeat(129)] {
            let place = FileOwner { aggregate_id: Some(id.into()), ..FileOwner::default() };
            assert_eq!(FilePath::new("w", &place, "x").expect_err("a rejected path").0, "aggregate_id");
            let place = FileOwner { project: Some(id.into()), ..FileOwner::default() };
            assert_eq!(FilePath::new("w", &place, "x").expect_err("a rejected path").0, "project_id");
            let place = FileOwner { aggregate_type: Some(id.into()), ..FileOwner::default() };
            assert_eq!(FilePath::new("w", &place, "x").expect_err("a rejected path").0, "aggregate_type");
        }
        for path in ["w/_/_/_/../x", "/w/_/_/_/x", "w/_/_/x", "w//_/_/x", "w/_/_/_/x/", "w/_/_/_/a\\b", "w/_/_/_/\0"] {
            assert!(FilePath::read(path).is_err(), "{path:?}");
        }
        assert!(FilePath::read(&format!("w/_/_/_/{}", "x".repeat(4_096))).is_err());
    }
}
