//! The record of an import: an aggregate of the project with the progress of the import and the ids of the articles
//! that the import has created or adopted. Each batch of events contains an event of the record, so the record always
//! matches the articles.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::events::{name_id, time_text};
use super::outbox::ImportProgress;
use super::source::SourceIdentity;

/// The aggregate type of import records.
pub const TYPE: &str = "import_record";

/// An import record, which may not exist yet.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub id: String,
    /// The version of the record's stream.
    pub version: u64,
    /// Whether the record exists. A deleted record is created again.
    pub exists: bool,
    pub progress: ImportProgress,
    /// The ids of the articles are derived from this text together with paths and commits.
    pub seed: String,
    pub identity: SourceIdentity,
    /// Whether the record on the server has no path, or a path that differs from the full path of the folder. Always
    /// `false` for a git repository.
    pub has_other_path: bool,
    /// The ids of the articles of an earlier import that had no import record. These ids have yet to be added to this
    /// record.
    pub unrecorded: Vec<String>,
}

/// The fields of a record, as the server returns them.
#[derive(Debug, Deserialize)]
pub struct Row {
    #[serde(rename = "_id")]
    pub id: String,
    #[serde(rename = "_version")]
    version: u64,
    #[serde(default)]
    pub project_id: Option<String>,
    /// The identity that the source had at its last import.
    #[serde(flatten)]
    pub identity: SourceIdentity,
    #[serde(default)]
    seed: String,
    #[serde(default)]
    commit: String,
    #[serde(default)]
    towards: String,
    #[serde(default)]
    at: String,
}

impl Row {
    /// Returns the record of a source among the records of a project, if there is one. A folder is recognized by its
    /// full path. If an earlier version of the program wrote the record without a path, the folder is recognized by its
    /// name. A repository is recognized by its first commit, by the commit that was imported last, or by its remote, in
    /// this order. The first commit alone is not enough, because a rewritten history or a shallow clone may lack this
    /// commit. `knows` returns whether the repository has a commit.
    pub fn of<'r>(rows: &[&'r Row], source: &SourceIdentity, knows: &dyn Fn(&str) -> bool) -> Option<&'r Row> {
        let same_kind = || rows.iter().copied().filter(|row| row.identity.kind == source.kind);
        let same_root = same_kind().find(|row| row.identity.root == source.root);
        if source.kind != "git" {
            let has_name = |row: &&Row| row.identity.root.is_empty() && row.identity.name == source.name;
            return same_root.or_else(|| same_kind().find(has_name));
        }
        let has_remote = |row: &&Row| !row.identity.remote.is_empty() && row.identity.remote == source.remote;
        same_root.or_else(|| same_kind().find(|row| knows(&row.commit))).or_else(|| same_kind().find(has_remote))
    }

    /// Returns the records of folders that have the same name as the source and a path that does not exist on this
    /// machine. One of these records may have been written for the source before the folder was moved. The other
    /// records belong to folders of other machines, or to folders that were moved or removed.
    pub fn of_moved<'r>(rows: &[&'r Row], source: &SourceIdentity) -> Vec<&'r Row> {
        let has_name = |row: &&Row| row.identity.kind == source.kind && row.identity.name == source.name;
        let same_name = |row: &&Row| source.kind != "git" && has_name(row);
        // A path that cannot be checked, such as a path below a locked folder, may exist.
        let is_gone = |row: &&Row| matches!(Path::new(&row.identity.root).try_exists(), Ok(false));
        rows.iter().copied().filter(same_name).filter(is_gone).collect()
    }

    /// Returns whether the record and the source have the same kind, and also the same name, folder path or first
    /// commit. Such a record may have been written for the source before the source was moved or cloned again.
    pub fn is_namesake(&self, source: &SourceIdentity) -> bool {
        let SourceIdentity { kind, name, root, .. } = &self.identity;
        *kind == source.kind && (*name == source.name || *root == source.root)
    }

    pub fn to_record(&self, source: &SourceIdentity) -> Record {
        let (commit, towards) = (self.commit.clone(), self.towards.clone());
        let progress = ImportProgress { commit, towards, at: self.at.parse().ok() };
        let (id, seed, identity) = (self.id.clone(), self.seed.clone(), source.clone());
        let has_other_path = source.kind != "git" && self.identity.root != source.root;
        let unrecorded = Vec::new();
        Record { id, version: self.version, exists: true, progress, seed, identity, has_other_path, unrecorded }
    }
}

impl Record {
    /// Returns a new record for a source that was not imported into the project before. `rows` are the records of the
    /// workspace. The ids of a folder's articles depend on `project`. The ids of a repository's articles depend on
    /// `project` only if another project has a record of the same repository.
    pub fn new(source: &SourceIdentity, project: &str, rows: &[Row]) -> Self {
        let same_root = |row: &Row| row.identity.kind == source.kind && row.identity.root == source.root;
        let has_root = |row: &Row| !source.root.is_empty() && same_root(row);
        let base = match source.kind.as_str() {
            "git" if !rows.iter().any(has_root) => source.root.clone(),
            "git" => format!("{}\0{project}", source.root),
            kind => format!("{kind}\0{}\0{project}", source.root),
        };
        let id_of = |seed: &str| name_id(&["record", project, seed]);
        let (mut seed, mut number) = (base.clone(), 2_u32);
        // The record of a moved folder keeps its id, which is derived from the former path of the folder.
        while rows.iter().any(|row| row.id == id_of(&seed)) {
            seed = format!("{base}\0{number}");
            number = number.saturating_add(1);
        }
        Self { id: id_of(&seed), seed, identity: source.clone(), ..Self::default() }
    }

    /// Returns the record's event for a batch. `added` are the ids of the articles that the batch adds to the import.
    pub fn event(&self, project: &str, progress: &ImportProgress, added: &[&str]) -> Value {
        let SourceIdentity { kind, name, root, remote } = &self.identity;
        let verb = if self.exists { "advanced" } else { "created" };
        json!({
            "event_id": name_id(&[&self.id, &self.version.to_string()]),
            "aggregate_id": self.id,
            "aggregate_type": TYPE,
            "event_type": format!("{TYPE}.{verb}"),
            "project_id": project,
            "expected_version": self.version,
            "payload": {
                "name": name, "kind": kind, "root": root, "remote": remote, "seed": self.seed,
                "commit": progress.commit, "towards": progress.towards,
                "at": progress.at.map(time_text).unwrap_or_default(), "added": added,
            },
        })
    }

    /// Returns the id of the event at `index` in the next batch of the import.
    pub fn event_id(&self, index: usize) -> String {
        name_id(&[&self.id, &self.version.to_string(), &index.to_string()])
    }
}

/// Returns the definition of the aggregate type of import records.
pub fn definition() -> Value {
    let text = |name: &str, label: bool| json!({"name": name, "type": "string", "label": label});
    let mut fields: Vec<Value> = vec![text("name", true)];
    fields.extend(["kind", "root", "remote", "seed", "commit", "towards", "at"].map(|name| text(name, false)));
    fields.push(json!({"name": "added", "type": "array"}));
    json!({"type_name": TYPE, "display_name": "Import record", "traits": [], "fields": fields})
}
