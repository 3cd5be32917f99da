//! The types that every workspace has: `article`, and the managed ones.

use super::definition::{Definition, Field, FieldType, Fold};

pub const ARTICLE: &str = "article";
pub const PROJECT: &str = "project";
pub const AGENT: &str = "agent";
pub const TASK: &str = "task";
const CONTENT_BEARING: &str = "content-bearing";
const PUBLISHABLE: &str = "publishable";

/// All of them. `file` is named here so that no client can take the name.
pub fn definitions() -> Vec<Definition> {
    vec![article(), project(), task(), agent(), managed("file", "File", Vec::new())]
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

fn agent() -> Definition {
    let fields = vec![
        Field { required: true, label: true, ..Field::new("name", FieldType::String) },
        Field::new("description", FieldType::String),
        Field::new("subscribed_traits", FieldType::Array),
        Field::new("capabilities", FieldType::Object),
        Field::new("status", FieldType::String),
        // By which no two agents have one name.
        Field::new("slug", FieldType::String),
        // The plugin by which a scripted agent works.
        Field::new("plugin", FieldType::String),
    ];
    managed(AGENT, "Agent", fields)
}

fn task() -> Definition {
    let grows = |name: &str| Field { fold: Fold::Append, ..Field::new(name, FieldType::Array) };
    let fields = vec![
        Field { required: true, label: true, ..Field::new("title", FieldType::String) },
        Field::new("status", FieldType::String),
        Field::new("priority", FieldType::String),
        Field::new("assignee_type", FieldType::String),
        Field::new("assignee_id", FieldType::String),
        Field::new("source_type", FieldType::String),
        Field::new("source", FieldType::Object),
        Field::new("metadata", FieldType::Object),
        Field::new("due_at", FieldType::Date),
        grows("artifacts"),
        grows("messages"),
    ];
    managed(TASK, "Task", fields)
}

fn managed(name: &str, display_name: &str, fields: Vec<Field>) -> Definition {
    Definition { builtin: true, managed: true, ..Definition::new(name, display_name, Vec::new(), fields) }
}
