//! Tests links to files. A link is valid for one path and for one hour. A link that a content reader received is valid
//! only while the article is published.

use anyhow::Context;
use foldwork_tests::server::Server;
use poem::http::StatusCode;
use poem::{Body, Request};
use serde_json::Value;

/// Stores a file and returns a link to it.
async fn linked(server: &Server, filename: &str) -> anyhow::Result<String> {
    let owner = server.key("owner").context("the server has no key of the owner")?;
    let workspace = server.workspace("owner").await?.reader.record().id.to_string();
    let path = format!("/api/v1/files/{workspace}/_/_/_/{filename}");
    let request = |method: &str| {
        let request = Request::builder().method(method.parse().expect("a method")).uri(path.parse().expect("a path"));
        request.header("authorization", format!("Bearer {owner}"))
    };
    server.call(request("PUT").body(Body::from(filename.to_owned()))).await;
    let link = server.call(request("GET").finish()).await.into_body().into_string().await?;
    let link: Value = serde_json::from_str(&link)?;
    Ok(link["url"].as_str().context("the response has no link")?.to_owned())
}

async fn fetched(server: &Server, url: &str) -> (StatusCode, String) {
    let response = server.call(Request::builder().uri(url.parse().expect("a URL")).finish()).await;
    (response.status(), response.into_body().into_string().await.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_valid_for_one_path_and_one_hour() {
    let server = Server::start().await.expect("a server");
    let one = linked(&server, "one.txt").await.expect("a link");
    let two = linked(&server, "two.txt").await.expect("a link");
    assert_eq!(fetched(&server, &one).await, (StatusCode::OK, "one.txt".into()));
    let part = |url: &str, name: &str| {
        let at = url.find(&format!("{name}=")).expect("a parameter") + name.len() + 1;
        url[at..].split('&').next().expect("a value").to_owned()
    };
    let with = |url: &str, name: &str, value: &str| {
        url.replace(&format!("{name}={}", part(url, name)), &format!("{name}={value}"))
    };
    let later = part(&one, "exp").parse::<i64>().expect("a time") + 1;
    let altered = [
        one.replace("one.txt", "two.txt"),
        with(&one, "sig", &part(&two, "sig")),
        with(&one, "exp", &later.to_string()),
        with(&one, "kid", "another"),
        with(&one, "sig", &part(&one, "sig").replace(|letter: char| letter != 'A', "A")),
        with(&one, "sig", ""),
        with(&one, "exp", "never"),
        one.split('?').next().expect("a path").to_owned(),
    ];
    for url in altered {
        let (status, body) = fetched(&server, &url).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{url} returned {body}");
        assert!(body.contains("invalid_link"), "{body}");
    }
    server.clock.advance(60 * 60 * 1_000 - 1);
    assert_eq!(fetched(&server, &one).await.0, StatusCode::OK);
    server.clock.advance(1);
    assert_eq!(fetched(&server, &one).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_of_a_content_reader_is_valid_only_while_the_article_is_published() {
    let server = Server::start().await.expect("a server");
    let owner = server.workspace("owner").await.expect("a workspace");
    let call = async |method: &str, path: String, key: &str, body: &str| {
        let request = Request::builder().method(method.parse().expect("a method")).uri(path.parse().expect("a path"));
        let request = request.header("authorization", format!("Bearer {}", server.key(key).expect("a key")));
        let answer = server.call(request.header("content-type", "application/json").body(Body::from(body.to_owned())));
        let answer = answer.await;
        (answer.status(), serde_json::from_str::<Value>(&answer.into_body().into_string().await.expect("a text")))
    };
    let (_, article) = call("POST", "/api/v1/articles".into(), "owner", r#"{"title":"x"}"#).await;
    let article = article.expect("JSON")["aggregate_id"].as_str().expect("an id").to_owned();
    let publish = async |verb: &str| {
        let (status, _) = call("POST", format!("/api/v1/articles/{article}/{verb}"), "owner", "").await;
        assert_eq!(status, StatusCode::OK, "{verb}");
    };
    let path = format!("/api/v1/files/{}/_/article/{article}/one.txt", owner.reader.record().id);
    assert_eq!(call("PUT", path.clone(), "owner", "bytes").await.0, StatusCode::CREATED);
    publish("publish").await;
    let link = async |key: &str| {
        let (status, link) = call("GET", path.clone(), key, "").await;
        assert_eq!(status, StatusCode::OK);
        link.expect("JSON")["url"].as_str().expect("a URL").to_owned()
    };
    let (of_reader, of_owner) = (link("content").await, link("owner").await);
    for url in [&of_reader, &of_owner] {
        assert_eq!(fetched(&server, url).await, (StatusCode::OK, "bytes".into()));
    }
    publish("unpublish").await;
    let (status, body) = fetched(&server, &of_reader).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
    assert_eq!(fetched(&server, &of_owner).await.0, StatusCode::OK, "the owner may read drafts");
    for altered in ["", "of=everything&"] {
        let url = of_reader.replace("of=published&", altered);
        assert_eq!(fetched(&server, &url).await.0, StatusCode::FORBIDDEN);
    }
    publish("publish").await;
    assert_eq!(fetched(&server, &of_reader).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_stays_valid_after_its_signing_key_is_replaced() {
    const MINUTE: i64 = 60 * 1_000;
    let server = Server::start().await.expect("a server");
    linked(&server, "one.txt").await.expect("a link");
    server.clock.advance(24 * 60 * MINUTE - 10 * MINUTE);
    let old = linked(&server, "one.txt").await.expect("a link");
    server.clock.advance(20 * MINUTE);
    let new = linked(&server, "one.txt").await.expect("a link");
    let key = |url: &str| url.split("kid=").nth(1).and_then(|rest| rest.split('&').next()).map(str::to_owned);
    assert_ne!(key(&old), key(&new));
    assert_eq!(fetched(&server, &old).await.0, StatusCode::OK);
    server.clock.advance(40 * MINUTE);
    assert_eq!(fetched(&server, &old).await.0, StatusCode::FORBIDDEN);
    assert_eq!(fetched(&server, &new).await.0, StatusCode::OK);
}
