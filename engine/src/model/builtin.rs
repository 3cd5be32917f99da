//! The types that every workspace has: `article`, and the managed ones.

use super::definition::{Definition, Field, FieldType};

pub const ARTICLE: &str = "article";
pub const PROJECT: &str = "project";
const CONTENT_BEARING: &str = "content-bearing";
const PUBLISHABLE: &str = "publishable";

/// All of them. `task`, `agent` and `file` are named here so that no client can take the names.
pub fn definitions() -> Vec<Definition> {
    vec![article(), project(), managed("task", "Task"), managed("agent", "Agent"), managed("file", "File")]
}

fn article() -> Definition {
    let required = |field: Field| Field { required: true, ..field };
    let fields = vec![
        Field { label: true, ..required(Field::new("title", FieldType::String)) },
        Field::new("body", FieldType::String),
        Field::new("slug", FieldType::String),
        Field::new("tags", FieldType::Array),
        Field::new("status", FieldType::String),
        Field::new("published_version", FieldType::Integer),
        Field::new("published_at", FieldType::Date),
    ];
    let traits = vec![CONTENT_BEARING.into(), PUBLISHABLE.into()];
    Definition { builtin: true, ..Definition::new(ARTICLE, "Article", traits, fields) }
}

fn project() -> Definition {
    let fields = vec![
        Field { required: true, label: true, ..Field::new("name", FieldType::String) },
        Field { required: true, ..Field::new("slug", FieldType::String) },
        Field::new("description", FieldType::String),
    ];
    Definition { builtin: true, managed: true, ..Definition::new(PROJECT, "Project", Vec::new(), fields) }
}

fn managed(name: &str, display_name: &str) -> Definition {
    Definition { builtin: true, managed: true, ..Definition::new(name, display_name, Vec::new(), Vec::new()) }
}
