//! JSON bodies. A request body is read under a size limit and parsed once, directly into the handler's type.

use std::marker::PhantomData;
use std::ops::Deref;

use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::duplicate_names::repeated_name;
use foldwork_engine::model::json;
use poem::http::StatusCode;
use poem::{IntoResponse, Request, RequestBody, Response};
use poem_openapi::payload::Payload;
use poem_openapi::registry::{MetaMediaType, MetaResponse, MetaResponses, MetaSchemaRef, Registry};
use poem_openapi::types::Type;
use poem_openapi::{ApiExtractor, ApiExtractorType, ApiResponse, ExtractParamOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::faults::faults;
use crate::http::bodies;
use crate::http::error::ApiError;
use crate::http::offloading::offload;

const CONTENT_TYPE: &str = "application/json";

/// A JSON request body. `T` is the type of the parsed body. The OpenAPI document contains the schema of `T`.
pub struct Body<T> {
    pub value: T,
    /// The text that the client sent. The fingerprint of a request with an idempotency key includes this text.
    pub text: Vec<u8>,
}

impl<T> Deref for Body<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Parses a body. The error states the place of a repeated name or, without such a name, the places of the faults that
/// [`faults`] returns. If [`faults`] returns none, the error contains the message of the parser.
fn parsed<T: Type + DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    // Rejects a repeated name, because the parser would keep only one of its values.
    if let Some(repeated) = repeated_name(body) {
        return Err(ApiError::faulty_body(vec![repeated]));
    }
    json::read(body).map_err(|error| match faults::<T>(body) {
        faults if faults.is_empty() => ApiError::unparsed_body(&error),
        faults => ApiError::faulty_body(faults),
    })
}

/// Returns whether a content type is `application/json` or another JSON type.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(CONTENT_TYPE) || (essence.starts_with("application/") && essence.ends_with("+json"))
}

impl<'a, T: Type + DeserializeOwned> ApiExtractor<'a> for Body<T> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];

    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn request_meta() -> Option<poem_openapi::registry::MetaRequest> {
        Some(poem_openapi::registry::MetaRequest {
            description: None,
            content: vec![MetaMediaType { content_type: CONTENT_TYPE, schema: T::schema_ref() }],
            required: true,
        })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        _: ExtractParamOptions<Self::ParamType>,
    ) -> poem::Result<Self> {
        // A body without a content type is read as JSON.
        if let Some(content_type) = request.content_type()
            && !is_json(content_type)
        {
            let message = "the content type must be application/json or application/*+json";
            return Err(
                ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::UnsupportedMediaType, message).into()
            );
        }
        let text = bodies::read(request, body.take()?).await?;
        // An empty body is read as an empty object.
        let read: &[u8] = if text.is_empty() { b"{}" } else { &text };
        // Rejects arrays, because serde would read an array's items as the fields of a struct.
        if read.trim_ascii_start().first() == Some(&b'[') {
            return Err(ApiError::invalid_body(&"the body must be an object").into());
        }
        let value = offload(read.len(), || parsed::<T>(read))?;
        Ok(Body { value, text })
    }
}

/// A serialized JSON response. `T` is the schema in the OpenAPI document.
pub struct JsonResponse<T> {
    pub text: Vec<u8>,
    schema: PhantomData<fn() -> T>,
}

impl<T: Serialize> JsonResponse<T> {
    /// Serializes a value.
    pub fn new(value: &T) -> JsonResponse<T> {
        // Responses consist of strings, numbers and maps with string keys, so serialization cannot fail.
        JsonResponse { text: serde_json::to_vec(value).unwrap_or_default(), schema: PhantomData }
    }

    /// Creates and serializes a value of about `bytes` bytes. A large value does not block the other tasks of the
    /// thread.
    pub fn large(bytes: usize, value: impl FnOnce() -> T) -> JsonResponse<T> {
        offload(bytes, || JsonResponse::new(&value()))
    }
}

impl<T> JsonResponse<T> {
    /// Creates a response from the JSON text of an earlier response.
    pub fn from_text(text: impl Into<Vec<u8>>) -> JsonResponse<T> {
        JsonResponse { text: text.into(), schema: PhantomData }
    }
}

impl<T: Type> Payload for JsonResponse<T> {
    const CONTENT_TYPE: &'static str = CONTENT_TYPE;

    fn schema_ref() -> MetaSchemaRef {
        T::schema_ref()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

impl<T: Type> IntoResponse for JsonResponse<T> {
    fn into_response(self) -> Response {
        Response::builder().content_type(CONTENT_TYPE).body(self.text)
    }
}

impl<T: Type> ApiResponse for JsonResponse<T> {
    fn meta() -> MetaResponses {
        MetaResponses {
            responses: vec![MetaResponse {
                description: "",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType { content_type: CONTENT_TYPE, schema: T::schema_ref() }],
                headers: vec![],
            }],
        }
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}
