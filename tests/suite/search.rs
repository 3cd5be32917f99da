//! Measures how often a search ranks the intended article first. The tests search the articles of a small handbook. If
//! `FOLDWORK_SHARED` names a folder with recorded titles, the tests also search these titles.

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::workspace::search::SearchRequest;
use foldwork_tests::articles::{self, Articles};
use foldwork_tests::misspellings::{Chance, Change};
use foldwork_tests::server::Server;
use strum::VariantArray;

const QUERIES: usize = 200;
const SEED: u64 = 2026;

#[tokio::test(flavor = "multi_thread")]
async fn search_ranks_the_intended_article_first_for_95_percent_of_the_queries() {
    found_first(articles::handbook()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn search_over_recorded_titles_ranks_the_intended_article_first_for_95_percent_of_the_queries() {
    let Some(articles) = articles::articles() else { return };
    found_first(articles).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_after_many_appends_finds_the_new_aggregates() {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let search = |query: String| workspace.reader.search(SearchRequest { query, ..SearchRequest::default() });
    assert!(search("an index".to_owned()).await.expect("an answer").results.is_empty());
    for round in 0..2 {
        let number = |index: usize| round * 6_000 + index;
        for from in (0..6_000).step_by(1_000) {
            let events = (from..from + 1_000).map(|index| NewEvent {
                aggregate_id: format!("a{}", number(index)),
                aggregate_type: "article".into(),
                event_type: "article.created".into(),
                payload: [("title", format!("number {}", number(index)))].into_iter().collect(),
                ..NewEvent::default()
            });
            workspace.writer.append_events(events.collect()).await.expect("appended");
        }
        for index in (0..6_000).step_by(997) {
            let title = format!("number {}", number(index));
            let answer = search(title.clone()).await.expect("an answer");
            assert!(answer.warnings.is_empty(), "{:?}", answer.warnings);
            assert!(answer.results.iter().any(|found| *found.label == *title), "a search for '{title}'");
        }
    }
}

async fn found_first(articles: Articles) {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let mut titles: Vec<String> = Vec::new();
    for (id, article) in articles.into_iter().filter(|(_, article)| !article.deleted) {
        titles.push(article.text("title").to_owned());
        let searched = article.payload.into_iter().filter(|(name, _)| matches!(&**name, "title" | "body"));
        let event = NewEvent {
            aggregate_id: id,
            aggregate_type: "article".into(),
            event_type: "article.created".into(),
            payload: searched.collect(),
            ..NewEvent::default()
        };
        workspace.writer.append_events(vec![event]).await.expect("appended");
    }
    let mut chance = Chance::new(SEED);
    let (mut first, mut in_five, mut missed) = (0, 0, Vec::new());
    for number in 0..QUERIES {
        let title = &titles[chance.below(titles.len())];
        let change = Change::VARIANTS[number % Change::VARIANTS.len()];
        let query = change.of(title, &mut chance);
        let found = workspace
            .reader
            .search(SearchRequest { query: query.clone(), ..SearchRequest::default() })
            .await
            .expect("an answer");
        let place = found.results.iter().position(|found| *found.label == **title);
        first += usize::from(place == Some(0));
        in_five += usize::from(place.is_some_and(|place| place < 5));
        if place != Some(0) {
            missed.push(format!("{change:?} '{query}' for '{title}': {place:?}"));
        }
    }
    let share = |count: usize| 100.0 * count as f64 / QUERIES as f64;
    eprintln!("first {:.1} %, in five {:.1} %\n{}", share(first), share(in_five), missed.join("\n"));
    assert!(share(first) >= 95.0 && share(in_five) >= 99.0, "first {first}, in five {in_five} of {QUERIES}");
}
