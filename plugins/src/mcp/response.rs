//! Builds the results of tools: data as structured content and as text, or an error with its code and position.

use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::json;
use foldwork_engine::model::value::Object;
use foldwork_engine::{Error, Result};
use rmcp::model::{CallToolResult, ContentBlock};

use super::tool::ToolOutput;
use super::{ExactResult, McpSettings};

impl McpSettings {
    /// Returns the result of a call in the protocol's form. On success, also passes the text of the data to
    /// [`ExactResult::keep`].
    pub(super) fn result(&self, response: Result<ToolOutput, Object>, exact: &ExactResult) -> CallToolResult {
        let admit = |answer: ToolOutput| self.admit(answer.text.get().len()).map(|()| answer).map_err(self.describe);
        match response.and_then(admit) {
            Ok(ToolOutput { value, text }) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text.get())]);
                result.structured_content = Some(value);
                exact.keep(text);
                result
            }
            // Errors have no structured content, because clients validate structured content against the schema of the
            // tool's result.
            Err(described) => CallToolResult::error(vec![ContentBlock::text(json::text(&described))]),
        }
    }

    /// Rejects a result of more than [`McpSettings::response_bytes`] bytes, which is too large for a model to use.
    pub(super) fn admit(&self, bytes: usize) -> Result<()> {
        if bytes <= self.response_bytes {
            return Ok(());
        }
        let message = format!(
            "the response has {bytes} bytes; at most {} are allowed: request fewer rows, or use a pipeline to select \
             fewer fields",
            self.response_bytes
        );
        Err(Error::invalid_with_code(ErrorCode::ResponseTooLarge, message))
    }
}
