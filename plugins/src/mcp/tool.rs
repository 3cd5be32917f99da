//! The parts of a built-in tool: a description for models, and a function that handles calls. The variant of
//! [`ToolFunction`] names the right that the function needs.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use foldwork_engine::model::excerpt::excerpt_of;
use foldwork_engine::model::json_schema::Schema;
use foldwork_engine::model::value::Object;
use foldwork_engine::model::violation::{Violation, segment};
use foldwork_engine::model::written::with_numbers_of;
use foldwork_engine::offload::in_place;
use foldwork_engine::pipeline::hint::did_you_mean;
use foldwork_engine::{Error, Reader, Result, Writer};
use rmcp::model::{JsonObject, Tool as Description, ToolAnnotations};
use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema as Described};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// The maximum number of unknown arguments in one error.
const MAX_UNKNOWN: usize = 20;

/// A built-in tool.
pub struct BuiltinTool {
    pub description: Description,
    /// The compiled schema of the arguments.
    pub input: Arc<Schema>,
    pub run: ToolFunction,
}

/// The function of a tool. The variant names the right that the function needs.
pub enum ToolFunction {
    Read(Running<Reader>),
    Write(Running<Writer>),
}

/// The data of a call that a tool receives in addition to the arguments.
#[derive(Clone)]
pub struct ToolCall {
    /// The maximum size of the result, in bytes.
    pub response_bytes: usize,
    /// The maximum size of an uploaded file, in bytes. `None` means no limit.
    pub upload_bytes: Option<u64>,
    /// The first part of the URL of an upload link. The link's token follows.
    pub upload_url: Arc<str>,
    /// The text of the arguments. Present only if the text may contain numbers that no double represents exactly.
    pub sent: Option<Arc<str>>,
}

impl ToolCall {
    /// Returns an argument with the numbers exactly as in the sent text. The numbers of `argument` may be rounded,
    /// because the protocol's library parses numbers other than 64-bit integers as doubles.
    pub fn exact(&self, name: &str, argument: Object) -> Object {
        let Some(sent) = &self.sent else { return argument };
        in_place(|| {
            let texts: HashMap<String, &RawValue> = serde_json::from_str(sent).unwrap_or_default();
            match texts.get(name) {
                Some(text) => with_numbers_of(argument, text.get()),
                None => argument,
            }
        })
    }
}

/// A function that handles a call with a handle of type `R`.
pub type Running<R> = Box<dyn Fn(R, JsonObject, ToolCall) -> Calling + Send + Sync>;

/// The future that resolves to the result of a call.
pub type Calling = Pin<Box<dyn Future<Output = Result<ToolOutput>> + Send>>;

/// The data that a tool returns.
pub struct ToolOutput {
    /// The data as a JSON value. Numbers other than 64-bit integers are rounded to the nearest double.
    pub value: Value,
    /// The data as JSON text. Each number is exact.
    pub text: Box<RawValue>,
}

impl ToolOutput {
    pub fn of(output: &impl Serialize) -> Result<ToolOutput> {
        in_place(|| {
            let value = serde_json::to_value(output).map_err(Error::internal)?;
            Ok(ToolOutput { value, text: to_raw_value(output).map_err(Error::internal)? })
        })
    }
}

/// The texts that describe a tool to models.
pub struct ToolWords {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
}

/// The effects of a writing tool on existing data.
#[derive(Clone, Copy)]
pub struct ToolEffect {
    /// Whether the tool may remove or revert something.
    pub destructive: bool,
    /// Whether repeating a call has no further effect.
    pub idempotent: bool,
}

impl BuiltinTool {
    /// Creates a tool that only reads.
    pub fn reading<A, O, F>(
        words: &ToolWords,
        run: impl Fn(Reader, A, ToolCall) -> F + Copy + Send + Sync + 'static,
    ) -> BuiltinTool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema,
        F: Future<Output = Result<O>> + Send,
    {
        let annotations = ToolAnnotations::with_title(words.title).read_only(true);
        BuiltinTool::new::<A, O>(words, annotations.idempotent(true), ToolFunction::Read(running(run)))
    }

    /// Creates a tool that writes.
    pub fn writing<A, O, F>(
        words: &ToolWords,
        effect: ToolEffect,
        run: impl Fn(Writer, A, ToolCall) -> F + Copy + Send + Sync + 'static,
    ) -> BuiltinTool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema,
        F: Future<Output = Result<O>> + Send,
    {
        let annotations = ToolAnnotations::with_title(words.title).read_only(false).destructive(effect.destructive);
        BuiltinTool::new::<A, O>(words, annotations.idempotent(effect.idempotent), ToolFunction::Write(running(run)))
    }

    fn new<A: JsonSchema, O: JsonSchema>(
        words: &ToolWords,
        annotations: ToolAnnotations,
        run: ToolFunction,
    ) -> BuiltinTool {
        let (input, output) = (schema_of::<A>(Contract::Deserialize), schema_of::<O>(Contract::Serialize));
        let compiled = Schema::compile(&Value::Object(input.clone())).expect("a schema generated from a type is valid");
        let description = Description::new(words.name, words.description, Arc::new(input))
            .with_title(words.title)
            .with_raw_output_schema(Arc::new(output))
            // A tool accesses only the data of the workspace.
            .with_annotations(annotations.open_world(false));
        BuiltinTool { description, input: Arc::new(compiled), run }
    }

    /// Returns whether the tool writes.
    pub fn writes(&self) -> bool {
        matches!(self.run, ToolFunction::Write(_))
    }

    /// Validates the arguments. Each violation names the position of the wrong value. An argument that is null counts
    /// as missing.
    ///
    /// Validating long arguments takes time, so the validation runs outside the threads that serve requests.
    pub async fn check(&self, mut arguments: JsonObject) -> Result<JsonObject> {
        arguments.retain(|_, value| !value.is_null());
        let unknown = self.take_unknown(&mut arguments);
        let (input, arguments) = (self.input.clone(), Value::Object(arguments));
        let checking = tokio::task::spawn_blocking(move || (input.violations(&arguments), arguments));
        let (mut violations, arguments) = checking.await.map_err(Error::internal)?;
        violations.extend(unknown);
        match arguments {
            Value::Object(arguments) if violations.is_empty() => Ok(arguments),
            _ => Err(Error::from(violations)),
        }
    }

    /// Removes the arguments that the tool does not have. Returns a violation for each of the first [`MAX_UNKNOWN`]
    /// removed arguments.
    fn take_unknown(&self, arguments: &mut JsonObject) -> Vec<Violation> {
        let known = self.description.input_schema.get("properties").and_then(Value::as_object);
        let known: Vec<&str> = known.into_iter().flat_map(|fields| fields.keys().map(String::as_str)).collect();
        let is_known = |name: &str| known.contains(&name);
        let unknown = arguments.keys().filter(|name| !is_known(name)).take(MAX_UNKNOWN);
        let violations = unknown.map(|name| Violation {
            pointer: format!("/{}", segment(&excerpt_of(name))),
            message: not_among("argument", name, &known),
        });
        let violations = violations.collect();
        arguments.retain(|name, _| is_known(name));
        violations
    }
}

/// Returns the error message for a name that is not among the known names. The message lists the known names.
pub(super) fn not_among(what: &str, name: &str, known: &[&str]) -> String {
    let hint = did_you_mean(name, known.iter().copied()).map(|hint| format!("{hint} ")).unwrap_or_default();
    format!("unknown {what}; {hint}allowed: {}", known.join(", "))
}

fn running<R, A, O, F>(run: impl Fn(R, A, ToolCall) -> F + Copy + Send + Sync + 'static) -> Running<R>
where
    R: Send + 'static,
    A: DeserializeOwned + Send + 'static,
    O: Serialize,
    F: Future<Output = Result<O>> + Send,
{
    Box::new(move |right, arguments, call| {
        Box::pin(async move {
            let arguments = in_place(|| serde_json::from_value(Value::Object(arguments)));
            // Reports errors that no schema expresses, such as values nested too deep.
            let arguments: A = arguments.map_err(|error| Error::invalid(error.to_string()))?;
            ToolOutput::of(&run(right, arguments, call).await?)
        })
    })
}

/// Returns the schema of a type in a form that most clients and models support: without references, with a single type
/// per value, and without number formats.
fn schema_of<T: JsonSchema>(contract: Contract) -> JsonObject {
    let is_input = matches!(contract, Contract::Deserialize);
    let plain = move |schema: &mut Described| {
        without_width(schema);
        with_one_type(schema, is_input);
    };
    let mut settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(plain));
    settings.inline_subschemas = true;
    settings.contract = contract;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let Value::Object(mut schema) = schema.to_value() else { return JsonObject::new() };
    schema.remove("title");
    schema.remove("description");
    schema
}

/// Replaces a nullable type with a single type. In the schema of a result, null becomes the second alternative of an
/// `anyOf`. In the schema of arguments, null is removed, because an argument that is null counts as missing.
fn with_one_type(schema: &mut Described, is_input: bool) {
    let types = schema.get("type").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut others = types.iter().filter(|name| *name != "null");
    let (Some(only), None, 2) = (others.next(), others.next(), types.len()) else { return };
    let Some(object) = schema.as_object_mut() else { return };
    object.insert("type".to_owned(), only.clone());
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if is_input {
        return;
    }
    let description = object.remove("description");
    let branch = Value::Object(std::mem::take(object));
    object.extend(description.map(|text| ("description".to_owned(), text)));
    object.insert("anyOf".to_owned(), Value::Array(vec![branch, serde_json::json!({"type": "null"})]));
}

fn without_width(schema: &mut Described) {
    let is_width = |format: &str| format.starts_with("uint") || format.starts_with("int") || format == "double";
    if schema.get("format").and_then(Value::as_str).is_some_and(is_width) {
        schema.remove("format");
    }
}
