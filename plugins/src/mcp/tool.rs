//! What a tool is: what models are told of it, and what it does by which right.

use std::pin::Pin;
use std::sync::Arc;

use foldwork_engine::model::json_schema::Schema;
use foldwork_engine::{Error, Reader, Result, Writer};
use rmcp::model::{JsonObject, Tool as Description, ToolAnnotations};
use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema as Described};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A tool of the server's own.
pub struct Tool {
    pub description: Description,
    /// What its arguments are like.
    pub input: Arc<Schema>,
    pub run: Run,
}

/// What a tool does, by the right that it needs.
pub enum Run {
    Read(Running<Reader>),
    Write(Running<Writer>),
}

/// What a tool knows of a call beside its arguments.
#[derive(Clone)]
pub struct Call {
    /// Bytes that the answer may have.
    pub answer_bytes: usize,
    /// Bytes that a file may have which is uploaded, where there is a bound.
    pub upload_bytes: Option<u64>,
    /// What the URL of a link to upload begins with; the link itself comes behind it.
    pub upload_url: Arc<str>,
}

/// Answers a call by a right.
pub type Running<R> = Box<dyn Fn(R, JsonObject, Call) -> Answering + Send + Sync>;

/// An answer under way.
pub type Answering = Pin<Box<dyn Future<Output = Result<Value>> + Send>>;

/// What models are told in words.
pub struct Words {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
}

/// What a tool that changes something does to what was there.
#[derive(Clone, Copy)]
pub struct Effect {
    /// It may take something back or away.
    pub destructive: bool,
    /// The same call again changes nothing.
    pub idempotent: bool,
}

impl Tool {
    /// A tool that reads.
    pub fn reading<A, O, F>(words: &Words, run: impl Fn(Reader, A, Call) -> F + Copy + Send + Sync + 'static) -> Tool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema,
        F: Future<Output = Result<O>> + Send,
    {
        let annotations = ToolAnnotations::with_title(words.title).read_only(true);
        Tool::new::<A, O>(words, annotations.idempotent(true), Run::Read(running(run)))
    }

    /// A tool that changes something.
    pub fn writing<A, O, F>(
        words: &Words,
        effect: Effect,
        run: impl Fn(Writer, A, Call) -> F + Copy + Send + Sync + 'static,
    ) -> Tool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema,
        F: Future<Output = Result<O>> + Send,
    {
        let annotations = ToolAnnotations::with_title(words.title).read_only(false).destructive(effect.destructive);
        Tool::new::<A, O>(words, annotations.idempotent(effect.idempotent), Run::Write(running(run)))
    }

    fn new<A: JsonSchema, O: JsonSchema>(words: &Words, annotations: ToolAnnotations, run: Run) -> Tool {
        let (input, output) = (schema_of::<A>(Contract::Deserialize), schema_of::<O>(Contract::Serialize));
        let compiled = Schema::compile(&Value::Object(input.clone())).expect("a schema that is made of a type is one");
        let description = Description::new(words.name, words.description, Arc::new(input))
            .with_title(words.title)
            .with_raw_output_schema(Arc::new(output))
            // What is in a workspace is all there is to see.
            .with_annotations(annotations.open_world(false));
        Tool { description, input: Arc::new(compiled), run }
    }

    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        matches!(self.run, Run::Write(_))
    }

    /// What is wrong with its arguments is told with its place. Null says that an argument is not given.
    ///
    /// Long arguments take a while to check, which is no work for the threads that serve.
    pub async fn check(&self, mut arguments: JsonObject) -> Result<JsonObject> {
        arguments.retain(|_, value| !value.is_null());
        let (input, arguments) = (self.input.clone(), Value::Object(arguments));
        let checking = tokio::task::spawn_blocking(move || (input.violations(&arguments), arguments));
        let (violations, arguments) = checking.await.map_err(Error::internal)?;
        match arguments {
            Value::Object(arguments) if violations.is_empty() => Ok(arguments),
            _ => Err(Error::from(violations)),
        }
    }
}

fn running<R, A, O, F>(run: impl Fn(R, A, Call) -> F + Copy + Send + Sync + 'static) -> Running<R>
where
    R: Send + 'static,
    A: DeserializeOwned + Send + 'static,
    O: Serialize,
    F: Future<Output = Result<O>> + Send,
{
    Box::new(move |right, arguments, call| {
        Box::pin(async move {
            let arguments = serde_json::from_value(Value::Object(arguments));
            // What no schema says, such as how deep values may nest, is found here.
            let arguments: A = arguments.map_err(|error| Error::invalid(error.to_string()))?;
            let answer = run(right, arguments, call).await?;
            serde_json::to_value(answer).map_err(Error::internal)
        })
    })
}

/// The schema of a type, in the words that most clients and models know: without references, with one type a place, and
/// without formats of numbers.
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

/// Where null may stand too, it is one of two alternatives; an argument that is null is just not given.
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
