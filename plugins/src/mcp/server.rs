//! Handles requests of the Model Context Protocol. Each request has only the rights of its caller.

use std::sync::Arc;

use foldwork_engine::hook::PluginDescription;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::offload::in_place;
use foldwork_engine::{Error, Result};
use http::request::Parts;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, GetPromptRequestParams,
    GetPromptResponse, Implementation, JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, Tool as Description, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::pages::page;
use super::tool::{BuiltinTool, ToolCall, ToolFunction, ToolOutput, not_among};
use super::{CallerHandles, McpSettings, completions, prompts, resources, tools};

/// The instructions that models receive before they call tools.
const INSTRUCTIONS: &str = "Foldwork stores everything as events that fold to states (aggregates). To answer a \
    question: `search` finds aggregates by their labels and texts, `get_aggregate` returns one, `list_events` its \
    history, and `query` runs a pipeline in MongoDB's aggregation language over events and states; `get_schema` lists \
    types and fields, and the resource foldwork://operators describes the language. Tools that change something are \
    listed only for keys that may use them. An error is JSON with `error`, `code` and, if known, its position in \
    `details`.";

/// The handler of requests. The server keeps no data of a workspace, because each request carries the handles of its
/// caller.
#[derive(Clone)]
pub struct Server {
    tools: Arc<[BuiltinTool]>,
    settings: Arc<McpSettings>,
}

impl Server {
    pub(super) fn new(settings: McpSettings) -> Server {
        Server { tools: tools::all().into(), settings: Arc::new(settings) }
    }

    /// Returns the tools that a caller may use: the built-in tools, then the scripted tools.
    fn tools_of(&self, access: &CallerHandles) -> Vec<Description> {
        let may_use = |tool: &&BuiltinTool| !tool.writes() || access.writer.is_ok();
        let own = self.tools.iter().filter(may_use).map(|tool| tool.description.clone());
        own.chain(access.reader.tools().filter_map(|tool| scripted(&tool))).collect()
    }

    async fn called(
        &self,
        access: CallerHandles,
        tool: &BuiltinTool,
        arguments: JsonObject,
    ) -> Result<ToolOutput, Object> {
        let McpSettings { response_bytes, upload_bytes, .. } = *self.settings;
        let call = ToolCall { response_bytes, upload_bytes, upload_url: access.upload_url, sent: access.sent };
        let checked = tool.check(arguments).await;
        let result = match &tool.run {
            ToolFunction::Read(run) => run(access.reader, checked.map_err(self.settings.describe)?, call).await,
            ToolFunction::Write(run) => run(access.writer?, checked.map_err(self.settings.describe)?, call).await,
        };
        result.map_err(self.settings.describe)
    }

    async fn called_script(&self, access: &CallerHandles, name: &str, arguments: JsonObject) -> Result<ToolOutput> {
        let arguments = in_place(|| serde_json::from_value::<Object>(serde_json::Value::Object(arguments)));
        let arguments = arguments.map_err(|error| Error::invalid(error.to_string()))?;
        ToolOutput::of(&access.reader.call_tool(name, arguments).await?)
    }

    /// Returns the error for a call of a tool that does not exist. The error lists the tools that the caller may use.
    fn without_tool(&self, access: &CallerHandles, name: &str) -> ErrorData {
        let tools = self.tools_of(access);
        let known: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        ErrorData::invalid_params(format!("cannot call '{name:.64}': {}", not_among("tool", name, &known)), None)
    }

    /// Returns the protocol's error for a failed request that is not a tool call.
    fn refused(&self, error: Error) -> ErrorData {
        let of_kind: fn(String, Option<serde_json::Value>) -> ErrorData = match error {
            Error::NotFound { .. } => ErrorData::resource_not_found,
            Error::Internal(_) | Error::Unavailable(_) | Error::TooManyQueries(_) => ErrorData::internal_error,
            _ => ErrorData::invalid_params,
        };
        let described = (self.settings.describe)(error);
        let message = described.get("error").and_then(Value::as_str).unwrap_or_default().to_owned();
        of_kind(message, serde_json::to_value(&described).ok())
    }
}

/// Returns the handles of the request's caller. The server keeps no handles between requests.
fn access(context: &RequestContext<RoleServer>) -> Result<CallerHandles, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let access = parts.and_then(|parts| parts.extensions.get::<CallerHandles>()).cloned();
    access.ok_or_else(|| ErrorData::internal_error("the request reached the MCP server without authentication", None))
}

/// Returns the description of a scripted tool, or `None` if the plugin is not a tool.
fn scripted(about: &PluginDescription) -> Option<Description> {
    let profile = about.tool.as_ref()?;
    let schema = |schema: &Object| match serde_json::to_value(schema) {
        Ok(serde_json::Value::Object(schema)) => Some(Arc::new(schema)),
        _ => None,
    };
    let name = about.name.to_string();
    let mut annotations = ToolAnnotations::new().read_only(true).idempotent(true).open_world(false);
    let mut description = Description::new(name, about.description.clone(), schema(&profile.input)?);
    if let Some(title) = &profile.title {
        annotations.title = Some(title.clone());
        description = description.with_title(title.clone());
    }
    description.output_schema = profile.output.as_ref().and_then(schema);
    Some(description.with_annotations(annotations))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .build();
        let server = Implementation::new("foldwork", env!("CARGO_PKG_VERSION")).with_title("Foldwork");
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(INSTRUCTIONS)
    }

    fn get_tool(&self, name: &str) -> Option<Description> {
        self.tools.iter().find(|tool| tool.description.name == name).map(|tool| tool.description.clone())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (tools, next) = page(self.tools_of(&access(&context)?), request)?;
        // The list depends on the caller's rights, so it must not be shared between callers.
        let result = ListToolsResult::with_all_items(tools).with_ttl_ms(0).with_cache_scope(CacheScope::Private);
        Ok(ListToolsResult { next_cursor: next, ..result })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let access = access(&context)?;
        let exact = access.result.clone();
        let arguments = request.arguments.unwrap_or_default();
        let result = match self.tools.iter().find(|tool| tool.description.name == request.name) {
            Some(tool) => self.called(access, tool, arguments).await,
            None if access.reader.tools().any(|about| *about.name == *request.name) => {
                self.called_script(&access, &request.name, arguments).await.map_err(self.settings.describe)
            }
            None => return Err(self.without_tool(&access, &request.name)),
        };
        Ok(self.settings.result(result, &exact).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let reader = access(&context)?.reader;
        let all = resources::all(&reader).await.map_err(|error| self.refused(error))?;
        let (resources, next) = page(all, request)?;
        let result =
            ListResourcesResult::with_all_items(resources).with_ttl_ms(0).with_cache_scope(CacheScope::Private);
        Ok(ListResourcesResult { next_cursor: next, ..result })
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let (templates, next) = page(resources::templates(), request)?;
        Ok(ListResourceTemplatesResult { next_cursor: next, ..ListResourceTemplatesResult::with_all_items(templates) })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let reader = access(&context)?.reader;
        let read = resources::read(&reader, &request.uri).await;
        let admitted = read.and_then(|(text, contents)| self.settings.admit(text).map(|()| contents));
        let contents = admitted.map_err(|error| self.refused(error))?;
        Ok(contents.with_ttl_ms(0).with_cache_scope(CacheScope::Private).into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let (prompts, next) = page(prompts::all(), request)?;
        Ok(ListPromptsResult { next_cursor: next, ..ListPromptsResult::with_all_items(prompts) })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let reader = access(&context)?.reader;
        let prompt = prompts::get(&reader, &request.name, &request.arguments.unwrap_or_default()).await;
        // The name of a prompt is a parameter, so an unknown prompt is reported as an invalid parameter. All other
        // errors are reported in the same way.
        prompt.map(GetPromptResponse::from).map_err(|error| {
            let refused = self.refused(error);
            ErrorData::invalid_params(refused.message, refused.data)
        })
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let reader = access(&context)?.reader;
        completions::of(&reader, &request).await.map(CompleteResult::new).map_err(|error| self.refused(error))
    }
}
