//! Where a file is: `workspace/project/type/aggregate/filename`, and which texts are no such path.

use uuid::Uuid;

use super::id::{self, AggregateId};

/// Stands where a file has no project, no type, or no aggregate. No id begins so.
pub const NONE: &str = "_";
/// Longest path, and longest name of a file, in bytes.
pub const MAX_LENGTH: usize = 1_024;
const MAX_FILENAME: usize = 255;

/// The path of a file. Each of its five segments is a plain name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePath {
    text: String,
}

/// What a file belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// A project's id; in what a client sends, also its slug.
    pub project: Option<String>,
    pub aggregate_type: Option<String>,
    pub aggregate_id: Option<String>,
}

impl FilePath {
    /// The path of a file of this name. An error says what cannot stand in a path, and of which part.
    pub fn new(workspace_id: &str, place: &Place, filename: &str) -> Result<FilePath, (&'static str, String)> {
        check_filename(filename).map_err(|message| ("filename", message))?;
        if let Some(name) = place.aggregate_type.as_deref().filter(|name| !id::is_valid_name(name)) {
            return Err(("aggregate_type", format!("{} is no type", shown(name))));
        }
        for (field, id) in [("aggregate_id", &place.aggregate_id), ("project_id", &place.project)] {
            if let Some(id) = id.as_deref().filter(|id| !id::is_valid_id(id)) {
                return Err((field, format!("{} is no id", shown(id))));
            }
        }
        let or_none = |part: &Option<String>| part.clone().unwrap_or_else(|| NONE.to_owned());
        let [project, aggregate_type, aggregate_id] =
            [&place.project, &place.aggregate_type, &place.aggregate_id].map(or_none);
        let text = format!("{workspace_id}/{project}/{aggregate_type}/{aggregate_id}/{filename}");
        if text.len() > MAX_LENGTH {
            return Err(("filename", format!("the path has more than {MAX_LENGTH} bytes")));
        }
        Ok(FilePath { text })
    }

    /// Reads a path into its workspace, place and name, each of which [`FilePath::new`] has to allow still.
    pub fn read(text: &str) -> Result<(String, Place, String), String> {
        check_segments(text)?;
        let segments: Vec<&str> = text.split('/').collect();
        let &[workspace, project, aggregate_type, aggregate_id, filename] = segments.as_slice() else {
            return Err("a path is workspace/project/type/aggregate/filename".into());
        };
        let given = |part: &str| (part != NONE).then(|| part.to_owned());
        let place =
            Place { project: given(project), aggregate_type: given(aggregate_type), aggregate_id: given(aggregate_id) };
        Ok((workspace.to_owned(), place, filename.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The id of what is at a path: one path has one history, whatever was there before.
    pub fn aggregate_id(path: &str) -> AggregateId {
        Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("file/{path}").as_bytes()).into()
    }
}

/// Whether every segment of a text could stand in a path.
pub fn check_segments(text: &str) -> Result<(), String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("a path has at most {MAX_LENGTH} bytes"));
    }
    if text.chars().any(|letter| letter.is_control() || letter == '\\') {
        return Err("a path has no control characters and no backslashes".into());
    }
    match text.split('/').find(|segment| matches!(*segment, "" | "." | "..")) {
        Some("") => Err("a path has no empty segments".into()),
        Some(segment) => Err(format!("a path has no segment '{segment}'")),
        None => Ok(()),
    }
}

fn check_filename(filename: &str) -> Result<(), String> {
    if filename.is_empty() || filename.len() > MAX_FILENAME {
        return Err(format!("expected 1 to {MAX_FILENAME} bytes"));
    }
    if filename.contains('/') {
        return Err("a name has no slashes".into());
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
    fn a_path_reads_as_what_it_was_made_of() {
        for place in [
            Place::default(),
            Place {
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
    fn what_leads_elsewhere_is_no_path() {
        for filename in ["", ".", "..", "a/b", "../b", "a\\b", "a\0b", "a\nb", "\u{85}", &"x".repeat(256)] {
            assert!(FilePath::new("w", &Place::default(), filename).is_err(), "{filename:?}");
        }
        for id in ["", "..", "_", "a/b", "a b", &"x".repeat(129)] {
            let place = Place { aggregate_id: Some(id.into()), ..Place::default() };
            assert_eq!(FilePath::new("w", &place, "x").expect_err("refused").0, "aggregate_id");
            let place = Place { project: Some(id.into()), ..Place::default() };
            assert_eq!(FilePath::new("w", &place, "x").expect_err("refused").0, "project_id");
            let place = Place { aggregate_type: Some(id.into()), ..Place::default() };
            assert_eq!(FilePath::new("w", &place, "x").expect_err("refused").0, "aggregate_type");
        }
        for path in ["w/_/_/_/../x", "/w/_/_/_/x", "w/_/_/x", "w//_/_/x", "w/_/_/_/x/", "w/_/_/_/a\\b", "w/_/_/_/\0"] {
            assert!(FilePath::read(path).is_err(), "{path:?}");
        }
        assert!(FilePath::read(&format!("w/_/_/_/{}", "x".repeat(4_096))).is_err());
    }
}
