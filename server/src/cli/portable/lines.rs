//! The lines of an export that are not events.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The latest version of the format that this program writes. The program can read this version and all earlier
/// versions.
pub const FORMAT: u64 = 2;

/// Returns the version of an export's format: version 2 if the export has members and keys, and otherwise version 1.
/// Only version 2 can contain revocations and removals. Earlier programs can read only version 1.
pub fn format_of(has_members: bool) -> u64 {
    if has_members { FORMAT } else { 1 }
}

/// The first line of an export.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ExportHeader {
    /// The version of the format.
    #[serde(rename = "foldwork_export")]
    pub format: u64,
    /// The version of the program that wrote the file.
    pub program: String,
    pub workspace: Option<ExportedWorkspace>,
    /// The position after which the events begin.
    #[serde(default)]
    pub after: u64,
    /// Whether the file contains members and keys.
    #[serde(default)]
    pub members: bool,
}

/// The workspace that was exported.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ExportedWorkspace {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub slug: String,
    #[serde(default)]
    pub owner_id: String,
    #[serde(default)]
    pub created_at: String,
}

/// A definition of a type, which applies to the events after `position`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ExportedDefinition {
    pub definition: Value,
    #[serde(default)]
    pub position: u64,
}

/// A project of the exported workspace.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct ExportedProject {
    pub id: String,
    pub slug: String,
    #[serde(default)]
    pub name: String,
    pub description: Option<String>,
}

/// A member of the exported workspace, with the member's user.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ExportedMember {
    pub user_id: String,
    pub role: String,
    pub joined_at: i64,
    pub email: Option<String>,
    #[serde(default)]
    pub email_verified: bool,
    pub name: Option<String>,
}

/// A key of the exported workspace, with the hash of its secret.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ExportedKey {
    pub id: String,
    pub user_id: String,
    pub name: String,
    pub scopes: Vec<String>,
    pub display: String,
    pub hash: String,
    #[serde(default)]
    pub opens_all: bool,
    /// The agents for which the key acts, if the key is bound to agents.
    pub agents: Option<Vec<String>>,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub last_used_at: Option<i64>,
    pub derived_from: Option<String>,
    #[serde(default)]
    pub ancestors: Vec<String>,
}

/// A key of the exported workspace that was revoked.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RevokedKey {
    pub id: String,
}

/// A member of the exported workspace who was removed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MemberRemoval {
    pub user_id: String,
    pub removed_at: i64,
}

/// A line about access to the workspace.
#[derive(Debug)]
pub enum ExportedAccess {
    Member(ExportedMember),
    Key(ExportedKey),
    RevokedKey(RevokedKey),
    RemovedMember(MemberRemoval),
}

/// The last line of an export: the number of events in the file, and the position up to which the log was read.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct ExportEnd {
    pub events: u64,
    pub position: u64,
}

/// A line of an export.
#[derive(Debug)]
pub enum ExportLine<'a> {
    Header(ExportHeader),
    Definition(ExportedDefinition),
    Project(ExportedProject),
    Access(ExportedAccess),
    End(ExportEnd),
    /// The text of an event, which is not parsed yet.
    Event(&'a str),
}

impl<'a> ExportLine<'a> {
    /// Recognizes a line by the name of its first field. A line with an unknown name is an event.
    pub fn parse(line: &'a str) -> anyhow::Result<Self> {
        Ok(match first_name(line) {
            Some("foldwork_export") => Self::Header(ExportHeader::parse(line)?),
            Some("definition") => Self::Definition(read(line, "a definition")?),
            Some("project") => Self::Project(read_item(line, "a project")?),
            Some("member") => Self::Access(ExportedAccess::Member(read_item(line, "a member")?)),
            Some("key") => Self::Access(ExportedAccess::Key(read_item(line, "a key")?)),
            Some("revoked_key") => Self::Access(ExportedAccess::RevokedKey(read_item(line, "a revoked key")?)),
            Some("removed_member") => Self::Access(ExportedAccess::RemovedMember(read_item(line, "a removed member")?)),
            Some("end") => Self::End(read_item(line, "the end of an export")?),
            _ => Self::Event(line),
        })
    }
}

impl ExportHeader {
    /// Parses the first line of an export. Fails if this program cannot read the version of the format.
    fn parse(line: &str) -> anyhow::Result<Self> {
        /// The fields that the first line has in every version of the format.
        #[derive(Deserialize)]
        struct Any<'a> {
            foldwork_export: u64,
            #[serde(borrow, default)]
            program: Cow<'a, str>,
        }
        let Any { foldwork_export: format, program } =
            serde_json::from_str(line).context("expected the first line of an export")?;
        let program = if program.is_empty() { "of an unknown version" } else { &program };
        ensure!(
            (1..=FORMAT).contains(&format),
            "the file has the export format {format}, written by foldwork {program}; \
             this is foldwork {}, which reads formats 1 to {FORMAT}",
            env!("CARGO_PKG_VERSION")
        );
        read(line, "the first line of an export")
    }
}

/// Returns a line's JSON.
pub fn text(line: &impl Serialize) -> anyhow::Result<String> {
    serde_json::to_string(line).context("the line cannot be written as JSON")
}

/// Returns the JSON of a line whose only field has this name.
pub fn item_text(name: &str, item: &impl Serialize) -> anyhow::Result<String> {
    text(&BTreeMap::from([(name, item)]))
}

/// Reads the item of a line whose first field contains the item.
fn read_item<T: DeserializeOwned>(line: &str, what: &str) -> anyhow::Result<T> {
    /// The field of the line. The name of the field is the kind of the item.
    #[derive(Deserialize)]
    struct ItemLine<T> {
        #[serde(alias = "member", alias = "key", alias = "revoked_key", alias = "removed_member", alias = "end")]
        project: T,
    }
    Ok(read::<ItemLine<T>>(line, what)?.project)
}

fn read<T: DeserializeOwned>(line: &str, what: &str) -> anyhow::Result<T> {
    serde_json::from_str(line).with_context(|| format!("expected {what}"))
}

/// Returns the name of the first field of a JSON object, as written. If the name contains an escaped quotation mark,
/// the result ends at this mark. Returns `None` for a line that does not begin with an object and a name.
fn first_name(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('{')?.trim_start().strip_prefix('"')?;
    rest.split_once('"').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_export_format_is_rejected_with_the_supported_formats() {
        let newer = r#"{"foldwork_export":7,"program":"9.9.9","more":[1]}"#;
        let refused = ExportLine::parse(newer).expect_err("refused").to_string();
        assert!(refused.contains("format 7") && refused.contains("9.9.9") && refused.contains("1 to 2"), "{refused}");
        assert!(ExportLine::parse(r#"{"foldwork_export":0,"program":"x"}"#).is_err());
        assert!(ExportLine::parse(r#"{"foldwork_export":"1"}"#).is_err());
    }

    #[test]
    fn lines_are_recognized_by_the_name_of_their_first_field() {
        let event = r#"{"aggregate_id":"a","definition":{}}"#;
        assert!(matches!(ExportLine::parse(event).expect("a line"), ExportLine::Event(text) if text == event));
        let project = r#" { "project" : {"id":"i","slug":"s"}}"#;
        assert!(matches!(ExportLine::parse(project).expect("a line"), ExportLine::Project(found) if found.slug == "s"));
        let wrong = ExportLine::parse(r#"{"project":{"id":1}}"#).expect_err("refused");
        assert!(format!("{wrong:#}").starts_with("expected a project: "), "{wrong:#}");
    }
}
