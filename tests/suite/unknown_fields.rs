//! Tests that unknown fields of request bodies are errors, for every object of every body in the document.

use std::collections::BTreeSet;

use foldwork_server::Config;
use foldwork_tests::server::Server;
use poem::http::Method;
use poem::{Body, Request};
use serde_json::{Value, json};

const COMPONENTS: &str = "#/components/schemas/";
/// The name of a field that no schema has.
const UNKNOWN: &str = "zz_unknown";
/// The fields that accept any content: data of clients, schemas, pipelines, and objects with several spellings of their
/// fields. The scenario `api/unknown-fields.yaml` tests unknown fields of these objects.
const FREE: [&str; 40] = [
    "ActOnTasks.artifact",
    "ActOnTasks.artifacts",
    "ActOnTasks.content",
    "ActOnTasks.filter",
    "ActOnTasks.modifications",
    "ActOnTasks.parts",
    "AddArtifact.content",
    "AddArtifact.data",
    "AddArtifact.effect",
    "AddArtifact.parts",
    "AddMessage.parts",
    "AnswerTask.parts",
    "AskTask.parts",
    "ChangeAgent.capabilities",
    "CompleteTask.artifact",
    "CompleteTask.artifacts",
    "CompleteTask.parts",
    "CreateAgent.capabilities",
    "CreateTask.artifact",
    "CreateTask.artifacts",
    "CreateTask.metadata",
    "CreateTask.source",
    "DryRunEvent.metadata",
    "DryRunEvent.payload",
    "EditTask.artifact",
    "EditTask.artifacts",
    "EditTask.content",
    "EditTask.modifications",
    "FieldDefinition.default",
    "FieldDefinition.enum",
    "ItemDefinition.enum",
    "NewEvent.metadata",
    "NewEvent.payload",
    "QueryBody.pipeline",
    "RequestChanges.parts",
    "RequestInput.parts",
    "RequestInput.schema",
    "StreamEvent.metadata",
    "StreamEvent.payload",
    "TypeDefinition.events",
];

/// A request body in which an object of a schema contains an unknown field.
struct Case {
    schema: String,
    body: Value,
}

/// Returns the schema that a node refers to.
fn referred(node: &Value) -> Option<&str> {
    let reference = node["$ref"].as_str().or(node["allOf"][0]["$ref"].as_str());
    reference.and_then(|name| name.strip_prefix(COMPONENTS))
}

/// Adds the cases for a schema, its forms and its nested schemas. `wrap` turns an object of the schema into a request
/// body. Each schema is visited at most twice, because a schema may contain itself.
fn collect(schemas: &Value, name: &str, wrap: &dyn Fn(Value) -> Value, cases: &mut Vec<Case>) {
    for form in schemas[name]["oneOf"].as_array().into_iter().flatten().filter_map(referred) {
        collect(schemas, form, wrap, cases);
    }
    let Some(properties) = schemas[name]["properties"].as_object() else { return };
    if cases.iter().filter(|case| case.schema == name).count() > 1 {
        return;
    }
    cases.push(Case { schema: name.to_owned(), body: wrap(json!({UNKNOWN: 1})) });
    for (field, property) in properties {
        if let Some(inner) = referred(property) {
            collect(schemas, inner, &|value| wrap(json!({field: value})), cases);
        } else if let Some(inner) = referred(&property["items"]) {
            collect(schemas, inner, &|value| wrap(json!({field: [value]})), cases);
        }
    }
}

/// Returns whether a property accepts any content.
fn is_free(property: &Value) -> bool {
    let node = property.get("items").unwrap_or(property);
    let is_any = ["type", "$ref", "oneOf", "anyOf", "allOf", "enum"].iter().all(|word| node.get(word).is_none());
    is_any || node["additionalProperties"] == true
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_body_with_a_closed_schema_rejects_unknown_fields() {
    let document = foldwork_server::openapi(&Config::default());
    let schemas = &document["components"]["schemas"];
    let server = Server::start().await.expect("a server");
    let (mut seen, mut free) = (BTreeSet::new(), BTreeSet::new());
    let paths = document["paths"].as_object().expect("paths").iter();
    let operations = paths.flat_map(|(path, item)| {
        item.as_object().into_iter().flatten().map(move |(method, operation)| (path, method, operation))
    });
    for (path, method, operation) in operations {
        let Some(name) = referred(&operation["requestBody"]["content"]["application/json"]["schema"]) else { continue };
        let mut cases = Vec::new();
        collect(schemas, name, &|value| value, &mut cases);
        for Case { schema, body } in cases {
            assert_eq!(schemas[&schema]["additionalProperties"], false, "{schema} is not closed");
            let properties = schemas[&schema]["properties"].as_object().expect("properties").iter();
            free.extend(
                properties.filter(|(_, property)| is_free(property)).map(|(field, _)| format!("{schema}.{field}")),
            );
            seen.insert(schema.clone());
            // The server checks `items` only in a complete field. `api/types-nested.yaml` tests unknown fields of
            // items.
            if body.to_string().contains("\"items\":") {
                continue;
            }
            let base = operation_base(&document["paths"][path]);
            let target = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect::<Vec<_>>();
            let request = Request::builder()
                .method(Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method"))
                .uri(format!("{base}{}", target.join("/")).parse().expect("a path"))
                .header("authorization", format!("Bearer {}", server.key("owner").expect("the owner")))
                .content_type("application/json")
                .body(Body::from_string(body.to_string()));
            let response = server.call(request).await;
            let status = response.status().as_u16();
            let text = response.into_body().into_string().await.expect("a text");
            assert_eq!(status, 400, "{method} {path} {body}: {text}");
            assert!(text.contains(UNKNOWN) && text.contains("unknown"), "{method} {path} {body}: {text}");
        }
    }
    assert_eq!(free, BTreeSet::from(FREE.map(str::to_owned)));
    let expected = ["StreamEvents", "FieldDefinition", "ActOnTasks"].iter().all(|name| seen.contains(*name));
    assert!(expected, "a schema is in no request: {seen:?}");
}

/// Returns the base path of the operations of a path item.
fn operation_base(item: &Value) -> &str {
    let url = item["servers"][0]["url"].as_str().unwrap_or("/api/v1");
    url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap_or(url)
}
