//! Resets the connections of requests that revoke keys. Afterwards, each key is either listed and valid, or not listed
//! and invalid.

use std::time::Instant;

use super::target::Target;
use super::{inconsistent, key, moments, reset_after, until};

const KEYS: u32 = 80;

#[tokio::test(flavor = "multi_thread")]
async fn exactly_the_listed_keys_are_valid_after_aborted_revocations() {
    let target = Target::start().await;
    let client = &target.client;
    let mut keys = Vec::new();
    for number in 0..KEYS {
        let (id, holder) = key(client, &format!("key {number}"), None).await;
        // Uses the key once, so that the server caches the key.
        assert_eq!(holder.send("GET", "/api/v1/keys/self", "").await.0, 200);
        keys.push((id, holder));
    }
    let (last, _) = key(client, "revoked in peace", None).await;
    let began = Instant::now();
    assert_eq!(client.send("DELETE", &format!("/api/v1/keys/{last}"), "").await.0, 204);
    for (moment, (id, _)) in moments(began.elapsed(), KEYS).zip(&keys) {
        reset_after(client, ("DELETE", &format!("/api/v1/keys/{id}"), ""), moment).await;
    }
    // Some revocations may still be in progress.
    until(async || inconsistent(client, &keys).await).await;
    target.end().await;
}
