//! Answers of tools: their data twice, for programs and for models, or an error with its code and its place.

use foldwork_engine::model::value::Object;
use foldwork_engine::{Error, Result};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use super::Settings;

impl Settings {
    /// The result of a call, as it is sent.
    pub(super) fn result(&self, answer: Result<Value, Object>) -> CallToolResult {
        let answer = answer.and_then(|value| {
            let written = serde_json::to_string(&value).map_err(Error::internal);
            let text = written.and_then(|text| self.admit(text.len()).map(|()| text));
            text.map(|text| (value, text)).map_err(|error| self.described(error))
        });
        match answer {
            Ok((value, text)) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(value);
                result
            }
            // It is not structured: clients hold what is structured to the schema of the tool's answer.
            Err(described) => CallToolResult::error(vec![ContentBlock::text(text_of(&described))]),
        }
    }

    /// Refuses an answer that is larger than a model can make use of.
    pub(super) fn admit(&self, bytes: usize) -> Result<()> {
        if bytes <= self.answer_bytes {
            return Ok(());
        }
        let message = format!(
            "the answer has {bytes} bytes, and {} are allowed: ask for fewer rows, or with a pipeline for fewer fields",
            self.answer_bytes
        );
        Err(Error::Invalid { code: "answer_too_large", message, violations: Vec::new() })
    }

    /// What a client is told of an error.
    pub(super) fn described(&self, error: Error) -> Object {
        (self.describe)(error)
    }
}

fn text_of(described: &Object) -> String {
    serde_json::to_string(described).unwrap_or_default()
}
