//! Requests with an `Idempotency-Key`: a repeated request returns the result of the first request.

use foldwork_engine::Error;
use foldwork_engine::workspace::Changing;
use foldwork_engine::workspace::responses::{self, IdempotentRequest, IdempotentResult, KeptResponse};
use poem_openapi::ApiResponse;
use poem_openapi::types::Type;
use serde::Serialize;

use super::body::JsonResponse;
use crate::http::error::ApiResult;

/// The response to a request that creates a resource.
#[derive(ApiResponse)]
pub enum CreationResponse<T: Type> {
    /// Created.
    #[oai(status = 201)]
    New(JsonResponse<T>, #[oai(header = "Location")] String),
    /// The request repeats an earlier request. The response is the result of that earlier request.
    #[oai(status = 200)]
    Repeated(JsonResponse<T>, #[oai(header = "Location")] String, #[oai(header = "Idempotency-Replayed")] String),
}

/// The result of a handler that creates a resource.
pub struct CreationOutcome<B> {
    pub body: B,
    pub location: String,
    /// Whether an earlier request created `body`: a request with the same idempotency key, or an append of events with
    /// the same ids.
    pub repeated: bool,
}

/// Creates a resource by appending events, once per idempotency key. Without a key, every request creates a resource. A
/// repeated request returns the resource that the first request created.
pub async fn idempotent<H, T, F>(
    handle: &H,
    key: Option<String>,
    operation: &str,
    text: &[u8],
    make: impl FnOnce(H, Option<IdempotentRequest>) -> F,
) -> ApiResult<CreationResponse<T>>
where
    H: Changing,
    T: Type + Serialize,
    F: Future<Output = Result<CreationOutcome<T>, Error>>,
{
    let user_id = handle.context().caller().user_id();
    let request = key.map(|key| request_id(user_id, &key, operation, text)).transpose()?;
    Ok(CreationResponse::of(make(handle.clone(), request).await?))
}

/// Returns the id of a user's request: the idempotency key with a fingerprint of the operation and the body.
pub fn request_id(user_id: &str, key: &str, operation: &str, text: &[u8]) -> Result<IdempotentRequest, Error> {
    // The draft standard puts the key in quotes, but most clients send the key without quotes.
    IdempotentRequest::new(user_id, key.trim().trim_matches('"'), operation, text)
}

/// Runs an operation once a day per idempotency key, for operations that append no events. Without a key, every request
/// runs the operation. A request that is repeated within a day returns the stored result of the first request.
///
/// `kept` returns the part of the body to store. The stored part must not include a secret.
pub async fn idempotent_kept<H, T, F>(
    handle: &H,
    key: Option<String>,
    operation: &str,
    text: &[u8],
    make: impl FnOnce(H, Option<IdempotentRequest>) -> F + Send + 'static,
    kept: fn(&T) -> Vec<u8>,
) -> ApiResult<CreationResponse<T>>
where
    H: Changing,
    T: Type + Serialize + Send + 'static,
    F: Future<Output = Result<CreationOutcome<T>, Error>> + Send + 'static,
{
    let Some(key) = key else {
        return Ok(CreationResponse::of(make(handle.clone(), None).await?));
    };
    let request = request_id(handle.context().caller().user_id(), &key, operation, text)?;
    let (maker, id) = (handle.clone(), request.clone());
    let make = move || async move {
        let outcome = make(maker, Some(id)).await?;
        let body = String::from_utf8_lossy(&kept(&outcome.body)).into_owned();
        let kept = KeptResponse { body, location: outcome.location.clone() };
        Ok((outcome, kept))
    };
    Ok(match responses::idempotent(handle, request, make).await? {
        IdempotentResult::First(outcome) => CreationResponse::of(outcome),
        IdempotentResult::Repeated(first) => {
            CreationResponse::Repeated(JsonResponse::from_text(first.body), first.location, "true".into())
        }
    })
}

/// Serializes the whole body, for operations whose result contains no secret.
pub fn to_json_bytes<B: Serialize>(body: &B) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

impl<T: Type + Serialize> CreationResponse<T> {
    /// Returns the response to a request with this outcome.
    pub fn of(outcome: CreationOutcome<T>) -> CreationResponse<T> {
        let body = JsonResponse::new(&outcome.body);
        match outcome.repeated {
            true => CreationResponse::Repeated(body, outcome.location, "true".into()),
            false => CreationResponse::New(body, outcome.location),
        }
    }
}
