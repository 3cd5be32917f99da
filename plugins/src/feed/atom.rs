//! Writes articles as an Atom feed (RFC 4287).

use std::sync::Arc;

use atom_syndication::{Category, Content, Entry, Error, Feed, FixedDateTime, Generator, Link, Person, Text};
use foldwork_engine::model::access::WorkspaceRecord;
use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::article::published_at;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::value::Value;
use uuid::Uuid;

use super::html;
use crate::mount::EndpointRequest;

const ATOM: &str = "application/atom+xml";
/// The maximum size of the Markdown of a body in the feed, in bytes. The entry of an article with a longer body has a
/// link, but no content.
const MAX_BODY_BYTES: usize = 256 << 10;

/// Writes the feed of a workspace or of one of its projects.
pub fn write(
    workspace: &WorkspaceRecord,
    project: Option<&Aggregate>,
    articles: &[Arc<Aggregate>],
    request: &EndpointRequest,
) -> Result<Vec<u8>, Error> {
    let (title, created_at, own) = match project {
        Some(project) => (label(project), project.created_at, project.id.as_str()),
        None => (workspace.name.as_str(), workspace.created_at, "feed"),
    };
    let last = articles.iter().map(|article| article.last_event_at).max().unwrap_or(created_at);
    let query = project.map(|project| format!("?project_id={}", project.id.as_str())).unwrap_or_default();
    let feed = Feed {
        title: Text::plain(text(title)),
        // The prefix `feed/` distinguishes the feed's id from the id of the project.
        id: urn(&workspace.id, &format!("feed/{own}")),
        updated: date(last),
        authors: vec![Person { name: text(&workspace.name), ..Person::default() }],
        generator: Some(Generator { value: "Foldwork".into(), ..Generator::default() }),
        links: vec![link("self", format!("{}{query}", request.url), ATOM)],
        entries: articles.iter().map(|article| entry(workspace, article, &request.api_url)).collect(),
        ..Feed::default()
    };
    feed.write_to(Vec::new())
}

fn entry(workspace: &WorkspaceRecord, article: &Aggregate, api_url: &str) -> Entry {
    let field = |name: &str| article.state.get(name).and_then(Value::as_str);
    let tags = article.state.get("tags").and_then(Value::as_array).unwrap_or_default();
    let terms = tags.iter().filter_map(Value::as_str);
    let content = field("body").filter(|body| body.len() <= MAX_BODY_BYTES).map(|body| Content {
        content_type: Some("html".into()),
        value: Some(text(&html::rendered(body))),
        ..Content::default()
    });
    let url = format!("{api_url}/articles/{}?perspective=published", article.id.as_str());
    Entry {
        title: Text::plain(text(label(article))),
        id: urn(&workspace.id, article.id.as_str()),
        updated: date(article.last_event_at),
        published: published_at(article).map(date),
        categories: terms.map(|term| Category { term: text(term), ..Category::default() }).collect(),
        links: vec![link("alternate", url, "application/json")],
        content,
        ..Entry::default()
    }
}

/// Returns the first non-empty text of an aggregate's title, name, slug and id.
fn label(aggregate: &Aggregate) -> &str {
    let field = |name: &str| aggregate.state.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    ["title", "name", "slug"].into_iter().find_map(field).unwrap_or(aggregate.id.as_str())
}

fn link(rel: &str, href: String, media_type: &str) -> Link {
    Link { rel: rel.into(), href: text(&href), mime_type: Some(media_type.into()), ..Link::default() }
}

/// Returns a permanent, globally unique id of an object in a workspace, as a UUID URN. If the object's id is a UUID,
/// the URN contains this UUID. Otherwise the URN contains a UUID derived from the ids of the workspace and the object.
fn urn(workspace_id: &str, id: &str) -> String {
    let namespace = Uuid::try_parse(workspace_id).unwrap_or(Uuid::NAMESPACE_OID);
    let made = || Uuid::new_v5(&namespace, id.as_bytes());
    Uuid::try_parse(id).unwrap_or_else(|_| made()).urn().to_string()
}

/// Returns a time as an Atom date. A time whose year Atom cannot express becomes the Unix epoch.
fn date(ms: i64) -> FixedDateTime {
    format_date(ms).parse().unwrap_or_default()
}

/// Returns the text with each character that XML cannot express replaced by U+FFFD.
fn text(text: &str) -> String {
    let is_written = |c: &char| match c {
        '\t' | '\n' | '\r' => true,
        '\u{FFFE}' | '\u{FFFF}' => false,
        c => *c >= ' ',
    };
    text.chars().map(|c| if is_written(&c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_not_uuids_get_a_stable_feed_id_per_workspace() {
        let workspace = "01890a5d-ac96-774b-bcce-b302099a8057";
        let own = "01890a5d-ac96-774b-bcce-b302099a8058";
        assert_eq!(urn(workspace, own), format!("urn:uuid:{own}"));
        assert_eq!(urn(workspace, "intro"), urn(workspace, "intro"));
        assert_ne!(urn(workspace, "intro"), urn(own, "intro"));
    }

    #[test]
    fn characters_invalid_in_xml_are_replaced() {
        assert_eq!(text("a\u{1}b\u{0}\n\u{FFFF}é"), "a\u{FFFD}b\u{FFFD}\n\u{FFFD}é");
    }

    #[test]
    fn dates_outside_the_calendar_are_converted_without_a_panic() {
        assert_eq!(date(0).to_rfc3339(), "1970-01-01T00:00:00+00:00");
        date(i64::MAX);
        date(i64::MIN);
    }
}
