//! Returns references to the pages to which a link may lead. The references follow the rules of Obsidian, Hugo, Jekyll,
//! Docusaurus and Zola.
//!
//! The site generator of a project is not known. Therefore the rules of all generators are tried, the rules for paths
//! first. [`foldwork_engine::model::page`] describes the forms of references.

use foldwork_engine::model::page::{is_index, is_markdown, stem};
use percent_encoding::percent_decode_str;

use super::file_names::{has_suffix, is_file, last};
use super::site_tags::{HUGO_REF, JEKYLL_LINK, JEKYLL_POST};

/// The maximum length of a link and of a reference, in bytes.
const MAX_BYTES: usize = 500;
/// The maximum length of a URL, in bytes. Percent encoding of the argument of a template tag makes the URL that
/// replaces the tag up to three times as long. Any other URL has at most [`MAX_BYTES`] bytes, because the
/// URL is the link.
const MAX_URL_BYTES: usize = 3 * MAX_BYTES;
/// The names of wikilinks that site generators and code hosts replace with a table of contents. If the project has a
/// note with the same name, the wikilink leads to the note. Without such a note, the wikilink does not count as broken.
const TABLES_OF_CONTENTS: [&str; 2] = ["toc", "_toc_"];
/// The maximum number of folders above a page that are tried as the root of its site.
const MAX_ROOTS: usize = 4;
/// The suffixes of attachments. A wikilink to an attachment is not a link to a page.
const ATTACHMENTS: [&str; 26] = [
    "3gp", "avif", "base", "bmp", "canvas", "flac", "gif", "jpeg", "jpg", "m4a", "mkv", "mov", "mp3", "mp4", "oga",
    "ogg", "ogv", "opus", "pdf", "png", "svg", "wav", "webm", "webp", "css", "json",
];
/// The suffixes of data files and documents, to which a wikilink may lead. Any other text after a dot may be the end of
/// a page's name, as in `[[Node.js]]` and `[[Meeting 12.March]]`.
const DATA_FILES: [&str; 26] = [
    "bib", "csv", "doc", "docx", "epub", "gz", "htm", "html", "ics", "ipynb", "odp", "ods", "odt", "ppt", "pptx",
    "rtf", "tar", "toml", "tsv", "txt", "xls", "xlsx", "xml", "yaml", "yml", "zip",
];

/// A function that returns the references for the target of a link. The arguments are the target and the path of the
/// page that contains the link.
type ReferencesOf = fn(&str, &str) -> Vec<String>;

/// A link to another page.
#[derive(Debug, PartialEq)]
pub(super) struct PageLink {
    /// The link as it is written. `None` if the link may lead to a file that is not a page. Such a link does not count
    /// as broken, even if no page matches.
    pub text: Option<String>,
    /// The references to the page. The first reference that matches a page counts.
    pub references: Vec<String>,
}

/// Returns the link to a URL. Returns `None` if the URL is too long, has no path, contains a template tag, or leads to
/// another site. `from` is the path of the page with the link.
pub(super) fn of_url(url: &str, from: &str) -> Option<PageLink> {
    if url.len() > MAX_URL_BYTES {
        return None;
    }
    let path = url.split(['#', '?']).next().unwrap_or_default();
    let tags: [(&str, ReferencesOf); 3] = [(HUGO_REF, of_hugo), (JEKYLL_LINK, of_site), (JEKYLL_POST, of_post)];
    for (scheme, references) in tags {
        if let Some(argument) = path.strip_prefix(scheme) {
            let argument = decoded(argument);
            let path = argument.split('#').next().unwrap_or_default();
            return link(&argument, path, has_suffix(path), references(path, from));
        }
    }
    if path.is_empty() || is_external(url) || url.contains("{{") || url.contains("{%") {
        return None;
    }
    let decoded = decoded(path);
    let path = [".html", ".htm"].into_iter().find_map(|suffix| decoded.strip_suffix(suffix)).unwrap_or(&decoded);
    // In Docusaurus, `@site/` is the root of the site. In Zola, `@/` is the root of the content.
    let from_root = ["@site/", "@/", "/"].into_iter().find_map(|root| path.strip_prefix(root));
    let references = match from_root {
        Some(path) => of_site(path, from),
        None => of_relative(path, from),
    };
    let is_outside = from_root.is_none() && is_outside(&references);
    // Code hosts show a README, in which a link without the suffix of a file leads to a folder, not to a page.
    let may_be_file = is_outside || is_file(&decoded) || is_readme(last(from));
    link(url, path, may_be_file, references)
}

/// Returns the link to the target of a wikilink. Returns `None` if the target is too long, contains characters that
/// Obsidian does not allow in names, or is an attachment or a heading of the page itself. `from` is the path of the
/// page with the link.
pub(super) fn of_wikilink(target: &str, from: &str) -> Option<PageLink> {
    if target.len() > MAX_BYTES {
        return None;
    }
    let name = target.split('#').next().unwrap_or_default().trim().trim_end_matches('\\').trim_end();
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix.to_ascii_lowercase()).unwrap_or_default();
    // Obsidian does not allow these characters in names, so the brackets do not belong to a link.
    if name.is_empty() || name.contains(['*', '"', '\\', '<', '>', ':', '|', '?']) {
        return None;
    }
    if ATTACHMENTS.contains(&suffix.as_str()) {
        return None;
    }
    let file = with_suffix(name);
    let references = if file.starts_with('/') {
        vec![file]
    } else if file.starts_with("./") || file.starts_with("../") {
        vec![joined(folder(from), &file).unwrap_or(format!("/{file}"))]
    } else if file.contains('/') {
        vec![format!("/{file}"), file]
    } else if is_index(&file) {
        vec![joined(folder(from), &file).unwrap_or_default(), file]
    } else {
        vec![file]
    };
    let is_table_of_contents = TABLES_OF_CONTENTS.iter().any(|table| table.eq_ignore_ascii_case(name));
    let may_be_file = is_table_of_contents || DATA_FILES.contains(&suffix.as_str());
    link(target.trim_end_matches('\\'), name, may_be_file, references)
}

/// Returns a link with its distinct references, or `None` if `path` is empty, `text` is too long, or no reference is
/// valid. `is_file` states that the link may lead to a file that is not a page. If `path` names a Markdown file,
/// `is_file` is ignored.
fn link(text: &str, path: &str, is_file: bool, given: Vec<String>) -> Option<PageLink> {
    let mut references = Vec::with_capacity(given.len());
    for reference in given {
        if !reference.is_empty() && reference.len() <= MAX_BYTES && !references.contains(&reference) {
            references.push(reference);
        }
    }
    if path.is_empty() || text.len() > MAX_BYTES || references.is_empty() {
        return None;
    }
    let text = (is_markdown(path) || !is_file).then(|| text.to_owned());
    Some(PageLink { text, references })
}

/// Returns the references of a path that begins at the root of the site. The root of the site may be any folder above
/// the page.
fn of_site(path: &str, from: &str) -> Vec<String> {
    let path = path.trim_start_matches('/');
    let bare = path.trim_end_matches('/');
    if !bare.contains('/') {
        // A reference with only this segment would match pages anywhere in the project.
        return from_roots(path, from).collect();
    }
    let mut references = vec![format!("/{path}"), path.to_owned()];
    // In Jekyll, the categories of a post come before its date.
    if let Some((slash, _)) = bare.rmatch_indices('/').nth(3) {
        let dated = bare.get(slash + 1..).unwrap_or_default();
        let is_number = |text: &str| text.len() >= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        if dated.split('/').take(3).all(is_number) {
            references.push(dated.to_owned());
        }
    }
    references
}

/// Returns one reference for each folder that may be the root of the site: first the root of the project, then at most
/// [`MAX_ROOTS`] folders above the page, outermost first. A reference is the path of the folder, followed by `path`.
fn from_roots(path: &str, from: &str) -> impl Iterator<Item = String> {
    let folders = from.match_indices('/').take(MAX_ROOTS).filter_map(|(end, _)| from.get(..end));
    std::iter::once(format!("/{path}")).chain(folders.map(move |folder| format!("/{folder}/{path}")))
}

/// Returns the references of a path that is relative to the page. A path without the suffix of a Markdown file may also
/// be relative to the URL of the page. In this URL, the page itself is the last folder.
fn of_relative(path: &str, from: &str) -> Vec<String> {
    let mut references: Vec<String> = joined(folder(from), path).into_iter().collect();
    if !is_markdown(path) && !is_index(last(from)) {
        references.extend(joined(stem(from), path));
    }
    if !path.starts_with('.') && path.contains('/') {
        // Obsidian resolves such a path from the root of a vault, and Docusaurus from the root of its documents.
        references.extend(from_roots(path, from));
    }
    if is_markdown(path) && !path.contains('/') && !is_index(path) {
        // Obsidian shortens the path of a file to its name if no other file of the vault has this name.
        references.push(format!("*/{path}"));
    }
    if references.is_empty() {
        // The path leads out of the project, so no page matches this reference.
        references.push(format!("/{path}"));
    }
    references
}

/// Returns the references of Hugo's `ref` and `relref`.
fn of_hugo(path: &str, from: &str) -> Vec<String> {
    if path.starts_with('/') {
        return of_site(path, from);
    }
    let mut references: Vec<String> = joined(folder(from), path).into_iter().collect();
    if !path.starts_with("./") && !path.starts_with("../") {
        references.push(path.to_owned());
    }
    references
}

/// Returns the reference of Jekyll's `post_url`. The name of the post may begin with a folder, as in
/// `/news/2020-01-31-a`.
fn of_post(name: &str, _: &str) -> Vec<String> {
    vec![with_suffix(name.trim_start_matches('/'))]
}

/// Returns whether all references lead out of the project, as `../../issues` does in a file that is shown on GitHub.
fn is_outside(references: &[String]) -> bool {
    references.iter().all(|reference| reference.split('/').any(|segment| segment == ".."))
}

/// Joins a relative path to a folder. Returns a reference from the root of the project, or `None` if the path leads out
/// of the project. The reference ends with `/` if the path ends with `/`, `.` or `..`.
fn joined(folder: &str, path: &str) -> Option<String> {
    let mut segments: Vec<&str> = folder.split('/').filter(|segment| !segment.is_empty()).collect();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()?),
            name => segments.push(name),
        }
    }
    let is_folder = matches!(last(path), "" | "." | "..") && !segments.is_empty();
    Some(format!("/{}{}", segments.join("/"), if is_folder { "/" } else { "" }))
}

fn is_readme(file: &str) -> bool {
    stem(file).eq_ignore_ascii_case("readme")
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn with_suffix(name: &str) -> String {
    if is_markdown(name) { name.to_owned() } else { format!("{name}.md") }
}

/// Returns whether a URL contains a scheme or a host.
fn is_external(url: &str) -> bool {
    let scheme = url.split(['/', '?', '#']).next().and_then(|start| start.split_once(':')).map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    };
    url.starts_with("//") || scheme.is_some_and(is_scheme)
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the references of a link in `site/docs/b.md`, with `?` first if the link may lead to a file that is not
    /// a page.
    fn shown(link: Option<PageLink>) -> String {
        let Some(link) = link else { return "none".to_owned() };
        let mark = if link.text.is_none() { "? " } else { "" };
        format!("{mark}{}", link.references.join(" "))
    }

    #[test]
    fn only_urls_in_the_site_have_references_to_pages() {
        for (url, references) in [
            ("a.md", "/site/docs/a.md */a.md"),
            ("a%20b.mkd", "/site/docs/a b.mkd */a b.mkd"),
            ("README.md", "/site/docs/README.md"),
            ("./a%20b.md?x=1#c", "/site/docs/a b.md"),
            ("../guide/a.md", "/site/guide/a.md"),
            ("guide/a.md", "/site/docs/guide/a.md /guide/a.md /site/guide/a.md"),
            ("../../../a.md", "/../../../a.md"),
            ("a", "/site/docs/a /site/docs/b/a"),
            ("../a/", "/site/a/ /site/docs/a/"),
            ("..", "/site/ /site/docs/"),
            ("a.html", "/site/docs/a /site/docs/b/a"),
            ("/a", "/a /site/a /site/docs/a"),
            ("/docs/a/", "/docs/a/ docs/a/"),
            ("/", "/ /site/ /site/docs/"),
            ("/news/2020/01/31/a.html", "/news/2020/01/31/a news/2020/01/31/a 2020/01/31/a"),
            ("@site/docs/a.md", "/docs/a.md docs/a.md"),
            ("@/docs/a.md", "/docs/a.md docs/a.md"),
            ("@/a.md", "/a.md /site/a.md /site/docs/a.md"),
            ("../src/lib.rs", "? /site/src/lib.rs /site/docs/src/lib.rs"),
            ("LICENSE", "? /site/docs/LICENSE /site/docs/b/LICENSE"),
            ("src/", "? /site/docs/src/ /site/docs/b/src/ /src/ /site/src/"),
            ("api/index.html", "? /site/docs/api/index /site/docs/b/api/index /api/index /site/api/index"),
            ("../../../../issues", "? /../../../../issues"),
            ("v1.2", "/site/docs/v1.2 /site/docs/b/v1.2"),
            ("%FF", "/site/docs/%FF /site/docs/b/%FF"),
            ("https://example.org/a.md", "none"),
            ("//example.org/a.md", "none"),
            ("mailto:a@b.c", "none"),
            ("#heading", "none"),
            ("?query", "none"),
            ("{{page}}", "none"),
            ("x-hugo-ref:a%2Emd%23c", "/site/docs/a.md a.md"),
            ("x-hugo-ref:%2Fposts%2Fa#c", "/posts/a posts/a"),
            ("x-hugo-ref:%23c", "none"),
            ("x-jekyll-link:%5Fposts%2Fa%2Emd", "/_posts/a.md _posts/a.md"),
            ("x-jekyll-link:assets%2Fa%2Epdf", "? /assets/a.pdf assets/a.pdf"),
            ("x-jekyll-post:2020%2D01%2D01%2Da", "2020-01-01-a.md"),
            ("x-jekyll-post:%2Fnews%2F2020%2D01%2D01%2Da", "news/2020-01-01-a.md"),
        ] {
            assert_eq!(shown(of_url(url, "site/docs/b.md")), references, "{url}");
        }
        // The address of an index page is its folder.
        assert_eq!(shown(of_url("a", "docs/b/index.md")), "/docs/b/a");
        for (url, references) in [("docs/", "? /docs/"), ("/docs", "? /docs"), ("docs/a.md", "/docs/a.md")] {
            assert_eq!(shown(of_url(url, "README.md")), references, "{url}");
        }
    }

    #[test]
    fn only_wikilinks_that_can_name_a_page_have_references() {
        for (target, references) in [
            ("a", "a.md"),
            ("a.md", "a.md"),
            ("a b#c", "a b.md"),
            ("A 1.2^c", "A 1.2^c.md"),
            ("x/a#c|d", "/x/a.md x/a.md"),
            ("a\\", "a.md"),
            ("/x/a", "/x/a.md"),
            ("../a", "/site/a.md"),
            ("README", "/site/docs/README.md README.md"),
            ("#c", "none"),
            ("a.png", "none"),
            ("data.csv", "? data.csv.md"),
            ("_TOC_", "? _TOC_.md"),
            ("toc", "? toc.md"),
            ("x/Report.DOCX", "? /x/Report.DOCX.md x/Report.DOCX.md"),
            ("Node.js", "Node.js.md"),
            ("ASP.NET", "ASP.NET.md"),
            ("Meeting 12.March", "Meeting 12.March.md"),
            ("lang.rust.traits", "lang.rust.traits.md"),
            ("https://example.org", "none"),
            ("'\\(', '\\)'", "none"),
        ] {
            assert_eq!(shown(of_wikilink(target, "site/docs/b.md")), references, "{target}");
        }
    }
}
