//! Defines the types of an export on a server.

use std::collections::{HashMap, HashSet};

use anyhow::Context;
use reqwest::Method;
use serde_json::Value;

use super::client::Client;
use super::portable::source::declaration_of;
use super::{pages, retry};

/// The types on the server, and the types that the file has defined so far.
#[derive(Debug, Default)]
pub struct Types {
    /// The definitions on the server, by the name of the type. Fetched when the first definition of the file is read.
    present: Option<HashMap<String, Value>>,
    /// The names of the server's built-in types, which cannot be redefined.
    builtin: HashSet<String>,
    /// The last definition of each type in the file.
    defined: HashMap<String, Value>,
}

impl Types {
    /// Defines a type if the server does not have the type, or if the server's definition equals the last definition of
    /// the type that the file contained before `definition`. In all other cases, the server keeps its definition: the
    /// type may be built in, or an earlier import may have stored a definition from a later line of the same file.
    /// Warns if the definition that the server keeps differs from `definition`.
    pub async fn define(&mut self, client: &Client, definition: Value, note: &dyn Fn(&str)) -> anyhow::Result<()> {
        let name = name_of(&definition).context("/definition/type_name: required string")?;
        if self.present.is_none() {
            let listed = pages::rows::<Value>(client, &["aggregate-types"], &[], Some(note)).await;
            let listed = listed.context("the types cannot be listed")?;
            self.builtin = listed.iter().filter(|found| found["builtin"] == true).filter_map(name_of).collect();
            let named = listed.into_iter().filter_map(|found| Some((name_of(&found)?, declaration_of(found))));
            self.present = Some(named.collect());
        }
        let present = self.present.get_or_insert_default();
        let before = self.defined.insert(name.clone(), definition.clone());
        let is_wanted = match present.get(&name) {
            None => true,
            Some(_) if self.builtin.contains(&name) => false,
            Some(current) => *current != definition && before.as_ref() == Some(current),
        };
        if !is_wanted {
            if present.get(&name) != Some(&definition) {
                note(&format!("warning: the type '{name}' keeps the definition that it has on the server"));
            }
            return Ok(());
        }
        let request =
            || client.request(Method::POST, &["aggregates", "define"]).query(&[("force", "true")]).json(&definition);
        let made = retry::call(client, note, request).await;
        made.with_context(|| format!("the type '{name}' cannot be defined"))?;
        present.insert(name, definition);
        Ok(())
    }
}

fn name_of(found: &Value) -> Option<String> {
    found.get("type_name")?.as_str().map(str::to_owned)
}
