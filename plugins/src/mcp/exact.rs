//! Keeps the numbers of tool calls exact. The protocol's library converts arguments and results to JSON values, which
//! contain only 64-bit integers and doubles. Therefore the JSON texts of arguments and results are kept as well.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use foldwork_engine::model::written::is_likely_in;
use serde_json::value::{RawValue, to_raw_value};

/// The field of a result that contains the data of a tool.
const STRUCTURED_CONTENT: &str = "structuredContent";

/// Returns the text of the arguments in a message that calls a tool, if the text may have numbers that no double
/// represents exactly.
pub fn sent_arguments(message: &[u8]) -> Option<Arc<str>> {
    if !is_likely_in(message) {
        return None;
    }
    let message: BTreeMap<String, &RawValue> = serde_json::from_slice(message).ok()?;
    let params: BTreeMap<String, &RawValue> = serde_json::from_str(message.get("params")?.get()).ok()?;
    Some(params.get("arguments")?.get().into())
}

/// The text of a tool's result, if the text may have numbers that no double represents exactly. All clones share the
/// text.
#[derive(Debug, Clone, Default)]
pub struct ExactResult(Arc<OnceLock<Box<RawValue>>>);

impl ExactResult {
    /// Keeps the text of the tool's result, if the text may have numbers that no double represents exactly.
    pub(super) fn keep(&self, text: Box<RawValue>) {
        if is_likely_in(text.get().as_bytes()) {
            self.0.get_or_init(|| text);
        }
    }

    /// Replaces the structured content in a response with the kept text of the tool's result. Returns the new response.
    /// If no text was kept, or if the response has no structured content, returns the response unchanged.
    pub fn restored_in(&self, response: Vec<u8>) -> Vec<u8> {
        self.0.get().and_then(|text| with_structured_content(&response, text)).unwrap_or(response)
    }
}

/// Replaces the structured content in a response. Returns `None` if the response contains no structured content.
fn with_structured_content(response: &[u8], text: &RawValue) -> Option<Vec<u8>> {
    type Fields<'m> = BTreeMap<&'m str, &'m RawValue>;
    let mut message: Fields<'_> = serde_json::from_slice(response).ok()?;
    let result = message.get_mut("result")?;
    let mut fields: Fields<'_> = serde_json::from_str(result.get()).ok()?;
    *fields.get_mut(STRUCTURED_CONTENT)? = text;
    let fields = to_raw_value(&fields).ok()?;
    *result = &fields;
    serde_json::to_vec(&message).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> ExactResult {
        let result = ExactResult::default();
        result.keep(RawValue::from_string(text.to_owned()).expect("JSON"));
        result
    }

    #[test]
    fn rounded_numbers_in_a_response_are_replaced_by_the_exact_numbers() {
        let text = r#"{"n":18446744073709551617,"result":{"structuredContent":1.5}}"#;
        let content = r#"[{"type":"text","text":"{\"structuredContent\":1}"}]"#;
        let response = format!(
            r#"{{"jsonrpc":"2.0","id":"é","result":{{"content":{content},"structuredContent":{{"n":1.8446744073709552e19}},"isError":false}}}}"#
        );
        let restored = String::from_utf8(kept(text).restored_in(response.into_bytes())).expect("a text");
        let expected = format!(
            r#"{{"id":"é","jsonrpc":"2.0","result":{{"content":{content},"isError":false,"structuredContent":{text}}}}}"#
        );
        assert_eq!(restored, expected);
    }

    #[test]
    fn responses_with_nothing_to_restore_stay_unchanged() {
        for response in [r#"{"id":1,"error":{"code":1}}"#, r#"{"id":1,"result":{"content":[]}}"#, "data: x", ""] {
            let same = kept(r#"{"n":18446744073709551617}"#).restored_in(response.as_bytes().to_vec());
            assert_eq!(same, response.as_bytes());
        }
        let response = r#"{"result":{"structuredContent":{"n":1}}}"#.as_bytes();
        assert_eq!(kept(r#"{"n":1}"#).restored_in(response.to_vec()), response);
    }
}
