//! Resources: aggregates, the schemas of types, and the reference of the pipeline language.

use std::fmt::Write;
use std::sync::LazyLock;

use foldwork_engine::pipeline::catalogue::catalogue;
use foldwork_engine::workspace::aggregates::StateMoment;
use foldwork_engine::{Error, Reader, Result};
use percent_encoding::percent_decode_str;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use super::tools::get_aggregate::ShownAggregate;
use super::tools::get_schema;

const OPERATORS: &str = "foldwork://operators";
pub(super) const AGGREGATE: &str = "aggregate://";
pub(super) const SCHEMA: &str = "schema://";
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// The reference of the pipeline language, with one line for each stage, operator and variable.
static LANGUAGE: LazyLock<String> = LazyLock::new(|| {
    let mut text = "# Stages, operators and variables of pipelines\n\nEach line: name, kind, what it does, how it is \
        written.\n\n"
        .to_owned();
    for entry in catalogue() {
        let (word, [usage, ..]) = (entry.word, entry.word.example);
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "* `{}` ({}): {} `{usage}`", word.name, entry.kind.name(), word.summary);
    }
    text
});

/// Returns the listed resources. Aggregates are not listed, because a workspace may have too many aggregates for a
/// list. Clients find aggregates with the tool `search`.
pub(super) async fn all(reader: &Reader) -> Result<Vec<Resource>> {
    let operators = Resource::new(OPERATORS, "operators")
        .with_title("Pipeline language")
        .with_description("Every stage, operator, accumulator and variable that `query` knows, with an example.")
        .with_mime_type(MARKDOWN);
    let schemas = reader.list_types().await?.into_iter().map(|definition| {
        Resource::new(format!("{SCHEMA}{}", definition.type_name), definition.type_name.to_string())
            .with_title(format!("Schema of {}", definition.display_name))
            .with_description("The type's fields, traits and events.")
            .with_mime_type(JSON)
    });
    Ok(std::iter::once(operators).chain(schemas).collect())
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{AGGREGATE}{{aggregate_id}}"), "aggregate")
            .with_title("Aggregate")
            .with_description("The folded state of an aggregate as of now.")
            .with_mime_type(JSON),
        ResourceTemplate::new(format!("{SCHEMA}{{aggregate_type}}"), "schema")
            .with_title("Schema of a type")
            .with_description("The type's fields, traits and events.")
            .with_mime_type(JSON),
    ]
}

/// Reads the resource at a URI. Returns the length of the resource's text in bytes, and the result.
pub(super) async fn read(reader: &Reader, uri: &str) -> Result<(usize, ReadResourceResult)> {
    let missing = || Error::not_found("resource", uri);
    let name = |prefix| {
        let rest = uri.strip_prefix(prefix)?;
        // Some clients append a slash to a URI without a path.
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        percent_decode_str(rest).decode_utf8().ok().map(|name| name.into_owned())
    };
    let (text, mime_type) = if uri == OPERATORS {
        (LANGUAGE.clone(), MARKDOWN)
    } else if let Some(id) = name(AGGREGATE) {
        let (aggregate, definition) = reader.aggregate(&id, StateMoment::Now).await?;
        (to_json(&ShownAggregate::from((&*aggregate, &*definition)))?, JSON)
    } else if let Some(type_name) = name(SCHEMA) {
        (to_json(&get_schema::shown(&reader.schema(&type_name).await?))?, JSON)
    } else {
        return Err(missing());
    };
    let bytes = text.len();
    let contents = ResourceContents::text(text, uri).with_mime_type(mime_type);
    Ok((bytes, ReadResourceResult::new(vec![contents])))
}

fn to_json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(Error::internal)
}
