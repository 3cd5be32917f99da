//! The catalogue of the pipeline language: as JSON at `/pipelines/operators`, and as a page of the documentation.

use std::fmt::Write;

use foldwork_engine::Error;
use foldwork_engine::model::closed_set::names;
use foldwork_engine::model::json;
use foldwork_engine::pipeline::catalogue::{Argument, CatalogueEntry, NameKind, catalogue};
use poem_openapi::OpenApi;
use poem_openapi::param::Query;
use strum::VariantArray;

use super::section::Section;
use crate::auth::ApiRead;
use crate::http::error::ApiResult;
use crate::wire::body::JsonResponse;
use crate::wire::closed_sets::{LanguageKinds, OneOf};
use crate::wire::json::{AnyObject, AnyValue};
use crate::wire::page::{PageBody, listed};
use crate::wire::shown::shown;

pub struct Api;

shown! {
    /// An argument of an operator.
    struct OperatorArgument from argument: Argument;

    name: String = argument.name.into(),
    /// The type: `any`, `number`, `integer`, `string`, `boolean`, `date`, `object` or `array`. Several types are
    /// separated by `|`.
    r#type: String = argument.type_name.into(),
    required: bool = argument.required,
    /// Whether the argument may occur any number of times.
    @read_only repeated: Option<bool> = argument.repeated.then_some(true),
}

shown! {
    /// An example with its result.
    struct OperatorExample from entry: &CatalogueEntry where {
        let read = |text: &str| json::parse(text.as_bytes()).unwrap_or_default();
        let [usage, input, result] = entry.word.example.map(|text| AnyValue(read(text)));
        let pipeline = read(&entry.pipeline());
    };

    /// The operator as it is written in a pipeline.
    usage: AnyValue = usage,
    /// The row or rows to which the operator is applied. For `$fold`, the input is events.
    input: AnyValue = input,
    result: AnyValue = result,
    /// The whole example as a pipeline that `POST /aggregates/query` accepts.
    pipeline: Vec<AnyObject> = pipeline.as_array().unwrap_or_default().iter().filter_map(AnyObject::of).collect(),
}

shown! {
    /// A stage, an operator or a variable of the language.
    #[oai(rename = "Operator")]
    struct OperatorBody from entry: &CatalogueEntry;

    name: String = entry.word.name.into(),
    kind: OneOf<LanguageKinds> = entry.kind.name().into(),
    summary: String = entry.word.summary.into(),
    arguments: Vec<OperatorArgument> = entry.arguments().map(OperatorArgument::from).collect(),
    example: OperatorExample = OperatorExample::from(entry),
    /// The differences from MongoDB's operator of the same name.
    @read_only remark: Option<String> = Some(entry.word.remark).filter(|remark| !remark.is_empty()).map(str::to_owned),
}

listed!(OperatorBody as "OperatorPage": "The entries of the catalogue that match the filters.");

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Lists every stage, operator, accumulator and variable that a pipeline may use.
    ///
    /// Without parameters, the response is the whole catalogue. Each entry contains an example with a complete
    /// pipeline.
    #[oai(path = "/pipelines/operators", method = "get", operation_id = "list_operators")]
    async fn list_operators(
        &self,
        _access: ApiRead,
        /// Only entries of this kind.
        kind: Query<Option<OneOf<LanguageKinds>>>,
        /// Only entries with this name, with or without the leading `$`.
        name: Query<Option<String>>,
    ) -> ApiResult<JsonResponse<PageBody<OperatorBody>>> {
        let kind = kind.0.as_deref().map(read_kind).transpose()?;
        let bare = |name: &str| name.trim_start_matches('$').to_owned();
        let name = name.0.as_deref().map(bare);
        let entries = catalogue().filter(|entry| {
            kind.is_none_or(|kind| entry.kind == kind)
                && name.as_ref().is_none_or(|name| bare(entry.word.name) == *name)
        });
        let data = entries.map(|entry| OperatorBody::from(&entry)).collect();
        Ok(JsonResponse::new(&PageBody { data, next_cursor: None }))
    }
}

fn read_kind(name: &str) -> Result<NameKind, Error> {
    let refused = || Error::invalid(format!("`kind` is '{name}'; allowed are {}", names::<NameKind>().join(", ")));
    NameKind::parse(name).ok_or_else(refused)
}

/// Returns the title of the page's section that lists the entries of a kind.
fn title(kind: NameKind) -> &'static str {
    match kind {
        NameKind::Stage => "Stages",
        NameKind::Query => "Query operators",
        NameKind::Accumulator => "Accumulators",
        NameKind::Window => "Window functions",
        NameKind::Expression => "Expression operators",
        NameKind::Variable => "Variables",
    }
}

/// Returns the catalogue as Markdown.
fn markdown() -> String {
    let mut text = "# The pipeline language\n\nEach example is shown with its result. \
        `GET /api/v1/pipelines/operators` returns the same list, with each example as a pipeline that can be sent.\n\n"
        .to_owned();
    let links = NameKind::VARIANTS.iter().map(|kind| format!("[{}](#{})", title(*kind), kind.name()));
    text.push_str(&links.collect::<Vec<_>>().join(" · "));
    for kind in NameKind::VARIANTS.iter().copied() {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n\n<h2 id=\"{}\">{}</h2>\n", kind.name(), title(kind));
        catalogue().filter(|entry| entry.kind == kind).for_each(|entry| section(&mut text, &entry));
    }
    text
}

fn section(text: &mut String, entry: &CatalogueEntry) {
    let word = entry.word;
    let _ = write!(
        text,
        "\n<h3 id=\"{kind}-{name}\"><code>{name}</code></h3>\n\n{summary}",
        kind = entry.kind.name(),
        name = word.name,
        summary = word.summary
    );
    if !word.remark.is_empty() {
        let _ = write!(text, " *{}*", word.remark);
    }
    let arguments: Vec<String> = entry
        .arguments()
        .map(|argument| {
            let repeated = if argument.repeated { ", any number" } else { "" };
            let optional = if argument.required { "" } else { ", optional" };
            format!("`{}` ({}{repeated}{optional})", argument.name, argument.type_name)
        })
        .collect();
    if !arguments.is_empty() {
        let _ = write!(text, "\n\nArguments: {}.", arguments.join(", "));
    }
    let [usage, input, result] = word.example;
    let _ = writeln!(text, "\n\n```json\n{usage}\n```\n\nover `{input}` returns `{result}`.");
}

/// Returns the HTML page that documents the pipeline language.
pub fn page() -> String {
    let mut html = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Pipeline language</title>\
        <style>body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}\
        code{background:#f3f3f3;padding:.1em .25em;overflow-wrap:anywhere}pre{background:#f3f3f3;padding:.6em;overflow:auto}\
        </style></head><body><p><a href=\"/docs\">All operations</a></p>"
        .to_owned();
    pulldown_cmark::html::push_html(&mut html, pulldown_cmark::Parser::new(&markdown()));
    html.push_str("</body></html>");
    html
}
