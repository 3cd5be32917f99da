//! Sends bodies byte by byte. The bodies block no other requests, and are processed when they are complete.

use super::target::Target;
use crate::created;

const CONNECTIONS: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_do_not_block_other_requests() {
    let target = Target::start().await;
    let client = &target.client;
    let bodies: Vec<String> = (0..CONNECTIONS).map(|number| created(&format!("slow {number:03}"))).collect();
    let mut slow = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        let length = body.len().to_string();
        let headers = [("Content-Type", "application/json"), ("Content-Length", length.as_str())];
        slow.push(client.open("POST", &format!("/api/v1/aggregates/slow-{number}/events"), &headers, None).await);
    }
    for at in 0..bodies[0].len() {
        for (exchange, body) in slow.iter_mut().zip(&bodies) {
            exchange.write(&body[at..=at]).await.expect("the server still reads the body");
        }
        let (status, answer) =
            client.send("POST", &format!("/api/v1/aggregates/quick-{at}/events"), &created("quick")).await;
        assert_eq!(status, 201, "{answer}");
    }
    for exchange in slow {
        let (status, answer) = exchange.answer().await;
        assert_eq!(status, 201, "{answer}");
    }
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_reset_within_its_body_appends_no_event() {
    let target = Target::start().await;
    let client = &target.client;
    let body = created("half");
    let length = body.len().to_string();
    for number in 0..CONNECTIONS {
        let headers = [("Content-Type", "application/json"), ("Content-Length", length.as_str())];
        let path = format!("/api/v1/aggregates/half-{number}/events");
        let half = client.open("POST", &path, &headers, Some(&body[..body.len() / 2])).await;
        half.reset();
    }
    assert_eq!(client.send("POST", "/api/v1/aggregates/whole/events", &body).await.0, 201);
    let log = super::read(client, "/api/v1/events").await;
    let events = log["data"].as_array().map(Vec::len);
    assert_eq!(events, Some(1), "{log}");
    target.end().await;
}
