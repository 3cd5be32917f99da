//! Sends many requests on one connection without waiting for responses. The server responds to all requests in order.

use super::target::Target;
use crate::created;

const REQUESTS: usize = 500;

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_answered_in_order() {
    let target = Target::start().await;
    let client = &target.client;
    let mut exchange = client.open("GET", "/healthz", &[], None).await;
    for number in 0..REQUESTS {
        let body = created(&format!("piped {number}"));
        let request = format!(
            "POST /api/v1/aggregates/piped-{number}/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            client.address,
            client.key,
            body.len()
        );
        exchange.write(&request).await.expect("the server reads the request");
    }
    for number in 0..REQUESTS {
        let answer = exchange.read_until(&format!("\"position\":{},", number + 1)).await;
        assert!(answer.contains("HTTP/1.1 201") && answer.contains(&format!("\"piped-{number}\"")), "{answer}");
    }
    drop(exchange);
    target.end().await;
}
