//! Functions for Markdown: CommonMark with tables, footnotes and strikethrough.

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use rhai::{Dynamic, Engine, INT, ImmutableString, Map, NativeCallContext};

use super::listing::Listing;
use super::registration::{Refused, function, too_large};
use super::text::start_of;
use crate::script::guard::{checkpoint, count_read};

/// The number of entries that each link or heading in a list counts as: one for its map, and one for each of the map's
/// two fields.
const ENTRIES_PER_ITEM: usize = 3;

pub(super) fn register(engine: &mut Engine) {
    function(
        "markdown_text",
        &["markdown: string", "string"],
        "Returns the plain text of Markdown, one line per block. Code is kept.",
        r##"markdown_text("# A *title*\n\nAnd `code`.") == "A title\nAnd code.""##,
    )
    .register_into_engine(engine, |context: NativeCallContext, markdown: &str| {
        let text = markdown_text(markdown)?;
        let most = context.engine().max_string_size();
        match text.len() > most {
            true => Err(too_large(format!(
                "a text of more than {most} bytes (pass the maximum number of bytes to read as the last argument) is"
            ))),
            false => Ok::<_, Refused>(ImmutableString::from(text)),
        }
    });
    function(
        "markdown_text",
        &["markdown: string", "most: int", "map"],
        "Returns the plain text of the first `most` bytes of Markdown as `#{text, more}`. `more` is true if something \
         is left out.",
        r##"markdown_text("# A *title*\n\nAnd `code`.", 11) == #{text: "A title", more: true}"##,
    )
    .register_into_engine(engine, |context: NativeCallContext, markdown: &str, most: INT| {
        let (read, more) = start_of(markdown, most)?;
        let text = markdown_text(read)?;
        let (text, is_cut) = start_of(&text, INT::try_from(context.engine().max_string_size()).unwrap_or(INT::MAX))?;
        let entries = [("text".into(), text.into()), ("more".into(), Dynamic::from_bool(more || is_cut))];
        Ok::<_, Refused>(Map::from_iter(entries))
    });
    function(
        "markdown_links",
        &["markdown: string", "array"],
        "Lists the links of Markdown as `#{text, url}`: inline links, reference links and autolinks.",
        r##"markdown_links("[a](b.md) <http://c.d>") == [#{text: "a", url: "b.md"}, #{text: "http://c.d", url: "http://c.d"}]"##,
    )
    .register_into_engine(engine, |context: NativeCallContext, markdown: &str| {
        markdown_links(markdown, Listing::new(&context, ENTRIES_PER_ITEM, None)?)?.whole("links")
    });
    function(
        "markdown_links",
        &["markdown: string", "most: int", "map"],
        "Lists the first `most` links of Markdown as `#{items, more}`. `more` is true if the text has further links.",
        r##"markdown_links("[a](b.md) <http://c.d>", 1) == #{items: [#{text: "a", url: "b.md"}], more: true}"##,
    )
    .register_into_engine(engine, |context: NativeCallContext, markdown: &str, max_items: INT| {
        markdown_links(markdown, Listing::new(&context, ENTRIES_PER_ITEM, Some(max_items))?).map(Listing::bounded)
    });
    function(
        "markdown_headings",
        &["markdown: string", "array"],
        "Lists the headings of Markdown as `#{level, text}`.",
        r##"markdown_headings("# One\n\nText\n\n## Two") == [#{level: 1, text: "One"}, #{level: 2, text: "Two"}]"##,
    )
    .register_into_engine(engine, |context: NativeCallContext, markdown: &str| {
        markdown_headings(markdown, Listing::new(&context, ENTRIES_PER_ITEM, None)?)?.whole("headings")
    });
    function(
        "markdown_headings",
        &["markdown: string", "most: int", "map"],
        "Lists the first `most` headings of Markdown as `#{items, more}`. `more` is true if the text has further \
         headings.",
        r##"markdown_headings("# One\n\n## Two", 1) == #{items: [#{level: 1, text: "One"}], more: true}"##,
    )
    .register_into_engine(engine, |context: NativeCallContext, markdown: &str, max_items: INT| {
        markdown_headings(markdown, Listing::new(&context, ENTRIES_PER_ITEM, Some(max_items))?).map(Listing::bounded)
    });
}

fn parser(markdown: &str) -> Parser<'_> {
    count_read(markdown);
    Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH)
}

fn markdown_text(markdown: &str) -> Result<String, Refused> {
    let mut text = String::with_capacity(markdown.len());
    for event in parser(markdown) {
        checkpoint()?;
        match event {
            Event::Text(part) | Event::Code(part) => text.push_str(&part),
            Event::SoftBreak => text.push(' '),
            Event::HardBreak => text.push('\n'),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::Item
                | TagEnd::CodeBlock
                | TagEnd::TableHead
                | TagEnd::TableRow,
            ) => end_line(&mut text),
            Event::End(TagEnd::TableCell) => text.push(' '),
            _ => {}
        }
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

fn end_line(text: &mut String) {
    text.truncate(text.trim_end_matches(' ').len());
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

fn markdown_links(markdown: &str, mut links: Listing) -> Result<Listing, Refused> {
    // The target of the open link, and the link's text so far.
    let mut open: Option<(ImmutableString, String)> = None;
    for event in parser(markdown) {
        checkpoint()?;
        match event {
            Event::Start(Tag::Link { link_type, dest_url, .. }) => {
                let mail = if link_type == LinkType::Email { "mailto:" } else { "" };
                open = Some((format!("{mail}{dest_url}").into(), String::new()));
            }
            Event::End(TagEnd::Link) => {
                let Some((url, text)) = open.take() else { continue };
                let link = || {
                    let entries = [("text".into(), text.as_str().into()), ("url".into(), Dynamic::from(url.clone()))];
                    Dynamic::from_map(Map::from_iter(entries))
                };
                if !links.push(text.len() + url.len(), link) {
                    break;
                }
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some((_, text)) = &mut open {
                    text.push_str(&part);
                }
            }
            _ => {}
        }
    }
    Ok(links)
}

fn markdown_headings(markdown: &str, mut headings: Listing) -> Result<Listing, Refused> {
    let mut open: Option<(INT, String)> = None;
    for event in parser(markdown) {
        checkpoint()?;
        match event {
            Event::Start(Tag::Heading { level, .. }) => open = Some((level as INT, String::new())),
            Event::End(TagEnd::Heading(_)) => {
                let Some((level, text)) = open.take() else { continue };
                let heading = || {
                    let entries = [("level".into(), Dynamic::from_int(level)), ("text".into(), text.trim().into())];
                    Dynamic::from_map(Map::from_iter(entries))
                };
                if !headings.push(text.trim().len(), heading) {
                    break;
                }
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some((_, text)) = &mut open {
                    text.push_str(&part);
                }
            }
            _ => {}
        }
    }
    Ok(headings)
}
