//! Retries calls that fail temporarily. The wait between attempts doubles, or follows the server's `Retry-After`. Both
//! waits have the same limit.

use std::error::Error;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};

use super::client::{CallError, Client, Success};

/// The maximum number of attempts of a call, and the waits between attempts.
#[derive(Clone, Debug)]
pub struct CallRetries {
    pub tries: u32,
    pub first_wait: Duration,
    pub longest_wait: Duration,
}

impl Default for CallRetries {
    fn default() -> Self {
        Self { tries: 8, first_wait: Duration::from_millis(500), longest_wait: Duration::from_secs(60) }
    }
}

impl CallRetries {
    /// Returns the time to wait after a failed attempt. `attempt` counts from 1.
    fn wait(&self, attempt: u32, error: &CallError) -> Duration {
        let retry_after = match error {
            CallError::Refused(refusal) => refusal.retry_after,
            _ => None,
        };
        let doubled = self.first_wait.saturating_mul(1_u32.checked_shl(attempt - 1).unwrap_or(u32::MAX));
        retry_after.unwrap_or(doubled).min(self.longest_wait)
    }
}

/// Repeats a call until the call succeeds, fails permanently, or reaches the maximum number of attempts. `note`
/// receives a message for each wait.
///
/// The request must be idempotent, because it may reach the server several times.
pub async fn call(
    client: &Client,
    note: impl Fn(&str),
    request: impl Fn() -> RequestBuilder,
) -> Result<Success, CallError> {
    let retry_policy = &client.retry_policy;
    let mut attempt = 1;
    loop {
        let error = match client.call(request()).await {
            Ok(response) => return Ok(response),
            Err(error) if !error.is_temporary() || attempt >= retry_policy.tries => return Err(error),
            Err(error) => error,
        };
        let wait = retry_policy.wait(attempt, &error);
        note(&format!(
            "{}: attempt {attempt} of {} failed, retrying in {:.1} s",
            reason(&error),
            retry_policy.tries,
            wait.as_secs_f64()
        ));
        tokio::time::sleep(wait).await;
        attempt += 1;
    }
}

/// Fetches the resource at `path`. Retries the request as [`call`] does.
pub async fn get(client: &Client, note: &dyn Fn(&str), path: &[&str]) -> Result<Success, CallError> {
    call(client, note, || client.request(Method::GET, path)).await
}

/// Returns an error's text with its innermost cause.
fn reason(error: &CallError) -> String {
    let innermost = std::iter::successors(error.source(), |&cause| cause.source()).last();
    innermost.map_or_else(|| error.to_string(), |cause| format!("{error} ({cause})"))
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;
    use crate::cli::client::ErrorReply;

    fn busy(retry_after: Option<Duration>) -> CallError {
        let body = serde_json::Value::Null;
        let status = StatusCode::SERVICE_UNAVAILABLE;
        CallError::Refused(Box::new(ErrorReply { status, message: "busy".into(), body, retry_after }))
    }

    #[test]
    fn waits_double_up_to_the_maximum() {
        let retry_policy = CallRetries::default();
        let waits: Vec<u64> =
            (1..=9).map(|attempt| retry_policy.wait(attempt, &busy(None)).as_millis() as u64).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]);
        assert_eq!(retry_policy.wait(40, &busy(None)), retry_policy.longest_wait);
    }

    #[test]
    fn a_wait_set_by_the_server_is_used_within_limits() {
        let retry_policy = CallRetries::default();
        assert_eq!(retry_policy.wait(1, &busy(Some(Duration::from_secs(3)))), Duration::from_secs(3));
        assert_eq!(retry_policy.wait(1, &busy(Some(Duration::from_secs(86_400)))), retry_policy.longest_wait);
    }
}
