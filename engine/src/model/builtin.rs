//! The built-in types of every workspace: `article`, `view` and the managed types.

use super::definition::{Definition, Field, FieldType, Fold};
use super::task::record::field;
use super::{file, view};

pub const ARTICLE: &str = "article";
pub const PROJECT: &str = "project";
pub const AGENT: &str = "agent";
pub const TASK: &str = "task";
pub const FILE: &str = "file";
pub const VIEW: &str = "view";
const CONTENT_BEARING: &str = "content-bearing";
const PUBLISHABLE: &str = "publishable";

/// Returns the definitions of all built-in types.
pub fn definitions() -> Vec<Definition> {
    vec![article(), project(), task(), agent(), file(), view()]
}

fn article() -> Definition {
    let required = |field: Field| Field { required: true, ..field };
    let fields = vec![
        Field { label: true, ..required(Field::new("title", FieldType::String)) },
        Field { search: true, ..Field::new("body", FieldType::String) },
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
        Field { search: true, ..Field::new("description", FieldType::String) },
    ];
    Definition { builtin: true, managed: true, ..Definition::new(PROJECT, "Project", Vec::new(), fields) }
}

fn agent() -> Definition {
    let fields = vec![
        Field { required: true, label: true, ..Field::new("name", FieldType::String) },
        Field { search: true, ..Field::new("description", FieldType::String) },
        Field::new("subscribed_traits", FieldType::Array),
        Field::new("capabilities", FieldType::Object),
        Field::new("status", FieldType::String),
        // The agent's normalized name, which is unique in the workspace.
        Field::new("slug", FieldType::String),
        // The plugin that does the work of a scripted agent.
        Field::new("plugin", FieldType::String),
    ];
    managed(AGENT, "Agent", fields)
}

fn task() -> Definition {
    let grows = |name: &str| Field { fold: Fold::Append, ..Field::new(name, FieldType::Array) };
    let fields = vec![
        Field { required: true, label: true, search: true, ..Field::new(field::TITLE, FieldType::String) },
        Field::new(field::STATUS, FieldType::String),
        Field::new(field::PRIORITY, FieldType::String),
        Field::new(field::ASSIGNEE_TYPE, FieldType::String),
        Field::new(field::ASSIGNEE_ID, FieldType::String),
        Field::new(field::SOURCE_TYPE, FieldType::String),
        Field::new(field::SOURCE, FieldType::Object),
        Field::new(field::METADATA, FieldType::Object),
        Field::new(field::DUE_AT, FieldType::Date),
        Field::new(field::OVERDUE_FOR, FieldType::Date),
        Field::new(field::ESCALATED, FieldType::Integer),
        grows(field::ARTIFACTS),
        grows(field::MESSAGES),
        Field::new(field::UNREAD, FieldType::Boolean),
        Field::new(field::RESOLUTION, FieldType::Object),
        Field::new(field::CREATED_BY, FieldType::String),
        Field::new(field::ATTEMPT, FieldType::Integer),
        Field::new(field::CLAIMED_BY, FieldType::String),
        Field::new(field::CLAIM, FieldType::Integer),
        Field::new(field::LEASE_SECONDS, FieldType::Integer),
        Field::new(field::LEASE_UNTIL, FieldType::Date),
        Field::new(field::TAKEN_FROM, FieldType::String),
        Field::new(field::DEFERRED_UNTIL, FieldType::Date),
        Field::new(field::INPUT_REQUEST, FieldType::Object),
    ];
    managed(TASK, "Task", fields)
}

fn file() -> Definition {
    let required = |name: &str, field_type| Field { required: true, ..Field::new(name, field_type) };
    let fields = vec![
        required(file::PATH, FieldType::String),
        Field { label: true, search: true, ..required(file::FILENAME, FieldType::String) },
        required(file::MIME_TYPE, FieldType::String),
        required(file::SIZE, FieldType::Integer),
        required(file::SHA256, FieldType::String),
        required(file::UPLOAD_ID, FieldType::String),
        Field::new(file::ATTACHED_ID, FieldType::Reference),
        Field::new(file::ATTACHED_TYPE, FieldType::String),
    ];
    managed(FILE, "File", fields)
}

/// Returns the definition of a view, which is a saved pipeline.
fn view() -> Definition {
    let sized = |field: Field, least: f64, most: f64| Field { min: Some(least), max: Some(most), ..field };
    let name = Field { required: true, label: true, ..Field::new(view::NAME, FieldType::String) };
    let pipeline = Field { required: true, ..Field::new(view::PIPELINE, FieldType::Array) };
    let description = Field { search: true, ..Field::new(view::DESCRIPTION, FieldType::String) };
    let fields = vec![
        sized(name, 1.0, view::MAX_NAME),
        sized(pipeline, 0.0, view::MAX_STAGES),
        sized(description, 0.0, view::MAX_DESCRIPTION),
    ];
    Definition { builtin: true, ..Definition::new(VIEW, "View", Vec::new(), fields) }
}

fn managed(name: &str, display_name: &str, fields: Vec<Field>) -> Definition {
    Definition { builtin: true, managed: true, ..Definition::new(name, display_name, Vec::new(), fields) }
}
