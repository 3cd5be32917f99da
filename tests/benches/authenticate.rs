//! Measures the time of authenticating a key or token that was authenticated before. Almost every request has this
//! cost.

use std::sync::Arc;
use std::time::Instant;

use foldwork_engine::{FetchKeys, Reader, Store};
use foldwork_tests::embedded::{engine, first};
use foldwork_tests::issuer::{AUDIENCE, ISSUER, Provider, SigningKey};
use jsonwebtoken::Algorithm;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ROUNDS: usize = 21;
const CALLS: usize = 5_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let engine = engine(Store::connect("mem://").await.expect("a store")).await;
    let signing = SigningKey::new("one", Algorithm::ES256);
    let provider: Arc<dyn FetchKeys> = Provider::with(&[&signing]);
    engine.configure_access(Provider::settings(&["ES256"]), &provider).expect("valid settings");
    let (_, key) = first(&engine).await.expect("a workspace");
    let claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": 4_000_000_000u64, "email": "ada@example.com",
        "email_verified": true, "app_metadata": {"provider": "email"}, "session_id": "0",
    });
    let token = signing.sign(&claims);
    for (name, bearer) in [("key", &key), ("token", &token)] {
        let began = Instant::now();
        engine.authenticate(bearer).await.expect("a caller");
        let cold_us = began.elapsed().as_secs_f64() * 1e6;
        let mut rounds = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let began = Instant::now();
            for _ in 0..CALLS {
                let caller = engine.authenticate(bearer).await.expect("a caller");
                drop(std::hint::black_box(engine.enter::<Reader>(caller).await.expect("a right")));
            }
            rounds.push(began.elapsed().as_secs_f64() * 1e6 / CALLS as f64);
        }
        rounds.sort_by(f64::total_cmp);
        println!(
            "{name:<5} of {:>4} bytes: first {cold_us:>7.0} us, then {:.2} us a request (slowest round {:.2} us)",
            bearer.len(),
            rounds[ROUNDS / 2],
            rounds[ROUNDS - 1],
        );
    }
}
