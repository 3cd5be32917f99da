//! The released versions of scripted plugins, in the control database. All servers of a store use the released version
//! of a plugin.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use crate::model::plugin::ScriptSource;
use crate::store::{Database, DatabaseReader, Result, convert};

const WRITE: &str = "UPSERT $id SET number = (number ?? 0) + 1, digest = $digest, manifest = $manifest,
    script = $script, settings = $settings RETURN NONE";

impl DatabaseReader {
    /// Returns the name of each plugin that has a released version, and the digest of this version.
    pub async fn read_released(&self) -> Result<Vec<(Arc<str>, Arc<str>)>> {
        let pair = |record: &Record| {
            Ok((convert::text_field(record, "name")?.into(), convert::text_field(record, "digest")?.into()))
        };
        self.read_all("SELECT record::id(id) AS name, digest FROM plugin_release", [], pair).await
    }

    /// Returns the released version of a plugin, if there is one.
    pub async fn find_release(&self, name: &str) -> Result<Option<ScriptSource>> {
        let read = |record: &Record| {
            Ok(ScriptSource {
                name: name.into(),
                manifest: convert::text_field(record, "manifest")?.into(),
                script: convert::text_field(record, "script")?.into(),
                settings: convert::parse_json(convert::text_field(record, "settings")?)?,
            })
        };
        self.read_first("SELECT * FROM $id", [("id", convert::record_id("plugin_release", name))], read).await
    }
}

impl Database {
    /// Writes the version of a plugin that all servers use from now on.
    pub async fn write_release(&self, source: &ScriptSource, digest: &str) -> Result<()> {
        let values = [
            ("id", convert::record_id("plugin_release", &*source.name)),
            ("digest", convert::text(digest)),
            ("manifest", convert::text(&source.manifest)),
            ("script", convert::text(&source.script)),
            ("settings", Record::String(convert::json_text(&source.settings)?)),
        ];
        self.query_again(WRITE, values).await.map(drop)
    }
}
