//! Requests with an `Idempotency-Key`: the first answer is kept, and a repeat gets it again.

use foldwork_engine::workspace::answers::RequestId;
use foldwork_engine::{Error, Workspace};
use poem_openapi::ApiResponse;
use poem_openapi::types::Type;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::body::Written;
use super::error::{ApiResult, answer};

/// The answer to a request that makes something.
#[derive(ApiResponse)]
pub enum Made<T: Type> {
    /// It was made.
    #[oai(status = 201)]
    Created(Written<T>, #[oai(header = "Location")] String),
    /// It was there before: this is what the first request made.
    #[oai(status = 200)]
    Repeated(Written<T>, #[oai(header = "Location")] String, #[oai(header = "Idempotency-Replayed")] String),
}

/// What a handler made, on its way out.
pub struct Outcome<B> {
    pub body: B,
    pub location: String,
    /// It was made by an earlier request.
    pub repeated: bool,
}

/// Makes something once per idempotency key; without a key, each time.
///
/// `kept` turns the body into what is stored of it, which leaves a secret out.
pub async fn once<T: Type, B: Serialize, F: Future<Output = Result<Outcome<B>, Error>>>(
    workspace: &Workspace,
    key: Option<String>,
    operation: &str,
    text: &[u8],
    make: impl FnOnce(Option<RequestId>) -> F,
    kept: impl FnOnce(&B) -> Vec<u8>,
) -> ApiResult<Made<T>> {
    let Some(key) = key else {
        let outcome = answer(make(None).await)?;
        return Ok(made(Written::large(&outcome.body, text.len()), outcome.location, outcome.repeated));
    };
    let fingerprint =
        hex::encode(Sha256::new().chain_update(operation).chain_update([0]).chain_update(text).finalize());
    // The draft standard quotes the key, most clients do not.
    let request = answer(RequestId::new(key.trim().trim_matches('"'), fingerprint))?;
    let _one = workspace.one_at_a_time().await;
    if let Some(first) = answer(workspace.answered(&request).await)? {
        return Ok(made(Written::from_text(first.body), first.location.unwrap_or_default(), true));
    }
    let outcome = answer(make(Some(request.clone())).await)?;
    let stored = String::from_utf8_lossy(&kept(&outcome.body)).into_owned();
    answer(workspace.remember(&request, stored, Some(outcome.location.clone())).await)?;
    Ok(made(Written::large(&outcome.body, text.len()), outcome.location, outcome.repeated))
}

/// Keeps the whole body.
pub fn whole<B: Serialize>(body: &B) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

fn made<T: Type>(body: Written<T>, location: String, repeated: bool) -> Made<T> {
    match repeated {
        true => Made::Repeated(body, location, "true".into()),
        false => Made::Created(body, location),
    }
}
